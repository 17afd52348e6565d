//! Checks [`promises::cfi`] with the fuzzer's inputs.
//!
//! Seeds are optional. `.eh_frame` sections of programs are good seeds: `fuzz/seed-elf.sh FOLDER`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises_code.rs"]
#[allow(dead_code, reason = "every target uses only its own promise")]
mod promises;

fuzz_target!(|data: &[u8]| promises::cfi(data));
