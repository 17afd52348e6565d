//! [`promises::files`] for whatever the fuzzer thinks of.
//!
//! Seeds: files of the profilers that `src/wire/files` reads, and those that `integration/fuzzing.rs` begins with.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises.rs"]
#[allow(dead_code, reason = "every target takes its own promise")]
mod promises;

fuzz_target!(|data: &[u8]| promises::files(data));
