//! [`promises::trees`] for whatever the fuzzer thinks of.
//!
//! Seeds: none needed; a byte, and what `/ingest` takes as `tree` or `trie`, is a good one.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../promises.rs"]
#[allow(dead_code, reason = "every target takes its own promise")]
mod promises;

fuzz_target!(|data: &[u8]| promises::trees(data));
