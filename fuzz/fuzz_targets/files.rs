//! Checks [`promises::files`] with the fuzzer's inputs.
//!
//! Seeds: files of the profilers that `src/wire/files` supports, and the seeds of `integration/fuzzing.rs`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises.rs"]
#[allow(dead_code, reason = "every target uses only its own promise")]
mod promises;

fuzz_target!(|data: &[u8]| promises::files(data));
