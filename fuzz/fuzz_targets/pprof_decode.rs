//! Any bytes are a profile or an error; what is a profile survives encode and decode, has stack ids, and gives a tree that loses nothing.
//!
//! Seeds: the uncompressed files of `integration/fixtures/pprof`.

#![no_main]

use alluvium::profile::flamegraph::Tree;
use alluvium::profile::pprof;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(profile) = pprof::decode(data) else {
        return;
    };
    assert_eq!(pprof::stack_ids(&profile).len(), profile.sample_count());
    let encoded = pprof::encode(&profile);
    assert_eq!(pprof::decode(&encoded).as_ref(), Ok(&profile));
    let mut tree = Tree::new(true);
    tree.insert_profile(&profile, 0);
    tree.to_flamegraph(64);
    let mut smaller = profile.clone();
    smaller.retain_samples(|sample| sample % 2 == 0);
    smaller.drop_unused();
    assert!(pprof::decode(&pprof::encode(&smaller)).is_ok());
});
