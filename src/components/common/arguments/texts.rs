//! Stores equal texts of labels once: mostly the names of labels, and values such as namespaces and nodes. Also stores
//! equal lists of label names once.

use std::collections::{BTreeMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

use alluvium_lang::value::{Fields, Value};

/// Number of stored items below which unused items are never removed.
const FEW: usize = 4096;

/// Texts and lists of texts, each stored once while it is in use.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    texts: Shared<str>,
    /// Lists of the label names of a target.
    names: Shared<[Arc<str>]>,
}

/// Items, each stored once while it is in use.
#[derive(Debug)]
struct Shared<T: ?Sized> {
    items: HashSet<Arc<T>>,
    /// Number of used items after the last removal of unused items.
    used: usize,
}

impl<T: ?Sized> Default for Shared<T> {
    fn default() -> Self {
        Self {
            items: HashSet::default(),
            used: 0,
        }
    }
}

impl<T: ?Sized + Eq + Hash> Shared<T> {
    /// Returns the stored item that equals `item`. If there is none, stores `item`.
    fn share(&mut self, item: Arc<T>) -> Arc<T> {
        if let Some(known) = self.items.get(&item) {
            return known.clone();
        }
        if self.items.len() >= FEW.max(self.used + self.used / 4) {
            self.items.retain(|item| Arc::strong_count(item) > 1);
            self.used = self.items.len();
        }
        self.items.insert(item.clone());
        item
    }
}

impl Texts {
    /// Returns the number of stored texts.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.texts.items.len()
    }

    /// Returns the stored text that equals `text`. If there is none, stores `text`.
    pub(crate) fn share(&mut self, text: Arc<str>) -> Arc<str> {
        self.texts.share(text)
    }

    /// Returns the same labels with shared texts.
    pub(crate) fn share_all(&mut self, labels: BTreeMap<Arc<str>, Arc<str>>) -> BTreeMap<Arc<str>, Arc<str>> {
        let share = |(name, value)| (self.share(name), self.share(value));
        labels.into_iter().map(share).collect()
    }

    /// Converts a target to a value of the configuration language. All targets with the same label names share the list
    /// of these names.
    pub(crate) fn target(&mut self, labels: BTreeMap<Arc<str>, Arc<str>>) -> Value {
        let names = self.names.share(labels.keys().cloned().collect());
        let values = labels.into_values().map(Value::String).collect();
        Value::Object(Arc::new(Fields::with_names(names, values)))
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
            assert!(texts.len() <= FEW);
        }
        assert!(texts.texts.items.contains("a"));
    }

    #[test]
    fn targets_with_the_same_names_share_the_list_of_the_names() {
        let mut texts = Texts::default();
        let labels = |value: &str| BTreeMap::from([("b".into(), value.into()), ("a".into(), "1".into())]);
        for value in ["2", "3"] {
            let target = texts.target(labels(value));
            let expected = Value::object([("a", Value::string("1")), ("b", Value::string(value))]);
            assert_eq!(target, expected);
        }
        assert_eq!(texts.names.items.len(), 1);
    }
}
