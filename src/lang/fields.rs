//! The fields of an object or a body: a map from names to values, sorted by name. In the map `value::Fields`, the
//! values are values of the language.
//!
//! The map is a sorted list instead of a tree: most objects have a handful of fields, and a running configuration holds
//! tens of thousands of objects. Lookup is a binary search. Building a map from many pairs sorts once; inserting fields
//! one by one is fast for small objects only. Thousands of maps with the same names can share the list of the names.

use std::fmt;
use std::sync::Arc;

/// Names with values, sorted by name; each name occurs once.
#[derive(Clone)]
pub struct SortedFields<V>(List<V>);

#[derive(Clone)]
enum List<V> {
    /// Fields with their names.
    Pairs(Vec<(Arc<str>, V)>),
    /// Values in the order of their names. Other maps have the same list of names.
    Shared(Arc<[Arc<str>]>, Box<[V]>),
}

impl<V> Default for SortedFields<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> SortedFields<V> {
    /// Creates an object without fields.
    pub const fn new() -> Self {
        Self(List::Pairs(Vec::new()))
    }

    /// Creates an empty map with room for `count` fields.
    pub fn with_capacity(count: usize) -> Self {
        Self(List::Pairs(Vec::with_capacity(count)))
    }

    /// Creates a map that shares the list of its names with other maps. Thousands of maps with the same names need much
    /// less memory this way. `names` must be sorted, without duplicates, and each name has one value. A change of the
    /// map ends the sharing.
    pub fn with_names(names: Arc<[Arc<str>]>, values: Vec<V>) -> Self {
        debug_assert!(names.len() == values.len() && names.is_sorted_by(|left, right| left < right));
        Self(List::Shared(names, values.into_boxed_slice()))
    }

    /// Returns the value of the field `name`.
    pub fn get(&self, name: &str) -> Option<&V> {
        let index = self.search(name).ok()?;
        Some(self.field(index).1)
    }

    /// True if there is a field of this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.search(name).is_ok()
    }

    /// Sets a field; returns the previous value, if any.
    pub fn insert(&mut self, name: Arc<str>, value: V) -> Option<V> {
        let place = self.search(&name);
        let mut pairs = std::mem::take(self).into_pairs();
        let previous = match place {
            Ok(index) => pairs.get_mut(index).map(|field| std::mem::replace(&mut field.1, value)),
            Err(index) => {
                pairs.insert(index, (name, value));
                None
            }
        };
        self.0 = List::Pairs(pairs);
        previous
    }

    /// Removes a field; returns its value, if any.
    pub fn remove(&mut self, name: &str) -> Option<V> {
        let index = self.search(name).ok()?;
        let mut pairs = std::mem::take(self).into_pairs();
        let (_, value) = pairs.remove(index);
        self.0 = List::Pairs(pairs);
        Some(value)
    }

    /// Iterates over the fields in the order of their names.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Arc<str>, &V)> + ExactSizeIterator {
        (0..self.len()).map(move |index| self.field(index))
    }

    /// Iterates over the names of the fields, sorted.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &Arc<str>> + ExactSizeIterator + Clone {
        (0..self.len()).map(move |index| self.field(index).0)
    }

    /// Iterates over the values in the order of their names.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &V> + ExactSizeIterator {
        (0..self.len()).map(move |index| self.field(index).1)
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        match &self.0 {
            List::Pairs(pairs) => pairs.len(),
            List::Shared(_, values) => values.len(),
        }
    }

    /// True if there are no fields.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Frees the unused capacity of the list.
    pub(crate) fn shrink_to_fit(&mut self) {
        if let List::Pairs(pairs) = &mut self.0 {
            pairs.shrink_to_fit();
        }
    }

    fn search(&self, name: &str) -> Result<usize, usize> {
        match &self.0 {
            List::Pairs(pairs) => pairs.binary_search_by(|(other, _)| (**other).cmp(name)),
            List::Shared(names, _) => names.binary_search_by(|other| (**other).cmp(name)),
        }
    }

    /// Returns the field with this index, which must be less than the number of fields.
    fn field(&self, index: usize) -> (&Arc<str>, &V) {
        match &self.0 {
            List::Pairs(pairs) => {
                let (name, value) = &pairs[index];
                (name, value)
            }
            List::Shared(names, values) => (&names[index], &values[index]),
        }
    }

    /// Returns the fields as pairs.
    fn into_pairs(self) -> Vec<(Arc<str>, V)> {
        match self.0 {
            List::Pairs(pairs) => pairs,
            List::Shared(names, values) => names.iter().cloned().zip(values).collect(),
        }
    }
}

impl<V: PartialEq> PartialEq for SortedFields<V> {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (List::Shared(left, values), List::Shared(right, other_values)) if Arc::ptr_eq(left, right) => {
                values == other_values
            }
            _ => self.iter().eq(other.iter()),
        }
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
        Self(List::Pairs(pairs))
    }
}

impl<V> Extend<(Arc<str>, V)> for SortedFields<V> {
    fn extend<I: IntoIterator<Item = (Arc<str>, V)>>(&mut self, pairs: I) {
        *self = std::mem::take(self).into_iter().chain(pairs).collect();
    }
}

impl<V> IntoIterator for SortedFields<V> {
    type Item = (Arc<str>, V);
    type IntoIter = std::vec::IntoIter<(Arc<str>, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_pairs().into_iter()
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
            let shared = Fields::with_names(tree.keys().cloned().collect(), tree.values().cloned().collect());
            for fields in [inserted, collected.clone(), extended, shared.clone()] {
                prop_assert!(fields.iter().eq(tree.iter()));
                prop_assert!(fields.keys().eq(tree.keys()) && fields.values().eq(tree.values()));
                prop_assert!(fields == collected && fields == shared);
                prop_assert!(fields.clone().into_iter().eq(tree.clone()));
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
