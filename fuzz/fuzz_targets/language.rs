//! Checks [`promises::language`] with the fuzzer's inputs.
//!
//! Seeds: the cases of `integration/lang`, which `fuzz/seed.sh` splits into files.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises.rs"]
#[allow(dead_code, reason = "every target uses only its own promise")]
mod promises;

fuzz_target!(|data: &[u8]| promises::language(data));
