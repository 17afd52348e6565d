//! Stores each distinct text once, in buffers of up to [`CHUNK_TEXTS`] texts, with a table of indices. A million
//! names therefore need only a few thousand allocations.
//!
//! Readers share the buffers ([`SharedTexts`]) and look up texts without the lock of the head.

use std::sync::Arc;

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// Number of texts in a full chunk. A full chunk does not change any more.
const CHUNK_TEXTS: usize = 512;

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
    shared: SharedTexts,
    table: HashTable<u32>,
    /// Memory of the full chunks in bytes.
    full_bytes: usize,
}

/// Texts by their numbers. A clone shares the texts that existed at its creation.
#[derive(Default, Clone)]
pub(crate) struct SharedTexts {
    chunks: Vec<Arc<Chunk>>,
    len: usize,
}

/// At most [`CHUNK_TEXTS`] texts. The buffer must stay below 4 GiB, which the head's limit ensures.
#[derive(Default, Clone)]
struct Chunk {
    buffer: String,
    ends: Vec<u32>,
}

impl Texts {
    /// Returns the number of `text`. If the text is new, adds it.
    pub(crate) fn insert(&mut self, text: &str) -> TextId {
        let hash = xxh3_64(text.as_bytes());
        if let Some(id) = self.find_hashed(hash, text) {
            return id;
        }
        let index = self.shared.len as u32;
        self.full_bytes += self.shared.push(text);
        let shared = &self.shared;
        self.table
            .insert_unique(hash, index, |index| xxh3_64(shared.get(TextId(*index)).as_bytes()));
        TextId(index)
    }

    /// Returns the number of `text`, if it is stored.
    pub(crate) fn find(&self, text: &str) -> Option<TextId> {
        self.find_hashed(xxh3_64(text.as_bytes()), text)
    }

    /// Returns the text with this number.
    pub(crate) fn get(&self, id: TextId) -> &str {
        self.shared.get(id)
    }

    /// Returns the texts for readers to clone.
    pub(crate) fn shared(&self) -> &SharedTexts {
        &self.shared
    }

    /// Returns the estimated memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let last = self.shared.chunks.last();
        let last = last
            .filter(|chunk| chunk.ends.len() < CHUNK_TEXTS)
            .map_or(0, |chunk| chunk.bytes());
        self.full_bytes + last + self.shared.chunks.capacity() * 8 + self.table.capacity() * 5
    }

    fn find_hashed(&self, hash: u64, text: &str) -> Option<TextId> {
        let entry = self.table.find(hash, |index| self.shared.get(TextId(*index)) == text);
        entry.map(|index| TextId(*index))
    }
}

impl SharedTexts {
    /// Returns the text with this number.
    pub(crate) fn get(&self, id: TextId) -> &str {
        let index = id.0 as usize;
        self.chunks[index / CHUNK_TEXTS].get(index % CHUNK_TEXTS)
    }

    /// Adds the texts that this value, an older clone of `texts`, lacks.
    pub(crate) fn follow(&mut self, texts: &Self) {
        if self.len != texts.len {
            self.chunks.truncate(self.len / CHUNK_TEXTS);
            self.chunks.extend_from_slice(&texts.chunks[self.chunks.len()..]);
            self.len = texts.len;
        }
    }

    /// Adds a text. If its chunk becomes full, returns the memory of the chunk in bytes, otherwise 0.
    fn push(&mut self, text: &str) -> usize {
        if self.len.is_multiple_of(CHUNK_TEXTS) {
            self.chunks.push(Arc::default());
        }
        self.len += 1;
        let Some(chunk) = self.chunks.last_mut() else {
            return 0;
        };
        // If a reader shares the chunk, `make_mut` copies the chunk. A chunk is small, and a copy happens at most once
        // after each call of `follow` by a reader.
        let chunk = Arc::make_mut(chunk);
        chunk.buffer.push_str(text);
        chunk.ends.push(chunk.buffer.len() as u32);
        if chunk.ends.len() < CHUNK_TEXTS {
            return 0;
        }
        chunk.buffer.shrink_to_fit();
        chunk.ends.shrink_to_fit();
        chunk.bytes()
    }
}

impl Chunk {
    fn get(&self, index: usize) -> &str {
        let start = match index {
            0 => 0,
            _ => self.ends[index - 1] as usize,
        };
        &self.buffer[start..self.ends[index] as usize]
    }

    fn bytes(&self) -> usize {
        self.buffer.capacity() + self.ends.capacity() * 4 + size_of::<Self>()
    }
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
        assert_eq!(texts.find("name 7"), Some(numbers[7]));
        assert_eq!(texts.find("name 100"), None);
    }

    #[test]
    fn a_reader_has_the_texts_of_the_moment_and_takes_over_later_ones() {
        let mut texts = Texts::default();
        let mut reader = SharedTexts::default();
        let mut numbers = Vec::new();
        for round in 0..40 {
            for index in 0..97 {
                numbers.push(texts.insert(&format!("{round}/{index}")));
            }
            let before = reader.clone();
            reader.follow(texts.shared());
            for (position, number) in numbers.iter().enumerate() {
                let expected = format!("{}/{}", position / 97, position % 97);
                assert_eq!(reader.get(*number), expected);
                assert_eq!(texts.get(*number), expected);
                if position < round * 97 {
                    assert_eq!(before.get(*number), expected);
                }
            }
        }
        assert!(texts.bytes() > numbers.len() * 4);
    }
}
