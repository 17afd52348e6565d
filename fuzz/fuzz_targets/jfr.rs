//! Checks [`promises::jfr`] with the fuzzer's inputs.
//!
//! Seeds: `fuzz/found/jfr`, and recordings of `java -XX:StartFlightRecording` with a zero byte before them.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises.rs"]
#[allow(dead_code, reason = "every target uses only its own promise")]
mod promises;

fuzz_target!(|data: &[u8]| promises::jfr(data));
