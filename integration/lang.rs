//! The language and the engine, text in and text out.
//!
//! A case is a file under `integration/lang/GROUP/`: sections opened by `-- name --`, inputs first, what is expected last.
//! `UPDATE_EXPECT=1 cargo test --test integration lang::` writes the expectations anew; the diff is then read by a person.
//!
//! Groups: `fmt` (a text and its canonical form), `expr` (an expression a line and its value), `check` (a configuration and its
//! diagnostics), `engine` (loads one after another, what the components were told, and their state after each).

mod components;
mod engine_tests;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alluvium::lang::eval::{NoScope, evaluate};
use alluvium::lang::value::{Number, Value};
use alluvium::lang::{Diagnostics, Source, parse_expression};
use alluvium::pipeline::component::Stability;
use alluvium::pipeline::{Controller, Options, validate};

use components::DEFINITIONS;

/// A section of a case: its name and its text.
type Section = (String, String);

#[test]
fn texts_are_formatted() {
    check("fmt", |sections| {
        match alluvium::lang::fmt_named("in.alloy", &sections[0].1) {
            Ok(text) => text,
            Err(diagnostics) => diagnostics.render(false),
        }
    });
}

#[test]
fn expressions_are_evaluated() {
    check("expr", |sections| {
        let lines = sections[0].1.lines().filter(|line| !line.is_empty());
        lines.fold(String::new(), |mut out, line| {
            let _ = writeln!(out, "{line}\n    {}", answer(line));
            out
        })
    });
}

fn answer(line: &str) -> String {
    let source = Source::new("e", line);
    let (expression, diagnostics) = parse_expression(&source);
    let found = diagnostics
        .into_result(())
        .and_then(|()| evaluate(&source, &expression, &NoScope).map_err(Diagnostics::from));
    match found {
        Ok(value) => show(&value),
        Err(diagnostics) => short(&diagnostics),
    }
}

#[test]
fn configurations_are_checked() {
    check("check", |sections| {
        let sources: Vec<_> = sections
            .iter()
            .map(|section| (section.0.clone(), section.1.clone()))
            .collect();
        let diagnostics = validate(&sources, DEFINITIONS, Stability::PublicPreview);
        if diagnostics.is_empty() {
            "ok\n".to_owned()
        } else {
            diagnostics.render(false)
        }
    });
}

#[test]
fn configurations_are_run_and_reloaded() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    check("engine", |sections| runtime.block_on(run(sections)));
}

/// Loads every section in turn and tells what happened.
async fn run(sections: &[Section]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let controller = Controller::new(DEFINITIONS, Options::new(folder.path()));
    let stop = alluvium::base::Shutdown::new();
    let running = tokio::spawn({
        let (controller, stop) = (controller.clone(), stop.clone());
        async move { controller.run(stop).await }
    });
    let mut out = String::new();
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
        out.push_str(&settled(&controller, folder.path()).await);
    }
    stop.cancel();
    running.await.unwrap();
    out.push_str("# stop\n");
    out.push_str(&events(folder.path()));
    out
}

/// What the components were told since the last time, and their state, once both stay the same for a while.
async fn settled(controller: &Controller, folder: &Path) -> String {
    let deadline = Instant::now() + Duration::from_secs(5);
    let mut last = (String::new(), Instant::now());
    loop {
        let now = state(controller) + &std::fs::read_to_string(folder.join("events")).unwrap_or_default();
        if now != last.0 {
            last = (now, Instant::now());
        } else if last.1.elapsed() > Duration::from_millis(100) || Instant::now() > deadline {
            return events(folder) + &state(controller);
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The events since the last call. Components start side by side: their `run` lines come sorted, after the others.
fn events(folder: &Path) -> String {
    let path = folder.join("events");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let _ = std::fs::remove_file(&path);
    let (mut runs, others): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with("run "));
    runs.sort_unstable();
    others.into_iter().chain(runs).fold(String::new(), |mut out, line| {
        let _ = writeln!(out, "  {line}");
        out
    })
}

fn state(controller: &Controller) -> String {
    controller
        .components("")
        .unwrap()
        .iter()
        .fold(String::new(), |mut out, component| {
            let detail = controller.component(&component.local_id).unwrap();
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
            let _ = writeln!(
                out,
                "{}: {}{message} {}",
                component.local_id,
                health.state,
                exports.join(" ")
            );
            out
        })
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(1000))]

    /// Parts of configurations in any order: every mistake is a diagnostic that can be shown.
    #[test]
    fn checking_never_panics(parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..30)) {
        let text = parts.concat();
        let found = validate(&[("x".to_owned(), text.clone())], DEFINITIONS, Stability::Experimental);
        let _ = found.render(true);
        let _ = found.to_json();
        let _ = answer(&text);
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
        if !path
            .extension()
            .is_some_and(|extension| extension == "river" || extension == "alloy")
        {
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
        assert!(found.is_empty(), "{}", found.render(false));
    }
    assert!(count > 0);
}

// === The harness ===

/// Runs every case of a group.
fn check(group: &str, answer: impl Fn(&[Section]) -> String) {
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
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let (sections, expected) = split(&text);
        let got = answer(&sections);
        if got == expected {
            continue;
        }
        if update {
            let end = text.find("-- expect --\n").unwrap_or(text.len());
            std::fs::write(&path, format!("{}-- expect --\n{got}", &text[..end])).unwrap();
        } else {
            let _ = writeln!(
                failures,
                "=== {}\n--- expected\n{expected}--- got\n{got}",
                path.display()
            );
        }
    }
    assert!(
        failures.is_empty(),
        "{failures}\nif this is right: UPDATE_EXPECT=1 cargo test --test integration lang::"
    );
}

/// Inputs by name, and the expectation. `-- name --` alone on a line opens a section.
fn split(text: &str) -> (Vec<Section>, String) {
    let mut sections: Vec<Section> = Vec::new();
    for line in text.split_inclusive('\n') {
        let name = line
            .trim_end()
            .strip_prefix("-- ")
            .and_then(|rest| rest.strip_suffix(" --"));
        match (name, sections.last_mut()) {
            (Some(name), _) => sections.push((name.to_owned(), String::new())),
            (None, Some(section)) => section.1.push_str(line),
            (None, None) => {}
        }
    }
    let expected = match sections.last() {
        Some((name, _)) if name == "expect" => sections.pop().map(|section| section.1),
        _ => None,
    };
    (sections, expected.unwrap_or_default())
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

fn show(value: &Value) -> String {
    match value {
        Value::Number(Number::Int(value)) => value.to_string(),
        Value::Number(Number::Uint(value)) => format!("{value}u"),
        Value::Number(Number::Float(value)) => format!("{value:?}"),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(show).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| format!("{key} = {}", show(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => format!("{other:?}"),
    }
}
