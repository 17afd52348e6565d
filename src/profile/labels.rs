//! Labels of a series: sorted name-value pairs with a 64-bit identity.

use std::fmt;
use std::sync::Arc;

/// Name of the label that holds the profile's name (`process_cpu`, `memory`, ...) between collector and store.
pub const PROFILE_NAME: &str = "__name__";
/// Name of the label that identifies the service of a profile.
pub const SERVICE_NAME: &str = "service_name";

/// A set of labels, sorted by name, with distinct names. It is cheap to clone, because clones share the pairs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Labels(Arc<[(Arc<str>, Arc<str>)]>);

/// The reason why pairs are not a set of labels.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelsError {
    /// The name of a label is empty.
    #[error("a label has no name (its value is `{}`)", excerpt(.value))]
    Unnamed {
        /// Value of the label, to identify it.
        value: Arc<str>,
    },
    /// Two labels have the same name.
    #[error("label `{}` occurs twice", excerpt(.name))]
    Twice {
        /// The name that both labels have.
        name: Arc<str>,
    },
}

/// Maximum length of the part of a name or value that an error shows, in bytes. The part is short, because a push may
/// produce one error per profile.
const EXCERPT_BYTES: usize = 400;

fn excerpt(text: &str) -> &str {
    &text[..text.floor_char_boundary(EXCERPT_BYTES)]
}

impl Labels {
    /// Builds a set from pairs in any order. If two pairs have the same name, returns an error, even if one of them has
    /// an empty value. Otherwise, pairs with an empty value are dropped.
    pub fn distinct<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Result<Self, LabelsError>
    where
        N: Into<Arc<str>>,
        V: Into<Arc<str>>,
    {
        let mut sorted: Vec<(Arc<str>, Arc<str>)> = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        sorted.sort_unstable_by(|left, right| left.0.cmp(&right.0));
        if let Some((_, value)) = sorted.first().filter(|(name, _)| name.is_empty()) {
            return Err(LabelsError::Unnamed { value: value.clone() });
        }
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(LabelsError::Twice {
                name: pair[0].0.clone(),
            });
        }
        sorted.retain(|(_, value)| !value.is_empty());
        Ok(Self(sorted.into()))
    }

    /// Builds a set from pairs in any order. If several pairs have the same name, the last pair is used. A pair with an
    /// empty value is not a label (as in Prometheus).
    pub fn from_pairs<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<Arc<str>>,
        V: Into<Arc<str>>,
    {
        let mut sorted: Vec<(Arc<str>, Arc<str>)> = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        // The sort is stable, so of several pairs with the same name, the last given pair comes last.
        sorted.sort_by(|left, right| left.0.cmp(&right.0));
        let mut kept: Vec<(Arc<str>, Arc<str>)> = Vec::with_capacity(sorted.len());
        for pair in sorted {
            match kept.last_mut() {
                Some(last) if last.0 == pair.0 => *last = pair,
                _ => kept.push(pair),
            }
        }
        kept.retain(|(_, value)| !value.is_empty());
        Self(kept.into())
    }

    /// Returns the value of `name`, if the set has this label.
    pub fn get(&self, name: &str) -> Option<&str> {
        let index = self
            .0
            .binary_search_by(|(candidate, _)| candidate.as_ref().cmp(name))
            .ok()?;
        Some(&self.0[index].1)
    }

    /// Iterates over the pairs in the order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// Returns the pairs as shared texts, for building other sets.
    pub fn pairs(&self) -> &[(Arc<str>, Arc<str>)] {
        &self.0
    }

    /// Returns the number of labels in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true for a set without labels.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns this set with `name` set to `value`. An empty value removes the label.
    #[must_use]
    pub fn with(&self, name: &str, value: &str) -> Self {
        let added = (Arc::from(name), Arc::from(value));
        Self::from_pairs(self.0.iter().cloned().chain(std::iter::once(added)))
    }

    /// Returns this set with the labels of `others`. If a label is in both, the value from `others` is used. Copies no
    /// texts.
    #[must_use]
    pub fn with_all<'a>(&self, others: impl IntoIterator<Item = (&'a Arc<str>, &'a Arc<str>)>) -> Self {
        let others = others.into_iter().map(|(name, value)| (name.clone(), value.clone()));
        Self::from_pairs(self.0.iter().cloned().chain(others))
    }

    /// Returns a set of only the labels for which `keep(name)` returns true.
    #[must_use]
    pub fn filtered(&self, mut keep: impl FnMut(&str) -> bool) -> Self {
        Self(self.0.iter().filter(|(name, _)| keep(name)).cloned().collect())
    }

    /// Returns the identity of the series: XXH3-64 over `name 0xff value 0xff` in the order of the names. 0xff cannot
    /// occur in UTF-8, so the hashed bytes of different sets are never the same. The hash is stored, so this function
    /// must never change.
    pub fn hash64(&self) -> u64 {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        for (name, value) in self.iter() {
            hasher.update(name.as_bytes());
            hasher.update(&[0xff]);
            hasher.update(value.as_bytes());
            hasher.update(&[0xff]);
        }
        hasher.digest()
    }
}

/// Maximum length of the text of [`Labels::short`] in bytes.
const MAX_SHORT_BYTES: usize = 160;

impl Labels {
    /// Returns the text form for an error message. It is shortened, because each refused profile causes such a message.
    pub fn short(&self) -> String {
        struct Cut(String);
        impl fmt::Write for Cut {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                let room = MAX_SHORT_BYTES - self.0.len();
                let end = (0..=room.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
                self.0.push_str(&text[..end.unwrap_or(0)]);
                if room < text.len() { Err(fmt::Error) } else { Ok(()) }
            }
        }
        let mut out = Cut(String::new());
        // Writing fails if the text was cut.
        if fmt::Write::write_fmt(&mut out, format_args!("{self}")).is_err() {
            out.0.push_str("...");
        }
        out.0
    }
}

/// Prometheus' text form: `{a="b", c="d"}` with Go escapes for quotes, backslashes and line ends.
impl fmt::Display for Labels {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("{")?;
        for (index, (name, value)) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(out, "{separator}{name}=\"{value}\"")?;
        }
        out.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_from_outside_has_names_that_differ() {
        let distinct =
            |pairs: &[(&str, &str)]| Labels::distinct(pairs.iter().copied()).map_err(|error| error.to_string());
        assert_eq!(
            distinct(&[("b", "1"), ("a", "2"), ("c", "")]).unwrap().to_string(),
            r#"{a="2", b="1"}"#
        );
        assert_eq!(
            distinct(&[("b", "1"), ("", "x")]).unwrap_err(),
            "a label has no name (its value is `x`)"
        );
        assert_eq!(
            distinct(&[("b", "1"), ("a", ""), ("b", "")]).unwrap_err(),
            "label `b` occurs twice"
        );
        let long_error = distinct(&[("", &"\u{e4}".repeat(10_000))]).unwrap_err();
        assert!(long_error.len() < EXCERPT_BYTES + 50, "{long_error}");
    }

    #[test]
    fn other_labels_win() {
        let labels = Labels::from_pairs([("a", "1"), ("b", "2")]);
        let others = Labels::from_pairs([("b", "3"), ("c", "4")]);
        let others = others.pairs().iter().map(|(name, value)| (name, value));
        assert_eq!(labels.with_all(others).to_string(), r#"{a="1", b="3", c="4"}"#);
    }

    #[test]
    fn labels_are_sorted_and_the_last_of_a_name_wins() {
        let labels = Labels::from_pairs([("b", "1"), ("a", "2"), ("b", "3"), ("c", "")]);
        assert_eq!(labels.to_string(), r#"{a="2", b="3"}"#);
        assert_eq!(labels.get("b"), Some("3"));
        assert_eq!(labels.get("c"), None);
    }

    #[test]
    fn long_labels_are_cut_in_messages() {
        let labels = Labels::from_pairs([("a", "2"), ("b", "3")]);
        assert_eq!(labels.short(), labels.to_string());
        let excerpt = Labels::from_pairs([("a", "\u{e4}".repeat(10_000))]).short();
        assert!(
            excerpt.len() <= MAX_SHORT_BYTES + 3 && excerpt.ends_with("..."),
            "{}",
            excerpt.len()
        );
    }

    #[test]
    fn the_identity_does_not_depend_on_the_order_given() {
        let one = Labels::from_pairs([("a", "1"), ("b", "2")]);
        let two = Labels::from_pairs([("b", "2"), ("a", "1")]);
        assert_eq!(one.hash64(), two.hash64());
        assert_ne!(one.hash64(), one.with("a", "2").hash64());
        assert_eq!(one.with("b", "").len(), 1);
    }
}
