//! The catalogue of diagnostics: its page is generated from the codes, and every example triggers its code.
//!
//! `UPDATE_EXPECT=1 cargo test --test integration catalogue` rewrites `docs/reference/diagnostics.md`.

use std::fmt::Write as _;

use alluvium_lang::catalogue::Example;
use alluvium_lang::codes::{ALL, Code};
use alluvium_lang::{Diagnostics, decode_text};
use alluvium_pipeline::component::Stability;
use alluvium_pipeline::{Controller, Options, validate};

const PAGE: &str = "docs/reference/diagnostics.md";

/// Codes without an example. The cases of the groups `check` and `engine` trigger these codes.
const WITHOUT_EXAMPLE: &[&str] = &["E0304", "E0411", "W0002"];

#[test]
fn every_example_triggers_its_code_and_is_right_once_mended() {
    let mut wrong = String::new();
    for code in ALL {
        if WITHOUT_EXAMPLE.contains(&code.id) {
            assert!(code.bad().is_none(), "{} has an example now", code.id);
            continue;
        }
        match code.bad() {
            None => {
                let _ = writeln!(wrong, "{} has no example", code.id);
            }
            Some(bad) => {
                let found = answer(*code, bad);
                if !found.iter().any(|diagnostic| diagnostic.code == *code) {
                    let _ = writeln!(wrong, "{} is not triggered:\n{}\n{}", code.id, bad.text, found.render());
                }
                if let Some(other) = found.iter().find(|diagnostic| diagnostic.code != *code) {
                    let _ = writeln!(wrong, "{} comes with {}:\n{}", code.id, other.code.id, found.render());
                }
            }
        }
        let Some(fixed) = code.fixed() else {
            let _ = writeln!(wrong, "{} has no mended example", code.id);
            continue;
        };
        let found = checked(fixed, fixed.text.to_owned());
        if !found.is_empty() {
            let _ = writeln!(wrong, "{} still has errors when mended:\n{}", code.id, found.render());
        }
        let name = format!("main.{}", fixed.language);
        if alluvium_lang::fmt_named(&name, fixed.text).ok().as_deref() != Some(fixed.text) {
            let _ = writeln!(wrong, "{} is not formatted when mended", code.id);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn the_page_of_the_catalogue_is_up_to_date() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = page();
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let now = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        now == page,
        "{PAGE} is out of date: UPDATE_EXPECT=1 cargo test --test integration catalogue"
    );
}

fn page() -> String {
    let mut page = String::from(
        "# Diagnostics\n\nEvery message about a configuration has a code, which does not change between versions. \
         `alluvium validate --explain CODE` prints the entry\n\
         of a code. Codes with `E` are errors: `E00` concerns characters and bytes, `E01` the grammar, `E02` values, \
         `E03` the bodies of blocks,\n`E04` the relations between blocks, and `E05` components. Codes with `W` are \
         warnings, which do not keep a configuration from running.\n\n\
         A test generates this page from the codes, and the messages from the examples.\n\n\
         | code | |\n| --- | --- |\n",
    );
    for code in ALL {
        let _ = writeln!(
            page,
            "| [{}](#{}) | {} |",
            code.id,
            code.id.to_lowercase(),
            code.summary()
        );
    }
    for code in ALL {
        let mut summary = code.summary().chars();
        let first = summary
            .next()
            .map(|letter| letter.to_uppercase().to_string())
            .unwrap_or_default();
        let _ = write!(
            page,
            "\n## {}\n\n{first}{}.\n\n{}\n",
            code.id,
            summary.as_str(),
            code.explanation()
        );
        if let Some(bad) = code.bad() {
            let found: Diagnostics = answer(*code, bad)
                .into_iter()
                .filter(|diagnostic| diagnostic.code == *code)
                .collect();
            // Long lines of an example are truncated, because nobody reads hundreds of brackets.
            let _ = write!(page, "\n```{} fragment\n{}```\n", bad.language, cut(bad.text));
            let _ = write!(page, "\n```text\n{}```\n", cut(&found.render()));
        }
        if let Some(fixed) = code.fixed() {
            let _ = write!(page, "\nRight:\n\n```{}\n{}```\n", fixed.language, fixed.text);
        }
    }
    page
}

fn cut(text: &str) -> String {
    text.lines().fold(String::new(), |mut out, line| {
        match line.char_indices().nth(160) {
            Some((at, _)) => out.push_str(&format!("{} ...", &line[..at])),
            None => out.push_str(line.trim_end()),
        }
        out.push('\n');
        out
    })
}

/// Returns the diagnostics of a bad example. Its field `how` says which operation triggers the code: decoding the
/// bytes, loading the configuration, or checking it.
fn answer(code: Code, example: Example) -> Diagnostics {
    match example.how {
        "bytes" => match decode_text(&name(example), bytes(example.text)) {
            Ok(text) => checked(example, text),
            Err(diagnostic) => diagnostic.into(),
        },
        "run" | "build" | "update" => loaded(code, example),
        _ => checked(example, example.text.to_owned()),
    }
}

fn name(example: Example) -> String {
    format!("main.{}", example.language)
}

fn checked(example: Example, text: String) -> Diagnostics {
    validate(
        &[(name(example), text)],
        alluvium_components::ALL,
        Stability::GenerallyAvailable,
    )
}

fn loaded(code: Code, example: Example) -> Diagnostics {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let storage = folder.path().join("data-alluvium");
        std::fs::create_dir(&storage).unwrap();
        let controller = Controller::new(alluvium_components::ALL, Options::new(&storage));
        let text = |example: Example| vec![(name(example), example.text.to_owned())];
        if example.how == "update" {
            controller.load(text(code.fixed().unwrap())).await.unwrap();
        }
        if example.how != "run" {
            // A file replaces the storage folder, so that no component can create its folder there, not even as root.
            std::fs::remove_dir_all(&storage).unwrap();
            std::fs::write(&storage, "").unwrap();
        }
        let here = format!("{}/", folder.path().display());
        let found = match controller.load(text(example)).await {
            Ok(warnings) => warnings,
            Err(found) => found,
        };
        let without_path = |mut diagnostic: alluvium_lang::Diagnostic| {
            diagnostic.message = diagnostic.message.replace(&here, "");
            diagnostic
        };
        found.into_iter().map(without_path).collect()
    })
}

fn bytes(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("\\x") {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        out.push(u8::from_str_radix(&rest[at + 2..at + 4], 16).unwrap());
        rest = &rest[at + 4..];
    }
    out.extend_from_slice(rest.as_bytes());
    out
}
