//! This machine among others: words for what went wrong with a port, which addresses only it reaches, and its name.
//!
//! The server and the collector open one port each; both say the same of one that they cannot have.

use std::io::{Error, ErrorKind};
use std::net::IpAddr;

/// Why a port could not be opened, for people.
pub(crate) fn listen_reason(error: &Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => "another program uses the port".to_owned(),
        _ => error.to_string(),
    }
}

/// An address that other machines cannot reach.
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
