//! Names of our own code addresses, remembered between profiles.
//!
//! In: a return address. Out: the location of a [`Writer`]. A look-up reads the debug information of the program and costs tens of microseconds;
//! a scrape every few seconds asks for the same addresses again and again. The memory is bounded and forgets all at once.

use std::collections::HashMap;
use std::sync::Arc;

use super::pprof::{Frame, Writer};

/// Addresses remembered; a large program has a few ten thousand call sites that allocate.
const CAPACITY: usize = 1 << 16;

/// The memory.
#[derive(Default)]
pub struct Symbols {
    known: HashMap<u64, Arc<[Named]>>,
}

/// One frame at an address, innermost inlined first.
struct Named {
    function: String,
    file: String,
    line: u32,
}

impl Symbols {
    /// The location of a return address.
    pub fn location(&mut self, writer: &mut Writer, address: u64) -> u64 {
        if self.known.len() >= CAPACITY {
            self.known.clear();
        }
        let named = self.known.entry(address).or_insert_with(|| resolve(address));
        let frames: Vec<_> = named
            .iter()
            .map(|named| Frame {
                function: &named.function,
                file: &named.file,
                line: named.line,
            })
            .collect();
        writer.location(address, &frames)
    }
}

fn resolve(address: u64) -> Arc<[Named]> {
    let mut frames = Vec::new();
    // The crate itself steps back from the return address to the call.
    backtrace::resolve(address as usize as *mut std::ffi::c_void, |symbol| {
        let Some(name) = symbol.name() else { return };
        frames.push(Named {
            function: format!("{name:#}"),
            file: symbol
                .filename()
                .map(|path| path.to_string_lossy().into_owned())
                .unwrap_or_default(),
            line: symbol.lineno().unwrap_or(0),
        });
    });
    frames.into()
}
