//! [`promises_store::StoreOfProfiles`] for whatever the fuzzer thinks of.
//!
//! Seeds: the uncompressed files of `integration/fixtures/pprof`, and those that `fuzz/seed-poison.sh` writes.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;

#[path = "../promises_store.rs"]
mod promises_store;

thread_local! {
    static STORE: RefCell<promises_store::StoreOfProfiles> = RefCell::new(promises_store::StoreOfProfiles::new());
}

fuzz_target!(|data: &[u8]| STORE.with_borrow_mut(|store| store.take(data)));
