//! The ring: decides which member of a cluster owns which key.
//!
//! In: names of members, and keys, which are hashes of the labels of targets. Out: the owner of each key. Members that
//! know the same names compute the same owner. If a member joins or leaves, only the keys that it gains or loses change
//! their owner.

use std::sync::Arc;

use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// Number of points of each member on the ring, the same as in Alloy: with 512 points, shares differ by about a tenth.
const TOKENS: u64 = 512;

/// Terminates each name and value in the input of a key's hash; this byte does not occur in UTF-8.
const END: u8 = 0xff;

/// Members as points on a circle of numbers. The first point at or after a key determines the owner of the key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ring {
    /// Points of all members, sorted: the position on the circle, and the member's index in `names`.
    tokens: Vec<(u64, u32)>,
    names: Vec<Arc<str>>,
}

impl Ring {
    /// Creates the ring of members with these names, in any order.
    pub(crate) fn new(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        let mut names: Vec<Arc<str>> = names.into_iter().collect();
        names.sort_unstable();
        names.dedup();
        let mut tokens: Vec<(u64, u32)> = (0_u32..)
            .zip(&names)
            .flat_map(|(index, name)| (0..TOKENS).map(move |seed| (xxh3_64_with_seed(name.as_bytes(), seed), index)))
            .collect();
        tokens.sort_unstable();
        Self { tokens, names }
    }

    /// Returns the name of the member that owns a key; `None` if the ring is empty.
    pub(crate) fn owner(&self, key: u64) -> Option<&Arc<str>> {
        let next = self.tokens.partition_point(|(token, _)| *token < key);
        let (_, index) = self.tokens.get(next).or_else(|| self.tokens.first())?;
        self.names.get(usize::try_from(*index).ok()?)
    }
}

/// Computes the key of a target or another object from its labels, which must be sorted by name.
pub fn key<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> u64 {
    let mut hash = Xxh3::new();
    for (name, value) in labels {
        for text in [name, value] {
            hash.update(text.as_bytes());
            hash.update(&[END]);
        }
    }
    hash.digest()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn ring<'a>(names: impl IntoIterator<Item = &'a str>) -> Ring {
        Ring::new(names.into_iter().map(Arc::from))
    }

    fn keys(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(|number| key([("instance", number.to_string().as_str())]))
    }

    #[test]
    fn an_empty_ring_owns_nothing_and_a_ring_of_one_all() {
        assert_eq!(ring([]).owner(1), None);
        let alone = ring(["a"]);
        assert!(
            [0, 1, u64::MAX]
                .iter()
                .all(|key| alone.owner(*key).unwrap().as_ref() == "a")
        );
    }

    #[test]
    fn members_have_about_equal_shares() {
        for count in [2, 5, 20] {
            let names: Vec<String> = (0..count).map(|number| format!("collector-{number}")).collect();
            let ring = ring(names.iter().map(String::as_str));
            let mut shares: BTreeMap<Arc<str>, u64> = BTreeMap::new();
            keys(100_000).for_each(|key| *shares.entry(ring.owner(key).unwrap().clone()).or_default() += 1);
            assert_eq!(shares.len(), count);
            let fair = 100_000 / count as u64;
            for (name, share) in shares {
                assert!(
                    (fair * 4 / 5..=fair * 6 / 5).contains(&share),
                    "{name}: {share} of {fair}"
                );
            }
        }
    }

    #[test]
    fn names_and_values_cannot_be_taken_for_each_other() {
        let key_of = |labels: &[(&'static str, &'static str)]| key(labels.iter().copied());
        assert_ne!(key_of(&[("a", "bc")]), key_of(&[("ab", "c")]));
        assert_ne!(key_of(&[("a", "b"), ("c", "d")]), key_of(&[("a", "bc"), ("", "d")]));
        assert_eq!(key_of(&[("a", "b")]), key_of(&[("a", "b")]));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn the_order_in_which_members_are_known_does_not_matter(
            names in prop::collection::vec("[a-z]{1,8}", 1..8), turn in 0_usize..8, key in any::<u64>(),
        ) {
            let mut turned = names.clone();
            turned.rotate_left(turn % names.len());
            turned.push(names[0].clone());
            let (first, second) = (ring(names.iter().map(String::as_str)), ring(turned.iter().map(String::as_str)));
            prop_assert_eq!(first.owner(key), second.owner(key));
        }

        #[test]
        fn what_a_member_does_not_get_or_leave_stays_where_it_is(
            names in prop::collection::btree_set("[a-z]{1,8}", 2..8), keys in prop::collection::vec(any::<u64>(), 64),
        ) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let (all, fewer) = (ring(names.iter().copied()), ring(names[1..].iter().copied()));
            for key in keys {
                let owner = all.owner(key).unwrap();
                prop_assert!(**owner == *names[0] || fewer.owner(key) == Some(owner));
            }
        }
    }
}
