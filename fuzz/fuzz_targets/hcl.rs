//! Checks [`promises::hcl`] with the fuzzer's inputs.
//!
//! Seeds: the output of `fuzz/seed.sh`, as for the fuzz target `language`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises.rs"]
#[allow(dead_code, reason = "every target uses only its own promise")]
mod promises;

fuzz_target!(|text: &str| promises::hcl(text));
