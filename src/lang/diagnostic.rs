//! What is wrong with a configuration, where, and what would be right.
//!
//! Diagnostics are collected, never thrown one by one; rendering (plain, coloured or JSON) is here so that every command shows them alike.

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::lang::codes::Code;
use crate::lang::source::{Source, Span};

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration is refused.
    Error,
    /// The configuration runs; something should change.
    Warning,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its kind.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The text it is about.
    pub source: Source,
    /// The place in the text.
    pub span: Span,
    /// What is wrong, lower case, without a final stop.
    pub message: String,
    /// What would be right, if it can be said.
    pub hint: Option<String>,
}

/// Findings in the order in which they were made. As an error it prints its first finding and the count of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostic {
    /// An error at `span`.
    pub fn error(code: Code, source: &Source, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            source: source.clone(),
            span,
            message: message.into(),
            hint: None,
        }
    }

    /// A warning at `span`.
    pub fn warning(code: Code, source: &Source, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, source, span, message)
        }
    }

    /// With advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With advice, if there is some.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    /// The finding with its excerpt, ending without a newline.
    pub fn render(&self, colour: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        // The excerpt marks the first line only: a whole block underlined shows nothing.
        let text = self.source.text();
        let start = floor_boundary(text, self.span.start);
        let line_end = self.source.line_end(start).max(start);
        let end = floor_boundary(text, self.span.end.clamp(start, line_end)).max(start);
        let mut group = Group::with_title(level.primary_title(self.message.as_str()).id(self.code.id)).element(
            Snippet::source(text)
                .path(self.source.path().as_ref())
                .annotation(AnnotationKind::Primary.span(start..end)),
        );
        if let Some(hint) = &self.hint {
            group = group.element(Level::HELP.message(hint.as_str()));
        }
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }

    /// As a JSON object: code, severity, file, line, column, end_line, end_column, message, hint.
    pub fn to_json(&self) -> serde_json::Value {
        let (line, column) = self.source.position(self.span.start);
        let (end_line, end_column) = self.source.position(self.span.end);
        serde_json::json!({
            "code": self.code.id,
            "severity": match self.severity { Severity::Error => "error", Severity::Warning => "warning" },
            "file": self.source.path().as_ref(),
            "line": line,
            "column": column,
            "end_line": end_line,
            "end_column": end_column,
            "message": self.message,
            "hint": self.hint,
        })
    }
}

/// `file:line:column: message`, one line.
impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.source.position(self.span.start);
        write!(out, "{}:{line}:{column}: {}", self.source.path(), self.message)
    }
}

impl Diagnostics {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Adds all of another list.
    pub fn extend(&mut self, others: Diagnostics) {
        self.list.extend(others.list);
    }

    /// True when there is none, not even a warning.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True when one of them is an error.
    pub fn has_errors(&self) -> bool {
        self.list
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// The findings in order.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// Orders them by file and position, and removes repetitions.
    pub fn sort(&mut self) {
        self.list.sort_by(|left, right| {
            (left.source.path(), left.span, left.code, &left.message).cmp(&(
                right.source.path(),
                right.span,
                right.code,
                &right.message,
            ))
        });
        self.list.dedup();
    }

    /// `Ok(value)` when there is no error, these diagnostics otherwise.
    pub fn into_result<T>(self, value: T) -> Result<T, Diagnostics> {
        if self.has_errors() { Err(self) } else { Ok(value) }
    }

    /// All of them with excerpts, separated by empty lines, ending with a newline when there is any.
    pub fn render(&self, colour: bool) -> String {
        let mut text = String::new();
        for diagnostic in &self.list {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&diagnostic.render(colour));
            text.push('\n');
        }
        text
    }

    /// All of them as a JSON array.
    pub fn to_json(&self) -> serde_json::Value {
        self.list.iter().map(Diagnostic::to_json).collect()
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { list: vec![diagnostic] }
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(list: I) -> Self {
        Self {
            list: list.into_iter().collect(),
        }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.list.as_slice() {
            [] => out.write_str("no diagnostics"),
            [only] => only.fmt(out),
            [first, others @ ..] => write!(out, "{first} (and {} more diagnostics)", others.len()),
        }
    }
}

impl std::error::Error for Diagnostics {}

/// The candidate nearest to `name`, if one is near enough to be a slip of the keyboard.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len().max(name.len()) / 3).max(1))
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edit distance in characters, two swapped neighbours counting once; long names are not compared (`usize::MAX`).
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    if left.len() > 200 || right.len() > 200 {
        return usize::MAX;
    }
    let width = right.len() + 1;
    let mut cells: Vec<usize> = vec![0; (left.len() + 1) * width];
    for row in 0..=left.len() {
        for column in 0..width {
            let at = row * width + column;
            if row == 0 || column == 0 {
                cells[at] = row + column;
                continue;
            }
            let same = left[row - 1] == right[column - 1];
            let mut best = cells[at - width - 1] + usize::from(!same);
            best = best.min(cells[at - width] + 1).min(cells[at - 1] + 1);
            if row > 1 && column > 1 && left[row - 1] == right[column - 2] && left[row - 2] == right[column - 1] {
                best = best.min(cells[at - 2 * width - 2] + 1);
            }
            cells[at] = best;
        }
    }
    cells[cells.len() - 1]
}

fn floor_boundary(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len()))
        .rev()
        .find(|offset| text.is_char_boundary(*offset))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lang::codes;

    #[test]
    fn an_excerpt_marks_the_place_and_gives_the_hint() {
        let source = Source::new("main.alloy", "a {\n\ttarget = []\n}\n");
        let text = Diagnostic::error(
            codes::UNKNOWN_ATTRIBUTE,
            &source,
            Span::new(5, 11),
            "unrecognized attribute name \"target\"",
        )
        .hint("did you mean `targets`?")
        .render(false);
        assert!(text.contains("error[E0301]: unrecognized"), "{text}");
        assert!(text.contains("main.alloy:2:"), "{text}");
        assert!(text.contains("^^^^^^"), "{text}");
        assert!(text.contains("help: did you mean"), "{text}");
    }

    #[test]
    fn spans_outside_of_the_text_are_clamped() {
        let source = Source::new("x", "\u{e9}");
        for (start, end) in [(0, 1), (1, 1), (1, 9), (9, 3), (2, 2)] {
            let _ = Diagnostic::error(codes::NOT_UTF8, &source, Span::new(start, end), "m").render(true);
        }
    }

    #[test]
    fn near_names_are_suggested() {
        assert_eq!(nearest("target", ["targets", "forward_to"]), Some("targets"));
        assert_eq!(nearest("jion", ["join", "split"]), Some("join"));
        assert_eq!(nearest("xyz", ["targets", "forward_to"]), None);
    }
}
