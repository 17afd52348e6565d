//! Checks [`promises::selector`] with the fuzzer's inputs.
//!
//! The same parser also reads queries (`TYPE{...}`).

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises.rs"]
#[allow(dead_code, reason = "every target uses only its own promise")]
mod promises;

fuzz_target!(|text: &str| promises::selector(text));
