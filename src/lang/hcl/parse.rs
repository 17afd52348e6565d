//! Parses HCL text to the tree.

use super::{lower, tokens};
use crate::ast::File;
use crate::codes;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{Source, Span};

/// Parses a whole file. For invalid HCL, only the first syntax error is reported. For valid HCL, every construct
/// without an equivalent in Alloy is reported.
pub(crate) fn parse(source: &Source) -> (File, Diagnostics) {
    let text = source.text();
    let empty = |diagnostics| {
        let file = File {
            source: source.clone(),
            body: Vec::new(),
            comments: Vec::new(),
        };
        (file, diagnostics)
    };
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    if let Some(offset) = tokens::too_deep(text) {
        let message = format!(
            "expressions or blocks are nested more than {} levels deep",
            tokens::MAX_DEPTH
        );
        let span = Span::new(offset, offset + 1);
        return empty(Diagnostic::error(codes::TOO_DEEP, source, span, message).into());
    }
    match hcl_edit::parser::parse_body(&text[start..]) {
        Ok(body) => lower::lower(source, start, &body),
        Err(error) => {
            if let Some(span) = tokens::open_string(text) {
                let message = "not valid HCL: string without its closing quote";
                return empty(Diagnostic::error(codes::BAD_HCL, source, span, message).into());
            }
            let offset = start + error.location().offset().min(text.len() - start);
            let end = text[floor(text, offset)..]
                .chars()
                .next()
                .map_or(offset, |letter| offset + letter.len_utf8());
            let message = error.message().replace('\n', "; ");
            let message = format!("not valid HCL: {}", message.trim_end_matches("; "));
            empty(Diagnostic::error(codes::BAD_HCL, source, Span::new(offset, end), message).into())
        }
    }
}

fn floor(text: &str, mut offset: usize) -> usize {
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}
