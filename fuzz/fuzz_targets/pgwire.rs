//! [`promises_pgwire::pgwire`] for whatever the fuzzer thinks of.
//!
//! Seeds: any bytes. The first one says whether the startup is left out.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises_pgwire.rs"]
mod promises_pgwire;

fuzz_target!(|data: &[u8]| promises_pgwire::pgwire(data));
