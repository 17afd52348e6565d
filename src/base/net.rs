//! Host name, loopback addresses, and messages for errors of listening sockets.
//!
//! The server and the collector share these, so that they report the same errors.

use std::io::{Error, ErrorKind};
use std::net::IpAddr;

/// Why a port could not be opened, as a message.
pub(crate) fn listen_reason(error: &Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => "another program uses the port".to_owned(),
        _ => error.to_string(),
    }
}

/// True for a loopback address, which other machines cannot reach.
pub(crate) fn is_this_machine(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The name of this machine; `localhost` when it cannot be read.
pub(crate) fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .or_else(|| std::env::var("HOSTNAME").ok())
        .unwrap_or_else(|| "localhost".to_owned())
}
