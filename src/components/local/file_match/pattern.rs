//! A pattern of files: `*`, `?` and `[a-z]` inside a name, `**` for any number of folders, `{a,b}` for alternatives.
//!
//! In: the text of the pattern. Out: the files that match it. Each alternative becomes a separate pattern.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use glob::MatchOptions;

/// Maximum number of patterns that result from one pattern if each pair of braces is replaced by its alternatives.
const MAX_PATTERNS: usize = 256;
/// Maximum number of files that one pattern may match.
const MAX_FILES: usize = 100_000;

/// Options for comparing paths with patterns: the wildcards `*` and `?` do not match `/`.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// Alternative patterns. A file matches if one of them matches.
pub(super) struct Pattern(Vec<glob::Pattern>);

/// The reason why a pattern cannot be parsed, or its files cannot be listed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PatternError {
    /// The working directory, at which a relative pattern starts, is unknown.
    #[error(transparent)]
    Absolute(io::Error),
    #[error("`{text}` is not a pattern: {}", source.msg)]
    Invalid { text: String, source: glob::PatternError },
    /// The search for matching files cannot start.
    #[error("{}", .0.msg)]
    Search(#[source] glob::PatternError),
    #[error("`{0}` has a brace that is not closed")]
    OpenBrace(String),
    /// The pattern expands to more than [`MAX_PATTERNS`] patterns.
    #[error("`{0}` has more than {MAX_PATTERNS} alternatives")]
    TooManyAlternatives(String),
    #[error("`{0}` matches more than {MAX_FILES} files")]
    TooManyFiles(String),
}

impl Pattern {
    /// Parses a pattern. A relative pattern starts at the working directory.
    pub(super) fn new(text: &str) -> Result<Self, PatternError> {
        let patterns = alternatives(text)?.into_iter().map(|alternative| {
            // A `/**` at the end matches everything below the folder, as in Alloy.
            let files = match alternative.strip_suffix("/**") {
                Some(folder) => format!("{folder}/**/*"),
                None => alternative,
            };
            let absolute = std::path::absolute(&files).map_err(PatternError::Absolute)?;
            let absolute = absolute.to_string_lossy();
            glob::Pattern::new(&absolute).map_err(|source| PatternError::Invalid { text: files, source })
        });
        patterns.collect::<Result<_, _>>().map(Self)
    }

    /// Searches for the files that match, and returns them sorted. Skips folders that it cannot read.
    pub(super) fn files(&self) -> Result<BTreeSet<PathBuf>, PatternError> {
        let mut files = BTreeSet::new();
        for pattern in &self.0 {
            let paths = glob::glob_with(pattern.as_str(), OPTIONS).map_err(PatternError::Search)?;
            for path in paths {
                match path {
                    Ok(path) => files.insert(path),
                    Err(error) => {
                        tracing::debug!(pattern = pattern.as_str(), error = %error, "cannot read a folder");
                        continue;
                    }
                };
                if files.len() > MAX_FILES {
                    return Err(PatternError::TooManyFiles(pattern.to_string()));
                }
            }
        }
        Ok(files)
    }

    /// Returns true if the pattern matches `path`.
    pub(super) fn is_match(&self, path: &Path) -> bool {
        self.0.iter().any(|pattern| pattern.matches_path_with(path, OPTIONS))
    }
}

/// Returns all patterns in which each pair of braces is replaced by one of its alternatives.
fn alternatives(text: &str) -> Result<Vec<String>, PatternError> {
    let (mut done, mut open) = (Vec::new(), vec![text.to_owned()]);
    while let Some(pattern) = open.pop() {
        if done.len() + open.len() >= MAX_PATTERNS {
            return Err(PatternError::TooManyAlternatives(text.to_owned()));
        }
        let Some(Braces { before, choices, after }) = first_braces(&pattern)? else {
            done.push(pattern);
            continue;
        };
        open.extend(choices.iter().map(|choice| format!("{before}{choice}{after}")));
    }
    done.sort();
    Ok(done)
}

/// The first pair of braces in a pattern, with the text around it.
struct Braces<'a> {
    before: &'a str,
    choices: Vec<&'a str>,
    after: &'a str,
}

fn first_braces(text: &str) -> Result<Option<Braces<'_>>, PatternError> {
    let Some((before, rest)) = text.split_once('{') else {
        return Ok(None);
    };
    let (mut depth, mut start, mut choices) = (0, 0, Vec::new());
    for (index, character) in rest.char_indices() {
        match character {
            '{' => depth += 1,
            ',' if depth == 0 => {
                choices.push(&rest[start..index]);
                start = index + 1;
            }
            '}' if depth == 0 => {
                choices.push(&rest[start..index]);
                let after = &rest[index + 1..];
                return Ok(Some(Braces { before, choices, after }));
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    Err(PatternError::OpenBrace(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_become_patterns_of_their_own() {
        assert_eq!(alternatives("/a/*.log").unwrap(), ["/a/*.log"]);
        assert_eq!(
            alternatives("/{a,b/{c,d}}/*.{log,txt}").unwrap(),
            [
                "/a/*.log",
                "/a/*.txt",
                "/b/c/*.log",
                "/b/c/*.txt",
                "/b/d/*.log",
                "/b/d/*.txt"
            ]
        );
        let error = alternatives("/{a").unwrap_err().to_string();
        assert_eq!(error, "`/{a` has a brace that is not closed");
        let braces = "{a,b}".repeat(20);
        assert!(
            alternatives(&braces)
                .unwrap_err()
                .to_string()
                .ends_with("has more than 256 alternatives")
        );
    }
}
