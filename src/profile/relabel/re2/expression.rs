//! Compiled expressions.
//!
//! A configuration may have thousands, most of which match short texts now and then: they are run by the engines that
//! need no tables. With a lazy automaton, which the `regex` crate builds for each, they would take several times the
//! memory and the time to compile.

use std::sync::Arc;

use regex_automata::meta::{self, Regex};
use regex_automata::util::captures::Captures;

use crate::profile::relabel::re2::dialect::to_rust;

/// Largest compiled program, 10 MiB, as in the `regex` crate: it guards memory.
const SIZE_LIMIT_BYTES: usize = 10 << 20;

/// A compiled expression; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    text: Arc<str>,
    program: Regex,
}

/// The groups of a match, as texts.
pub(crate) struct Groups<'t> {
    text: &'t str,
    captures: Captures,
}

impl Expression {
    /// Compiles `pattern` as Prometheus does: `^(?s:pattern)$`. The error says in one line what is wrong.
    pub(crate) fn anchored(pattern: &str) -> Result<Self, String> {
        let config = meta::Config::new()
            .nfa_size_limit(Some(SIZE_LIMIT_BYTES))
            .hybrid(false)
            .dfa(false)
            .onepass(false);
        let program = meta::Builder::new()
            .configure(config)
            .build(&format!("^(?s:{})$", to_rust(pattern)))
            .map_err(|error| reason(&error))?;
        Ok(Self {
            text: pattern.into(),
            program,
        })
    }

    /// The expression as it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// True when the whole text matches.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.program.is_match(text)
    }

    /// The groups, when the whole text matches.
    pub(crate) fn groups<'t>(&self, text: &'t str) -> Option<Groups<'t>> {
        let mut captures = self.program.create_captures();
        self.program.captures(text, &mut captures);
        captures.is_match().then_some(Groups { text, captures })
    }
}

impl Groups<'_> {
    /// The text of a group; empty when it did not take part or does not exist.
    pub(super) fn get(&self, index: usize) -> &str {
        let span = self.captures.get_group(index);
        span.and_then(|span| self.text.get(span.range())).unwrap_or_default()
    }

    /// As `get`, by the name of the group.
    pub(super) fn named(&self, name: &str) -> &str {
        let span = self.captures.get_group_by_name(name);
        span.and_then(|span| self.text.get(span.range())).unwrap_or_default()
    }
}

/// Why an expression is wrong.
fn reason(error: &meta::BuildError) -> String {
    if let Some(limit) = error.size_limit() {
        return format!("compiled regex exceeds size limit of {limit} bytes");
    }
    let text = error
        .syntax_error()
        .map_or_else(|| error.to_string(), ToString::to_string);
    // Only the last line: the others show the rewritten expression, which nobody wrote.
    let last = text.lines().last().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Expression::anchored(pattern).unwrap().is_match(text)
    }

    #[test]
    fn expressions_are_anchored_and_the_dot_matches_line_ends() {
        assert!(matches("a.b", "a\nb"));
        assert!(!matches("a", "ab"));
        assert!(matches("a|bc", "bc"));
        assert!(!matches("a|b", "ab"));
    }

    #[test]
    fn what_re2_reads_otherwise_is_rewritten() {
        assert!(matches(r"\d+", "12") && !matches(r"\d+", "\u{0663}"));
        assert!(matches(r"[\d_]+", "1_2"));
        assert!(matches(r"[\D]+", "ab") && !matches(r"\D", "1"));
        assert!(matches(r"\w+", "a_1") && !matches(r"\w", "\u{e9}"));
        assert!(matches("[[]", "["));
        assert!(matches("[]a]+", "]a"));
        assert!(matches("[^]a]", "b"));
        assert!(matches("[[:alpha:]]+", "abc") && !matches("[[:alpha:]]", "1"));
        assert!(matches("[a&&b]+", "a&b"));
        assert!(matches("{a}", "{a}"));
        assert!(matches("a{2}", "aa") && matches("a{1,}", "aaa") && matches("a{,2}", "a{,2}"));
        assert!(matches(r"\Qa.b\E+", "a.bb") && !matches(r"\Qa.b\E", "axb"));
        assert!(matches(r"\p{Greek}+", "\u{3b1}"));
        assert!(matches(r"(?i)ABC", "abc"));
        assert!(matches(r"a\.b", "a.b") && !matches(r"a\.b", "axb"));
        assert!(matches(r"\x{4A}", "J") && matches(r"[\x{4A}]", "J"));
        assert!(Expression::anchored("(").is_err() && Expression::anchored("a\\").is_err());
    }

    #[test]
    fn an_expression_that_grows_too_large_is_refused() {
        let error = Expression::anchored(r"(\p{L}{1000}){1000}").unwrap_err();
        assert_eq!(error, "compiled regex exceeds size limit of 10485760 bytes");
    }
}
