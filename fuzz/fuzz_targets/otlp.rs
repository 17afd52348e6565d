//! Checks [`promises::otlp`] with the fuzzer's inputs.
//!
//! Seeds: `fuzz/found/otlp`, requests in protobuf after a byte 0, and requests in JSON after a byte 1.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises.rs"]
#[allow(dead_code, reason = "every target uses only its own promise")]
mod promises;

fuzz_target!(|data: &[u8]| promises::otlp(data));
