//! The string table of a profile that is being written: each text once, in the order of first use.

use hashbrown::HashMap;

/// A string table that grows.
pub struct Strings<'a> {
    indices: HashMap<&'a str, i64>,
    texts: Vec<&'a str>,
}

impl Default for Strings<'_> {
    /// The table that every profile starts with: the empty text at 0.
    fn default() -> Self {
        Self {
            indices: HashMap::from_iter([("", 0)]),
            texts: vec![""],
        }
    }
}

impl<'a> Strings<'a> {
    /// The index of a text, which is added when it is new.
    pub fn index(&mut self, text: &'a str) -> i64 {
        let next = self.texts.len() as i64;
        *self.indices.entry(text).or_insert_with(|| {
            self.texts.push(text);
            next
        })
    }

    /// The texts by their index.
    pub fn texts(&self) -> &[&'a str] {
        &self.texts
    }

    /// The texts by their index, as owned strings.
    pub(crate) fn into_texts(self) -> Vec<String> {
        self.texts.into_iter().map(str::to_owned).collect()
    }
}
