//! Checks [`promises::cfi`] with the fuzzer's inputs.
//!
//! Seeds are optional. `fuzz/seed-elf.sh FOLDER` writes good ones to `FOLDER/cfi`: each is a zero byte, followed by the
//! `.eh_frame` section of a program.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises_code.rs"]
#[allow(dead_code, reason = "every target uses only its own promise")]
mod promises;

fuzz_target!(|data: &[u8]| promises::cfi(data));
