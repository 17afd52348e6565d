//! Emits printed tokens, and inserts comments at their original positions.
//!
//! White space is delayed until the next token, because a comment may precede, interrupt or replace the white space.
//! Source positions are known for most tokens. For the other tokens they are estimated from the printed text. Alloy
//! estimates in the same way, and the placement of comments depends on it.
//!
//! Output is a byte stream for [`super::columns`]: tab and vertical tab end a cell, newline ends a line, form feed ends
//! a line and the run of aligned lines. [`ESCAPE`] encloses text that is always one cell, [`VERBATIM`] encloses
//! strings, whose newlines are kept.

use crate::source::{Source, Span};
use crate::token::TokenKind;

/// Opens and closes a comment. Not a byte of UTF-8 text.
pub(crate) const ESCAPE: u8 = 0xff;
/// Opens and closes a string. Not a byte of UTF-8 text.
pub(crate) const VERBATIM: u8 = 0xfe;

/// White space between tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// Dropped in favour of a comment.
    Ignored,
    /// A space between two texts.
    Blank,
    /// A tab stop: the next text is aligned with the adjacent lines.
    Stop,
    /// A new line in the same run of aligned lines.
    Newline,
    /// A new line that ends the run.
    Break,
    /// One indentation level more from the next line on.
    Indent,
    /// One indentation level less from the next line on.
    Unindent,
}

/// Maximum number of delayed white-space items, as in Alloy.
const MAX_PENDING: usize = 16;

/// A position in the source: offset and line. Estimated if it was derived from printed text.
#[derive(Clone, Copy)]
struct SourcePosition {
    offset: usize,
    line: usize,
}

const END: SourcePosition = SourcePosition {
    offset: usize::MAX,
    line: usize::MAX,
};

/// Collects the output, line by line.
pub(crate) struct Emitter<'a> {
    source: &'a Source,
    /// Comment groups that have not been printed.
    comments: std::slice::Iter<'a, Vec<Span>>,
    group: &'a [Span],
    output: Vec<u8>,
    indent: usize,
    pending: Vec<Space>,
    /// The last token written, if it could merge with the next one.
    last_token: Option<TokenKind>,
    position: SourcePosition,
    /// Position after the last text written.
    last_position: SourcePosition,
    at_line_start: bool,
}

impl<'a> Emitter<'a> {
    /// Creates an emitter that prints `comments`, in order, between the tokens.
    pub(super) fn new(source: &'a Source, comments: &'a [Vec<Span>]) -> Self {
        let start = SourcePosition { offset: 0, line: 1 };
        let mut emitter = Self {
            source,
            comments: comments.iter(),
            group: &[],
            output: Vec::new(),
            indent: 0,
            pending: Vec::with_capacity(MAX_PENDING),
            last_token: None,
            position: start,
            last_position: SourcePosition { offset: 0, line: 0 },
            at_line_start: true,
        };
        emitter.next_group();
        emitter
    }

    /// Sets the source offset of the next token.
    pub(super) fn move_to(&mut self, offset: usize) {
        self.position = self.position_of(offset);
    }

    /// Delays white space until the next token.
    pub(super) fn space(&mut self, space: Space) {
        if self.pending.len() == MAX_PENDING {
            self.write_pending(MAX_PENDING);
        }
        self.pending.push(space);
        self.last_token = None;
    }

    /// Prints a name or another text unchanged.
    pub(super) fn text(&mut self, text: &str) {
        self.last_token = Some(TokenKind::Identifier);
        self.write(text, None);
    }

    /// Prints a literal unchanged.
    pub(crate) fn literal(&mut self, text: &str, kind: TokenKind) {
        self.last_token = Some(kind);
        let bracket = (kind == TokenKind::String).then_some(VERBATIM);
        self.write(text, bracket);
    }

    /// Prints an operator or a bracket.
    pub(super) fn token(&mut self, kind: TokenKind) {
        // `5` and `.` would run together into a float.
        if self.last_token == Some(TokenKind::Number) && kind == TokenKind::Dot {
            self.pending.push(Space::Blank);
        }
        self.last_token = Some(kind);
        self.write(kind.text(), None);
    }

    /// Prints the remaining comments and returns the output.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.comment_before(END) {
            self.print_comments(END);
        }
        self.output
    }

    fn position_of(&self, offset: usize) -> SourcePosition {
        SourcePosition {
            offset,
            line: self.source.line(offset),
        }
    }

    fn next_group(&mut self) {
        self.group = self.comments.next().map_or(&[], Vec::as_slice);
    }

    fn comment_before(&self, next: SourcePosition) -> bool {
        self.group.first().is_some_and(|comment| comment.start <= next.offset)
    }

    fn write(&mut self, text: &str, bracket: Option<u8>) {
        let next = self.position;
        if self.comment_before(next) {
            self.print_comments(next);
        } else {
            self.write_pending(self.pending.len());
        }
        self.write_text(next, text, bracket);
    }

    fn print_comments(&mut self, next: SourcePosition) {
        let mut last = Span::default();
        while self.comment_before(next) {
            for comment in self.group {
                self.comment_prefix(next, *comment);
                let text = comment_text(self.source.slice(*comment));
                let position = self.position_of(comment.start);
                self.write_text(position, &text, Some(ESCAPE));
                last = *comment;
            }
            self.next_group();
        }
        if next.offset != END.offset {
            self.comment_suffix(next, last);
        }
    }

    fn comment_prefix(&mut self, next: SourcePosition, comment: Span) {
        if self.output.is_empty() {
            return;
        }
        let line = self.source.line(comment.start);
        if line == self.last_position.line {
            // A space precedes a comment between two tokens of a line; a comment at the end of a line is aligned.
            self.write_bytes(if line == next.line { b' ' } else { b'\t' }, 1);
            return;
        }
        // Write the pending indentation up to the first pending item that is not an indentation. The comment's own
        // newline replaces that item.
        let mut kept = 0;
        for (index, space) in self.pending.iter_mut().enumerate() {
            if matches!(space, Space::Indent | Space::Unindent) {
                continue;
            }
            *space = Space::Ignored;
            kept = index;
            break;
        }
        self.write_pending(kept);
        self.write_bytes(b'\x0c', line.saturating_sub(self.last_position.line).min(2));
    }

    fn comment_suffix(&mut self, next: SourcePosition, comment: Span) {
        let block = self.source.slice(comment).starts_with("/*");
        if block && next.line == self.source.line(comment.end.saturating_sub(1)) {
            self.write_bytes(b' ', 1);
        }
        let newlines = next.line.saturating_sub(self.last_position.line);
        let mut broken = false;
        for space in &mut self.pending {
            if !matches!(space, Space::Indent | Space::Unindent) {
                broken |= *space == Space::Break;
                *space = Space::Ignored;
            }
        }
        self.write_pending(self.pending.len());
        self.write_bytes(if broken { b'\x0c' } else { b'\n' }, newlines.min(2));
    }

    fn write_pending(&mut self, count: usize) {
        let spaces: Vec<Space> = self.pending.drain(..count).collect();
        for space in spaces {
            match space {
                Space::Ignored => {}
                Space::Indent => self.indent += 1,
                Space::Unindent => self.indent = self.indent.saturating_sub(1),
                Space::Blank => self.write_bytes(b' ', 1),
                Space::Stop => self.write_bytes(b'\x0b', 1),
                Space::Newline => self.write_bytes(b'\n', 1),
                Space::Break => self.write_bytes(b'\x0c', 1),
            }
        }
    }

    fn write_text(&mut self, position: SourcePosition, text: &str, bracket: Option<u8>) {
        if self.at_line_start {
            self.write_indent();
        }
        self.output.extend(bracket);
        self.output.extend_from_slice(text.as_bytes());
        self.output.extend(bracket);
        // A form feed inside a comment is not a newline, unlike between tokens.
        let newlines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        self.at_line_start = false;
        self.position = SourcePosition {
            offset: position.offset.saturating_add(text.len()),
            line: position.line.saturating_add(newlines),
        };
        self.last_position = self.position;
    }

    fn write_indent(&mut self) {
        self.output.extend(std::iter::repeat_n(b'\t', self.indent));
        self.position.offset = self.position.offset.saturating_add(self.indent);
        self.at_line_start = self.indent == 0;
    }

    /// Writes white space: `byte`, `count` times.
    fn write_bytes(&mut self, byte: u8, count: usize) {
        if count == 0 {
            return;
        }
        if self.at_line_start {
            self.write_indent();
        }
        self.output.extend(std::iter::repeat_n(byte, count));
        self.position.offset = self.position.offset.saturating_add(count);
        if matches!(byte, b'\n' | b'\x0c') {
            self.position.line = self.position.line.saturating_add(count);
            self.at_line_start = true;
        } else {
            self.at_line_start = false;
        }
    }
}

/// Removes carriage returns from a comment, except between a star and a slash, where the removal would end a block
/// comment.
fn comment_text(text: &str) -> String {
    let is_block = text.starts_with("/*");
    let mut kept = String::with_capacity(text.len());
    for (offset, letter) in text.char_indices() {
        let would_end =
            is_block && kept.len() > 2 && kept.ends_with('*') && text[offset + letter.len_utf8()..].starts_with('/');
        if letter != '\r' || would_end {
            kept.push(letter);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carriage_returns_leave_a_comment_but_never_end_it() {
        assert_eq!(comment_text("// a\rb\r"), "// ab");
        assert_eq!(comment_text("/* a\r\n*\r/ b */"), "/* a\n*\r/ b */");
        for text in [
            "b /* k *\r/ \"l\" /* m */ {\n}\n",
            "b /* k)/ \"l\" *\r/*\" )\r/* m */ {\n}\n",
        ] {
            if let Ok(once) = crate::fmt(text) {
                assert_eq!(crate::fmt(&once).unwrap(), once, "{text:?}");
            }
        }
    }
}
