//! Problems and notes of a conversion, each with the path of its key.

use std::fmt;

/// Messages about keys of the configuration.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Keys that cannot be converted, each with its path and the reason.
    pub(super) problems: Vec<String>,
    /// Keys that are left out or changed, each with its path and the reason.
    pub(super) notes: Vec<String>,
}

impl Findings {
    /// Records a key that cannot be expressed in Alloy's language.
    pub(super) fn problem(&mut self, path: &str, message: impl fmt::Display) {
        self.problems.push(format!("{path}: {message}"));
    }

    /// Records a key that is left out or changed, without an effect on which profiles are collected.
    pub(super) fn note(&mut self, path: &str, message: impl fmt::Display) {
        self.notes.push(format!("{path}: {message}"));
    }
}
