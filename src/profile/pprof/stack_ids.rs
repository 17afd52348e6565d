//! The identity of a stack: a content hash of its frames, so that writers agree on it without communication.
//!
//! A location is hashed once, over its mapping (file, build id) and its lines (function, file, line, inlined). If a
//! location has no lines, its offset in the file or its address is hashed instead. The id of a stack is the hash of the
//! hashes of its locations, leaf first. The ids are stored, so any change of the hash requires a new layout of the
//! tables. The hash does not include column, start line, system name (unless it replaces the name) or address of
//! symbolised frames.

use xxhash_rust::xxh3::xxh3_64;

use crate::pprof::code::Code;
use crate::pprof::model::{Function, Location, Profile};

/// Terminator of a text in a hashed sequence. No UTF-8 text contains this byte.
const END: [u8; 1] = [0xff];

/// Returns the content hash of the stack of each sample, in the order of the samples. A stack without frames also has a
/// hash.
pub fn stack_ids(profile: &Profile<'_>) -> Vec<u64> {
    let hasher = StackHasher::new(profile);
    let mut scratch = Vec::new();
    (0..profile.sample_count())
        .map(|sample| hasher.stack(profile.stack(sample), &mut scratch))
        .collect()
}

/// The hashes of the locations of one profile.
pub(crate) struct StackHasher {
    locations: Vec<u64>,
}

impl StackHasher {
    /// Hashes every function, mapping and location of `profile` once.
    pub(crate) fn new(profile: &Profile<'_>) -> Self {
        let mut bytes = Vec::new();
        let functions: Vec<u64> = profile
            .functions
            .iter()
            .map(|function| hash_texts(function.display_name(), function.file, &mut bytes))
            .collect();
        let mappings: Vec<u64> = profile
            .mappings
            .iter()
            .map(|mapping| hash_texts(mapping.file, mapping.build_id, &mut bytes))
            .collect();
        let no_mapping = hash_texts("", "", &mut bytes);
        let locations = profile
            .locations
            .iter()
            .map(|location| {
                bytes.clear();
                let mapping = match location.mapping {
                    Location::NO_MAPPING => no_mapping,
                    index => mappings[index as usize],
                };
                bytes.extend_from_slice(&mapping.to_le_bytes());
                let lines = profile.lines_of(location);
                if lines.is_empty() {
                    let code = profile.code_of(location);
                    bytes.extend_from_slice(&code.number().to_le_bytes());
                    if let Code::InFile { .. } = code {
                        bytes.extend_from_slice(&END);
                    }
                }
                // All lines of a location except the last are inlined, so the order of the lines determines which of
                // them are inlined.
                for line in lines {
                    bytes.extend_from_slice(&functions[line.function as usize].to_le_bytes());
                    bytes.extend_from_slice(&line.line.to_le_bytes());
                }
                xxh3_64(&bytes)
            })
            .collect();
        Self { locations }
    }

    /// Returns the hash of a stack given as location indices, leaf first. `scratch` is reused from call to call.
    #[inline]
    pub(crate) fn stack(&self, stack: &[u32], scratch: &mut Vec<u8>) -> u64 {
        scratch.clear();
        for &location in stack {
            scratch.extend_from_slice(&self.locations[location as usize].to_le_bytes());
        }
        xxh3_64(scratch)
    }
}

impl<'a> Function<'a> {
    /// Returns the readable name, or the name in the binary if there is no readable name.
    pub fn display_name(&self) -> &'a str {
        if self.name.is_empty() {
            self.system_name
        } else {
            self.name
        }
    }
}

/// Returns the hash of two texts and their boundary. The texts are joined in `scratch` first, because setting up an
/// incremental hash costs more than copying the names.
fn hash_texts(first: &str, second: &str, scratch: &mut Vec<u8>) -> u64 {
    scratch.clear();
    scratch.extend_from_slice(first.as_bytes());
    scratch.extend_from_slice(&END);
    scratch.extend_from_slice(second.as_bytes());
    xxh3_64(scratch)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use xxhash_rust::xxh3::Xxh3;

    use super::*;

    proptest! {
        /// The values are stored, and the first release computed them this way.
        #[test]
        fn two_texts_hash_as_their_pieces_do(first in ".{0,300}", second in ".{0,40}") {
            let mut pieces = Xxh3::new();
            pieces.update(first.as_bytes());
            pieces.update(&END);
            pieces.update(second.as_bytes());
            prop_assert_eq!(hash_texts(&first, &second, &mut vec![1, 2, 3]), pieces.digest());
        }
    }
}
