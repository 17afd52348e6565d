//! Flags of a group: `(?i)`, `(?s:...)`, and named groups.

use crate::re2::error::{Re2Error, SyntaxError};

/// Flags that are in force at a position of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Flags {
    /// `i`: letters match in both cases.
    pub(super) is_folded: bool,
    /// `m`: `^` and `$` also match at line ends.
    pub(super) is_multiline: bool,
    /// `s`: the dot also matches line ends.
    pub(super) dot_is_any: bool,
    /// `U`: repetitions are lazy unless `?` follows.
    pub(super) is_lazy: bool,
}

/// A construct that begins with the characters `(?`.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Special<'a> {
    /// `(?P<name>` or `(?<name>`.
    Named(&'a str),
    /// `(?i)`: sets flags for the rest of the enclosing group, without opening a group.
    Set(Flags),
    /// `(?i:`: a group without a number.
    Group(Flags),
}

/// Reads `text`, which begins with `(?`. Returns the construct at its start and its length in bytes.
pub(super) fn special(text: &str, flags: Flags) -> Result<(Special<'_>, usize), Re2Error> {
    let start = match text.as_bytes() {
        [_, _, b'P', b'<', _, ..] => Some(4),
        [_, _, b'<', _, ..] => Some(3),
        _ => None,
    };
    if let Some(start) = start {
        let end = text.find('>').ok_or_else(|| SyntaxError::NamedCapture.in_part(text))?;
        let name = text.get(start..end).unwrap_or_default();
        let is_name = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
        if name.is_empty() || !name.bytes().all(is_name) {
            return Err(SyntaxError::NamedCapture.in_part(text.get(..=end).unwrap_or(text)));
        }
        return Ok((Special::Named(name), end + 1));
    }
    let (mut new, mut is_enabled, mut has_flag) = (flags, true, false);
    let mut length = 2;
    for letter in text.chars().skip(2) {
        length += letter.len_utf8();
        match letter {
            'i' => new.is_folded = is_enabled,
            'm' => new.is_multiline = is_enabled,
            's' => new.dot_is_any = is_enabled,
            'U' => new.is_lazy = is_enabled,
            '-' if is_enabled => {
                (is_enabled, has_flag) = (false, false);
                continue;
            }
            ':' if is_enabled || has_flag => return Ok((Special::Group(new), length)),
            ')' if is_enabled || has_flag => return Ok((Special::Set(new), length)),
            _ => break,
        }
        has_flag = true;
    }
    Err(SyntaxError::PerlOperator.in_part(text.get(..length).unwrap_or(text)))
}
