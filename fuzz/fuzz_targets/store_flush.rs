//! Checks [`promises_store::StoreOfProfiles`] with the fuzzer's inputs.
//!
//! Seeds: the uncompressed files of `integration/fixtures/pprof`, and the output of `fuzz/seed-poison.sh`.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;

#[path = "../promises_store.rs"]
mod promises_store;

thread_local! {
    static STORE: RefCell<promises_store::StoreOfProfiles> = RefCell::new(promises_store::StoreOfProfiles::new());
}

fuzz_target!(|data: &[u8]| STORE.with_borrow_mut(|store| store.take(data)));
