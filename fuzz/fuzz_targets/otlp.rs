//! Checks [`promises::otlp`] with the fuzzer's inputs.
//!
//! Seeds: `fuzz/found/otlp`, and requests as protobuf with a zero byte before them, or as JSON with a one.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises.rs"]
#[allow(dead_code, reason = "every target takes its own promise")]
mod promises;

fuzz_target!(|data: &[u8]| promises::otlp(data));
