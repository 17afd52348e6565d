//! Rewrites a regular expression of Go (RE2) in the language of the `regex` crates.
//!
//! The two dialects differ in a few places that real configurations touch (`\d` is ASCII in RE2, `[` needs no escape
//! inside a class, `{` is literal where it opens no repetition, `\Q...\E` quotes). Those are rewritten; the rest stays.

/// Rewrites an RE2 expression so that the `regex` crate gives it RE2's meaning. A wrong expression stays wrong.
pub(super) fn to_rust(pattern: &str) -> String {
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
