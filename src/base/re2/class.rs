//! Character classes: `[a-z]`, `\d`, `[[:alpha:]]`, `\p{Greek}`.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

use crate::re2::error::{Re2Error, SyntaxError};
use crate::re2::escape::escape;

/// Named classes of POSIX and Perl. `\s` does not contain the vertical tab; `[[:space:]]` does.
const NAMED_CLASSES: [(&str, &[(u8, u8)]); 17] = [
    ("alnum", &[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z')]),
    ("alpha", &[(b'A', b'Z'), (b'a', b'z')]),
    ("ascii", &[(0, 0x7f)]),
    ("blank", &[(b'\t', b'\t'), (b' ', b' ')]),
    ("cntrl", &[(0, 0x1f), (0x7f, 0x7f)]),
    ("digit", &[(b'0', b'9')]),
    ("graph", &[(b'!', b'~')]),
    ("lower", &[(b'a', b'z')]),
    ("print", &[(b' ', b'~')]),
    ("punct", &[(b'!', b'/'), (b':', b'@'), (b'[', b'`'), (b'{', b'~')]),
    ("space", &[(b'\t', b'\r'), (b' ', b' ')]),
    ("upper", &[(b'A', b'Z')]),
    ("word", &[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z'), (b'_', b'_')]),
    ("xdigit", &[(b'0', b'9'), (b'A', b'F'), (b'a', b'f')]),
    ("d", &[(b'0', b'9')]),
    ("s", &[(b'\t', b'\n'), (b'\x0c', b'\r'), (b' ', b' ')]),
    ("w", &[(b'0', b'9'), (b'A', b'Z'), (b'a', b'z'), (b'_', b'_')]),
];

/// Returns the code points from `low` to `high`, without surrogates, which are not characters.
pub(super) fn range(low: u32, high: u32, is_folded: bool) -> ClassUnicode {
    let below_surrogates = (low, high.min(0xd7ff));
    let above_surrogates = (low.max(0xe000), high);
    let parts = [below_surrogates, above_surrogates]
        .into_iter()
        .filter_map(|(low, high)| {
            let (low, high) = (char::from_u32(low)?, char::from_u32(high)?);
            (low <= high).then(|| ClassUnicodeRange::new(low, high))
        });
    folded(ClassUnicode::new(parts), is_folded)
}

/// Reads the class escape at the start of `text`, inside or outside of brackets: `\d`, `\pL`, `\P{Greek}`. Returns
/// the class and its length in bytes, or `None` if `text` does not start with a class escape.
pub(super) fn escaped(text: &str, is_folded: bool) -> Result<Option<(ClassUnicode, usize)>, Re2Error> {
    let Some(letter) = text.strip_prefix('\\').and_then(|rest| rest.chars().next()) else {
        return Ok(None);
    };
    match letter {
        'd' | 's' | 'w' => Ok(named(&letter.to_string(), false, is_folded).map(|class| (class, 2))),
        'D' | 'S' | 'W' => {
            let name = letter.to_ascii_lowercase().to_string();
            Ok(named(&name, true, is_folded).map(|class| (class, 2)))
        }
        'p' | 'P' => unicode(text, letter == 'P', is_folded).map(Some),
        _ => Ok(None),
    }
}

/// Reads the bracketed class at the start of `text`. Returns the class and its length in bytes.
pub(super) fn bracketed(text: &str, is_folded: bool) -> Result<(ClassUnicode, usize), Re2Error> {
    let inner = text.get(1..).unwrap_or_default();
    let is_negated = inner.starts_with('^');
    let mut offset = 1 + usize::from(is_negated);
    let mut class = ClassUnicode::empty();
    let mut is_first = true;
    loop {
        let rest = text.get(offset..).unwrap_or_default();
        if rest.starts_with(']') && !is_first {
            break;
        }
        is_first = false;
        if let Some((part, length)) = posix(rest, is_folded)? {
            class.union(&part);
            offset += length;
            continue;
        }
        if let Some((part, length)) = escaped(rest, is_folded)? {
            class.union(&part);
            offset += length;
            continue;
        }
        let (low, length) = member(rest, text)?;
        offset += length;
        let mut high = low;
        let remainder = text.get(offset..).unwrap_or_default();
        // A dash before the closing bracket is a literal.
        if remainder.len() >= 2 && remainder.starts_with('-') && !remainder.starts_with("-]") {
            let (last, length) = member(remainder.get(1..).unwrap_or_default(), text)?;
            offset += 1 + length;
            high = last;
            if high < low {
                let part = rest.get(..rest.len() - (text.len() - offset)).unwrap_or(rest);
                return Err(SyntaxError::ClassRange.in_part(part));
            }
        }
        class.union(&range(low, high, is_folded));
    }
    if is_negated {
        class.negate();
    }
    Ok((class, offset + 1))
}

/// Reads a single character of a class, which may be escaped. Returns its code point and its length in bytes.
fn member(rest: &str, class: &str) -> Result<(u32, usize), Re2Error> {
    match rest.chars().next() {
        None => Err(SyntaxError::MissingBracket.in_part(class)),
        Some('\\') => escape(rest),
        Some(letter) => Ok((u32::from(letter), letter.len_utf8())),
    }
}

/// Reads `[:alpha:]` or `[:^alpha:]`.
fn posix(rest: &str, is_folded: bool) -> Result<Option<(ClassUnicode, usize)>, Re2Error> {
    let Some(end) = rest.strip_prefix("[:").and_then(|body| body.find(":]")) else {
        return Ok(None);
    };
    let (body, length) = (rest.get(2..2 + end).unwrap_or_default(), end + 4);
    let (name, is_negated) = body.strip_prefix('^').map_or((body, false), |name| (name, true));
    // A name of one letter is a Perl class, which is not valid here.
    match named(name, is_negated, is_folded).filter(|_| name.len() > 1) {
        Some(class) => Ok(Some((class, length))),
        None => Err(SyntaxError::ClassRange.in_part(rest.get(..length).unwrap_or(rest))),
    }
}

fn named(name: &str, is_negated: bool, is_folded: bool) -> Option<ClassUnicode> {
    let (_, ranges) = NAMED_CLASSES.iter().find(|(known, _)| *known == name)?;
    let ranges = ranges
        .iter()
        .map(|(low, high)| ClassUnicodeRange::new(char::from(*low), char::from(*high)));
    Some(signed(folded(ClassUnicode::new(ranges), is_folded), is_negated))
}

/// Reads `\pL`, `\p{Greek}`, `\p{^Greek}`, or the same with `\P`.
fn unicode(text: &str, is_negated: bool, is_folded: bool) -> Result<(ClassUnicode, usize), Re2Error> {
    let rest = text.get(2..).unwrap_or_default();
    let range_error = |length: usize| SyntaxError::ClassRange.in_part(text.get(..length).unwrap_or(text));
    let (name, length) = if let Some(braced) = rest.strip_prefix('{') {
        let end = braced.find('}').ok_or_else(|| range_error(text.len()))?;
        (braced.get(..end).unwrap_or_default(), 2 + end + 2)
    } else {
        let letter = rest.chars().next().map_or(0, char::len_utf8);
        (rest.get(..letter).unwrap_or_default(), 2 + letter)
    };
    let (name, is_negated) = name
        .strip_prefix('^')
        .map_or((name, is_negated), |name| (name, !is_negated));
    let class = table(name).ok_or_else(|| range_error(length))?;
    Ok((signed(folded(class, is_folded), is_negated), length))
}

/// Returns the characters of a general category or a script.
fn table(name: &str) -> Option<ClassUnicode> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-');
    // `regex-syntax` ignores a leading `is`, but Go does not.
    let is_prefixed = name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("is"));
    if name.is_empty() || !name.bytes().all(is_letter) || is_prefixed {
        return None;
    }
    ["gc", "sc"].iter().find_map(|kind| {
        let read = regex_syntax::parse(&format!("\\p{{{kind}={name}}}")).ok()?;
        characters(&read)
    })
}

/// Returns the characters of a class, which `regex-syntax` may have turned into a literal.
fn characters(read: &Hir) -> Option<ClassUnicode> {
    match read.kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class.clone()),
        HirKind::Class(Class::Bytes(class)) => class.to_unicode_class(),
        HirKind::Literal(literal) => {
            let text = std::str::from_utf8(&literal.0).ok()?;
            Some(ClassUnicode::new(
                text.chars().map(|letter| ClassUnicodeRange::new(letter, letter)),
            ))
        }
        _ => None,
    }
}

fn folded(mut class: ClassUnicode, is_folded: bool) -> ClassUnicode {
    if is_folded {
        // The call fails only without the Unicode tables, which are compiled in.
        let _ = class.try_case_fold_simple();
    }
    class
}

fn signed(mut class: ClassUnicode, is_negated: bool) -> ClassUnicode {
    if is_negated {
        class.negate();
    }
    class
}
