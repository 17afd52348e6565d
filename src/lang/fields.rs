//! The fields of an object or a body: a map from names to values, sorted by name. In the map `value::Fields`, the
//! values are values of the language.
//!
//! The map is a sorted list instead of a tree: most objects have a handful of fields, and a running configuration holds
//! tens of thousands of objects. Lookup is a binary search. Building a map from many pairs sorts once; inserting fields
//! one by one is fast for small objects only.

use std::fmt;
use std::sync::Arc;

/// Names with values, sorted by name; each name occurs once.
#[derive(Clone, PartialEq)]
pub struct SortedFields<V>(Vec<(Arc<str>, V)>);

impl<V> Default for SortedFields<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> SortedFields<V> {
    /// Creates an object without fields.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Creates an empty map with room for `count` fields.
    pub fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// Returns the value of the field `name`.
    pub fn get(&self, name: &str) -> Option<&V> {
        let index = self.search(name).ok()?;
        self.0.get(index).map(|(_, value)| value)
    }

    /// True if there is a field of this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.search(name).is_ok()
    }

    /// Sets a field; returns the previous value, if any.
    pub fn insert(&mut self, name: Arc<str>, value: V) -> Option<V> {
        match self.search(&name) {
            Ok(index) => self
                .0
                .get_mut(index)
                .map(|field| std::mem::replace(&mut field.1, value)),
            Err(index) => {
                self.0.insert(index, (name, value));
                None
            }
        }
    }

    /// Removes a field; returns its value, if any.
    pub fn remove(&mut self, name: &str) -> Option<V> {
        let index = self.search(name).ok()?;
        Some(self.0.remove(index).1)
    }

    /// Iterates over the fields in the order of their names.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Arc<str>, &V)> + ExactSizeIterator {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// Iterates over the names of the fields, sorted.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Arc<str>> + ExactSizeIterator + Clone {
        self.0.iter().map(|(name, _)| name)
    }

    /// Iterates over the values in the order of their names.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator {
        self.0.iter().map(|(_, value)| value)
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Frees the unused capacity of the list.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }

    fn search(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| (**other).cmp(name))
    }
}

/// If several pairs have the same name, the last one wins.
impl<V> FromIterator<(Arc<str>, V)> for SortedFields<V> {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, V)>>(pairs: I) -> Self {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        if !pairs.is_sorted_by(|left, right| left.0 < right.0) {
            // The sort is stable, so the last of equal names stays last.
            pairs.sort_by(|left, right| left.0.cmp(&right.0));
            pairs.dedup_by(|later, earlier| {
                let is_duplicate = later.0 == earlier.0;
                if is_duplicate {
                    std::mem::swap(later, earlier);
                }
                is_duplicate
            });
        }
        pairs.shrink_to_fit();
        Self(pairs)
    }
}

impl<V> Extend<(Arc<str>, V)> for SortedFields<V> {
    fn extend<I: IntoIterator<Item = (Arc<str>, V)>>(&mut self, pairs: I) {
        *self = std::mem::take(&mut self.0).into_iter().chain(pairs).collect();
    }
}

impl<V> IntoIterator for SortedFields<V> {
    type Item = (Arc<str>, V);
    type IntoIter = std::vec::IntoIter<(Arc<str>, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<V: fmt::Debug> fmt::Debug for SortedFields<V> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_map().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::value::{Fields, Number, Value};

    fn number(value: i64) -> Value {
        Value::Number(Number::Int(value))
    }

    proptest! {
        #[test]
        fn they_are_what_a_tree_would_be(pairs in prop::collection::vec(("[a-e]{0,2}", 0i64..9), 0..20)) {
            let pairs = || pairs.iter().map(|(name, value)| (Arc::<str>::from(name.as_str()), number(*value)));
            let tree: BTreeMap<Arc<str>, Value> = pairs().collect();
            let mut inserted = Fields::new();
            pairs().for_each(|(name, value)| _ = inserted.insert(name, value));
            let collected: Fields = pairs().collect();
            let mut extended = Fields::new();
            extended.extend(pairs());
            for fields in [inserted, collected, extended] {
                prop_assert!(fields.iter().eq(tree.iter()));
                for (name, value) in &tree {
                    prop_assert_eq!(fields.get(name), Some(value));
                    let mut less = fields.clone();
                    let removed = less.remove(name);
                    prop_assert_eq!(removed.as_ref(), Some(value));
                    prop_assert!(!less.contains_key(name) && less.len() + 1 == tree.len());
                }
            }
        }
    }
}
