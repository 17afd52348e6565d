//! Diagnostics: the problems of a configuration, their positions, and hints.
//!
//! Diagnostics are collected rather than returned one by one. Rendering (plain, coloured or JSON) is here, so that all
//! commands print them alike.

use std::fmt;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

use crate::codes::Code;
use crate::source::{Source, Span};

/// Severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration is refused.
    Error,
    /// The configuration runs, but something should be changed.
    Warning,
}

/// A finding about a range of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code of this kind of problem.
    pub code: Code,
    /// Severity of the diagnostic.
    pub severity: Severity,
    /// The text that contains the problem.
    pub source: Source,
    /// The range of bytes with the problem.
    pub span: Span,
    /// The problem, in lower case, without a full stop.
    pub message: String,
    /// Related remarks, with or without a position.
    pub notes: Vec<Note>,
    /// The remedy for the problem, if known.
    pub hint: Option<String>,
}

/// A remark about a diagnostic, with an optional position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The remark, in lower case, without a full stop.
    pub message: String,
    /// The range that it refers to, if any.
    pub location: Option<(Source, Span)>,
}

/// Findings in the order of their creation. When the list is printed as an error, it shows the first finding and the
/// number of other findings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostic {
    /// Creates an error at `span` of `source`.
    pub fn error(code: Code, source: &Source, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            source: source.clone(),
            span,
            message: message.into(),
            notes: Vec::new(),
            hint: None,
        }
    }

    /// Creates a warning at `span` of `source`.
    pub fn warning(code: Code, source: &Source, span: Span, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, source, span, message)
        }
    }

    /// Adds a hint about the remedy.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint, if there is one.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    /// Adds a remark about another range.
    #[must_use]
    pub fn note_at(mut self, source: &Source, span: Span, message: impl Into<String>) -> Self {
        self.notes.push(Note {
            message: message.into(),
            location: Some((source.clone(), span)),
        });
        self
    }

    /// Renders the diagnostic with its excerpt, without a trailing newline.
    pub fn render(&self) -> String {
        self.rendered_by(&Renderer::plain())
    }

    /// Like [`Self::render`], in colours for a terminal.
    pub fn render_coloured(&self) -> String {
        self.rendered_by(&Renderer::styled())
    }

    fn rendered_by(&self, renderer: &Renderer) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = Group::with_title(level.primary_title(self.message.as_str()).id(self.code.id))
            .element(excerpt(&self.source, self.span));
        for note in self.notes.iter().filter(|note| note.location.is_none()) {
            group = group.element(Level::NOTE.message(note.message.as_str()));
        }
        if let Some(hint) = &self.hint {
            group = group.element(Level::HELP.message(hint.as_str()));
        }
        let located_notes = self.notes.iter().filter_map(|note| {
            let (source, span) = note.location.as_ref()?;
            let title = Level::NOTE.secondary_title(note.message.as_str());
            Some(Group::with_title(title).element(excerpt(source, *span)))
        });
        let groups: Vec<Group<'_>> = std::iter::once(group).chain(located_notes).collect();
        renderer.render(&groups)
    }

    /// Converts to a JSON object. `docs/commands/validate.md` documents its fields. A new version may add fields, but
    /// never removes one.
    pub fn to_json(&self) -> serde_json::Value {
        let mut object = json_location(&self.source, self.span);
        let notes: Vec<serde_json::Value> = self
            .notes
            .iter()
            .map(|note| {
                let mut object = match &note.location {
                    Some((source, span)) => json_location(source, *span),
                    None => serde_json::Map::new(),
                };
                object.insert("message".to_owned(), note.message.as_str().into());
                object.into()
            })
            .collect();
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        object.insert("severity".to_owned(), severity.into());
        object.insert("code".to_owned(), self.code.id.into());
        object.insert("message".to_owned(), self.message.as_str().into());
        object.insert("notes".to_owned(), notes.into());
        object.insert("hints".to_owned(), self.hint.iter().cloned().collect());
        object.into()
    }
}

/// Prints one line: `file:line:column: message`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = self.source.position(self.span.start);
        write!(out, "{}:{line}:{column}: {}", self.source.path(), self.message)
    }
}

impl Diagnostics {
    /// Creates a list without findings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a finding to the end.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Appends all diagnostics of another list.
    pub fn extend(&mut self, others: Diagnostics) {
        self.list.extend(others.list);
    }

    /// True when the list is empty: no errors and no warnings.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the number of findings.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True if there is an error.
    pub fn has_errors(&self) -> bool {
        self.list
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// Iterates over the findings, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.list.iter()
    }

    /// Sorts by file and position, and removes duplicates.
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

    /// Returns `Ok(value)` if there are no errors, otherwise these diagnostics.
    pub fn into_result<T>(self, value: T) -> Result<T, Diagnostics> {
        if self.has_errors() { Err(self) } else { Ok(value) }
    }

    /// Renders all findings with excerpts, separated by empty lines. A non-empty text ends with a newline.
    pub fn render(&self) -> String {
        self.joined(Diagnostic::render)
    }

    /// Like [`Self::render`], in colours for a terminal.
    pub fn render_coloured(&self) -> String {
        self.joined(Diagnostic::render_coloured)
    }

    fn joined(&self, render: fn(&Diagnostic) -> String) -> String {
        let texts: Vec<String> = self.list.iter().map(|diagnostic| render(diagnostic) + "\n").collect();
        texts.join("\n")
    }

    /// Converts all findings to a JSON array.
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
            [diagnostic] => diagnostic.fmt(out),
            [first, others @ ..] => write!(out, "{first} (and {} more diagnostics)", others.len()),
        }
    }
}

impl std::error::Error for Diagnostics {}

/// Returns the lines around a range. Only the first line of the range is marked, since a fully underlined block would
/// not help.
fn excerpt(source: &Source, span: Span) -> Snippet<'_, Annotation<'_>> {
    let text = source.text();
    let start = floor_boundary(text, span.start);
    let line_end = source.line_end(start).max(start);
    let end = floor_boundary(text, span.end.clamp(start, line_end)).max(start);
    Snippet::source(text)
        .path(source.path().as_ref())
        .annotation(AnnotationKind::Primary.span(start..end))
}

/// Returns `file`, `start` and `end`. Lines and columns count from 1, offsets from 0. Columns and offsets count bytes.
/// The end is exclusive.
fn json_location(source: &Source, span: Span) -> serde_json::Map<String, serde_json::Value> {
    let point = |offset: usize| {
        let (line, column) = source.position(offset);
        serde_json::json!({"line": line, "column": column, "offset": offset})
    };
    let mut location = serde_json::Map::new();
    location.insert("file".to_owned(), source.path().as_ref().into());
    location.insert("start".to_owned(), point(span.start));
    location.insert("end".to_owned(), point(span.end));
    location
}

/// Returns the candidate that is most similar to `name`, if it is similar enough for a typing error.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let chars: Vec<char> = name.chars().collect();
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let max = (candidate.len().max(name.len()) / 3).max(1);
            distance(&chars, candidate, max).map(|distance| (distance, candidate))
        })
        .min()
        .map(|(_, candidate)| candidate)
}

/// Returns the edit distance in characters; a swap of two adjacent characters counts as one edit. Returns `None` if the
/// distance is above `max`, or if a name has more than 200 characters.
fn distance(left: &[char], right: &str, max: usize) -> Option<usize> {
    // The distance is at least the difference in length, which excludes most names at once.
    if left.len() > 200 || left.len().abs_diff(right.chars().count()) > max {
        return None;
    }
    let right: Vec<char> = right.chars().collect();
    if right.len() > 200 {
        return None;
    }
    let width = right.len() + 1;
    let mut cells: Vec<usize> = vec![0; (left.len() + 1) * width];
    let mut least_before = 0;
    for row in 0..=left.len() {
        let mut min = usize::MAX;
        for column in 0..width {
            let cell = row * width + column;
            if row == 0 || column == 0 {
                cells[cell] = row + column;
                min = min.min(cells[cell]);
                continue;
            }
            let is_equal = left[row - 1] == right[column - 1];
            let mut best = cells[cell - width - 1] + usize::from(!is_equal);
            best = best.min(cells[cell - width] + 1).min(cells[cell - 1] + 1);
            if row > 1 && column > 1 && left[row - 1] == right[column - 2] && left[row - 2] == right[column - 1] {
                best = best.min(cells[cell - 2 * width - 2] + 1);
            }
            cells[cell] = best;
            min = min.min(best);
        }
        // The values of later rows cannot be below the minimum of two consecutive rows (a swap looks two rows back).
        if min.min(least_before) > max {
            return None;
        }
        least_before = min;
    }
    cells.last().copied().filter(|distance| *distance <= max)
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
    use crate::codes;

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
        .render();
        assert!(text.contains("error[E0301]: unrecognized"), "{text}");
        assert!(text.contains("main.alloy:2:"), "{text}");
        assert!(text.contains("^^^^^^"), "{text}");
        assert!(text.contains("help: did you mean"), "{text}");
    }

    #[test]
    fn spans_outside_of_the_text_are_clamped() {
        let source = Source::new("x", "\u{e9}");
        for (start, end) in [(0, 1), (1, 1), (1, 9), (9, 3), (2, 2)] {
            let _ = Diagnostic::error(codes::NOT_UTF8, &source, Span::new(start, end), "m").render_coloured();
        }
    }

    #[test]
    fn a_note_shows_its_own_place() {
        let source = Source::new("main.alloy", "a = 1\nb = 2\na = 3\n");
        let diagnostic = Diagnostic::error(codes::DUPLICATE_ATTRIBUTE, &source, Span::new(12, 17), "given twice")
            .note_at(&source, Span::new(0, 5), "first given here");
        let text = diagnostic.render();
        assert!(text.contains("note: first given here"), "{text}");
        assert!(text.contains("1 | a = 1"), "{text}");
        let json = diagnostic.to_json();
        assert_eq!(json["start"]["line"], 3);
        assert_eq!(json["notes"][0]["end"]["column"], 6);
        assert_eq!(json["hints"], serde_json::json!([]));
    }

    #[test]
    fn near_names_are_suggested() {
        assert_eq!(nearest("target", ["targets", "forward_to"]), Some("targets"));
        assert_eq!(nearest("jion", ["join", "split"]), Some("join"));
        assert_eq!(nearest("xyz", ["targets", "forward_to"]), None);
    }
}
