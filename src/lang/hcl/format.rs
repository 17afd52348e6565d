//! `fmt` for HCL: the layout of `terraform fmt`, computed on tokens, so that only white space changes and comments stay
//! in place.
//!
//! Each level is indented by two spaces. The `=` of adjacent lines are aligned, and so are the comments at line ends.
//! Operators have one space on each side. At most one empty line is kept, and none at the ends of a body. Line breaks
//! stay unchanged. The formatter checks that the result has the same meaning as the input.

use super::parse::parse;
use super::tokens::{Kind, Token, tokens};
use crate::diagnostic::Diagnostics;
use crate::source::Source;

/// A line of the formatted output.
#[derive(Default)]
struct Line<'a> {
    tokens: Vec<(Kind, &'a str)>,
    /// Number of spaces before the line.
    indent: usize,
    /// Index of the `=` to align, and of the comment at the end.
    assign: Option<usize>,
    comment: Option<usize>,
}

/// Returns the canonical text of an HCL configuration, or its errors.
pub(crate) fn fmt(path: &str, text: &str) -> Result<String, Diagnostics> {
    let (file, diagnostics) = parse(&Source::new(path, text));
    diagnostics.into_result(())?;
    let formatted = lay_out(text);
    let (reparsed, diagnostics) = parse(&Source::new(path, formatted.as_str()));
    // Only white space should have changed; otherwise keep the author's text.
    if diagnostics.has_errors() || reparsed != file || lay_out(&formatted) != formatted {
        return Ok(text.to_owned());
    }
    Ok(formatted)
}

fn lay_out(text: &str) -> String {
    let mut lines = lines(text);
    indent(&mut lines);
    for line in &mut lines {
        cells(line);
    }
    let widths: Vec<(usize, usize)> = align(&lines);
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for (line, (assign, comment)) in lines.iter().zip(widths) {
        write(line, assign, comment, &mut out);
        out.push('\n');
    }
    if out.is_empty() {
        out.push('\n');
    }
    out
}

/// Splits a text into lines of tokens. Single empty lines inside bodies are kept.
fn lines(text: &str) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let mut current = Line::default();
    let mut blank = false;
    let end = Token {
        kind: Kind::Newline,
        span: crate::Span::new(text.len(), text.len()),
    };
    for token in tokens(text).into_iter().chain(std::iter::once(end)) {
        if token.kind != Kind::Newline {
            let raw = &text[token.span.start..token.span.end];
            current.tokens.push((token.kind, raw));
            continue;
        }
        if current.tokens.is_empty() {
            blank = true;
            continue;
        }
        let after_open = lines
            .last()
            .is_none_or(|line| matches!(line.tokens.last(), Some((Kind::Open, _))));
        let closes = matches!(current.tokens.first(), Some((Kind::Close, _)));
        if blank && !after_open && !closes {
            lines.push(Line::default());
        }
        blank = false;
        lines.push(std::mem::take(&mut current));
    }
    lines
}

/// Sets the indentation. All brackets that are opened on one line form one level.
fn indent(lines: &mut [Line<'_>]) {
    let mut levels: Vec<usize> = Vec::new();
    for line in lines {
        let (mut depth, mut lowest) = (0i64, 0i64);
        for (kind, _) in &line.tokens {
            match kind {
                Kind::Open => depth += 1,
                Kind::Close => depth -= 1,
                _ => {}
            }
            lowest = lowest.min(depth);
        }
        let mut closed = usize::try_from(-lowest).unwrap_or(0);
        while closed > 0 {
            match levels.last_mut() {
                Some(last) if *last > closed => {
                    *last -= closed;
                    closed = 0;
                }
                Some(last) => {
                    closed -= *last;
                    levels.pop();
                }
                None => break,
            }
        }
        line.indent = 2 * levels.len();
        let opened = usize::try_from(depth - lowest).unwrap_or(0);
        if opened > 0 {
            levels.push(opened);
        }
    }
}

/// Finds the tokens to align: the first `=` if its value ends on the line, and a trailing comment.
fn cells(line: &mut Line<'_>) {
    let count = line.tokens.len();
    if count > 1 && matches!(line.tokens.last(), Some((Kind::Comment, _))) {
        line.comment = Some(count - 1);
    }
    let assignment = line.tokens.iter().position(|(kind, _)| *kind == Kind::Assign);
    let opens_before = |index: usize| {
        line.tokens[..index]
            .iter()
            .any(|(kind, _)| matches!(kind, Kind::Open | Kind::Close))
    };
    if let Some(index) = assignment.filter(|index| *index > 0 && !opens_before(*index)) {
        let net: i64 = line.tokens[index..]
            .iter()
            .map(|(kind, _)| match kind {
                Kind::Open => 1,
                Kind::Close => -1,
                _ => 0,
            })
            .sum();
        let heredoc = line.tokens[index..].iter().any(|(kind, _)| *kind == Kind::Heredoc);
        if net == 0 && !heredoc {
            line.assign = Some(index);
        }
    }
}

/// Returns for each line the width up to its `=` and up to its comment, in characters.
fn align(lines: &[Line<'_>]) -> Vec<(usize, usize)> {
    let mut assigns = vec![0; lines.len()];
    runs(
        lines,
        |line| {
            line.assign
                .map(|assign_index| line.indent + width(&line.tokens[..assign_index]))
        },
        &mut assigns,
    );
    let mut comments = vec![0; lines.len()];
    let with_comment: Vec<Option<usize>> = lines
        .iter()
        .zip(&assigns)
        .map(|(line, assign)| {
            let end = line.comment?;
            Some(match line.assign {
                Some(assign_index) => assign + 1 + width(&line.tokens[assign_index..end]),
                None => line.indent + width(&line.tokens[..end]),
            })
        })
        .collect();
    let mut index = 0;
    runs(
        lines,
        |_| {
            index += 1;
            with_comment[index - 1]
        },
        &mut comments,
    );
    assigns.into_iter().zip(comments).collect()
}

/// Finds the runs of lines that have a width, and sets each line of a run to the largest width of the run.
fn runs<'a, 'b>(lines: &'b [Line<'a>], mut width: impl FnMut(&'b Line<'a>) -> Option<usize>, out: &mut [usize]) {
    let mut start = 0;
    let mut widest = 0;
    for (index, line) in lines.iter().enumerate() {
        if let Some(line_width) = width(line) {
            widest = widest.max(line_width);
        } else {
            out[start..index].fill(widest);
            (start, widest) = (index + 1, 0);
        }
    }
    out[start..].fill(widest);
}

/// Returns the printed width of tokens in characters.
fn width(tokens: &[(Kind, &str)]) -> usize {
    let mut text = String::new();
    print(tokens, 0, tokens.len(), &mut text);
    text.chars().count()
}

fn write(line: &Line<'_>, assign: usize, comment: usize, out: &mut String) {
    if line.tokens.is_empty() {
        return;
    }
    let start = out.len();
    out.extend(std::iter::repeat_n(' ', line.indent));
    let end = line.comment.unwrap_or(line.tokens.len());
    match line.assign {
        Some(assign_index) => {
            print(&line.tokens, 0, assign_index, out);
            pad(out, start, assign + 1);
            print(&line.tokens, assign_index, end, out);
        }
        None => print(&line.tokens, 0, end, out),
    }
    if let Some((_, text)) = line.comment.and_then(|index| line.tokens.get(index)) {
        pad(out, start, comment + 1);
        out.push_str(text);
    }
}

fn pad(out: &mut String, start: usize, width: usize) {
    let line_width = out[start..].chars().count();
    out.extend(std::iter::repeat_n(' ', width.saturating_sub(line_width)));
}

fn print(tokens: &[(Kind, &str)], from: usize, to: usize, out: &mut String) {
    for index in from..to.min(tokens.len()) {
        if index > from && blank_between(tokens, index) {
            out.push(' ');
        }
        out.push_str(tokens[index].1);
    }
}

/// True if a space is printed before the token at `index`.
fn blank_between(tokens: &[(Kind, &str)], index: usize) -> bool {
    let (left, left_text) = tokens[index - 1];
    let (right, right_text) = tokens[index];
    let before = index.checked_sub(2).map(|index| tokens[index]);
    match (left, right) {
        // `a . b` and `a :: b` are printed without spaces, but `1 .b` keeps its space.
        (_, Kind::Comma | Kind::Path) | (Kind::Path, _) => false,
        (Kind::Number, Kind::Dot) => true,
        (_, Kind::Dot) | (Kind::Dot, _) => false,
        (_, Kind::Operator) if right_text == "..." => false,
        // Braces have spaces inside, other brackets have none.
        (Kind::Open, Kind::Close) => false,
        (Kind::Open, _) => left_text == "{",
        (_, Kind::Close) => right_text == "}",
        // Calls and indices have no space before their bracket.
        (Kind::Name, Kind::Open) => right_text == "{",
        (Kind::Close | Kind::String, Kind::Open) => right_text != "[",
        // A sign or negation binds to the next token, unless an operand precedes it.
        (Kind::Operator, _) if left_text == "!" => false,
        (Kind::Operator, _) if left_text == "-" => {
            matches!(
                before,
                Some((Kind::Name | Kind::Number | Kind::String | Kind::Close, _))
            )
        }
        _ => true,
    }
}
