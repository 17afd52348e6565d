//! Texts stored once: one buffer and a table of indices, so that a million names are three allocations.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// Index of a text in a [`Texts`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct TextId(u32);

impl TextId {
    /// Marks the absence of a text.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) fn to_le_bytes(self) -> [u8; 4] {
        self.0.to_le_bytes()
    }
}

/// Distinct texts, numbered from 0 in the order of their arrival.
#[derive(Default)]
pub(crate) struct Texts {
    buffer: String,
    ends: Vec<u32>,
    table: HashTable<u32>,
}

impl Texts {
    /// The number of `text`, which is stored if it is new. The buffer must stay below 4 GiB; the head's limit sees to
    /// it.
    pub(crate) fn insert(&mut self, text: &str) -> TextId {
        let hash = xxh3_64(text.as_bytes());
        let (buffer, ends) = (&self.buffer, &self.ends);
        if let Some(found) = self.table.find(hash, |index| slice(buffer, ends, *index) == text) {
            return TextId(*found);
        }
        self.buffer.push_str(text);
        self.ends.push(self.buffer.len() as u32);
        let index = self.ends.len() as u32 - 1;
        let (buffer, ends) = (&self.buffer, &self.ends);
        self.table
            .insert_unique(hash, index, |index| xxh3_64(slice(buffer, ends, *index).as_bytes()));
        TextId(index)
    }

    /// The text with this number.
    pub(crate) fn get(&self, id: TextId) -> &str {
        slice(&self.buffer, &self.ends, id.0)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.buffer.capacity() + self.ends.capacity() * 4 + self.table.capacity() * 5
    }
}

fn slice<'a>(buffer: &'a str, ends: &[u32], index: u32) -> &'a str {
    let index = index as usize;
    let start = match index {
        0 => 0,
        _ => ends[index - 1] as usize,
    };
    &buffer[start..ends[index] as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_one_number() {
        let mut texts = Texts::default();
        let numbers: Vec<TextId> = (0..1000)
            .map(|index| texts.insert(&format!("name {}", index % 100)))
            .collect();
        assert_eq!(numbers[..100], numbers[900..]);
        assert_eq!(texts.insert(""), TextId(100));
        assert_eq!(texts.get(numbers[42]), "name 42");
        assert_eq!(texts.get(TextId(100)), "");
    }
}
