//! Locations of syntax errors, and the diagnostics that are suppressed because of them.

use crate::check::graph::SourceBlock;
use alluvium_lang::{Diagnostic, Diagnostics, Source, codes};

/// The locations of syntax errors. Other diagnostics at these locations are only consequences.
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

    /// Drops reports of missing attributes and blocks in a block that was only partly parsed, since the other part may
    /// contain them.
    pub(super) fn without_missing(&self, text: &SourceBlock, diagnostics: Diagnostics) -> Diagnostics {
        let span = text.block.span();
        let unread = self
            .places
            .iter()
            .any(|(source, place)| *source == text.source && span.start <= *place && *place < span.end);
        // The parser reads the blocks after an unclosed block as blocks inside it, where their names may be unknown.
        let unclosed = self
            .places
            .iter()
            .any(|(source, place)| *source == text.source && *place == span.start);
        let echo = |diagnostic: &Diagnostic| match diagnostic.code {
            codes::MISSING_ATTRIBUTE | codes::MISSING_BLOCK => unread,
            codes::UNKNOWN_BLOCK => unclosed,
            _ => false,
        };
        diagnostics.into_iter().filter(|diagnostic| !echo(diagnostic)).collect()
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
