//! A bit set of small numbers with rank queries. A query of a trie uses it to mark the nodes that it visits.
//!
//! In: numbers below a bound. Out: the marked numbers in ascending order, and the rank of each number in that order.
//! Computing a rank reads only one word of the set.

/// Marked numbers below a bound.
pub(super) struct Marking {
    words: Vec<u64>,
}

/// Marked numbers, with the counts needed for ranks.
pub(super) struct Marked {
    words: Vec<u64>,
    /// For each word, the number of marked numbers in the words before it.
    before: Vec<u32>,
    count: u32,
}

impl Marking {
    /// Creates an empty set of numbers below `bound`.
    pub(super) fn new(bound: usize) -> Self {
        Self {
            words: vec![0; bound.div_ceil(64)],
        }
    }

    /// Marks a number. Returns false if it was marked before.
    pub(super) fn mark(&mut self, number: u32) -> bool {
        let word = &mut self.words[number as usize / 64];
        let bit = 1 << (number % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub(super) fn counted(self) -> Marked {
        let mut count = 0;
        let before = self.words.iter().map(|word| {
            let before = count;
            count += word.count_ones();
            before
        });
        Marked {
            before: before.collect(),
            words: self.words,
            count,
        }
    }
}

impl Marked {
    /// Returns the number of marked numbers.
    pub(super) fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns the rank of a marked number among the marked numbers.
    pub(super) fn rank(&self, number: u32) -> u32 {
        let word = number as usize / 64;
        let mask = (1u64 << (number % 64)) - 1;
        self.before[word] + (self.words[word] & mask).count_ones()
    }

    /// Iterates over the marked numbers in ascending order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        (0u32..).step_by(64).zip(&self.words).flat_map(|(first, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                rest &= rest.checked_sub(1)?;
                Some(first + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_told_in_order_with_their_ranks(chosen in prop::collection::vec(0u32..400, 0..200)) {
            let mut marking = Marking::new(400);
            let mut expected = BTreeSet::new();
            for number in &chosen {
                prop_assert_eq!(marking.mark(*number), expected.insert(*number));
            }
            let marked = marking.counted();
            prop_assert_eq!(marked.len(), expected.len());
            prop_assert_eq!(marked.numbers().collect::<Vec<_>>(), expected.iter().copied().collect::<Vec<_>>());
            for (rank, number) in expected.iter().enumerate() {
                prop_assert_eq!(marked.rank(*number) as usize, rank);
            }
        }
    }
}
