//! Checks [`promises::elf`] with the fuzzer's inputs.
//!
//! Seeds: small programs, made by `fuzz/seed-elf.sh FOLDER`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises_code.rs"]
#[allow(dead_code, reason = "every target uses only its own promise")]
mod promises;

fuzz_target!(|data: &[u8]| promises::elf(data));
