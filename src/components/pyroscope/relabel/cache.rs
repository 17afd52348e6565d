//! A bounded cache: it maps the labels of a profile to the labels that the relabel rules make of them.
//!
//! The cache consists of a young and an old generation instead of a list in order of use. A used entry moves to the
//! young generation. When the young generation holds half of the limit, it becomes the old generation, and the previous
//! old generation is dropped. The cache never exceeds its limit, and entries that are used often stay.

use std::collections::HashMap;

use alluvium_profile::Labels;

/// A bounded map from labels to the result of the rules.
pub(super) struct Cache {
    young: HashMap<Labels, Option<Labels>>,
    old: HashMap<Labels, Option<Labels>>,
    max: usize,
}

impl Cache {
    /// Returns an empty cache for at most `max` entries.
    pub(super) fn new(max: usize) -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            max,
        }
    }

    /// Returns the cached result. The outer `None` means that no result is cached. The inner `None` means that the
    /// rules drop the profile.
    pub(super) fn get(&mut self, labels: &Labels) -> Option<Option<Labels>> {
        if let Some(known) = self.young.get(labels) {
            return Some(known.clone());
        }
        let known = self.old.remove(labels)?;
        self.insert(labels.clone(), known.clone());
        Some(known)
    }

    /// Stores a result. This may evict unused results.
    pub(super) fn insert(&mut self, labels: Labels, result: Option<Labels>) {
        if self.young.len() >= self.max.div_ceil(2) {
            self.old = std::mem::take(&mut self.young);
        }
        // If the limit is odd, two full halves would exceed it by one.
        if self.len() >= self.max {
            self.old.clear();
        }
        self.young.insert(labels, result);
    }

    /// Returns the number of cached results.
    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(number: usize) -> Labels {
        Labels::from_pairs([("n", number.to_string())])
    }

    #[test]
    fn the_bound_holds_and_what_is_used_stays() {
        for max in [1, 2, 3, 10, 11] {
            let mut cache = Cache::new(max);
            for number in 0..100 {
                cache.insert(labels(number), None);
                assert!(cache.len() <= max);
                assert_eq!(cache.get(&labels(number)), Some(None));
            }
            assert_eq!(cache.get(&labels(0)), None);
        }
        let mut cache = Cache::new(10);
        cache.insert(labels(1000), Some(labels(1)));
        for number in 0..100 {
            cache.insert(labels(number), None);
            assert_eq!(cache.get(&labels(1000)), Some(Some(labels(1))));
        }
    }
}
