//! Splits HCL into tokens, for the formatter and the search for comments.
//!
//! A string including its templates is one token, and so is a heredoc. Invalid text yields wrong tokens, never an
//! error: the parser reports errors.

use crate::source::{Source, Span};

/// Maximum nesting of brackets and templates that is passed to the parser.
pub(crate) const MAX_DEPTH: usize = 200;

/// A token and its position in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    /// The kind of this token, without its text.
    pub kind: Kind,
    /// The range of bytes that it covers.
    pub span: Span,
}

/// The kinds of tokens that [`tokens`] distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Newline,
    /// `# ...` and `// ...` without the newline, `/* ... */`.
    Comment,
    Name,
    Number,
    String,
    /// A heredoc, from `<<` to the closing word.
    Heredoc,
    /// An opening bracket: `{`, `[` or `(`.
    Open,
    /// A closing bracket: `}`, `]` or `)`.
    Close,
    Comma,
    /// A dot between two names.
    Dot,
    /// The `::` of a function's path.
    Path,
    /// The `=` of an attribute.
    Assign,
    /// Any other operator or character.
    Operator,
}

/// Returns the tokens of a text, without white space other than newlines.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut offset = if text.starts_with('\u{feff}') { 3 } else { 0 };
    while let Some(letter) = text.get(offset..).and_then(|rest| rest.chars().next()) {
        let rest = &text[offset..];
        let (kind, length) = match letter {
            ' ' | '\t' | '\r' => {
                offset += 1;
                continue;
            }
            '\n' => (Kind::Newline, 1),
            '#' => (Kind::Comment, line(rest)),
            '/' if rest.starts_with("//") => (Kind::Comment, line(rest)),
            '/' if rest.starts_with("/*") => (Kind::Comment, rest[2..].find("*/").map_or(rest.len(), |end| end + 4)),
            '"' => (Kind::String, string_length(rest)),
            '<' if rest.starts_with("<<") => match heredoc_length(rest) {
                Some(length) => (Kind::Heredoc, length),
                None => (Kind::Operator, 2),
            },
            '{' | '[' | '(' => (Kind::Open, 1),
            '}' | ']' | ')' => (Kind::Close, 1),
            ',' => (Kind::Comma, 1),
            '.' if rest.starts_with("...") => (Kind::Operator, 3),
            '.' => (Kind::Dot, 1),
            ':' if rest.starts_with("::") => (Kind::Path, 2),
            letter if letter.is_ascii_digit() => (Kind::Number, number_length(rest)),
            letter if is_name(letter) => (
                Kind::Name,
                rest.find(|letter| !(is_name(letter) || letter == '-' || letter.is_numeric()))
                    .unwrap_or(rest.len()),
            ),
            _ => {
                let long_operators = ["==", "!=", "<=", ">=", "&&", "||", "=>"];
                match long_operators.iter().find(|operator| rest.starts_with(**operator)) {
                    Some(_) => (Kind::Operator, 2),
                    None if letter == '=' => (Kind::Assign, 1),
                    None => (Kind::Operator, letter.len_utf8()),
                }
            }
        };
        tokens.push(Token {
            kind,
            span: Span::new(offset, offset + length),
        });
        offset += length;
    }
    tokens
}

/// Returns the comments of a text. Comments on adjacent lines without other tokens form a group.
pub(crate) fn comment_groups(source: &Source) -> Vec<Vec<Span>> {
    let mut groups: Vec<Vec<Span>> = Vec::new();
    let mut last_line = None;
    for token in tokens(source.text()) {
        match token.kind {
            Kind::Newline => {}
            Kind::Comment => {
                let line = source.line(token.span.start);
                match (groups.last_mut(), last_line) {
                    (Some(group), Some(last)) if line <= last + 1 => group.push(token.span),
                    _ => groups.push(vec![token.span]),
                }
                last_line = Some(source.line(token.span.end));
            }
            _ => last_line = None,
        }
    }
    groups
}

/// Returns the offset at which brackets and templates, or prefix operators, nest deeper than [`MAX_DEPTH`].
pub(crate) fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0usize;
    let mut prefixes = 0usize;
    for token in tokens(text) {
        let inside = &text[token.span.start..token.span.end];
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.saturating_sub(1),
            // Templates nest inside strings. All brackets in a string count, whatever their meaning.
            Kind::String | Kind::Heredoc
                if inside.bytes().filter(|byte| matches!(byte, b'{' | b'[' | b'(')).count() > MAX_DEPTH =>
            {
                return Some(token.span.start);
            }
            _ => {}
        }
        prefixes = match inside {
            "!" | "-" | "?" => prefixes + 1,
            _ if token.kind == Kind::Newline => 0,
            _ => prefixes,
        };
        if depth > MAX_DEPTH || prefixes > MAX_DEPTH {
            return Some(token.span.start);
        }
    }
    None
}

/// Returns the first unterminated string.
pub(crate) fn open_string(text: &str) -> Option<Span> {
    let open = |token: &Token| {
        let inside = &text[token.span.start..token.span.end];
        token.kind == Kind::String && (inside.len() < 2 || !inside.ends_with('"'))
    };
    tokens(text).into_iter().find(open).map(|token| token.span)
}

fn is_name(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_'
}

fn line(rest: &str) -> usize {
    let length = rest.find('\n').unwrap_or(rest.len());
    rest[..length].trim_end_matches('\r').len()
}

fn number_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    let digits = |mut offset: usize| {
        while bytes.get(offset).is_some_and(u8::is_ascii_digit) {
            offset += 1;
        }
        offset
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign);
        }
    }
    end
}

/// Returns the length of a quoted template including nested templates. If the closing quote is missing and no
/// interpolation is open, the template ends with its line.
fn string_length(rest: &str) -> usize {
    let bytes = rest.as_bytes();
    // True for a string and false for an interpolation, for each nesting level, outermost first.
    let mut inside = vec![true];
    let mut offset = 1;
    while let (Some(byte), Some(string)) = (bytes.get(offset), inside.last().copied()) {
        let next = bytes.get(offset + 1);
        match (string, byte) {
            (true, b'\\') => offset += 1,
            (true, b'$' | b'%') if next == Some(byte) && bytes.get(offset + 2) == Some(&b'{') => offset += 2,
            (true, b'$' | b'%') if next == Some(&b'{') => {
                inside.push(false);
                offset += 1;
            }
            (true, b'"') => {
                inside.pop();
            }
            (true, b'\n') if inside.len() == 1 => return offset,
            (false, b'"') => inside.push(true),
            (false, b'{') => inside.push(false),
            (false, b'}') => {
                inside.pop();
            }
            _ => {}
        }
        offset += 1;
        if inside.is_empty() {
            return offset.min(rest.len());
        }
    }
    rest.len()
}

fn heredoc_length(rest: &str) -> Option<usize> {
    let head = rest[2..].trim_start_matches('-');
    let word_end = head.find(|letter: char| !(is_name(letter) || letter.is_numeric() || letter == '-'))?;
    let word = &head[..word_end];
    if word.is_empty() {
        return None;
    }
    let mut line_start = rest.find('\n')? + 1;
    while line_start < rest.len() {
        let length = rest[line_start..].find('\n').unwrap_or(rest.len() - line_start);
        let line = &rest[line_start..line_start + length];
        if line.trim() == word {
            return Some(line_start + line.trim_end().len());
        }
        line_start += length + 1;
    }
    Some(rest.len())
}
