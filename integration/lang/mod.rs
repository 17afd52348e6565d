//! The language and the engine, with text as input and output.
//!
//! Cases are in files under `integration/lang/GROUP/`. A line `-- name --` opens a section. Inputs come first, then the
//! section `-- expect --` with the expected output, which ends a case. `UPDATE_EXPECT=1 cargo test --test integration
//! lang::` rewrites the expectations; a person then reads the diff. The number of cases of each group is printed and
//! must not fall below the minimum of the group.
//!
//! Groups: `lex` (a text and its tokens; `{NUL}`, `{CR}`, `{BOM}` stand for these characters, `{END}` ends the text
//! without a newline), `expr` (an expression per line and its value), `conv` (a type and an expression per line, and
//! the result), `fmt` (a text and its canonical form), `check` (a configuration and its diagnostics), `hcl` (a text and
//! its conversion to the other syntax), `engine` (consecutive loads, the events of the components, and their state
//! after each load), `modules` (files, loads and changes of files).

mod catalogue;
mod components;
mod engine_tests;
mod modules;
mod values;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alluvium_lang::{Diagnostics, Source};
use alluvium_pipeline::component::Stability;
use alluvium_pipeline::{Controller, Options, RestartPolicy, validate};

use components::definitions;

/// Timeout for an expected event.
const PATIENCE: Duration = Duration::from_mins(1);
/// If the output can no longer become the expected one, it is final once it has not changed for this time.
const QUIET: Duration = Duration::from_millis(300);

/// A section of a case: name and text.
type Section = (String, String);

#[test]
fn texts_are_formatted() {
    check("fmt", 50, |sections| {
        // The name of the section determines the language.
        let (name, text) = &sections[0];
        let path = if name == "in" { "in.alloy" } else { name };
        match alluvium_lang::fmt_named(path, text) {
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
        let (tokens, diagnostics) = alluvium_lang::tokens(&source);
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

/// Returns the lines, each followed by its answer on a separate line.
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

/// Checks configurations of the real components against their schemas. The output omits the warning that a component
/// cannot run yet, because it is always the same.
#[test]
fn configurations_of_known_components_are_checked() {
    check("check/known", 48, |sections| {
        let sources: Vec<_> = sections
            .iter()
            .map(|section| (section.0.clone(), section.1.clone()))
            .collect();
        let found = validate(&sources, alluvium_components::ALL, Stability::GenerallyAvailable);
        let found: Diagnostics = found
            .into_iter()
            .filter(|diagnostic| diagnostic.code != alluvium_lang::codes::WILL_NOT_RUN)
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
    // One thread is used, so that independent events also happen in a fixed order.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    check_running("engine", 40, |sections, expected| {
        runtime.block_on(run(sections, expected))
    });
}

/// Loads every section in turn and reports the events.
async fn run(sections: &[Section], expected: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::new(folder.path());
    // No component restarts during a case, because the speed of the machine would determine when it restarts.
    options.restart = RestartPolicy {
        min_wait: Duration::from_mins(1),
        max_wait: Duration::from_mins(1),
    };
    let controller = Controller::new(&definitions(), options);
    let stop = alluvium_base::Shutdown::new();
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

/// Waits until the output is the expected one. A busy machine takes longer, but no result depends on the time.
struct Watch<'a> {
    events: PathBuf,
    /// Number of bytes of the reported events.
    told: usize,
    expected: &'a str,
    /// True if the output already differs from the expected one, or if the test writes the expectations again. Then
    /// waiting for the expected output is useless.
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

    /// Adds the events since the last call and the state of the components to the output. Returns as soon as the output
    /// is the expected one. If waiting is useless, returns once the output has not changed for [`QUIET`]. `plain`
    /// converts an output to the compared form.
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

    /// Returns the events since the last call, and the length of all events in bytes. Components start concurrently, so
    /// their `run` lines are sorted and follow the other lines.
    fn peek(&self) -> (String, usize) {
        let text = std::fs::read_to_string(&self.events).unwrap_or_default();
        // The last line may be incomplete.
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

/// Writes the components of a module, each followed by the components of the modules that it created.
fn module_state(controller: &Controller, module: &str, out: &mut String) {
    for component in controller.components(module).unwrap_or_default() {
        let id = match module {
            "" => component.local_id.clone(),
            module => format!("{module}/{}", component.local_id),
        };
        // The module may have disappeared since the components were listed.
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

    /// Joins parts of configurations in random order. Every mistake is a diagnostic that can be rendered.
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
            alluvium_lang::fmt_named(&name, &text).unwrap(),
            text,
            "{name} is not formatted"
        );
        // The sample of published files uses `concat`, the deprecated name of `array.concat`, in two places.
        let warnings = if name.ends_with("alloy-like.river") { 2 } else { 0 };
        let found = validate(&[(name, text)], alluvium_components::ALL, Stability::GenerallyAvailable);
        let rendered = found.render();
        assert_eq!(found.len(), warnings, "{rendered}");
        assert_eq!(rendered.matches("warning[W0001]").count(), warnings, "{rendered}");
    }
    assert!(count >= 2);
}

#[test]
fn the_twin_in_hcl_is_the_same_configuration() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("config");
    let read = |name: &str| Source::new(name, std::fs::read_to_string(folder.join(name)).unwrap());
    let (river, hcl) = (read("local.alloy"), read("local.hcl"));
    let (of_river, of_hcl) = (alluvium_lang::parse(&river).0, alluvium_lang::parse(&hcl).0);
    // The comparison covers names, values and literals, but not positions and comments.
    assert_eq!(of_river, of_hcl);
    let back = alluvium_lang::translate::to_alloy("local.hcl", hcl.text()).unwrap();
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
            alluvium_lang::translate::to_alloy(name, text)
        } else {
            alluvium_lang::translate::to_hcl(name, text)
        };
        converted.unwrap_or_else(|found| found.render())
    });
}

// === The harness ===

/// Runs every case of a group. The group must have at least `at_least` cases.
fn check(group: &str, at_least: usize, answer: impl Fn(&[Section]) -> String) {
    check_running(group, at_least, |sections, _| answer(sections));
}

/// Runs every case like [`check`], and also passes the expected output to `answer`, so that `answer` can wait for it.
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
            // Each line with an expression or a conversion is a case.
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
        "{failures}\nif the new output is right: UPDATE_EXPECT=1 cargo test --test integration lang::"
    );
    assert!(
        count >= at_least,
        "{group} has {count} cases, fewer than the minimum {at_least}"
    );
}

struct Case<'a> {
    /// Text of the case before the expectation.
    input: &'a str,
    sections: Vec<Section>,
    expected: &'a str,
}

/// Returns the cases of a file. `-- name --` alone on a line opens a section; `-- expect --` opens the last section of
/// a case. If a text contains such a line, the file has `\-- name --` instead.
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
    // The last case of a file may be new and have no expectation yet.
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
