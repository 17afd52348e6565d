//! Words for what went wrong with a port.
//!
//! The server and the collector open one port each; both say the same of one that they cannot have.

use std::io::{Error, ErrorKind};

/// Why a port could not be opened, for people.
pub fn listen_reason(error: &Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => "another program uses the port".to_owned(),
        _ => error.to_string(),
    }
}
