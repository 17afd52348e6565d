//! Texts stored once: one buffer and a table of indices, so that a million names are three allocations.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

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
    pub(crate) fn insert(&mut self, text: &str) -> u32 {
        let hash = xxh3_64(text.as_bytes());
        let (buffer, ends) = (&self.buffer, &self.ends);
        if let Some(found) = self.table.find(hash, |index| slice(buffer, ends, *index) == text) {
            return *found;
        }
        self.buffer.push_str(text);
        self.ends.push(self.buffer.len() as u32);
        let index = self.ends.len() as u32 - 1;
        let (buffer, ends) = (&self.buffer, &self.ends);
        self.table
            .insert_unique(hash, index, |index| xxh3_64(slice(buffer, ends, *index).as_bytes()));
        index
    }

    /// The text with this number.
    pub(crate) fn get(&self, index: u32) -> &str {
        slice(&self.buffer, &self.ends, index)
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
        let numbers: Vec<u32> = (0..1000)
            .map(|index| texts.insert(&format!("name {}", index % 100)))
            .collect();
        assert_eq!(numbers[..100], numbers[900..]);
        assert_eq!(texts.insert(""), 100);
        assert_eq!(texts.get(numbers[42]), "name 42");
        assert_eq!(texts.get(100), "");
    }
}
