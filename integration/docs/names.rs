//! Names in the documentation that must exist: targets of `make`, flags of Alluvium's commands, paths of the
//! repository.
//!
//! In: code in backticks and fenced blocks in README, CONTRIBUTING and every page under `docs/`. Out: names that do not
//! exist.

use std::collections::BTreeSet;

use alluvium::cli::Cli;
use clap::CommandFactory as _;

use super::{Page, blocks, pages, prose};
use crate::tidy::{Findings, root, tracked_files};

/// Flags of other programs that occur alone in backticks: of cargo, `benches/ebpf.py`, `benches/differential`, node,
/// kubectl and Coroot's agents.
const FLAGS_OF_OTHERS: [&str; 10] = [
    "context",
    "enable-java-async-profiler",
    "features",
    "now",
    "only",
    "pairs",
    "perf-basic-prof",
    "profiles-scrape-interval",
    "report",
    "seed",
];

#[test]
fn make_targets_named_in_the_documentation_exist() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let targets: Vec<_> = makefile.lines().filter_map(|line| line.split_once(':')).collect();
    // The help of a pattern (`bench-%`) lists the names of its targets, in full or as `-name`.
    let exists = |wanted: &str| {
        targets.iter().any(|(target, help)| match target.split_once('%') {
            None => *target == wanted,
            Some((prefix, _)) => wanted.strip_prefix(prefix).is_some_and(|name| {
                help.split([' ', ',', ';'])
                    .any(|word| word.ends_with(&format!("-{name}")))
            }),
        })
    };
    let mut found = Findings::default();
    let mut seen = 0;
    for page in own_pages() {
        for (line, code) in code(&page.text) {
            let Some(arguments) = code.trim_start_matches("$ ").strip_prefix("make ") else {
                continue;
            };
            let is_target = |word: &&str| !word.starts_with('-') && !word.contains('=');
            for target in arguments
                .split_whitespace()
                .take_while(|word| *word != "#")
                .filter(is_target)
                .take(1)
            {
                seen += 1;
                if !exists(target) {
                    found.add(&page.path, line, "there is no such target", &code);
                }
            }
        }
    }
    assert!(seen >= 10, "only {seen} calls of make found");
    found.none();
}

#[test]
fn flags_named_in_the_documentation_exist() {
    let mut flags = BTreeSet::from(["help".to_owned(), "version".to_owned()]);
    let command = Cli::command();
    let commands: BTreeSet<_> = command.get_subcommands().map(clap::Command::get_name).collect();
    let mut all = vec![&command];
    while let Some(command) = all.pop() {
        all.extend(command.get_subcommands());
        for argument in command.get_arguments() {
            flags.extend(
                argument
                    .get_long_and_visible_aliases()
                    .unwrap_or_default()
                    .into_iter()
                    .map(str::to_owned),
            );
        }
    }
    let mut found = Findings::default();
    let mut seen = 0;
    for page in own_pages() {
        for (line, code) in code(&page.text) {
            let mut words = code.split_whitespace();
            let first = words.next().unwrap_or_default();
            if !first.starts_with("--") && first != "alluvium" && !commands.contains(first) {
                continue;
            }
            for word in std::iter::once(first).chain(words).take_while(|word| *word != "--") {
                let Some(flag) = word.strip_prefix("--") else { continue };
                let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
                let flag = flag.split(|c| !is_name(c)).next().unwrap_or_default();
                // If no letter or digit ends the name, the word is no flag: it is a line of a table in a terminal, or
                // a pattern for a group of flags (`--storage.*`).
                if !flag.ends_with(|c: char| c.is_ascii_alphanumeric()) {
                    continue;
                }
                seen += 1;
                if !flags.contains(flag) && !FLAGS_OF_OTHERS.contains(&flag) {
                    found.add(&page.path, line, "no command has this flag", &code);
                }
            }
        }
    }
    assert!(seen >= 100, "only {seen} flags found");
    found.none();
}

#[test]
fn paths_named_in_the_documentation_exist() {
    let files = tracked_files();
    let top: BTreeSet<_> = files
        .iter()
        .filter_map(|path| path.split_once('/'))
        .map(|(folder, _)| folder)
        .collect();
    let mut found = Findings::default();
    let mut seen = 0;
    for page in own_pages() {
        for (line, code) in code(&page.text) {
            for word in code.split_whitespace() {
                let word = word.trim_end_matches(['/', ',', ';']);
                let is_path = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "/._-".contains(c);
                let of_repository = word.split_once('/').is_some_and(|(folder, _)| top.contains(folder));
                if !of_repository || !word.chars().all(is_path) {
                    continue;
                }
                seen += 1;
                if !root().join(word).exists() {
                    found.add(&page.path, line, "there is no such file", word);
                }
            }
        }
    }
    assert!(seen >= 50, "only {seen} paths found");
    found.none();
}

fn own_pages() -> Vec<Page> {
    let is_own =
        |page: &Page| page.path.starts_with("docs/") || ["README.md", "CONTRIBUTING.md"].contains(&&*page.path);
    pages().into_iter().filter(is_own).collect()
}

/// Returns line and text of every piece of code: code in backticks, and lines of blocks marked `sh` or `console`.
fn code(page: &str) -> Vec<(usize, String)> {
    let mut pieces: Vec<_> = prose(page)
        .flat_map(|(line, text)| {
            text.split('`')
                .skip(1)
                .step_by(2)
                .map(move |piece| (line, piece.to_owned()))
        })
        .collect();
    for block in blocks(page)
        .iter()
        .filter(|block| ["sh", "console"].contains(&&*block.language))
    {
        pieces.extend(
            block
                .text
                .lines()
                .enumerate()
                .map(|(at, line)| (block.line + at, line.to_owned())),
        );
    }
    pieces
}

#[test]
fn pieces_of_code_are_seen_in_prose_and_in_blocks() {
    let page = "Call `make x` or `a b`.\n```sh\nmake y # why\n```\n```text\nmake no\n```\n";
    let expected = [(1, "make x"), (1, "a b"), (3, "make y # why")].map(|(line, text)| (line, text.to_owned()));
    assert_eq!(code(page), expected);
}
