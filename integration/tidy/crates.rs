//! The layers (folders directly under `src/`) that are crates of the workspace, and their dependencies.
//!
//! In: manifests and code. Out: dependencies that `MAY_IMPORT` does not allow, and public items that no other crate
//! names. This module also rewrites the paths in the code, so that the other tests of this folder read all layers as
//! modules of one crate.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::names::without_tests;
use super::{Findings, GENERATED, MAY_IMPORT, is_test, layer_of, root, rust_files, words};

/// The layers that are crates of the workspace, which are the folders of `src` with a manifest. The others are modules
/// of the package `alluvium`.
static CRATES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let folders = std::fs::read_dir(root().join("src")).unwrap().map(Result::unwrap);
    let crates = folders.filter(|folder| folder.path().join("Cargo.toml").is_file());
    let names: BTreeSet<String> = crates
        .map(|folder| folder.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(!names.is_empty(), "no folder of src has a manifest");
    names
});

/// Returns code in which every path to a layer begins with `crate` and the layer, as if all layers were modules of one
/// crate. A path to the layer `testing` stays as it is: only the tests of a crate can depend on it.
pub(super) fn as_one_crate(path: &str, code: &str) -> String {
    let mut code = code.to_owned();
    if let Some(layer) = layer_of(path).filter(|layer| CRATES.contains(layer)) {
        code = code.replace("crate::", &format!("crate::{layer}::"));
    }
    for layer in CRATES.iter().filter(|layer| **layer != "testing") {
        code = code.replace(&format!("alluvium_{layer}::"), &format!("crate::{layer}::"));
    }
    code
}

#[test]
fn a_crate_depends_only_on_layers_that_it_may_import() {
    let mut found = Findings::default();
    for layer in &*CRATES {
        let path = format!("src/{layer}/Cargo.toml");
        let manifest = std::fs::read_to_string(root().join(&path)).unwrap();
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| name == layer) else {
            found.add(&path, 1, "a crate under src/ needs a row in MAY_IMPORT", layer);
            continue;
        };
        let mut section = "";
        for (at, line) in manifest.lines().enumerate() {
            if line.starts_with('[') {
                section = line;
            }
            let Some(other) = line.strip_prefix("alluvium-").filter(|_| section == "[dependencies]") else {
                continue;
            };
            let other = other.split(['.', ' ']).next().unwrap_or_default();
            if !allowed.contains(&other) {
                found.add(&path, at + 1, &format!("`{layer}` may not depend on `{other}`"), line);
            }
        }
    }
    found.none();
}

/// Keywords of the public items that another crate must name. Types and traits are not among them, because a signature
/// can need a public type that no other crate names.
const NAMED_OUTSIDE: [&str; 4] = ["fn", "const", "static", "mod"];

#[test]
fn public_items_of_a_crate_are_named_outside_it() {
    let files = rust_files();
    let crate_of = |path: &str| layer_of(path).filter(|layer| CRATES.contains(layer));
    let mut users: BTreeMap<&str, BTreeSet<Option<String>>> = BTreeMap::new();
    for file in &files {
        for (word, _) in words(&file.code) {
            users.entry(word).or_default().insert(crate_of(&file.path));
        }
    }
    let mut found = Findings::default();
    for file in files.iter().filter(|file| !is_test(&file.path)) {
        let own = crate_of(&file.path);
        if own.is_none() || GENERATED.iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        for (at, line) in without_tests(&file.code).0.lines().enumerate() {
            let Some(item) = line.trim_start().strip_prefix("pub ") else {
                continue;
            };
            // In `const fn name`, the last keyword is before the name. A name that a macro writes is not checked.
            let is_keyword = |word: &&str| ["async", "unsafe", "mut"].contains(word) || NAMED_OUTSIDE.contains(word);
            let keywords = words(item).map(|(word, _)| word).take_while(is_keyword);
            let Some(last) = keywords.last() else { continue };
            let name = item.split_once(last).map_or("", |(_, rest)| rest.trim_start());
            let name = super::first_word(name);
            if name.is_empty() {
                continue;
            }
            let is_named_outside = users
                .get(name.as_str())
                .is_some_and(|crates| crates.iter().any(|other| *other != own));
            if !is_named_outside {
                let rule = format!("no other crate names `{name}`: make it `pub(crate)` or private");
                found.add(&file.path, at + 1, &rule, file.line(at + 1));
            }
        }
    }
    found.none();
}
