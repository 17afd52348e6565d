//! Generates stacks and mutates bytes for tests. A test writes the stacks in an upload format, reads the upload, and
//! compares the resulting profiles with the stacks.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::ingest::{IngestQuery, Opening, ReadError, Upload};
use alluvium_profile::{RawProfile, pprof};

/// Folded stacks such as `main;work`, with their values.
pub(super) type Stacks = BTreeMap<String, i64>;

/// Appends a number as a varint.
fn put_varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends a node of `tree` or `trie` without its children.
pub(super) fn put_node(bytes: &mut Vec<u8>, name: &[u8], value: u64, children: usize) {
    put_varint(bytes, name.len() as u64);
    bytes.extend_from_slice(name);
    put_varint(bytes, value);
    put_varint(bytes, children as u64);
}

/// Generates stacks of short names, so that many stacks share names and prefixes.
pub(super) fn stacks() -> impl Strategy<Value = Stacks> {
    let stack = "[a-c\u{e9}\u{ea}]{1,3}(;[a-c\u{e9}\u{ea}]{1,3}){0,4}";
    proptest::collection::btree_map(stack, 1..100_000i64, 0..12)
}

/// Position of a change, its kind, and a byte.
type Change = (prop::sample::Index, u8, u8);

/// Generates one to three changes at arbitrary positions.
pub(super) fn changes() -> impl Strategy<Value = Vec<Change>> {
    proptest::collection::vec(any::<Change>(), 1..4)
}

/// Applies changes: replaces, removes or duplicates bytes, or truncates them.
pub(super) fn changed(mut bytes: Vec<u8>, changes: &[Change]) -> Vec<u8> {
    for (position, change_kind, byte) in changes {
        if bytes.is_empty() {
            break;
        }
        let offset = position.index(bytes.len());
        match change_kind % 5 {
            0 => bytes[offset] = *byte,
            1 => bytes.truncate(offset),
            2 => {
                bytes.remove(offset);
            }
            3 => bytes.insert(offset, *byte),
            _ => bytes.extend_from_within(offset..),
        }
    }
    bytes
}

/// Returns the samples of a profile in order: the names, the root first, and the first value.
pub(super) fn listed(profile: &RawProfile) -> Vec<(Vec<String>, i64)> {
    let decoded = pprof::decode(&profile.pprof).unwrap();
    let sample = |index: usize| {
        let names = decoded.stack(index).iter().rev().map(|location| {
            let line = decoded.lines_of(&decoded.locations[*location as usize])[0];
            decoded.functions[line.function as usize].name.to_owned()
        });
        (names.collect(), decoded.values_of(index)[0])
    };
    (0..decoded.sample_count()).map(sample).collect()
}

/// Returns the sum of the values of each stack in some profiles.
pub(super) fn sums(profiles: &[RawProfile]) -> Stacks {
    let mut sums = Stacks::new();
    for (names, value) in profiles.iter().flat_map(listed) {
        *sums.entry(names.join(";")).or_default() += value;
    }
    sums
}

/// Checks that any bytes give profiles or a refusal. Profiles must be valid and take no more memory than
/// [`Upload::memory`] returns.
pub(super) fn survives(query: &str, body: Vec<u8>) {
    let query = IngestQuery::parse(query, 0).unwrap();
    let opening = Opening::AtMost(1 << 20);
    let upload = Upload::new(&query, "", body.into()).unwrap();
    let read = match upload.memory(opening) {
        Ok(memory) => upload.read(&query, opening).map(|profiles| (profiles, memory)),
        Err(error) => Err(error.into()),
    };
    match read {
        Ok((profiles, memory)) => {
            let used_bytes: usize = profiles.iter().map(|profile| profile.columns.bytes()).sum();
            assert!(used_bytes <= memory, "{used_bytes} of {memory} bytes");
            for profile in profiles {
                let (raw, columns) = profile.into_parts();
                assert_eq!(pprof::decode(&raw.pprof).as_ref(), Ok(columns.get()));
            }
        }
        Err(ReadError::Refused(error)) => assert!([400, 413, 422].contains(&error.status), "{error}"),
        Err(ReadError::LargerThanAnnounced) => panic!("an upload opened with `AtMost` is larger than announced"),
    }
}
