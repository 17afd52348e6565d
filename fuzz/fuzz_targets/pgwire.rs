//! Checks [`promises_pgwire::pgwire`] with the fuzzer's inputs.
//!
//! Seeds: any bytes. The first byte determines whether the startup message is omitted.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises_pgwire.rs"]
mod promises_pgwire;

fuzz_target!(|data: &[u8]| promises_pgwire::pgwire(data));
