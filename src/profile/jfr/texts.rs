//! All texts that profiles of a recording refer to, one after the other in one buffer.
//!
//! The texts cannot be borrowed from the recording, because its strings are not always UTF-8, and because the name of a
//! function is put together from two strings: its class and its method.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::jfr::budget::Budget;
use crate::jfr::error::JfrErrorKind;

/// The number of a text in the buffer.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TextId(u32);

/// The texts of a recording while it is read.
#[derive(Default)]
pub(super) struct Texts {
    buffer: String,
    /// End of each text. A text begins where the previous one ends.
    ends: Vec<u32>,
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

/// Memory of a text in addition to its characters, in bytes: its end and its index entry. Counted twice, because a list
/// that grows doubles its capacity.
const ROW_BYTES: usize = 24;

impl Texts {
    /// Adds the concatenation of `parts`. Each call is charged for its characters, whether or not the text is new, so
    /// that the budget also bounds the work.
    pub(super) fn add(&mut self, parts: &[&str], budget: &mut Budget) -> Result<TextId, JfrErrorKind> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        budget.charge(length + ROW_BYTES)?;
        let start = self.buffer.len();
        self.buffer.extend(parts.iter().copied());
        let Self {
            buffer,
            ends,
            index,
            hasher,
        } = self;
        let text = |id: u32| slice(buffer, ends, id);
        let added = &buffer[start..];
        let hash = hasher.hash_one(added);
        if let Some(known) = index.find(hash, |id| text(*id) == added) {
            let known = *known;
            buffer.truncate(start);
            return Ok(TextId(known));
        }
        let id = ends.len() as u32;
        index.insert_unique(hash, id, |id| hasher.hash_one(slice(buffer, ends, *id)));
        ends.push(buffer.len() as u32);
        Ok(TextId(id))
    }

    /// Returns the buffer and the end of each text.
    pub(super) fn finish(self) -> (String, Ends) {
        (self.buffer, Ends(self.ends))
    }
}

/// Ends of the texts in a buffer.
pub(super) struct Ends(Vec<u32>);

impl Ends {
    /// Returns a text of the buffer by its number.
    pub(super) fn text<'a>(&self, buffer: &'a str, text: TextId) -> &'a str {
        slice(buffer, &self.0, text.0)
    }
}

fn slice<'a>(buffer: &'a str, ends: &[u32], id: u32) -> &'a str {
    let id = id as usize;
    let start = id
        .checked_sub(1)
        .and_then(|before| ends.get(before))
        .copied()
        .unwrap_or(0);
    let end = ends.get(id).copied().unwrap_or(start);
    buffer.get(start as usize..end as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_one_and_all_come_back() {
        let mut texts = Texts::default();
        let mut budget = Budget::of_recording(1 << 20);
        let ids: Vec<TextId> = (0..1000)
            .map(|number| texts.add(&["a", &(number % 500).to_string()], &mut budget).unwrap())
            .collect();
        assert_eq!(ids[..500], ids[500..]);
        let empty_id = texts.add(&[], &mut budget).unwrap();
        let (buffer, ends) = texts.finish();
        for (number, id) in ids[..500].iter().enumerate() {
            assert_eq!(ends.text(&buffer, *id), format!("a{number}"));
        }
        assert_eq!(ends.text(&buffer, empty_id), "");
    }
}
