//! Checks [`promises::speedscope`] with the fuzzer's inputs.
//!
//! Seeds: files that speedscope's web page exports, and the seeds of `integration/fuzzing.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises.rs"]
#[allow(dead_code, reason = "every target uses only its own promise")]
mod promises;

fuzz_target!(|data: &[u8]| promises::speedscope(data));
