//! Where the syntax is broken, and what need not be said because of that.

use crate::lang::{Diagnostic, Diagnostics, Source, codes};
use crate::pipeline::check::graph::SourceBlock;

/// Where the syntax is broken. What is said about a place that could not be read is its echo.
#[derive(Default)]
pub(super) struct Broken {
    places: Vec<(Source, usize)>,
}

impl Broken {
    pub(super) fn add(&mut self, diagnostics: &Diagnostics) {
        let places = diagnostics.iter();
        self.places
            .extend(places.map(|found| (found.source.clone(), found.span.start)));
    }

    /// Something is missing from a block of which a part could not be read: nobody knows.
    pub(super) fn without_missing(&self, text: &SourceBlock, diagnostics: Diagnostics) -> Diagnostics {
        let span = text.block.span();
        let unread = self
            .places
            .iter()
            .any(|(source, place)| *source == text.source && span.start <= *place && *place < span.end);
        // A block that is never closed swallows those after it.
        let unclosed = self
            .places
            .iter()
            .any(|(source, place)| *source == text.source && *place == span.start);
        let echo = |found: &Diagnostic| match found.code {
            codes::MISSING_ATTRIBUTE | codes::MISSING_BLOCK => unread,
            codes::UNKNOWN_BLOCK => unclosed,
            _ => false,
        };
        diagnostics.into_iter().filter(|found| !echo(found)).collect()
    }

    pub(super) fn without_echoes(&self, diagnostics: Diagnostics) -> Diagnostics {
        let echo = |found: &Diagnostic| {
            self.places
                .iter()
                .any(|(source, place)| *source == found.source && source.line(*place) == source.line(found.span.start))
        };
        diagnostics.into_iter().filter(|found| !echo(found)).collect()
    }
}
