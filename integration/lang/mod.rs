//! The language and the engine, text in and text out.
//!
//! Cases are in files under `integration/lang/GROUP/`: sections opened by `-- name --`, inputs first, then `-- expect
//! --` with what is expected, which ends a case; the next section begins another one. `UPDATE_EXPECT=1 cargo test
//! --test integration lang::` writes the expectations anew; the diff is then read by a person. How many cases each
//! group has is printed and must not fall below its number.
//!
//! Groups: `lex` (a text and its tokens; `{NUL}`, `{CR}`, `{BOM}` are these characters, `{END}` ends it without a
//! newline), `expr` (an expression a line and its value), `conv` (a type and an expression a line, and what comes out),
//! `fmt` (a text and its canonical form), `check` (a configuration and its diagnostics), `hcl` (a text and its
//! conversion into the other syntax), `engine` (loads one after another, what the components were told, and their state
//! after each), `modules` (files, loads and changes of files).

mod catalogue;
mod components;
mod engine_tests;
mod modules;
mod values;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alluvium::lang::{Diagnostics, Source};
use alluvium::pipeline::component::Stability;
use alluvium::pipeline::{Controller, Options, RestartPolicy, validate};

use components::definitions;

/// How long something may take that is expected.
const PATIENCE: Duration = Duration::from_mins(1);
/// What has not changed for so long is taken as it is, where nothing is expected.
const QUIET: Duration = Duration::from_millis(300);

/// A section of a case: its name and its text.
type Section = (String, String);

#[test]
fn texts_are_formatted() {
    check("fmt", 50, |sections| {
        // The name of the section says which language it is.
        let (name, text) = &sections[0];
        let path = if name == "in" { "in.alloy" } else { name };
        match alluvium::lang::fmt_named(path, text) {
            Ok(text) => text,
            Err(diagnostics) => diagnostics.render(),
        }
    });
}

#[test]
fn texts_are_cut_into_tokens() {
    check("lex", 40, |sections| {
        let mut text = sections[0].1.clone();
        for (name, letter) in [("{END}\n", ""), ("{NUL}", "\0"), ("{CR}", "\r"), ("{BOM}", "\u{feff}")] {
            text = text.replace(name, letter);
        }
        let source = Source::new("in.alloy", text);
        let (tokens, diagnostics) = alluvium::lang::tokens(&source);
        let mut out = String::new();
        for token in tokens {
            let (line, column) = source.position(token.span.start);
            let _ = writeln!(out, "{line}:{column} {:?} {:?}", token.kind, source.slice(token.span));
        }
        for diagnostic in diagnostics.iter() {
            let _ = writeln!(out, "{} {diagnostic}", diagnostic.code.id);
        }
        out
    });
}

#[test]
fn expressions_are_evaluated() {
    check("expr", 60, |sections| by_line(&sections[0].1, values::answer));
}

#[test]
fn values_are_converted() {
    check("conv", 30, |sections| by_line(&sections[0].1, values::conversion));
}

/// The answer to each line below it.
fn by_line(text: &str, answer: impl Fn(&str) -> String) -> String {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines.fold(String::new(), |mut out, line| {
        let _ = writeln!(out, "{line}\n    {}", answer(line));
        out
    })
}

#[test]
fn configurations_are_checked() {
    check("check", 60, |sections| {
        let sources: Vec<_> = sections
            .iter()
            .map(|section| (section.0.clone(), section.1.clone()))
            .collect();
        let diagnostics = validate(&sources, &definitions(), Stability::PublicPreview);
        if diagnostics.is_empty() {
            "ok\n".to_owned()
        } else {
            diagnostics.render()
        }
    });
}

/// The real components, as far as the language knows them. That many of them cannot run yet is the same warning every
/// time and left out.
#[test]
fn configurations_of_known_components_are_checked() {
    check("check/known", 48, |sections| {
        let sources: Vec<_> = sections
            .iter()
            .map(|section| (section.0.clone(), section.1.clone()))
            .collect();
        let found = validate(&sources, alluvium::components::ALL, Stability::GenerallyAvailable);
        let found: Diagnostics = found
            .into_iter()
            .filter(|diagnostic| diagnostic.code != alluvium::lang::codes::WILL_NOT_RUN)
            .collect();
        if found.is_empty() {
            "ok\n".to_owned()
        } else {
            found.render()
        }
    });
}

#[test]
fn configurations_are_run_and_reloaded() {
    // One thread: what does not depend on each other happens in one order, too.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    check_running("engine", 40, |sections, expected| {
        runtime.block_on(run(sections, expected))
    });
}

/// Loads every section in turn and tells what happened.
async fn run(sections: &[Section], expected: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::new(folder.path());
    // A machine that is slow must not see a restart that a quick one does not.
    options.restart = RestartPolicy {
        shortest: Duration::from_mins(1),
        longest: Duration::from_mins(1),
    };
    let controller = Controller::new(&definitions(), options);
    let stop = alluvium::base::Shutdown::new();
    let running = tokio::spawn({
        let (controller, stop) = (controller.clone(), stop.clone());
        async move { controller.run(stop).await }
    });
    let mut out = String::new();
    let mut watch = Watch::new(folder.path(), expected);
    for (name, text) in sections {
        let _ = writeln!(out, "# {name}");
        match controller.load(vec![("main.alloy".to_owned(), text.clone())]).await {
            Ok(warnings) if warnings.is_empty() => out.push_str("loaded\n"),
            Ok(warnings) => out.push_str(&format!("loaded, {}\n", short(&warnings))),
            Err(diagnostics) => {
                for diagnostic in diagnostics.iter() {
                    let _ = writeln!(out, "{} {diagnostic}", diagnostic.code.id);
                }
            }
        }
        watch.settle(&controller, &mut out, str::to_owned).await;
    }
    stop.cancel();
    running.await.unwrap();
    out.push_str("# stop\n");
    out.push_str(&watch.events());
    out
}

/// Waits until what happens is what was expected. A busy machine takes its time; nothing depends on how much.
struct Watch<'a> {
    events: PathBuf,
    /// Bytes of the events that were told.
    told: usize,
    expected: &'a str,
    /// What was seen is not what was expected: there is nothing to wait for any more.
    is_lost: bool,
}

impl<'a> Watch<'a> {
    fn new(folder: &Path, expected: &'a str) -> Self {
        Self {
            events: folder.join("events"),
            told: 0,
            expected,
            is_lost: std::env::var_os("UPDATE_EXPECT").is_some(),
        }
    }

    /// Adds what the components were told since the last time, and their state: what is expected as soon as it is
    /// there, and otherwise what there is once it has stayed the same for a while. `plain` makes of an output what is
    /// compared.
    async fn settle(&mut self, controller: &Controller, out: &mut String, plain: impl Fn(&str) -> String) {
        let started = Instant::now();
        let mut last = (String::new(), 0, Instant::now());
        loop {
            let (events, length) = self.peek();
            let now = format!("{out}{events}{}", state(controller));
            let is_expected = self.expected.strip_prefix(plain(&now).as_str());
            let is_expected = is_expected.is_some_and(|rest| rest.starts_with("# "));
            let waited = started.elapsed();
            if last.0 != now {
                last = (now, length, Instant::now());
            }
            let is_quiet = last.2.elapsed() > QUIET;
            if is_expected || (self.is_lost && is_quiet) || waited > PATIENCE {
                self.is_lost |= !is_expected;
                self.told = last.1;
                *out = last.0;
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The events since the last call, and the length of all. Components start side by side: their `run` lines come
    /// sorted, after the others.
    fn peek(&self) -> (String, usize) {
        let text = std::fs::read_to_string(&self.events).unwrap_or_default();
        // The last line may be on its way.
        let length = text.rfind('\n').map_or(0, |end| end + 1);
        let new = text.get(self.told..length).unwrap_or_default();
        let (mut runs, others): (Vec<&str>, Vec<&str>) = new.lines().partition(|line| line.starts_with("run "));
        runs.sort_unstable();
        let lines = others.into_iter().chain(runs).fold(String::new(), |mut out, line| {
            let _ = writeln!(out, "  {line}");
            out
        });
        (lines, length)
    }

    fn events(&mut self) -> String {
        let (lines, length) = self.peek();
        self.told = length;
        lines
    }
}

fn state(controller: &Controller) -> String {
    let mut out = String::new();
    module_state(controller, "", &mut out);
    out
}

/// The components of a module, each followed by those of the modules that it made.
fn module_state(controller: &Controller, module: &str, out: &mut String) {
    for component in controller.components(module).unwrap_or_default() {
        let id = match module {
            "" => component.local_id.clone(),
            module => format!("{module}/{}", component.local_id),
        };
        // It may have gone in between.
        let Some(detail) = controller.component(&id) else {
            continue;
        };
        let exports = detail.exports;
        let exports: Vec<String> = exports
            .as_array()
            .unwrap()
            .iter()
            .map(|export| format!("{}={}", export["name"].as_str().unwrap(), export["value"]["value"]))
            .collect();
        let health = &component.health;
        let message = match health.state {
            "healthy" => String::new(),
            _ => format!(" ({})", health.message),
        };
        let _ = writeln!(out, "{id}: {}{message} {}", health.state, exports.join(" "));
        for module in &component.created_module_ids {
            module_state(controller, module, out);
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(1000))]

    /// Parts of configurations in any order: every mistake is a diagnostic that can be shown.
    #[test]
    fn checking_never_panics(parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..30)) {
        let text = parts.concat();
        let found = validate(&[("x".to_owned(), text.clone())], &definitions(), Stability::Experimental);
        let _ = found.render_coloured();
        let _ = found.to_json();
        let _ = values::answer(&text);
    }
}

const PARTS: &[&str] = &[
    "test.value \"a\" {\n",
    "test.checked \"c\" {\n",
    "test.receiving \"r\" { }\n",
    "}\n",
    "\n",
    "input = ",
    "targets = ",
    "limit = ",
    "names = ",
    "forward_to = ",
    "endpoint {\n",
    "url = ",
    "logging {\n",
    "level = ",
    "[",
    "]",
    "{a = ",
    "}",
    ",",
    "(",
    ")",
    "1",
    "-9223372036854775808",
    "0.5",
    "\"x\"",
    "\"\u{e9}",
    "null",
    "true",
    "test.value.a.output",
    "test.receiving.r.receiver",
    "test.checked.c",
    ".targets",
    "[0]",
    " + ",
    " / ",
    " ^ ",
    " == ",
    "!",
    "concat(",
    "string.format(",
    "encoding.from_json(",
    "coalesce(",
    "\"%s %d\"",
    "sys.env(",
    "constants.os",
    "// c\n",
    "`",
];

#[test]
fn shipped_configurations_are_formatted_and_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if !extension.is_some_and(|extension| ["river", "alloy", "hcl"].contains(&extension)) {
            continue;
        }
        count += 1;
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            alluvium::lang::fmt_named(&name, &text).unwrap(),
            text,
            "{name} is not formatted"
        );
        let found = validate(
            &[(name, text)],
            alluvium::components::ALL,
            Stability::GenerallyAvailable,
        );
        assert!(found.is_empty(), "{}", found.render());
    }
    assert!(count >= 2);
}

#[test]
fn the_twin_in_hcl_is_the_same_configuration() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let read = |name: &str| Source::new(name, std::fs::read_to_string(folder.join(name)).unwrap());
    let (river, hcl) = (read("alloy-like.river"), read("alloy-like.hcl"));
    let (of_river, of_hcl) = (alluvium::lang::parse(&river).0, alluvium::lang::parse(&hcl).0);
    // Names, values, literals: everything but places and comments.
    assert_eq!(of_river, of_hcl);
    let back = alluvium::lang::translate::to_alloy("alloy-like.hcl", hcl.text()).unwrap();
    // The comments differ in the lines that name the files.
    let different = river
        .text()
        .lines()
        .zip(back.lines())
        .filter(|(left, right)| left != right);
    assert!(different.clone().all(|(line, _)| line.starts_with("// ")), "{back}");
    assert_eq!(different.count(), 2, "{back}");
}

#[test]
fn hcl_is_read_and_converted() {
    check("hcl", 25, |sections| {
        let (name, text) = &sections[0];
        let converted = if name.ends_with(".hcl") {
            alluvium::lang::translate::to_alloy(name, text)
        } else {
            alluvium::lang::translate::to_hcl(name, text)
        };
        converted.unwrap_or_else(|found| found.render())
    });
}

// === The harness ===

/// Runs every case of a group, of which there must be so many.
fn check(group: &str, at_least: usize, answer: impl Fn(&[Section]) -> String) {
    check_running(group, at_least, |sections, _| answer(sections));
}

/// As [`check`]; who answers knows what is expected, to wait for it.
fn check_running(group: &str, at_least: usize, answer: impl Fn(&[Section], &str) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("integration/lang")
        .join(group);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "no cases in {}", folder.display());
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut failures = String::new();
    let mut count = 0;
    for path in &paths {
        let text = std::fs::read_to_string(path).unwrap();
        let mut updated = String::new();
        for case in split(&text) {
            // An expression or a conversion a line: each of them is a case.
            count += match group {
                "expr" | "conv" => case.sections[0].1.lines().filter(|line| !line.is_empty()).count(),
                _ => 1,
            };
            let got = answer(&case.sections, case.expected);
            let _ = write!(updated, "{}-- expect --\n{got}", case.input);
            if got != case.expected && !update {
                let _ = writeln!(
                    failures,
                    "=== {}\n{}--- expected\n{}--- got\n{got}",
                    path.display(),
                    case.input,
                    case.expected
                );
            }
        }
        if update && updated != text {
            std::fs::write(path, updated).unwrap();
        }
    }
    println!("{group}: {count} cases in {} files", paths.len());
    assert!(
        failures.is_empty(),
        "{failures}\nif this is right: UPDATE_EXPECT=1 cargo test --test integration lang::"
    );
    assert!(
        count >= at_least,
        "{group} has {count} cases, there should be {at_least}"
    );
}

struct Case<'a> {
    /// Its text before the expectation.
    input: &'a str,
    sections: Vec<Section>,
    expected: &'a str,
}

/// The cases of a file. `-- name --` alone on a line opens a section, `-- expect --` the last one of a case. In a text
/// that holds such a line itself, `\-- name --` stands for it.
fn split(text: &str) -> Vec<Case<'_>> {
    let mut cases: Vec<Case<'_>> = Vec::new();
    let mut sections: Vec<Section> = Vec::new();
    let (mut start, mut offset) = (0, 0);
    let mut expected_from = None;
    for line in text.split_inclusive('\n').chain(std::iter::once("-- end --")) {
        let name = line
            .trim_end()
            .strip_prefix("-- ")
            .and_then(|rest| rest.strip_suffix(" --"));
        if let (Some(_), Some((input_end, from))) = (name, expected_from) {
            cases.push(Case {
                input: &text[start..input_end],
                sections: std::mem::take(&mut sections),
                expected: &text[from..offset],
            });
            (start, expected_from) = (offset, None);
        }
        match (name, sections.last_mut()) {
            (Some("expect"), _) => expected_from = Some((offset, offset + line.len())),
            (Some("end"), _) if offset == text.len() => {}
            (Some(name), _) => sections.push((name.to_owned(), String::new())),
            (None, Some(section)) if expected_from.is_none() => {
                section.1.push_str(
                    line.strip_prefix('\\')
                        .filter(|rest| rest.starts_with("-- "))
                        .unwrap_or(line),
                );
            }
            (None, _) => {}
        }
        offset += line.len();
    }
    // A case that is new and has no expectation yet.
    if !sections.is_empty() {
        cases.push(Case {
            input: &text[start..],
            sections,
            expected: "",
        });
    }
    cases
}

fn short(diagnostics: &Diagnostics) -> String {
    let lines: Vec<String> = diagnostics
        .iter()
        .map(|diagnostic| {
            let (_, column) = diagnostic.source.position(diagnostic.span.start);
            let hint = diagnostic
                .hint
                .as_ref()
                .map(|hint| format!(" ({hint})"))
                .unwrap_or_default();
            format!("{} at {column}: {}{hint}", diagnostic.code.id, diagnostic.message)
        })
        .collect();
    lines.join("; ")
}
