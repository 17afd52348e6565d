//! The string table of a profile that is being written: each text once, in the order of first use.

use hashbrown::HashMap;

/// Maximum length in bytes of a text that is looked up only by its content. Longer texts are also looked up by address:
/// each sample of a profile may refer to the same text of megabytes, whose content is too long to hash each time.
pub const MAX_SHORT_BYTES: usize = 64;

/// A string table that grows.
pub struct Strings<'a> {
    indices: HashMap<&'a str, i64>,
    /// Indices of long texts by address and length.
    long_indices: HashMap<(usize, usize), i64>,
    texts: Vec<&'a str>,
}

impl Default for Strings<'_> {
    /// Creates the table that every profile starts with: the empty text at index 0.
    fn default() -> Self {
        Self {
            indices: HashMap::from_iter([("", 0)]),
            long_indices: HashMap::new(),
            texts: vec![""],
        }
    }
}

impl<'a> Strings<'a> {
    /// Returns the index of a text. Adds the text if it is new.
    pub fn index(&mut self, text: &'a str) -> i64 {
        if text.len() <= MAX_SHORT_BYTES {
            return self.index_of(text);
        }
        // The text is borrowed as long as the table exists, so no other text can have the same address.
        let key = (text.as_ptr().addr(), text.len());
        if let Some(known) = self.long_indices.get(&key) {
            return *known;
        }
        let index = self.index_of(text);
        self.long_indices.insert(key, index);
        index
    }

    fn index_of(&mut self, text: &'a str) -> i64 {
        let next = self.texts.len() as i64;
        *self.indices.entry(text).or_insert_with(|| {
            self.texts.push(text);
            next
        })
    }

    /// Returns the texts by their index.
    pub fn texts(&self) -> &[&'a str] {
        &self.texts
    }

    /// Returns the texts by their index, as owned strings.
    pub fn into_texts(self) -> Vec<String> {
        self.texts.into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_index_and_a_long_one_is_known_by_its_address() {
        let long_text = "x".repeat(MAX_SHORT_BYTES + 1);
        let (copied, other) = (long_text.clone(), format!("{long_text}y"));
        let mut strings = Strings::default();
        let texts = [
            "",
            "a",
            &long_text,
            "a",
            &copied,
            &other,
            &other[..long_text.len()],
            &long_text,
        ];
        assert_eq!(texts.map(|text| strings.index(text)), [0, 1, 2, 1, 2, 3, 2, 2]);
        assert_eq!(strings.texts(), ["", "a", &long_text, &other]);
        // The text of `copied` and the part of `other` have different addresses.
        assert_eq!(strings.long_indices.len(), 4);
    }
}
