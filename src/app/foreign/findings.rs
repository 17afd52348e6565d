//! What a conversion finds on its way: problems and notes, each with the path of its key.

use std::fmt;

/// What is said of keys on the way.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// What cannot be said, each with its path.
    pub(super) problems: Vec<String>,
    /// What is left out, each with its path.
    pub(super) notes: Vec<String>,
}

impl Findings {
    /// What cannot be said in Alloy's language.
    pub(super) fn problem(&mut self, path: &str, message: impl fmt::Display) {
        self.problems.push(format!("{path}: {message}"));
    }

    /// What is left out without changing which profiles are taken.
    pub(super) fn note(&mut self, path: &str, message: impl fmt::Display) {
        self.notes.push(format!("{path}: {message}"));
    }
}
