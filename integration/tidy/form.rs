//! The form of a file: its length, the width of its lines, and its path. Also finds two bad habits: doc comments
//! without content, and a `match` on a boolean.
//!
//! In: every Rust source that is not generated. Out: the lines that break a rule.

use super::names::without_tests;
use super::{Findings, GENERATED, Source, is_test, rust_files};

/// Maximum number of lines of a file without its tests.
const LONGEST: usize = 500;

/// Maximum number of lines of a file of tests.
const LONGEST_TESTS: usize = 800;

const WIDEST: usize = 120;

/// Maximum number of characters of a filler: a doc comment of one line that only repeats the name below it.
const FILLER: usize = 22;

#[test]
fn files_have_the_form_of_the_house() {
    let mut found = Findings::default();
    for file in rust_files().iter().filter(|file| !is_generated(file)) {
        for (rule, line) in offenders(file) {
            found.add(&file.path, line, rule, file.line(line));
        }
    }
    found.none();
}

#[test]
fn a_module_of_several_files_is_a_folder_with_mod_rs() {
    let mut found = Findings::default();
    let files = rust_files();
    for file in &files {
        let folder = file.path.trim_end_matches(".rs").to_owned() + "/";
        if files.iter().any(|other| other.path.starts_with(&folder)) {
            found.add(&file.path, 1, "this file must be the `mod.rs` of its folder", "");
        }
    }
    found.none();
}

fn is_generated(file: &Source) -> bool {
    GENERATED.iter().any(|folder| file.path.starts_with(folder))
}

/// Returns every broken rule with its line.
fn offenders(file: &Source) -> Vec<(&'static str, usize)> {
    let mut found = Vec::new();
    let (lines, longest) = if is_test(&file.path) {
        (file.text.lines().count(), LONGEST_TESTS)
    } else {
        let kept = without_tests(&file.code).0;
        let end = kept.trim_end().lines().count();
        // `without_tests` has replaced the tests by blank lines.
        (end, LONGEST)
    };
    if lines > longest {
        found.push(("length", lines));
    }
    let text: Vec<_> = file.text.lines().map(str::trim).collect();
    let is_doc = |at: usize| text.get(at).is_some_and(|line| line.starts_with("///"));
    for (at, (line, code)) in file.text.lines().zip(file.code.lines()).enumerate() {
        if line.chars().count() > WIDEST {
            found.push(("width", at + 1));
        }
        let doc = text[at].strip_prefix("/// ");
        let is_alone = !is_doc(at + 1) && (at == 0 || !is_doc(at - 1));
        if is_alone && doc.is_some_and(|doc| doc.len() <= FILLER) {
            found.push(("filler-doc", at + 1));
        }
        let arm = code.trim_start();
        let pattern = arm.strip_prefix("true").or_else(|| arm.strip_prefix("false"));
        let is_arm =
            pattern.is_some_and(|rest| rest.starts_with(" =>") || rest.starts_with(" if ") && rest.contains("=>"));
        if is_arm {
            found.push(("match-on-boolean", at + 1));
        }
    }
    found
}

#[test]
fn each_rule_of_form_is_seen() {
    let read = |path: &str, text: String| {
        let code = super::without_comments_and_strings(&text);
        offenders(&Source {
            path: path.to_owned(),
            text,
            code,
        })
    };
    let text = "/// Short.\nfn f(x: bool) {\n    match x {\n        true => {}\n        false if x => {}\
        \n        _ => {}\n    }\n}\n";
    let expected = [("filler-doc", 1), ("match-on-boolean", 4), ("match-on-boolean", 5)];
    assert_eq!(read("src/a.rs", text.to_owned()), expected);
    let fine = "/// Short, but with\n/// more.\nstruct S;\n\nconst A: &str = \"\n    true => 1\n\";\n#[cfg(test)]\
        \nmod tests {\n";
    let tests = "    fn f() {}\n".repeat(LONGEST);
    assert_eq!(read("src/a.rs", format!("{fine}{tests}}}\n")), []);
    let long = "fn f() {}\n".repeat(LONGEST + 1);
    assert_eq!(read("src/a.rs", long.clone()), [("length", 501)]);
    assert_eq!(read("src/a/tests.rs", long), []);
    assert_eq!(read("src/a.rs", format!("// {}\n", "x".repeat(118))), [("width", 1)]);
}
