//! The catalogue of diagnostic codes. An entry explains a code and shows a configuration that triggers the code, and
//! the corrected configuration.
//!
//! The texts are files `catalogue/ID.md`, compiled into the program. A file has prose first, then a fenced block
//! `LANGUAGE bad` and a fenced block `LANGUAGE fixed`; the language is `alloy` or `hcl`. Usually a check of the bad
//! text triggers the code. A word after `bad` says what differs: `bytes` (an escape `\xHH` stands for the byte with
//! this value), `run` (the text is loaded, not only checked), `build` (the text is loaded while the storage folder
//! is unusable), `update` (the text is loaded after the fixed text, while the storage folder is unusable). Tests load
//! every example; the reference page and `alluvium validate --explain` print the examples.

use crate::codes::{ALL, Code, TEXTS};

/// An example of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// Language of the text: `alloy` or `hcl`.
    pub language: &'static str,
    /// The word after `bad`, as described at the top of this file; empty if a check of the text triggers the code.
    pub how: &'static str,
    /// The text of the configuration.
    pub text: &'static str,
}

/// Finds the code with this identifier, such as `E0301`, in upper or lower case.
pub fn find(id: &str) -> Option<Code> {
    ALL.iter().find(|code| code.id.eq_ignore_ascii_case(id)).copied()
}

impl Code {
    /// Returns the meaning of the code in one sentence, without a full stop.
    pub fn summary(&self) -> &'static str {
        self.texts().0
    }

    /// Returns the meaning of the code and the remedy, in one or two paragraphs.
    pub fn explanation(&self) -> &'static str {
        let entry = self.texts().1;
        let end = entry.find("\n```").unwrap_or(entry.len());
        entry[..end].trim_end()
    }

    /// Returns a configuration that triggers the code.
    pub fn bad(&self) -> Option<Example> {
        self.example("bad")
    }

    /// Returns the corrected configuration.
    pub fn fixed(&self) -> Option<Example> {
        self.example("fixed")
    }

    /// Returns the whole entry for a terminal.
    pub fn explain(&self) -> String {
        let mut text = format!("{}: {}\n\n{}\n", self.id, self.summary(), self.explanation());
        for (title, example) in [("Wrong", self.bad()), ("Right", self.fixed())] {
            if let Some(example) = example {
                text.push_str(&format!("\n{title}:\n\n"));
                for line in example.text.lines() {
                    text.push_str(if line.is_empty() { "" } else { "    " });
                    text.push_str(&line.replace('\t', "  "));
                    text.push('\n');
                }
            }
        }
        text
    }

    fn texts(&self) -> (&'static str, &'static str) {
        let index = ALL.iter().position(|code| code == self);
        index.and_then(|index| TEXTS.get(index)).copied().unwrap_or_default()
    }

    fn example(&self, kind: &str) -> Option<Example> {
        let mut rest = self.texts().1;
        while let Some(start) = rest.find("```") {
            let (head, body) = rest[start + 3..].split_once('\n')?;
            let end = body.find("```")?;
            let mut words = head.splitn(3, ' ');
            let (language, example_kind, how) = (words.next()?, words.next(), words.next().unwrap_or_default());
            if example_kind == Some(kind) {
                return Some(Example {
                    language,
                    how,
                    text: &body[..end],
                });
            }
            rest = &body[end + 3..];
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_has_an_explanation_and_examples_of_known_forms() {
        for code in ALL {
            assert!(code.explanation().len() > 20, "{} has no explanation", code.id);
            for example in [code.bad(), code.fixed()].into_iter().flatten() {
                assert!(["alloy", "hcl"].contains(&example.language), "{}", code.id);
                assert!(
                    ["", "bytes", "run", "build", "update"].contains(&example.how),
                    "{}",
                    code.id
                );
            }
        }
        assert_eq!(find("e0301").map(|code| code.id), Some("E0301"));
        assert_eq!(find("E9999"), None);
    }
}
