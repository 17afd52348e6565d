//! `fmt`: formats a configuration as its canonical text.
//!
//! One pass of the [`printer`] gives the same output as Alloy. That output is not always stable: a second pass moves
//! comments inside expressions again, and a comment inside a dotted block name even breaks the file. The formatter
//! therefore prints until nothing changes. If the result has another meaning, lacks a comment or never becomes stable,
//! the formatter moves comments inside a statement to the lines above the statement and prints again. If the second
//! attempt fails too, the text stays unchanged.

use crate::ast::{File, Statement};
use crate::diagnostic::Diagnostics;
use crate::source::{Source, Span};
use crate::{hcl, parser, printer};

/// Maximum number of passes before the text counts as unstable. The files in `config/` are stable after the first pass.
const MAX_PASSES: usize = 6;

/// Formats a configuration from standard input: [`fmt_named`] with the name `<stdin>`.
pub fn fmt(text: &str) -> Result<String, Diagnostics> {
    fmt_named("<stdin>", text)
}

/// Formats a configuration. Returns the canonical text, or the errors. `path` names the text in diagnostics.
pub fn fmt_named(path: &str, text: &str) -> Result<String, Diagnostics> {
    if hcl::is_hcl(path) {
        return hcl::fmt(path, text);
    }
    let (file, diagnostics) = parser::parse(&Source::new(path, text));
    diagnostics.into_result(())?;
    if let Some(settled) = print_until_stable(&file, &file) {
        return Ok(settled);
    }
    let (moved, _) = parser::parse(&Source::new(path, comments_above(&file)));
    // If even that fails, keep the author's text.
    Ok(print_until_stable(&moved, &file).unwrap_or_else(|| text.to_owned()))
}

/// Prints until the text is stable. `None` if it never becomes stable, has another meaning than `original`, or loses a
/// comment.
fn print_until_stable(file: &File, original: &File) -> Option<String> {
    let mut text = printer::print(file);
    for _ in 0..MAX_PASSES {
        let (reparsed, diagnostics) = parser::parse(&Source::new("", text.as_str()));
        if diagnostics.has_errors() || reparsed != *original || comments(&reparsed) != comments(original) {
            return None;
        }
        let next = printer::print(&reparsed);
        if next == text {
            return Some(text);
        }
        text = next;
    }
    None
}

fn comments(file: &File) -> usize {
    file.comments.iter().map(Vec::len).sum()
}

/// Returns the text with every comment inside an attribute or a block header moved to separate lines before it.
fn comments_above(file: &File) -> String {
    let mut solid = Vec::new();
    collect_solid(&file.body, &mut solid);
    let text = file.source.text();
    let mut edits: Vec<(Span, String)> = Vec::new();
    for comment in file.comments.iter().flatten() {
        let Some(solid_span) = solid
            .iter()
            .find(|span| span.start <= comment.start && comment.start < span.end)
        else {
            continue;
        };
        let words = file.source.slice(*comment);
        edits.push((Span::new(solid_span.start, solid_span.start), format!("{words}\n")));
        let newlines = words.matches('\n').count();
        edits.push((*comment, format!(" {}", "\n".repeat(newlines))));
    }
    edits.sort_by_key(|(span, _)| *span);
    let mut output = String::with_capacity(text.len() + edits.len());
    let mut end = 0;
    for (span, replacement) in edits {
        output.push_str(text.get(end..span.start).unwrap_or_default());
        output.push_str(&replacement);
        end = span.end;
    }
    output.push_str(text.get(end..).unwrap_or_default());
    output
}

/// Collects the spans of attributes, and of block headers up to the opening `{`.
fn collect_solid(body: &[Statement], solid: &mut Vec<Span>) {
    for statement in body {
        match statement {
            Statement::Attribute(attribute) => solid.push(attribute.span()),
            Statement::Block(block) => {
                solid.push(Span::new(block.name.span.start, block.open));
                collect_solid(&block.body, solid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates texts that are similar to configurations: pieces of a configuration in any order.
    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "a",
            "b.c",
            " ",
            "\n",
            "\n\n",
            "\t",
            "=",
            " = ",
            "{",
            "}",
            "[",
            "]",
            "(",
            ")",
            ",",
            ".",
            "1",
            "2.5",
            "\"s\"",
            "`r\n\tw `",
            "// c\n",
            "/* b */",
            "/* m\n n */",
            "+",
            "^",
            "-",
            "!",
            "null",
            "true",
            " \"l\" {\n",
            "\n}\n",
            "a = 1\n",
            "x = [\n1,\n]\n",
            "{ k = 1 }",
            "f(1, 2)",
            "\r\n",
            "\u{e9}",
            "\"\\u00e9\"",
            "\0",
            "\u{feff}",
            "'",
        ]);
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    /// Generates well-formed bodies with comments anywhere between tokens.
    fn bodies() -> impl Strategy<Value = String> {
        let gap = || prop::sample::select(vec!["", "", "", " ", "/*k*/", " /* m\n n */ "]);
        let open_gap = || prop::sample::select(vec!["", "", "\n", " // c\n", "/*k*/", "\n\n// d\n"]);
        let leaf = prop::sample::select(vec!["1", "\"text\"", "a.b.c", "true", "`r\n\tx`", "-2.5", "(1 + 2)"])
            .prop_map(str::to_owned);
        let expression = leaf.prop_recursive(3, 20, 4, move |inner| {
            prop_oneof![
                prop::collection::vec((open_gap(), inner.clone(), gap()), 0..4)
                    .prop_map(|items| format!("[{}]", list(&items, ""))),
                prop::collection::vec((open_gap(), inner.clone(), gap()), 1..4)
                    .prop_map(|items| format!("f({})", list(&items, ""))),
                prop::collection::vec((open_gap(), inner.clone(), gap()), 0..4)
                    .prop_map(|items| format!("{{{}}}", list(&items, "key = "))),
                (inner.clone(), inner).prop_map(|(left, right)| format!("{left} + {right}")),
            ]
        });
        let attribute = (
            gap(),
            gap(),
            expression,
            prop::sample::select(vec!["\n", " // t\n", " /* u */\n", "\n\n"]),
        )
            .prop_map(|(left, right, value, end)| {
                format!("name {} = {} {value}{end}", one_line(left), one_line(right))
            });
        let body = prop::collection::vec(attribute, 0..4).prop_map(|list| list.concat());
        body.prop_recursive(2, 8, 3, move |inner| {
            (prop::collection::vec((open_gap(), inner, gap()), 0..3)).prop_map(|blocks| {
                blocks
                    .iter()
                    .map(|(before, body, after)| {
                        format!("{before}\nblk.x{} \"l\" {{{before}\n{body}}}\n", one_line(after))
                    })
                    .collect()
            })
        })
    }

    fn one_line(gap: &str) -> String {
        gap.replace('\n', "")
    }

    fn list(items: &[(&str, String, &str)], key: &str) -> String {
        items
            .iter()
            .map(|(before, item, after)| format!("{before}{key}{item}{}", one_line(after)))
            .collect::<Vec<_>>()
            .join(",")
    }

    fn check(text: &str) -> Result<(), TestCaseError> {
        let (file, diagnostics) = parser::parse(&Source::new("x", text));
        let _ = diagnostics.render();
        let Ok(formatted) = fmt(text) else { return Ok(()) };
        let (reparsed, diagnostics) = parser::parse(&Source::new("x", formatted.as_str()));
        prop_assert!(!diagnostics.has_errors(), "{}", diagnostics.render());
        prop_assert_eq!(&file, &reparsed);
        prop_assert_eq!(fmt(&formatted).ok(), Some(formatted));
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn any_text_is_parsed_or_refused(text in ".{0,60}") {
            check(&text)?;
        }

        #[test]
        fn pieces_of_configurations_are_formatted_once_and_for_all(text in pieces()) {
            check(&text)?;
        }

        #[test]
        fn comments_never_change_the_meaning_of_a_formatted_text(text in bodies()) {
            check(&text)?;
        }
    }

    #[test]
    fn depth_is_bounded() {
        for piece in [
            "(", "[", "{a=", "-", "!", "f(", "a[", "1^", "1+", "a.b{", "a {\n", "b\n{",
        ] {
            let text = format!("a = {}", piece.repeat(50_000));
            assert!(fmt(&text).is_err(), "{piece}");
            assert!(fmt(&piece.repeat(50_000)).is_err(), "{piece}");
        }
        let text = format!("a = 1{}", ".b".repeat(50_000));
        assert!(fmt(&text).is_err());
    }

    #[test]
    fn a_form_feed_inside_of_a_comment_is_no_new_line() {
        let text = "x = [\n// \u{c}irst\n1,\n\n2,\n]\n";
        let once = fmt(text).unwrap();
        assert_eq!(once, "x = [\n\t// \u{c}irst\n\t1,\n\t2,\n]\n");
        assert_eq!(fmt(&once).unwrap(), once);
    }

    #[test]
    fn a_comment_inside_of_a_block_name_moves_above_the_block() {
        assert_eq!(
            fmt("stage.// why\nlabels {\n\ta = 1\n}\n").unwrap(),
            "// why\nstage.labels {\n\ta = 1\n}\n"
        );
    }
}
