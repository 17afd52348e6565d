//! Checks [`promises::pprof_decode`] with the fuzzer's inputs.
//!
//! Seeds: the uncompressed files of `integration/fixtures/pprof`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises.rs"]
#[allow(dead_code, reason = "every target uses only its own promise")]
mod promises;

fuzz_target!(|data: &[u8]| promises::pprof_decode(data));
