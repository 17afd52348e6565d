//! Copies comments to the translated text: in order, each once, before or after the same element.

use crate::ast::File;
use crate::source::{Source, Span};

pub(crate) struct Comments<'a> {
    source: &'a Source,
    list: Vec<Span>,
    next: usize,
}

impl<'a> Comments<'a> {
    pub(super) fn new(file: &'a File) -> Self {
        let mut list: Vec<Span> = file.comments.iter().flatten().copied().collect();
        list.sort();
        Self {
            source: &file.source,
            list,
            next: 0,
        }
    }

    /// Removes and returns the remaining comments before `offset`, as separate lines.
    pub(super) fn before(&mut self, offset: usize) -> String {
        let mut out = String::new();
        let mut last_line = None;
        while let Some(span) = self.list.get(self.next).filter(|span| span.start < offset) {
            let line = self.source.line(span.start);
            if last_line.is_some_and(|last| line > last + 1) {
                out.push('\n');
            }
            out.push_str(&text(self.source.slice(*span)));
            out.push('\n');
            last_line = Some(self.source.line(span.end));
            self.next += 1;
        }
        // Keep an empty line between a comment and the next element.
        if offset < self.source.text().len() && last_line.is_some_and(|last| self.source.line(offset) > last + 1) {
            out.push('\n');
        }
        out
    }

    /// True if a remaining comment follows `offset` on the same line, with only spaces, tabs and `,` between them.
    pub(crate) fn is_behind(&self, offset: usize) -> bool {
        self.list.get(self.next).is_some_and(|span| {
            let gap = self.source.text().get(offset..span.start);
            gap.is_some_and(|gap| gap.chars().all(|letter| matches!(letter, ' ' | '\t' | ',')))
                && !self.source.slice(*span).contains('\n')
        })
    }

    /// Removes the comment that follows `offset` on the same line, and returns its text with a space in front. Returns
    /// an empty text if no comment follows.
    pub(super) fn behind(&mut self, offset: usize) -> String {
        if !self.is_behind(offset) {
            return String::new();
        }
        let comment = self.list.get(self.next).map(|span| text(self.source.slice(*span)));
        self.next += 1;
        comment.map(|comment| format!(" {comment}")).unwrap_or_default()
    }
}

/// Converts a comment to a form that is valid in both languages.
fn text(comment: &str) -> String {
    let comment = comment.replace('\r', "");
    match comment.strip_prefix('#') {
        Some(rest) => format!("//{rest}"),
        None => comment,
    }
}
