//! Search with the syntax of the web page: case-insensitive text, `/regular expression/` or `=a whole name`.
//!
//! In: the typed text. Out: the matching names, the sum of the matching frames without nested matches, and the frames
//! to step through, the largest first.

use std::cmp::Reverse;

use regex::{Regex, RegexBuilder};

use crate::cli::readers::tui::graph::{Graph, ROOT};

/// Maximum size of a compiled regular expression, in bytes.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// The reason why a typed expression cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum PatternError {
    #[error("the expression is too large")]
    TooLarge,
    /// The expression has a mistake. Only the last line of the error fits into the prompt.
    #[error("{}", last_line(.0))]
    Syntax(#[source] regex::Error),
}

/// A condition on the name of a function.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    /// Lower-case text that is part of the name.
    Part(String),
    /// The complete name, in its exact case.
    Name(String),
    Regex(Regex),
}

impl Pattern {
    /// Parses the typed text; `None` if it is empty.
    pub(super) fn parse(text: &str) -> Result<Option<Self>, PatternError> {
        let text = text.trim();
        if text.is_empty() || text == "/" {
            return Ok(None);
        }
        if let Some((pattern, flags)) = expression(text) {
            let has = |flag| flags.contains(flag);
            let regex = RegexBuilder::new(pattern)
                .case_insensitive(flags.is_empty() || has('i'))
                .multi_line(has('m'))
                .dot_matches_new_line(has('s'))
                .size_limit(MAX_REGEX_BYTES)
                .build();
            return match regex {
                Ok(regex) => Ok(Some(Self::Regex(regex))),
                Err(regex::Error::CompiledTooBig(_)) => Err(PatternError::TooLarge),
                Err(error) => Err(PatternError::Syntax(error)),
            };
        }
        Ok(Some(match text.strip_prefix('=').map(str::trim) {
            Some(name) if !name.is_empty() => Self::Name(name.to_owned()),
            _ => Self::Part(text.to_lowercase()),
        }))
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Part(part) => name.to_lowercase().contains(part),
            Self::Name(expected) => name.trim() == expected,
            Self::Regex(regex) => regex.is_match(name),
        }
    }
}

/// Returns the last line of an error.
fn last_line(error: &regex::Error) -> String {
    error.to_string().lines().last().unwrap_or_default().trim().to_owned()
}

/// Splits `/expression/flags` into its parts.
fn expression(text: &str) -> Option<(&str, &str)> {
    let (pattern, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
    let is_flags = flags.chars().all(|flag| "imsu".contains(flag));
    (is_flags && !pattern.is_empty()).then_some((pattern, flags))
}

/// The matching names and frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Matches {
    /// For each name, true if the name matches.
    names: Vec<bool>,
    /// Matching frames that lie within no other match, the largest first.
    pub frames: Vec<usize>,
    /// Sum of the totals of `frames`.
    pub sum: i64,
}

impl Matches {
    /// Searches the frames within `root`.
    pub(super) fn of(graph: &Graph, root: usize, pattern: &Pattern) -> Self {
        let mut names: Vec<bool> = graph.names.iter().map(|name| pattern.matches(&name.text)).collect();
        // The root of the graph is not a function.
        if let Some(name) = names.get_mut(graph.frame(ROOT).name) {
            *name = false;
        }
        // Frames are numbered level by level, so callers come before their callees.
        let mut states = vec![State::Outside; graph.len()];
        let (mut frames, mut sum) = (Vec::new(), 0i64);
        for index in root..graph.len() {
            let frame = graph.frame(index);
            let caller = if index == root {
                State::Inside
            } else {
                states[frame.parent]
            };
            states[index] = match caller {
                State::Inside if names[frame.name] => {
                    frames.push(index);
                    sum = sum.saturating_add(frame.total);
                    State::Covered
                }
                caller => caller,
            };
        }
        frames.sort_by_key(|index| Reverse(graph.frame(*index).total));
        Self { names, frames, sum }
    }

    /// Returns true if the name with this index matches.
    pub(super) fn has(&self, name: usize) -> bool {
        self.names.get(name).copied().unwrap_or_default()
    }

    /// Returns the match after `from`, or the match before `from` if `is_forward` is false. The first match follows the
    /// last match. If `from` is not a match, returns the first match, or the last match if `is_forward` is false.
    pub(super) fn step(&self, from: usize, is_forward: bool) -> Option<usize> {
        let count = self.frames.len();
        let index = self.frames.iter().position(|frame| *frame == from);
        let next = match (index, is_forward) {
            (None, true) => 0,
            (None, false) => count.checked_sub(1)?,
            (Some(index), true) => (index + 1) % count,
            (Some(index), false) => (index + count - 1) % count,
        };
        self.frames.get(next).copied()
    }
}

/// Position of a frame relative to the searched frame and to the matches.
#[derive(Debug, Clone, Copy)]
enum State {
    Outside,
    /// Within the searched frame, but not within a match.
    Inside,
    /// Within a matching frame.
    Covered,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::readers::tui::testing::{frame, graph};

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap().unwrap()
    }

    #[test]
    fn there_are_three_forms_of_a_search() {
        for (text, name, expected) in [
            ("WORK", "main.Work", true),
            ("main.(*T)", "x/main.(*T).f", true),
            ("/^main\\./", "Main.work", true),
            ("/^main\\./s", "Main.work", false),
            ("/^work/", "main.work", false),
            ("=main.work", "main.work", true),
            ("=main", "main.work", false),
            ("=", "a=b", true),
            ("/usr/bin/x", "/usr/bin/x", true),
        ] {
            assert_eq!(pattern(text).matches(name), expected, "{text} {name}");
        }
        for nothing in ["", "  ", "/"] {
            assert!(Pattern::parse(nothing).unwrap().is_none(), "{nothing}");
        }
        let refused = |text: &str| Pattern::parse(text).unwrap_err().to_string();
        assert!(refused("/(/").contains("unclosed group"));
        assert!(refused("/(\\w{1000}){1000}/").contains("too large"));
    }

    #[test]
    fn a_match_inside_a_match_is_not_counted_twice() {
        let graph = graph(&[("main;work;work;leaf", 50), ("main;rest", 30), ("total;work", 20)]);
        let matches = Matches::of(&graph, ROOT, &pattern("work"));
        assert_eq!((matches.sum, matches.frames.len()), (70, 2));
        let [first, second] = [matches.frames[0], matches.frames[1]];
        assert_eq!(graph.frame(first).total, 50);
        assert_eq!(
            [
                matches.step(ROOT, true),
                matches.step(first, true),
                matches.step(second, true)
            ],
            [Some(first), Some(second), Some(first)]
        );
        assert_eq!(
            [matches.step(ROOT, false), matches.step(first, false)],
            [Some(second), Some(second)]
        );
        assert!(matches.has(graph.frame(first).name) && !matches.has(graph.frame(ROOT).name));
        let nothing = Matches::of(&graph, ROOT, &pattern("nobody"));
        assert_eq!(
            (nothing.step(ROOT, true), nothing.step(ROOT, false), nothing.sum),
            (None, None, 0)
        );
    }

    #[test]
    fn only_the_zoomed_frame_is_searched() {
        let graph = graph(&[("main;work;leaf", 50), ("rest;leaf", 30)]);
        let matches = Matches::of(&graph, frame(&graph, "rest"), &pattern("leaf"));
        assert_eq!((matches.sum, matches.frames.len()), (30, 1));
        let itself = Matches::of(&graph, frame(&graph, "rest"), &pattern("rest"));
        assert_eq!((itself.sum, itself.frames), (30, vec![frame(&graph, "rest")]));
    }
}
