//! Standard output of commands.
//!
//! A reader that closes the pipe early (`| head`) is not an error.

use std::io::{ErrorKind, Write};

use anyhow::Context;

/// Writes all of `bytes` to standard output.
pub(super) fn write(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}
