//! Host name, loopback addresses, and errors of listeners.
//!
//! The server and the collector share this module, so that both report the same errors.

use std::io::{Error, ErrorKind};
use std::net::IpAddr;
use std::time::Duration;

/// Pause after a failed accept, so that the accept loop does not spin, for example while no file descriptor is free.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Shortest time between two log lines about failed accepts.
pub const ACCEPT_WARNING: Duration = Duration::from_secs(10);

/// Describes why a listener could not be opened.
pub fn listen_reason(error: &Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => "another program uses the port".to_owned(),
        _ => error.to_string(),
    }
}

/// Returns true if an accept failed because the client disconnected first. The accept loop then continues without a
/// pause, because the next client may be waiting already.
pub fn has_left(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
    )
}

/// Returns true for a loopback address, which other machines cannot reach.
pub fn is_this_machine(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Returns the name of this machine from the kernel or else from the variable `HOSTNAME`, or else `localhost`.
pub fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .or_else(|| std::env::var("HOSTNAME").ok())
        .unwrap_or_else(|| "localhost".to_owned())
}
