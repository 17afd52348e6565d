//! Checks [`promises::trees`] with the fuzzer's inputs.
//!
//! Seeds are optional. A good seed is a byte that selects the format, followed by an `/ingest` body in the format
//! `tree` or `trie`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises.rs"]
#[allow(dead_code, reason = "every target uses only its own promise")]
mod promises;

fuzz_target!(|data: &[u8]| promises::trees(data));
