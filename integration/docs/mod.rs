//! Checks the documentation against the program: links are valid, every component and command has its page, examples
//! work.
//!
//! In: every Markdown file that git tracks. Out: the offending lines. A block marked `alloy` is a whole configuration:
//! it must parse, pass validation and be formatted. A part of a configuration is marked `alloy fragment`. The program
//! must accept every line `alluvium ...` in a block marked `sh`. The test does not judge prose.

mod names;
mod scale;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use alluvium::cli::Cli;
use alluvium_pipeline::component::Stability;
use clap::{CommandFactory as _, Parser as _};

use crate::tidy::{Findings, root, tracked_files};

struct Page {
    path: String,
    text: String,
}

fn pages() -> Vec<Page> {
    // The prose of a component (`page.md`) is part of its page, and its links belong to that page.
    let is_page = |path: &String| path.ends_with(".md") && !path.ends_with("/page.md");
    let paths = tracked_files().into_iter().filter(is_page);
    let read = |path: String| Page {
        text: std::fs::read_to_string(root().join(&path)).unwrap(),
        path,
    };
    paths.map(read).collect()
}

#[test]
fn every_link_leads_to_a_file_and_its_heading() {
    let mut found = Findings::default();
    for page in pages() {
        for (line, target) in links(&page.text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let full = match file {
                "" => root().join(&page.path),
                file => root().join(&page.path).parent().unwrap().join(file),
            };
            if !full.exists() {
                found.add(&page.path, line, "there is no such file", &target);
            } else if !heading.is_empty() {
                let text = std::fs::read_to_string(&full).unwrap_or_default();
                if !headings(&text).contains(heading) {
                    found.add(&page.path, line, "there is no such heading", &target);
                }
            }
        }
    }
    found.none();
}

#[test]
fn every_component_has_a_page_and_every_page_a_component() {
    let mut found = Findings::default();
    let mut names = BTreeSet::new();
    for definition in alluvium_components::ALL
        .iter()
        .filter(|definition| definition.can_run())
    {
        let path = format!("docs/components/{}.md", definition.name());
        match std::fs::read_to_string(root().join(&path)) {
            Err(_) => found.add(&path, 1, "a component without its page", definition.name()),
            Ok(text) if !blocks(&text).iter().any(|block| block.language == "alloy") => {
                found.add(
                    &path,
                    1,
                    "the page of this component has no example marked `alloy`",
                    definition.name(),
                );
            }
            Ok(_) => {}
        }
        names.insert(path);
    }
    for page in pages() {
        let of_component = page.path.starts_with("docs/components/") && !page.path.ends_with("README.md");
        if of_component && !names.contains(&page.path) {
            found.add(&page.path, 1, "a page without its component", "");
        }
    }
    found.none();
}

#[test]
fn adding_a_discovery_touches_the_files_that_contributing_lists() {
    let guide = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let (_, list) = guide.split_once("needs changes in the following files").unwrap();
    let rows = list.lines().skip_while(|line| !line.starts_with('|')).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let listed: Vec<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    assert!((1..=6).contains(&listed.len()), "{listed:?}");
    // Only the listed files may name an existing discovery.
    let mut found = Findings::default();
    for name in ["file", "process"] {
        let touched: Vec<String> = listed.iter().map(|path| path.replace("NAME", name)).collect();
        let module = [
            format!("discovery::{name}"),
            format!("discovery_{name}"),
            format!("mod {name};"),
        ];
        for path in tracked_files()
            .iter()
            .filter(|path| path.starts_with("src/") && path.ends_with(".rs"))
        {
            let is_listed = touched.iter().any(|listed| path.starts_with(listed.as_str()));
            let is_outside = !path.starts_with("src/components/discovery/");
            let text = std::fs::read_to_string(root().join(path)).unwrap();
            let named = module
                .iter()
                .take(if is_outside { 1 } else { 3 })
                .find(|name| text.contains(*name));
            if let Some(named) = named.filter(|_| !is_listed) {
                found.add(
                    path,
                    1,
                    "names a discovery, but CONTRIBUTING.md does not list this file",
                    named,
                );
            }
        }
        for path in touched.iter().filter(|path| !root().join(path).exists()) {
            found.add("CONTRIBUTING.md", 1, "there is no such file", path);
        }
    }
    found.none();
}

#[test]
fn every_configuration_in_the_documentation_is_whole_valid_and_formatted() {
    let mut found = Findings::default();
    for page in pages() {
        for block in blocks(&page.text) {
            if block.language != "alloy" {
                continue;
            }
            let text = block.text.as_str();
            match alluvium_lang::fmt(text) {
                Err(diagnostics) => found.add(&page.path, block.line, "does not parse", &diagnostics.render()),
                Ok(formatted) if formatted.trim_end() != text.trim_end() => {
                    found.add(
                        &page.path,
                        block.line,
                        "is not formatted; it should be",
                        &format!("\n{formatted}"),
                    );
                }
                Ok(_) => {}
            }
            let sources = [(page.path.clone(), text.to_owned())];
            let diagnostics = alluvium_pipeline::validate(&sources, alluvium_components::ALL, Stability::Experimental);
            if diagnostics.has_errors() {
                found.add(&page.path, block.line, "is not valid", &diagnostics.render());
            }
        }
    }
    found.none();
}

#[test]
fn every_command_and_each_of_its_flags_is_on_its_page() {
    let mut found = Findings::default();
    for command in Cli::command().get_subcommands() {
        let path = format!("docs/commands/{}.md", command.get_name());
        let Ok(page) = std::fs::read_to_string(root().join(&path)) else {
            found.add(&path, 1, "a command without its page", command.get_name());
            continue;
        };
        for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
            if flag != "help" && !page.contains(&format!("`--{flag}")) {
                found.add(&path, 1, "a flag that its page does not name", &format!("--{flag}"));
            }
        }
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let example = format!("alluvium {}", command.get_name());
        if !help.contains(&example) {
            found.add(&path, 1, "a command whose --help has no example", command.get_name());
        }
    }
    found.none();
}

#[test]
fn every_command_line_in_the_documentation_is_one_that_the_program_takes() {
    let mut found = Findings::default();
    let mut seen = 0;
    for page in pages() {
        for block in blocks(&page.text)
            .iter()
            .filter(|block| ["sh", "console"].contains(&&*block.language))
        {
            for (at, line) in block.text.lines().enumerate() {
                if block.language == "console" && !line.starts_with("$ ") {
                    continue;
                }
                let Some(words) = command_line(line) else { continue };
                seen += 1;
                if let Err(error) = Cli::try_parse_from(&words)
                    && error.use_stderr()
                {
                    found.add(
                        &page.path,
                        block.line + at,
                        "the program does not accept this command line",
                        &error.to_string(),
                    );
                }
            }
        }
    }
    assert!(seen >= 10, "only {seen} command lines found");
    found.none();
}

/// Returns the words of a line that calls the program, up to a pipe, a redirection, a comment or the next command.
/// Quotes are removed.
fn command_line(line: &str) -> Option<Vec<String>> {
    let line = line.trim().trim_start_matches("$ ");
    if line.ends_with('\\') || !line.starts_with("alluvium ") {
        return None;
    }
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '|' | '>' | '<' | '#' | ';' | '&') => break,
            (None, ' ') => words.push(String::new()),
            (_, c) => words.last_mut()?.push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    Some(words)
}

#[test]
fn every_metric_in_the_operations_page_exists() {
    let mut found = Findings::default();
    let sources: String = tracked_files()
        .iter()
        .filter(|path| path.starts_with("src/") && path.ends_with(".rs"))
        .map(|path| std::fs::read_to_string(root().join(path)).unwrap())
        .collect();
    let page = std::fs::read_to_string(root().join("docs/operations.md")).unwrap();
    for (line, text) in prose(&page) {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        for word in text.split(|c| !is_name(c)) {
            let ours = ["alluvium_", "pyroscope_", "discovery_", "process_"];
            if !ours.iter().any(|prefix| word.starts_with(prefix)) || word.ends_with('_') {
                continue;
            }
            let endings = ["_total", "_bucket", "_info", "_sum", "_count", ""];
            let known = endings.iter().any(|ending| {
                word.strip_suffix(ending)
                    .is_some_and(|name| sources.contains(&format!("\"{name}\"")))
            });
            if !known {
                found.add("docs/operations.md", line, "there is no such metric", word);
            }
        }
    }
    found.none();
}

/// Runs a command of `benches/figures.py` on a folder with `docs`. Returns its findings, or an empty text.
fn figures(command: &str, folder: &Path) -> String {
    let script = root().join("benches/figures.py");
    let mut python = Command::new("python3");
    let output = python.arg(script).arg(command).env("ALLUVIUM_FIGURES", folder).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.is_empty() && output.status.success() == said.is_empty(),
        "{said}\n{errors}"
    );
    said
}

#[test]
fn every_figure_is_what_the_json_of_its_bench_says_or_names_its_command() {
    assert_eq!(figures("check", &root()), "");
}

#[test]
fn a_figure_that_is_not_that_of_the_json_is_found_and_one_without_a_command() {
    let folder = tempfile::tempdir().unwrap();
    let (page, json) = (
        folder.path().join("docs/benchmarks.md"),
        folder.path().join("docs/benchmarks/churn.json"),
    );
    std::fs::create_dir_all(json.parent().unwrap()).unwrap();
    let sixth = |sixth: usize| {
        ["resident_mb", "maps_mb", "cpu_s"]
            .map(|name| (format!("churn.sixth.{sixth}.{name}"), vec![17.25 + sixth as f64]))
    };
    let values: BTreeMap<String, Vec<f64>> = (0..6).flat_map(sixth).collect();
    let commands = [
        "cargo build --locked --release --no-default-features --features agent",
        "python3 benches/ebpf.py {program} --churn 600",
    ];
    let good = serde_json::json!({
        "bench": "churn", "commands": commands, "date": "2026-11-22 21:00 UTC", "commit": "0123456789", "runs": 1,
        "machine": {"cpu": "x", "cores": 2, "memory_gb": 24, "kernel": "6.18"},
        "load_average_before": 0.1, "texts": {}, "figures": values,
    })
    .to_string();
    std::fs::write(&json, &good).unwrap();
    std::fs::write(
        &page,
        "# A\n<!-- figures: churn -->\n<!-- end of figures -->\n\n## B\nSome text.\n",
    )
    .unwrap();
    assert_eq!(figures("tables", folder.path()), "");
    assert_eq!(figures("check", folder.path()), "");
    let text = std::fs::read_to_string(&page).unwrap();
    assert!(text.contains("| 17.2 | 18.2 |"), "{text}");

    let wrong = |path: &Path, right: &str, text: String, said: &str| {
        std::fs::write(path, text).unwrap();
        let found = figures("check", folder.path());
        assert!(found.contains(said), "`{said}` is not in `{found}`");
        std::fs::write(path, right).unwrap();
    };
    let differ = "docs/benchmarks.md: differs from the JSON files";
    wrong(&page, &text, text.replace("| 17.2 |", "| 16.2 |"), differ);
    wrong(&json, &good, good.replace("17.25", "19.25"), differ);
    wrong(
        &page,
        &text,
        text.replace("Some text.", "It takes 3 ms."),
        "figures without a command in `## B`",
    );
    wrong(
        &json,
        &good,
        good.replace("--churn 600", "--churn 60"),
        "the commands of the bench churn have changed",
    );
    wrong(&json, &good, good.replace("0123456789", ""), "churn.json: no commit");
    wrong(
        &json,
        &good,
        good.replace("churn.sixth.5.cpu_s", "churn.sixth.5.cpu"),
        differ,
    );
    let by_hand = "It takes 3 ms. Measured on 2026-11-22 at 7953d7d, by hand: `true`.";
    std::fs::write(&page, text.replace("Some text.", by_hand)).unwrap();
    assert_eq!(figures("check", folder.path()), "");
}

#[derive(Debug, PartialEq)]
struct Block {
    /// Line number of the first line of text in the block.
    line: usize,
    /// Text after the opening fence.
    language: String,
    text: String,
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (at, line) in page.lines().enumerate() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Block {
                    line: at + 2,
                    language: language.trim().to_owned(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Returns the lines of a page that are outside of fenced blocks, with their numbers.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    page.lines().enumerate().filter_map(move |(at, line)| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        (!inside && !fence).then_some((at + 1, line))
    })
}

/// Returns line and target of every `[text](target)` and `![text](target)`.
fn links(page: &str) -> Vec<(usize, String)> {
    let mut links = Vec::new();
    for (number, line) in prose(page) {
        // Code in backticks is not a link.
        let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("");
        let mut rest = text.as_str();
        while let Some(at) = rest.find("](") {
            rest = &rest[at + 2..];
            let target = rest.split([')', ' ']).next().unwrap_or("");
            links.push((number, target.to_owned()));
        }
    }
    links
}

/// Returns the anchors of the headings, as forges make them: lower case, blanks to hyphens, no punctuation.
fn headings(page: &str) -> BTreeSet<String> {
    let titles = prose(page).filter_map(|(_, line)| line.strip_prefix('#'));
    let anchor = |title: &str| {
        let title = title.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    titles.map(anchor).collect()
}

#[test]
fn the_reader_of_pages_sees_links_headings_blocks_and_commands() {
    let page =
        "# The `a.b` page: x\n[one](two.md#three) and ![four](five.png \"t\") `[no](no)`\n```sh\n[no](no)\n# no\n```\n";
    assert_eq!(
        links(page),
        [(2, "two.md#three".to_owned()), (2, "five.png".to_owned())]
    );
    assert_eq!(headings(page).into_iter().collect::<Vec<_>>(), ["the-ab-page-x"]);
    assert_eq!(
        command_line("$ alluvium sql \"SELECT 'a b' > 1\" | head").unwrap(),
        ["alluvium", "sql", "SELECT 'a b' > 1"]
    );
    assert_eq!(command_line("curl alluvium"), None);
    let block = Block {
        line: 4,
        language: "sh".into(),
        text: "[no](no)\n# no\n".into(),
    };
    assert_eq!(blocks(page), [block]);
}
