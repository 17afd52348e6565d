//! Regular expressions as Go (RE2) reads them, compiled by the `regex` crate.
//!
//! In: the text of an expression. Out: a [`Regex`] that is anchored at both ends and whose dot matches line ends, as
//! Prometheus wants it, and a [`Template`] that expands `$1` and `${name}` as Go's `Regexp.Expand` does. The two
//! dialects differ in a few places that real configurations touch (`\d` is ASCII in RE2, `[` needs no escape inside a
//! class, `{` is literal where it opens no repetition, `\Q...\E` quotes): [`to_rust`] rewrites those and leaves the
//! rest alone.

use std::sync::Arc;

use regex::{Captures, Regex, RegexBuilder};

/// Largest compiled program, 10 MiB: the same bound as the `regex` crate's default, written down because it guards
/// memory.
const SIZE_LIMIT_BYTES: usize = 10 << 20;

/// Compiles `pattern` as Prometheus does: `^(?s:pattern)$`.
pub(crate) fn anchored(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&format!("^(?s:{})$", to_rust(pattern)))
        .size_limit(SIZE_LIMIT_BYTES)
        .build()
}

/// Why an expression is wrong, in one line.
pub(crate) fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    // Only the last line: the others show the rewritten expression, which nobody wrote.
    let last = text.lines().last().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// Rewrites an RE2 expression so that the `regex` crate gives it RE2's meaning. A wrong expression stays wrong.
pub(crate) fn to_rust(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    let mut place = Place::Outside;
    while let Some(character) = rest.chars().next() {
        let after = &rest[character.len_utf8()..];
        if character == '\\' {
            rest = escape(after, place, &mut out);
            continue;
        }
        rest = after;
        match character {
            '[' if place == Place::Outside => {
                place = Place::Class;
                out.push('[');
                if let Some(negated) = rest.strip_prefix('^') {
                    out.push('^');
                    rest = negated;
                }
                // A bracket right after the opening is a member.
                if let Some(member) = rest.strip_prefix(']') {
                    out.push_str("\\]");
                    rest = member;
                }
            }
            '[' => match posix_class(rest) {
                Some(length) => {
                    out.push('[');
                    out.push_str(&rest[..length]);
                    rest = &rest[length..];
                }
                None => out.push_str("\\["),
            },
            ']' if place == Place::Class => {
                place = Place::Outside;
                out.push(']');
            }
            // Set operations of the regex crate are plain characters in RE2.
            '&' | '~' if place == Place::Class => {
                out.push('\\');
                out.push(character);
            }
            '-' if place == Place::Class && rest.starts_with('-') => {
                out.push_str("\\-");
            }
            '{' if place == Place::Outside && !opens_repetition(rest) => out.push_str("\\{"),
            '}' if place == Place::Outside && !closes_repetition(&out) => out.push_str("\\}"),
            other => out.push(other),
        }
    }
    out
}

/// Where a character of an expression stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Between the brackets of a class.
    Class,
    Outside,
}

/// Writes the escape whose backslash has just been read; returns what follows it.
fn escape<'a>(rest: &'a str, place: Place, out: &mut String) -> &'a str {
    let Some(character) = rest.chars().next() else {
        // A trailing backslash: an error in both dialects.
        out.push('\\');
        return rest;
    };
    let after = &rest[character.len_utf8()..];
    if character == 'Q' && place == Place::Outside {
        let (quoted, after) = after.split_once("\\E").unwrap_or((after, ""));
        out.push_str(&regex::escape(quoted));
        return after;
    }
    if matches!(character, 'x' | 'p' | 'P')
        && after.starts_with('{')
        && let Some(end) = after.find('}')
    {
        out.push('\\');
        out.push(character);
        out.push_str(&after[..=end]);
        return &after[end + 1..];
    }
    match (character, place) {
        ('d', Place::Class) => out.push_str("0-9"),
        ('d', Place::Outside) => out.push_str("[0-9]"),
        ('D', _) => out.push_str("[^0-9]"),
        ('w', Place::Class) => out.push_str("0-9A-Za-z_"),
        ('w', Place::Outside) => out.push_str("[0-9A-Za-z_]"),
        ('W', _) => out.push_str("[^0-9A-Za-z_]"),
        ('s', Place::Class) => out.push_str("\\t\\n\\f\\r "),
        ('s', Place::Outside) => out.push_str("[\\t\\n\\f\\r ]"),
        ('S', _) => out.push_str("[^\\t\\n\\f\\r ]"),
        ('b', Place::Outside) => out.push_str("(?-u:\\b)"),
        // A `\B` that counts bytes may match inside a character. The Unicode form differs only for letters beyond
        // ASCII.
        _ => {
            out.push('\\');
            out.push(character);
        }
    }
    after
}

/// Length of `:name:]` (with an optional `^`) at the start of `rest`, which follows a `[`.
fn posix_class(rest: &str) -> Option<usize> {
    let body = rest.strip_prefix(':')?;
    let end = body.find(":]")?;
    let name = body[..end].strip_prefix('^').unwrap_or(&body[..end]);
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphabetic())).then_some(1 + end + 2)
}

/// True when `rest`, which follows a `{`, is `n}`, `n,}` or `n,m}`.
fn opens_repetition(rest: &str) -> bool {
    rest.split_once('}').is_some_and(|(body, _)| {
        let (least, most) = body.split_once(',').unwrap_or((body, ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        !least.is_empty() && digits(least) && digits(most)
    })
}

/// True when the last `{` written is an open one of a repetition.
fn closes_repetition(out: &str) -> bool {
    out.rfind('{').is_some_and(|open| {
        let escaped = out[..open].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
        !escaped && !out[open..].contains('}')
    })
}

/// A replacement text, cut into its parts once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(Arc<str>),
    Group(usize),
    Named(Arc<str>),
}

impl Template {
    /// Cuts `text` as Go's `Regexp.Expand` does: `$$` is a dollar, `$name` takes the longest run of letters, digits and
    /// underscores, a dollar that opens nothing stands for itself.
    pub(crate) fn new(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            literal.push_str(&rest[..dollar]);
            rest = &rest[dollar + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                literal.push('$');
                rest = after;
                continue;
            }
            let Some((name, after)) = reference(rest) else {
                literal.push('$');
                continue;
            };
            if !literal.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut literal).into()));
            }
            parts.push(match name.parse::<usize>() {
                Ok(index) => Part::Group(index),
                Err(_) => Part::Named(name.into()),
            });
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Text(literal.into()));
        }
        Self { parts }
    }

    /// The text with every reference replaced by its group, or by nothing when the group did not take part or does not
    /// exist.
    pub(crate) fn expand(&self, captures: &Captures<'_>) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Group(index) => out.push_str(captures.get(*index).map_or("", |group| group.as_str())),
                Part::Named(name) => out.push_str(captures.name(name).map_or("", |group| group.as_str())),
            }
        }
        out
    }

    /// Expands the template for `(.*)`, whose only group is the whole text.
    pub(crate) fn expand_everything(&self, whole: &str) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.to_string(),
            Part::Group(0 | 1) => whole.to_owned(),
            Part::Group(_) | Part::Named(_) => String::new(),
        };
        self.parts.iter().map(part).collect()
    }

    /// True for `$1`, which for `(.*)` is everything as it is.
    pub(crate) fn is_everything(&self) -> bool {
        matches!(self.parts.as_slice(), [Part::Group(0 | 1)])
    }

    /// The whole text when it refers to no group.
    pub(crate) fn as_literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }
}

/// The name after a dollar and what follows it.
fn reference(rest: &str) -> Option<(&str, &str)> {
    let is_name = |character: char| character == '_' || character.is_alphanumeric();
    if let Some(body) = rest.strip_prefix('{') {
        let (name, after) = body.split_once('}')?;
        return (!name.is_empty() && name.chars().all(is_name)).then_some((name, after));
    }
    let end = rest.find(|character| !is_name(character)).unwrap_or(rest.len());
    (end > 0).then(|| rest.split_at(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        anchored(pattern).unwrap().is_match(text)
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
        assert!(anchored("(").is_err() && anchored("a\\").is_err());
    }

    #[test]
    fn references_expand_as_in_go() {
        let regex = anchored("(?P<name>a+)(b)?(c)").unwrap();
        let captures = regex.captures("aac").unwrap();
        let expand = |text: &str| Template::new(text).expand(&captures);
        assert_eq!(expand("$1-$3"), "aa-c");
        assert_eq!(expand("${1}x$2"), "aax");
        assert_eq!(expand("$1x"), "");
        assert_eq!(expand("${name}"), "aa");
        assert_eq!(expand("$$1 costs 5$"), "$1 costs 5$");
        assert_eq!(expand("${1-"), "${1-");
        assert_eq!(Template::new("plain").as_literal(), Some("plain"));
        assert_eq!(Template::new("$1").as_literal(), None);
    }
}
