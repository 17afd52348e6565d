//! Converts texts of a profile to spans, each with a start and a length. If the profile's own bytes contain the text,
//! the span refers to these bytes. Otherwise the span refers to an additional buffer, with positions after the end of
//! the profile's bytes.

use bytes::Bytes;
use hashbrown::HashMap;

use crate::store::ingest::prepared::Span;

/// Turns borrowed texts into spans. A text outside of the profile's bytes is stored once, even if it is requested many
/// times.
pub(crate) struct Spans<'a> {
    buffer: &'a Bytes,
    extra: String,
    /// Spans of the texts in `extra`, by address and length.
    extra_spans: HashMap<(usize, usize), Span>,
}

impl<'a> Spans<'a> {
    /// Creates spans for the uncompressed profile in `buffer`.
    pub(super) fn new(buffer: &'a Bytes) -> Self {
        Self {
            buffer,
            extra: String::new(),
            extra_spans: HashMap::new(),
        }
    }

    /// Returns the span of a text. The text must be in the buffer, or in memory that outlives this value unchanged. The
    /// buffer and the other texts together have less than 4 GiB: the buffer is one record of the log, and the other
    /// texts are shorter copies of texts in the buffer.
    pub(super) fn span_of(&mut self, text: &str) -> Span {
        if text.is_empty() {
            return Span::default();
        }
        let length = text.len() as u32;
        let address = text.as_ptr() as usize;
        let offset = address.wrapping_sub(self.buffer.as_ptr() as usize);
        if offset < self.buffer.len() && self.buffer.len() - offset >= text.len() {
            let start = offset as u32;
            return Span { start, length };
        }
        *self.extra_spans.entry((address, text.len())).or_insert_with(|| {
            let start = (self.buffer.len() + self.extra.len()) as u32;
            self.extra.push_str(text);
            Span { start, length }
        })
    }

    /// Returns the texts that are not in the buffer.
    pub(crate) fn into_extra(self) -> String {
        self.extra
    }
}
