//! A named configuration text, and positions in it.
//!
//! Positions are byte offsets; lines and columns are computed only for display. Columns count bytes from 1, as in
//! Alloy.

use std::fmt;
use std::sync::Arc;

/// A named text. Clones share the text.
#[derive(Clone, PartialEq, Eq)]
pub struct Source(Arc<Shared>);

#[derive(PartialEq, Eq)]
struct Shared {
    path: Arc<str>,
    text: Arc<str>,
    /// Byte offset at which each line starts; never empty.
    line_starts: Vec<usize>,
}

/// A range of bytes in a source, end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

impl Span {
    /// Creates the range from `start` up to but without `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Returns the range from the start of this one to the end of `other`.
    pub const fn to(self, other: Span) -> Self {
        Self {
            start: self.start,
            end: other.end,
        }
    }
}

impl Source {
    /// Creates a text that is named `path` in diagnostics.
    pub fn new(path: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let line_starts = std::iter::once(0)
            .chain(memchr::memchr_iter(b'\n', text.as_bytes()).map(|offset| offset + 1))
            .collect();
        Self(Arc::new(Shared {
            path: path.into(),
            text,
            line_starts,
        }))
    }

    /// Returns the name of the text, as given by the caller.
    pub fn path(&self) -> &Arc<str> {
        &self.0.path
    }

    /// Returns the whole text, as it was read.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the text of a span; empty if the span is invalid.
    pub fn slice(&self, span: Span) -> &str {
        self.0.text.get(span.start..span.end).unwrap_or_default()
    }

    /// Returns the line of an offset, counted from 1.
    pub fn line(&self, offset: usize) -> usize {
        self.0.line_starts.partition_point(|start| *start <= offset)
    }

    /// Returns line and column of an offset, both counted from 1; the column counts bytes.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.line(offset);
        let start = self
            .0
            .line_starts
            .get(line.saturating_sub(1))
            .copied()
            .unwrap_or_default();
        (line, offset.saturating_sub(start) + 1)
    }

    /// Returns the end of the line that contains `offset`, without its newline.
    pub(crate) fn line_end(&self, offset: usize) -> usize {
        let rest = self.0.text.as_bytes().get(offset..).unwrap_or_default();
        memchr::memchr(b'\n', rest).map_or(self.0.text.len(), |length| offset + length)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Source({}, {} bytes)", self.0.path, self.0.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_become_lines_and_byte_columns() {
        let source = Source::new("x", "ab\nc\n");
        assert_eq!(source.position(0), (1, 1));
        assert_eq!(source.position(2), (1, 3));
        assert_eq!(source.position(3), (2, 1));
        assert_eq!(source.position(5), (3, 1));
        assert_eq!(source.position(99), (3, 95));
        assert_eq!(source.line_end(0), 2);
    }
}
