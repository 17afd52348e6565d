//! Locations of syntax errors, and the diagnostics that are suppressed because of them.

use crate::check::graph::SourceBlock;
use alluvium_lang::{Diagnostic, Diagnostics, Source, codes};

/// The locations of syntax errors. Other diagnostics at these locations are only consequences.
#[derive(Default)]
pub(super) struct Broken {
    positions: Vec<(Source, usize)>,
}

impl Broken {
    pub(super) fn add(&mut self, diagnostics: &Diagnostics) {
        let errors = diagnostics.iter();
        self.positions
            .extend(errors.map(|error| (error.source.clone(), error.span.start)));
    }

    /// Drops reports of missing attributes and blocks in a block that was only partly parsed, since the other part may
    /// contain them.
    pub(super) fn without_missing(&self, text: &SourceBlock, diagnostics: Diagnostics) -> Diagnostics {
        let span = text.block.span();
        let unread = self
            .positions
            .iter()
            .any(|(source, offset)| *source == text.source && span.start <= *offset && *offset < span.end);
        // The parser reads the blocks after an unclosed block as blocks inside it, where their names may be unknown.
        let unclosed = self
            .positions
            .iter()
            .any(|(source, offset)| *source == text.source && *offset == span.start);
        let echo = |diagnostic: &Diagnostic| match diagnostic.code {
            codes::MISSING_ATTRIBUTE | codes::MISSING_BLOCK => unread,
            codes::UNKNOWN_BLOCK => unclosed,
            _ => false,
        };
        diagnostics.into_iter().filter(|diagnostic| !echo(diagnostic)).collect()
    }

    pub(super) fn without_echoes(&self, diagnostics: Diagnostics) -> Diagnostics {
        let echo = |diagnostic: &Diagnostic| {
            self.positions.iter().any(|(source, offset)| {
                *source == diagnostic.source && source.line(*offset) == source.line(diagnostic.span.start)
            })
        };
        diagnostics.into_iter().filter(|diagnostic| !echo(diagnostic)).collect()
    }
}
