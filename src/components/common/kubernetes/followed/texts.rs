//! Stores equal texts of labels once: mostly the names of labels, and values such as namespaces and nodes.

use std::collections::HashSet;
use std::sync::Arc;

use crate::common::arguments::targets::Target;

/// Number of stored texts below which unused texts are never removed.
const FEW: usize = 4096;

/// Texts, each stored once while it is in use.
#[derive(Debug, Default)]
pub(super) struct Texts {
    texts: HashSet<Arc<str>>,
    /// Number of used texts after the last removal of unused texts.
    used: usize,
}

impl Texts {
    /// Returns the number of stored texts.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Returns the stored text that equals `text`. If there is none, stores `text`.
    pub(super) fn share(&mut self, text: Arc<str>) -> Arc<str> {
        if let Some(known) = self.texts.get(&text) {
            return known.clone();
        }
        if self.texts.len() >= FEW.max(2 * self.used) {
            self.texts.retain(|text| Arc::strong_count(text) > 1);
            self.used = self.texts.len();
        }
        self.texts.insert(text.clone());
        text
    }

    /// Returns the same labels with shared texts.
    pub(super) fn share_all(&mut self, labels: Target) -> Target {
        let share = |(name, value)| (self.share(name), self.share(value));
        labels.into_iter().map(share).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_and_unused_ones_are_given_up() {
        let mut texts = Texts::default();
        let first = texts.share("a".into());
        assert!(Arc::ptr_eq(&first, &texts.share("a".into())));
        for number in 0..3 * FEW {
            texts.share(number.to_string().into());
            assert!(texts.texts.len() <= FEW);
        }
        assert!(texts.texts.contains("a"));
    }
}
