//! The rooms: folders inside the large layers, and the modules that each room may import.
//!
//! In: the sources of a layer, without their tests. Out: imports that the table `MAY_IMPORT` does not allow, and
//! folders without a row in this table. An import through a re-export in the layer's `mod.rs` names no room, so the
//! test does not allow it.

use super::names::{imports, paths, without_tests};
use super::{Findings, is_test, layer_of, rust_files};

/// A room, the rooms of the same layer that it may import, and the lower layers that it may import. The rows are in the
/// order of the data flow: a room imports only rooms of earlier rows. A room may also import the files in
/// [`OF_A_WHOLE_LAYER`].
const MAY_IMPORT: [Row; 55] = [
    (
        "pipeline::component",
        &[],
        &["base", "telemetry", "cluster", "lang", "profile"],
    ),
    (
        "pipeline::check",
        &["pipeline::component"],
        &["base", "telemetry", "lang"],
    ),
    (
        "pipeline::run",
        &["pipeline::component", "pipeline::check"],
        &["base", "telemetry", "cluster", "lang"],
    ),
    ("store::common", &[], &["base", "telemetry"]),
    ("store::rules", &["store::common"], &["profile"]),
    ("store::tables", &["store::common"], &["base", "telemetry", "profile"]),
    ("store::log", &["store::common", "store::rules"], &["base", "profile"]),
    (
        "store::ingest",
        &["store::common", "store::rules"],
        &["base", "profile"],
    ),
    (
        "store::quota",
        &["store::common", "store::rules", "store::ingest"],
        &["profile"],
    ),
    (
        "store::head",
        &[
            "store::common",
            "store::rules",
            "store::tables",
            "store::log",
            "store::ingest",
        ],
        &["profile"],
    ),
    (
        "store::flush",
        &[
            "store::common",
            "store::rules",
            "store::tables",
            "store::log",
            "store::head",
        ],
        &["base", "profile"],
    ),
    (
        "store::intake",
        &[
            "store::common",
            "store::rules",
            "store::log",
            "store::ingest",
            "store::quota",
            "store::head",
            "store::flush",
        ],
        &["base", "profile"],
    ),
    (
        "store::maintenance::merge",
        &["store::common", "store::tables", "store::head", "store::flush"],
        &["profile"],
    ),
    (
        "store::maintenance",
        &[
            "store::common",
            "store::tables",
            "store::head",
            "store::flush",
            "store::maintenance::merge",
        ],
        &["base", "telemetry", "profile"],
    ),
    (
        "store::open",
        &[
            "store::common",
            "store::rules",
            "store::tables",
            "store::log",
            "store::quota",
            "store::head",
            "store::flush",
            "store::intake",
            "store::maintenance",
        ],
        &["base", "telemetry", "profile"],
    ),
    (
        "store::tools",
        &[
            "store::common",
            "store::rules",
            "store::tables",
            "store::log",
            "store::flush",
            "store::maintenance::merge",
            "store::maintenance",
            "store::open",
        ],
        &["base"],
    ),
    ("components::common::arguments", &[], &["lang", "pipeline"]),
    (
        "components::common::http",
        &["components::common::arguments"],
        &["base", "lang", "pipeline", "wire"],
    ),
    (
        "components::common::discovery",
        &["components::common::arguments", "components::common::http"],
        &["base", "telemetry", "lang", "profile", "pipeline", "wire"],
    ),
    ("components::common::sources", &[], &["base", "lang", "pipeline"]),
    (
        "components::common::clouds",
        &[
            "components::common::arguments",
            "components::common::http",
            "components::common::discovery",
        ],
        &["lang", "pipeline", "wire"],
    ),
    (
        "components::common::kubernetes",
        &[
            "components::common::arguments",
            "components::common::http",
            "components::common::discovery",
            "components::common::sources",
            "components::common::clouds",
        ],
        &["base", "telemetry", "lang", "pipeline", "wire"],
    ),
    (
        "components::common::passing",
        &[],
        &["base", "telemetry", "lang", "profile", "pipeline"],
    ),
    (
        "components::common::sending",
        &["components::common::arguments", "components::common::passing"],
        &["base", "telemetry", "lang", "profile", "pipeline", "wire"],
    ),
    (
        "components::common::serving",
        &["components::common::arguments"],
        &["base", "lang", "pipeline", "wire", "admin"],
    ),
    ("query::common", &[], &["base", "profile"]),
    ("query::resources", &["query::common"], &["base", "store"]),
    (
        "query::scan",
        &["query::common", "query::resources"],
        &["base", "profile", "store"],
    ),
    (
        "query::decoded",
        &["query::common", "query::resources", "query::scan"],
        &["base", "profile", "store"],
    ),
    (
        "query::series",
        &["query::common", "query::scan", "query::decoded"],
        &["base", "profile", "store"],
    ),
    (
        "query::stacks",
        &[
            "query::common",
            "query::resources",
            "query::scan",
            "query::decoded",
            "query::series",
        ],
        &["base", "profile", "store"],
    ),
    (
        "query::timeline",
        &[
            "query::common",
            "query::scan",
            "query::decoded",
            "query::series",
            "query::stacks",
        ],
        &["base", "profile", "store"],
    ),
    (
        "query::pprof",
        &[
            "query::common",
            "query::decoded",
            "query::scan",
            "query::series",
            "query::stacks",
        ],
        &["base", "profile", "store"],
    ),
    (
        "query::holdings",
        &["query::common", "query::scan", "query::decoded", "query::stacks"],
        &["base", "profile", "store"],
    ),
    (
        "query::tables",
        &[
            "query::common",
            "query::resources",
            "query::scan",
            "query::decoded",
            "query::series",
            "query::stacks",
        ],
        &["base", "profile", "store"],
    ),
    (
        "query::functions",
        &[
            "query::common",
            "query::resources",
            "query::scan",
            "query::decoded",
            "query::stacks",
            "query::pprof",
            "query::tables",
        ],
        &["base", "profile", "store"],
    ),
    ("query::output", &["query::common", "query::tables"], &["base"]),
    (
        "query::sql",
        &[
            "query::common",
            "query::resources",
            "query::scan",
            "query::decoded",
            "query::tables",
            "query::functions",
            "query::output",
        ],
        &["base", "profile", "store"],
    ),
    (
        "server::access",
        &[],
        &["base", "telemetry", "profile", "wire", "admin"],
    ),
    ("server::bodies", &[], &["base", "wire", "admin", "query"]),
    ("server::prometheus", &[], &["profile", "wire"]),
    (
        "server::state",
        &["server::access", "server::bodies", "server::prometheus"],
        &["base", "telemetry", "profile", "wire", "store", "admin", "query"],
    ),
    (
        "server::calls",
        &["server::bodies", "server::state"],
        &["profile", "wire", "admin", "query"],
    ),
    (
        "server::services",
        &["server::bodies", "server::state"],
        &["profile", "wire", "store", "admin", "query"],
    ),
    (
        "server::routes",
        &[
            "server::access",
            "server::bodies",
            "server::prometheus",
            "server::state",
            "server::calls",
            "server::services",
        ],
        &["base", "profile", "wire", "store", "query"],
    ),
    ("server::postgres", &["server::access"], &["base", "profile", "query"]),
    ("cli::common", &[], &["base", "profile", "wire", "store", "app"]),
    ("cli::sql", &["cli::common"], &["profile", "wire", "store", "query"]),
    (
        "cli::configuration",
        &["cli::common"],
        &["lang", "pipeline", "components", "app"],
    ),
    (
        "cli::services",
        &["cli::common"],
        &[
            "base",
            "telemetry",
            "cluster",
            "profile",
            "store",
            "admin",
            "query",
            "server",
            "app",
        ],
    ),
    (
        "cli::readers",
        &["cli::common", "cli::sql"],
        &["base", "telemetry", "profile", "wire", "query"],
    ),
    (
        "cli::sending",
        &["cli::common"],
        &["base", "profile", "unwind", "symbols", "ebpf", "wire"],
    ),
    (
        "cli::stored",
        &["cli::common", "cli::readers", "cli::sending"],
        &["base", "telemetry", "profile", "wire", "store"],
    ),
    ("cli::collectors", &["cli::common"], &["wire"]),
    ("cli::shell", &["cli::common"], &[]),
];

/// Files directly in a layer that rooms of the same layer may import, and why.
const OF_A_WHOLE_LAYER: [(&str, &str); 3] = [
    ("store::config", "one type with the options of all rooms"),
    (
        "components::common::testing",
        "code that the tests of all components share",
    ),
    ("server::tls", "certificates of every port, also for higher layers"),
];

type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Layers in which every folder is a room. One entry is a folder of a layer; every folder in it is a room as well.
const LAYERS_OF_ROOMS: [&str; 6] = ["store", "query", "server", "cli", "components::common", "pipeline"];

#[test]
fn no_room_imports_up_or_sideways() {
    let mut found = Findings::default();
    for file in rust_files().iter().filter(|file| !is_test(&file.path)) {
        let Some((room, beside, below)) = room_of_file(&file.path) else {
            continue;
        };
        let layer = layer_of(&file.path).unwrap_or_default();
        let code = without_tests(&file.code).0;
        let imported = imports(&code).into_iter().map(|import| (import.line, import.path));
        for (line, path) in imported.chain(paths(&code)) {
            let [first, outer, ..] = path.as_slice() else { continue };
            if first != "crate" {
                continue;
            }
            let target = if *outer == layer {
                room_of(&path[1..])
            } else {
                outer.clone()
            };
            let allowed = target == *room
                || beside.contains(&target.as_str())
                || below.contains(&target.as_str())
                || OF_A_WHOLE_LAYER.iter().any(|(name, _)| *name == target);
            if !allowed {
                let rule = format!("`{room}` may not import `{target}`");
                found.add(&file.path, line, &rule, file.line(line));
            }
        }
    }
    found.none();
}

#[test]
fn rooms_import_only_rooms_that_stand_above_them() {
    for (at, (room, beside, _)) in MAY_IMPORT.iter().enumerate() {
        for other in *beside {
            let is_above = MAY_IMPORT[..at].iter().any(|(name, ..)| name == other);
            assert!(is_above, "`{room}` imports `{other}`, which is below it or has no row");
        }
    }
}

#[test]
fn every_folder_of_a_large_layer_is_a_room() {
    let mut found = Findings::default();
    for file in rust_files().iter().filter(|file| !is_test(&file.path)) {
        let path = file.path.trim_start_matches("src/").replace('/', "::");
        for layer in LAYERS_OF_ROOMS {
            let rest = path.strip_prefix(layer).and_then(|rest| rest.strip_prefix("::"));
            let Some((folder, _)) = rest.and_then(|rest| rest.split_once("::")) else {
                continue;
            };
            if !is_room(&format!("{layer}::{folder}")) {
                found.add(
                    &file.path,
                    1,
                    "a new folder in this layer needs a row in MAY_IMPORT",
                    folder,
                );
            }
        }
    }
    found.none();
}

#[test]
fn the_architecture_has_a_line_for_every_room_in_their_order() {
    let page = std::fs::read_to_string(super::root().join("docs/architecture.md")).unwrap();
    let lines = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `src/")?.split_once('`'));
    let described: Vec<String> = lines
        .map(|(path, _)| path.replace('/', "::"))
        .filter(|path| is_room(path))
        .collect();
    let rooms: Vec<&str> = MAY_IMPORT.iter().map(|(room, ..)| *room).collect();
    assert_eq!(described, rooms);
}

/// Returns true for the path of a folder that has a row.
pub(super) fn is_room(path: &str) -> bool {
    MAY_IMPORT.iter().any(|(room, ..)| *room == path)
}

/// Returns the row of the innermost room that contains a file.
fn room_of_file(path: &str) -> Option<&'static Row> {
    let path: Vec<String> = path.strip_prefix("src/")?.split('/').map(str::to_owned).collect();
    innermost(&path)
}

/// Returns the innermost room that contains `path`, which is relative to the root of the crate. If no room contains it,
/// returns its layer and the name that follows the layer.
fn room_of(path: &[String]) -> String {
    if let Some((room, ..)) = innermost(path) {
        return (*room).to_owned();
    }
    let is_layer = |length: &usize| LAYERS_OF_ROOMS.contains(&path[..*length].join("::").as_str());
    let layer = (1..=path.len()).find(is_layer).unwrap_or(1);
    path[..path.len().min(layer + 1)].join("::")
}

/// Returns the row whose room is the longest prefix of `path`.
fn innermost(path: &[String]) -> Option<&'static Row> {
    (1..=path.len()).rev().find_map(|length| {
        let name = path[..length].join("::");
        MAY_IMPORT.iter().find(|(room, ..)| *room == name)
    })
}
