//! Phrases that are hard to understand, each with a better wording.
//!
//! In: the comments of the Rust sources under `src/`, and the files `page.md`. Out: the lines that contain a phrase of
//! the table `PHRASES`. The test does not judge other prose.

use super::{Findings, GENERATED, Piece, piece, root, rust_files, tracked_files};

/// A phrase in lower case, and a better wording.
const PHRASES: [(&str, &str); 17] = [
    ("as it came", "unchanged; as received"),
    ("as they came", "unchanged; as received"),
    ("at any rate", "in any case; or leave it out"),
    ("is at home", "belongs to; or say what may use it"),
    ("is looked at", "a verb with its subject: the server reads, checks"),
    ("is looked for", "a verb with its subject: the server searches for"),
    ("is taken up", "a verb with its subject: the server accepts, resumes"),
    (
        "is told",
        "a verb with its subject: it receives, the server tells the client",
    ),
    ("knows nothing", "does not use, does not interpret, does not depend on"),
    ("left out of", "omitted from, excluded from; or say what skips it"),
    ("of which only", "with only: a function with only a name"),
    ("people who", "users, callers, administrators"),
    ("taken for", "considered, reserved for"),
    ("to be had", "available"),
    ("what is there", "a noun: the existing files"),
    ("what there is", "a noun: the existing files"),
    ("who asks", "a noun: the caller, the client"),
];

#[test]
fn phrases_that_nobody_understands_do_not_come_back() {
    let mut found = Findings::default();
    for file in rust_files() {
        let is_generated = GENERATED.iter().any(|folder| file.path.starts_with(folder));
        if file.path.starts_with("src/") && !is_generated {
            check(&file.path, &comments(&file.text), &mut found);
        }
    }
    for path in tracked_files().into_iter().filter(|path| path.ends_with("/page.md")) {
        let text = std::fs::read_to_string(root().join(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        check(&path, &text.lines().collect::<Vec<_>>(), &mut found);
    }
    found.none();
}

/// Returns a text for each line of a source: the comment in the line without its slashes, or an empty text.
fn comments(text: &str) -> Vec<&str> {
    let mut lines = vec![""; text.lines().count()];
    let (mut at, mut line) = (0, 0);
    while at < text.len() {
        let piece = piece(text.as_bytes(), at);
        let (Piece::Comment(length) | Piece::Literal(length)) = piece else {
            line += usize::from(text.as_bytes()[at] == b'\n');
            at += 1;
            continue;
        };
        let part = &text[at..at + length];
        if matches!(piece, Piece::Comment(_)) {
            for (part, comment) in part.lines().zip(&mut lines[line..]) {
                *comment = part.trim_start_matches(['/', '!', '*']);
            }
        }
        line += part.matches('\n').count();
        at += length;
    }
    lines
}

/// Adds every phrase that begins in one of the lines. A phrase may end in the next line.
fn check(path: &str, lines: &[&str], found: &mut Findings) {
    for (at, line) in lines.iter().enumerate() {
        let next = lines.get(at + 1).copied().unwrap_or_default();
        for (phrase, better) in phrases_of(line, next) {
            found.add(path, at + 1, &format!("instead of `{phrase}` write: {better}"), line);
        }
    }
}

/// Returns the phrases that begin in a line and end in it or in the next one.
fn phrases_of(line: &str, next: &str) -> Vec<(&'static str, &'static str)> {
    let line = line.trim().to_lowercase();
    let text = format!("{line} {}", next.trim().to_lowercase());
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = |phrase: &str| {
        text.match_indices(phrase).any(|(at, _)| {
            let (before, after) = (&text[..at], &text[at + phrase.len()..]);
            at < line.len() && !before.ends_with(is_word) && !after.starts_with(is_word)
        })
    };
    PHRASES.into_iter().filter(|(phrase, _)| begins(phrase)).collect()
}

#[test]
fn a_phrase_is_found_across_lines_in_comments_only() {
    let phrases = |text: &str| {
        let comments = comments(text);
        let pairs = comments.iter().enumerate();
        let next = |at: usize| comments.get(at + 1).copied().unwrap_or_default();
        let found = pairs.flat_map(|(at, line)| {
            phrases_of(line, next(at))
                .into_iter()
                .map(move |(name, _)| (at + 1, name))
        });
        found.collect::<Vec<_>>()
    };
    assert_eq!(
        phrases("/// The server is\n/// told so.\nfn f() {}\n"),
        [(1, "is told")]
    );
    assert_eq!(
        phrases("fn f() {} // Who asks?\n//! Who asks.\n"),
        [(1, "who asks"), (2, "who asks")]
    );
    let fine = "let a = \"\n// is told\n\"; // This told, mistaken for\n/// It is\nlet told = 1;\n";
    assert_eq!(phrases(fine), []);
}
