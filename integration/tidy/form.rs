//! The form of a file: how long, how wide, how it is laid out, and two habits that say nothing.
//!
//! In: every Rust source that no program writes. Out: the offending lines. `form.txt` lists how often a file still
//! offends; the list only shrinks: `UPDATE_EXPECT=1 cargo test --test integration tidy::form` takes out what offends no
//! more, and no rule gets more offenders in all than it has in the list.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::names::without_tests;
use super::{Findings, GENERATED, Source, is_test, root, rust_files};

/// Lines of a file without its tests.
const LONGEST: usize = 500;

/// Lines of a file of tests.
const LONGEST_TESTS: usize = 800;

const WIDEST: usize = 120;

/// Characters of a doc comment of one line that say no more than the name below it.
const FILLER: usize = 22;

const LIST: &str = "integration/tidy/form.txt";

/// Offenders by rule and path.
type Counts = BTreeMap<(String, String), usize>;

#[test]
fn files_have_the_form_of_the_house_or_stand_in_a_list_that_shrinks() {
    let listed = read_list();
    let mut counts = Counts::new();
    let mut found = Findings::default();
    for file in rust_files().iter().filter(|file| !is_generated(file)) {
        let offenders = offenders(file);
        for (rule, _) in &offenders {
            *counts.entry(((*rule).to_owned(), file.path.clone())).or_default() += 1;
        }
        for (rule, line) in offenders {
            let key = (rule.to_owned(), file.path.clone());
            if counts[&key] > listed.get(&key).copied().unwrap_or_default() {
                found.add(&file.path, line, rule, file.line(line));
            }
        }
    }
    if std::env::var_os("UPDATE_EXPECT").is_some()
        && totals(&counts)
            .iter()
            .all(|(rule, total)| totals(&listed).get(rule) >= Some(total))
    {
        std::fs::write(root().join(LIST), write_list(&counts)).unwrap();
        return;
    }
    found.none();
    let stale: Vec<_> = listed.keys().filter(|key| !counts.contains_key(*key)).collect();
    let rewrite = "UPDATE_EXPECT=1 cargo test --test integration tidy::form";
    assert!(
        stale.is_empty(),
        "offend no more, take them out of {LIST} ({rewrite}): {stale:#?}"
    );
}

#[test]
fn a_module_of_several_files_is_a_folder_with_mod_rs() {
    let mut found = Findings::default();
    let files = rust_files();
    for file in &files {
        let folder = file.path.trim_end_matches(".rs").to_owned() + "/";
        if files.iter().any(|other| other.path.starts_with(&folder)) {
            found.add(&file.path, 1, "is the `mod.rs` of its folder", "");
        }
    }
    found.none();
}

fn is_generated(file: &Source) -> bool {
    GENERATED.iter().any(|folder| file.path.starts_with(folder))
}

/// Every broken rule, with its line.
fn offenders(file: &Source) -> Vec<(&'static str, usize)> {
    let mut found = Vec::new();
    let (lines, longest) = if is_test(&file.path) {
        (file.text.lines().count(), LONGEST_TESTS)
    } else {
        let kept = without_tests(&file.code).0;
        let end = kept.trim_end().lines().count();
        // Inside of the file tests are blanked out line for line.
        (end, LONGEST)
    };
    if lines > longest {
        found.push(("length", lines));
    }
    let text: Vec<_> = file.text.lines().map(str::trim).collect();
    // There a doc comment is the help text of a flag.
    let has_help = file.path.starts_with("src/cli/");
    let is_doc = |at: usize| text.get(at).is_some_and(|line| line.starts_with("///"));
    for (at, (line, code)) in file.text.lines().zip(file.code.lines()).enumerate() {
        if line.chars().count() > WIDEST {
            found.push(("width", at + 1));
        }
        let doc = text[at].strip_prefix("/// ");
        let is_alone = !is_doc(at + 1) && (at == 0 || !is_doc(at - 1));
        if is_alone && !has_help && doc.is_some_and(|doc| doc.len() <= FILLER) {
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

fn totals(counts: &Counts) -> BTreeMap<&str, usize> {
    let mut totals = BTreeMap::new();
    for ((rule, _), count) in counts {
        *totals.entry(rule.as_str()).or_default() += count;
    }
    totals
}

fn read_list() -> Counts {
    let text = std::fs::read_to_string(root().join(LIST)).unwrap_or_default();
    let row = |line: &str| {
        let mut words = line.split_whitespace().map(str::to_owned);
        let (rule, path, count) = (words.next()?, words.next()?, words.next()?);
        Some(((rule, path), count.parse().ok()?))
    };
    let rows = text.lines().filter(|line| !line.is_empty());
    rows.map(|line| row(line).unwrap_or_else(|| panic!("{LIST}: `{line}`")))
        .collect()
}

fn write_list(counts: &Counts) -> String {
    let mut text = String::new();
    for ((rule, path), count) in counts {
        let _ = writeln!(text, "{rule} {path} {count}");
    }
    text
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
