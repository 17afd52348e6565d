//! The rules for the repository, as data, and the tests that check whether its files obey them.
//!
//! In: every file that git does not ignore. Out: the lines that break a rule, with the rule. The rules say which layer
//! may import which, which files may name an external crate, how a file begins and is laid out, and what must never be
//! committed. They do not judge style: rustfmt and clippy do.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

mod circles;
mod crates;
mod form;
mod names;
mod phrases;
mod ports;
mod rooms;

use names::without_tests;

/// A layer, which is a folder directly under `src/`, and the layers that it may import. The rows are in the order of
/// the data flow: a layer imports only layers of earlier rows, and a layer with `*` may import any layer. Most layers
/// are crates. Such a crate may depend only on the layers of its row.
const MAY_IMPORT: [(&str, &[&str]); 18] = [
    ("base", &[]),
    ("telemetry", &["base"]),
    ("cluster", &["base", "telemetry"]),
    ("lang", &["base", "telemetry"]),
    ("profile", &["base", "telemetry"]),
    ("testing", &["profile"]),
    ("pipeline", &["base", "telemetry", "cluster", "lang", "profile"]),
    ("unwind", &["base", "telemetry", "profile"]),
    ("symbols", &["base", "telemetry", "profile"]),
    ("ebpf", &["base", "telemetry", "profile", "unwind", "symbols"]),
    ("wire", &["base", "telemetry", "profile"]),
    ("store", &["base", "telemetry", "profile"]),
    ("admin", &["base", "telemetry", "profile"]),
    (
        "components",
        &[
            "base",
            "telemetry",
            "cluster",
            "lang",
            "profile",
            "pipeline",
            "unwind",
            "symbols",
            "ebpf",
            "wire",
            "admin",
        ],
    ),
    ("query", &["base", "telemetry", "profile", "store"]),
    (
        "server",
        &["base", "telemetry", "profile", "wire", "store", "query", "admin"],
    ),
    ("app", &["*"]),
    ("cli", &["*"]),
];

/// An external crate, the only folders and files that may name it, and the reason.
const AT_HOME: [(&str, &[&str], &str); 30] = [
    ("seccompiler", &["src/app/fence.rs"], "one file drops privileges"),
    (
        "hickory_resolver",
        &["src/base/dns.rs", "src/components/discovery/dns/"],
        "one file does DNS lookups, and one component shows complete DNS responses",
    ),
    (
        "foca",
        &["src/cluster/"],
        "one layer implements how members find each other",
    ),
    (
        "self_cell",
        &["src/profile/decoded.rs"],
        "one type holds columns together with their buffer",
    ),
    (
        "pgwire",
        &["src/server/postgres/"],
        "one module handles the messages of PostgreSQL",
    ),
    (
        "tonic",
        &["src/admin/grpc.rs"],
        "one file builds the gRPC responses of server and collector",
    ),
    (
        "tonic_web",
        &["src/admin/grpc.rs"],
        "one file builds the gRPC responses of server and collector",
    ),
    (
        "opentelemetry_proto",
        &["src/wire/otlp/messages.rs"],
        "one file says which messages of the crate are used",
    ),
    (
        "datafusion_pg_catalog",
        &["src/query/"],
        "one layer uses the query engine",
    ),
    ("datafusion", &["src/query/"], "one layer uses the query engine"),
    ("parquet", &["src/store/"], "one layer handles the files of the tables"),
    ("delta_kernel", &["src/store/"], "one layer handles the tables"),
    (
        "delta_kernel_default_engine",
        &["src/store/"],
        "one layer handles the tables",
    ),
    (
        "object_store",
        &["src/store/", "src/query/"],
        "only the tables use object stores",
    ),
    (
        "arrow",
        &["src/store/", "src/query/"],
        "no layer above the query layer handles Arrow columns",
    ),
    (
        "axum",
        &["src/server/", "src/admin/", "src/components/", "src/app/"],
        "lower layers do not depend on an HTTP server",
    ),
    (
        "axum_core",
        &["src/wire/connect/response.rs"],
        "one file converts an error to a response of the HTTP server",
    ),
    (
        "hyper",
        &["src/admin/"],
        "hyper-util serves connections, and the listener watches them",
    ),
    (
        "reqwest",
        &["src/wire/", "src/components/", "src/cli/sql/"],
        "the client of the wire layer sends all requests",
    ),
    ("quick_cache", &["src/query/resources/cache.rs"], "there is one cache"),
    (
        "clap",
        &["src/cli/", "src/app/storage/", "src/app/disk.rs"],
        "one place reads flags; those of storage and disk are also keys of the configuration file",
    ),
    ("clap_complete", &["src/cli/"], "flags are read in one place"),
    ("clap_mangen", &["src/cli/"], "flags are read in one place"),
    ("rustyline", &["src/cli/"], "only a command talks to a terminal"),
    ("indicatif", &["src/cli/"], "only a command talks to a terminal"),
    ("ratatui", &["src/cli/readers/tui/"], "one command draws on a terminal"),
    (
        "anyhow",
        &["src/app/", "src/cli/"],
        "libraries return errors that a caller can act on",
    ),
    (
        "pyroscope",
        &["src/admin/profiling/"],
        "one folder profiles the program itself",
    ),
    (
        "jemalloc_pprof",
        &["src/admin/profiling/"],
        "one folder profiles the program itself",
    ),
    (
        "tracing_subscriber",
        &["src/telemetry/"],
        "logs are set up in one place",
    ),
];

/// Folders that may not name `serde`: a serializable type is a promise to other programs. The profile in memory and the
/// syntax tree of the language must not make such a promise.
const NO_SERDE: [&str; 2] = ["src/profile/", "src/lang/"];

/// The only files and folders that may contain `cfg(feature = ...)`. Elsewhere, a feature must not change the behaviour
/// of the program.
const FEATURES_AT: [&str; 4] = ["src/lib.rs", "src/app/", "src/cli/", "integration/"];

/// Generated sources: the generator decides their form, and a test compares them with its output.
const GENERATED: [&str; 1] = ["src/wire/proto/"];

/// Paths and addresses of one machine, which must not be committed. The texts are split, so that the test does not
/// report this file.
const MACHINE: [&str; 4] = [
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/wo", "rk/"),
    concat!("\"resol", "ved\": \"http"),
];

/// Extensions of the text files in which the test searches for [`MACHINE`].
const TEXT: [&str; 20] = [
    "rs", "toml", "lock", "md", "json", "yaml", "yml", "sh", "ts", "tsx", "css", "html", "mjs", "js", "proto", "river",
    "alloy", "txt", "txtar", "slt",
];

#[test]
fn no_layer_imports_up_or_sideways() {
    let mut found = Findings::default();
    for file in rust_files() {
        let Some(layer) = layer_of(&file.path) else { continue };
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(name, _)| *name == layer) else {
            found.add(
                &file.path,
                1,
                "a new folder under src/ needs a row in MAY_IMPORT",
                &layer,
            );
            continue;
        };
        for (line, import) in crate_paths(&file.code) {
            if import != layer && !allowed.contains(&"*") && !allowed.contains(&import.as_str()) {
                let rule = format!("`{layer}` may not import `{import}`");
                found.add(&file.path, line, &rule, file.line(line));
            }
        }
        if layer == "components" {
            sideways(&file, &mut found);
        }
    }
    found.none();
}

#[test]
fn names_outside_a_module_are_reached_from_the_crate() {
    let mut found = Findings::default();
    for file in rust_files() {
        for (at, line) in file.code.lines().enumerate() {
            if line.contains(concat!("super::", "super")) {
                found.add(&file.path, at + 1, "use `crate::` instead of two `super::`", line);
            }
        }
        // In `src/x/mod.rs`, `super` outside an inner module is the crate root. An import by `super::` would escape the
        // check of `MAY_IMPORT`, which reads only paths that begin with `crate::`.
        let is_top = file.path.strip_prefix("src/").is_some_and(|rest| {
            let is_folder = |folder: &str| {
                let path = folder.replace('/', "::");
                !folder.contains('/') || rooms::is_room(&path)
            };
            rest.strip_suffix("/mod.rs")
                .or(rest.strip_suffix("/lib.rs"))
                .is_some_and(is_folder)
                || !rest.contains('/')
        });
        if is_top {
            for (at, line) in file.code.lines().enumerate() {
                let outside = !line.starts_with(char::is_whitespace);
                if outside && words(line).any(|(word, _)| word == "super") {
                    found.add(
                        &file.path,
                        at + 1,
                        "use `crate::` and not `super::` in the first file of a layer or room (`rooms.rs`)",
                        line,
                    );
                }
            }
        }
    }
    found.none();
}

#[test]
fn outside_crates_stay_at_home() {
    let mut found = Findings::default();
    let homes = AT_HOME
        .iter()
        .flat_map(|(name, homes, _)| homes.iter().map(move |home| (*name, *home)));
    let mut empty: BTreeSet<(&str, &str)> = homes.collect();
    // Tests are excluded: in any layer, a test may run fake servers and read files as another program would.
    for file in rust_files().iter().filter(|file| !is_test(&file.path)) {
        let code = without_tests(&file.code).0;
        for (name, homes, reason) in AT_HOME {
            let lines = outside_uses(&code, name);
            if let Some(home) = homes.iter().find(|home| file.path.starts_with(**home)) {
                if !lines.is_empty() {
                    empty.remove(&(name, *home));
                }
                continue;
            }
            for line in lines {
                let rule = format!("only {homes:?} may name `{name}`: {reason}");
                found.add(&file.path, line, &rule, file.line(line));
            }
        }
        if NO_SERDE.iter().any(|home| file.path.starts_with(home)) {
            for line in outside_uses(&code, "serde") {
                let rule = "a serializable type is a promise to other programs: define it in another layer";
                found.add(&file.path, line, rule, file.line(line));
            }
        }
    }
    for (name, home) in empty {
        let rule = format!("nothing there names `{name}`: remove the place from AT_HOME");
        found.add(home, 1, &rule, "");
    }
    found.none();
}

#[test]
fn features_are_asked_for_in_few_places() {
    let mut found = Findings::default();
    for file in rust_files() {
        if FEATURES_AT.iter().any(|place| file.path.starts_with(place)) {
            continue;
        }
        for (at, line) in file.code.lines().enumerate() {
            if line.contains("cfg") && line.contains("feature =") {
                found.add(&file.path, at + 1, "`cfg(feature)` only in lib.rs, app and cli", line);
            }
        }
    }
    found.none();
}

#[test]
fn every_source_file_says_what_it_owns_in_ascii() {
    let mut found = Findings::default();
    for file in rust_files() {
        if GENERATED.iter().any(|folder| file.path.starts_with(folder)) {
            continue;
        }
        let header = file.text.lines().take_while(|line| line.starts_with("//!")).count();
        if header == 0 {
            found.add(
                &file.path,
                1,
                "a file begins with `//!`: what it owns, its input and output, what it does not do",
                file.line(1),
            );
        }
        for (at, line) in file.text.lines().enumerate() {
            if !line.is_ascii() {
                found.add(
                    &file.path,
                    at + 1,
                    "sources are ASCII: write the character as an escape",
                    line,
                );
            }
        }
    }
    found.none();
}

#[test]
fn nothing_of_one_machine_is_committed() {
    let mut found = Findings::default();
    for path in tracked_files() {
        let extension = path.rsplit('.').next().unwrap_or("");
        let name = path.rsplit('/').next().unwrap_or("");
        if !TEXT.contains(&extension) && !["Makefile", "run", "LICENSE"].contains(&name) {
            continue;
        }
        let Ok(text) = std::fs::read_to_string(root().join(&path)) else {
            continue;
        };
        for (at, line) in text.lines().enumerate() {
            for word in MACHINE {
                if line.contains(word) {
                    found.add(&path, at + 1, "a path or address of one machine", line);
                }
            }
        }
    }
    found.none();
}

#[test]
fn file_names_are_plain() {
    let mut found = Findings::default();
    for path in tracked_files() {
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-@+".contains(c);
        if !path.chars().all(plain) {
            found.add(&path, 1, "file names are ASCII letters, digits and `. _ - @ +`", "");
        }
        if path.ends_with(".rs") && path.chars().any(|c| c.is_ascii_uppercase() || c == '-') {
            found.add(&path, 1, "Rust files are named in snake_case", "");
        }
    }
    found.none();
}

/// Finds imports of one component by another. Components interact only through the engine.
fn sideways(file: &Source, found: &mut Findings) {
    let Some(own) = component_of(&file.path) else { return };
    for (line, path) in component_paths(&file.code) {
        // `components::common` and the `common` folder of a family contain shared code.
        if path[0] == "common" || path.len() < 2 || path[1] == "common" {
            continue;
        }
        if path[..2] != own[..] {
            let rule = format!(
                "component `{}` may not import component `{}`",
                own.join("."),
                path[..2].join(".")
            );
            found.add(&file.path, line, &rule, file.line(line));
        }
    }
}

/// Returns the component that a file belongs to: `pyroscope.scrape` for `src/components/pyroscope/scrape/x.rs`. Files
/// directly in `src/components/`, the shared folders and the `mod.rs` of a family belong to no component.
fn component_of(path: &str) -> Option<Vec<String>> {
    let rest = path.strip_prefix("src/components/")?.strip_suffix(".rs")?;
    let parts: Vec<&str> = rest.split('/').collect();
    match parts.as_slice() {
        [_] | [_, "mod"] | ["common", ..] | [_, "common", ..] => None,
        [family, name, ..] => Some(vec![(*family).to_owned(), (*name).to_owned()]),
        [] => None,
    }
}

/// Returns line and path (family, name, ...) of every `crate::components::family::name`.
fn component_paths(code: &str) -> Vec<(usize, Vec<String>)> {
    let prefix = "crate::components::";
    let mut paths = Vec::new();
    for (at, line) in code.lines().enumerate() {
        for (from, _) in line.match_indices(prefix) {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
            let rest = &line[from + prefix.len()..];
            let path = rest.split(|c| !is_name(c)).next().unwrap_or("");
            let path: Vec<_> = path
                .split("::")
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect();
            if !path.is_empty() {
                paths.push((at + 1, path));
            }
        }
    }
    paths
}

/// Returns the folder under `src/` that contains a file, or the name of a file directly under `src/`. `lib.rs` and
/// `main.rs` belong to no layer.
fn layer_of(path: &str) -> Option<String> {
    let rest = path.strip_prefix("src/")?;
    let layer = rest.split('/').next()?;
    match layer {
        "lib.rs" | "main.rs" => None,
        _ => Some(layer.trim_end_matches(".rs").to_owned()),
    }
}

fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs")
        || path.contains("/tests/")
        || path.starts_with("integration/")
        || path.starts_with("benches/")
        || path.starts_with("src/testing/")
}

/// Returns line and first segment of every path that begins with `crate::`, also in groups in braces.
fn crate_paths(code: &str) -> Vec<(usize, String)> {
    let prefix = "crate::";
    let mut found = Vec::new();
    for (at, _) in code.match_indices(prefix) {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$' || c == ':') {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        let rest = &code[at + prefix.len()..];
        if let Some(group) = rest.strip_prefix('{') {
            for (offset, name) in group_heads(group) {
                found.push((line + group[..offset].matches('\n').count(), name));
            }
        } else {
            found.push((line, first_word(rest)));
        }
    }
    found
}

/// Returns offset and first segment of every path in a `{...}` group. The text starts after the opening brace.
fn group_heads(group: &str) -> Vec<(usize, String)> {
    let mut heads = Vec::new();
    let (mut depth, mut fresh) = (0, true);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if fresh && (c.is_ascii_alphabetic() || c == '_') => {
                heads.push((at, first_word(&group[at..])));
                fresh = false;
            }
            _ => {}
        }
    }
    heads
}

fn first_word(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect()
}

/// Returns the words of a line with their offsets.
fn words(line: &str) -> impl Iterator<Item = (&str, usize)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + line[at..].find(is_word)?;
        let end = line[start..]
            .find(|c| !is_word(c))
            .map_or(line.len(), |len| start + len);
        at = end;
        Some((&line[start..end], start))
    })
}

/// Returns the lines that name an external crate: `name::`, `use name;`, `use name as`.
fn outside_uses(code: &str, name: &str) -> BTreeSet<usize> {
    let mut lines = BTreeSet::new();
    for (at, line) in code.lines().enumerate() {
        for (word, start) in words(line) {
            if word != name {
                continue;
            }
            let (before, after) = (&line[..start], &line[start + word.len()..]);
            let starts_path = !before.trim_end().ends_with("::") || before.trim_end() == "::";
            let used = after.starts_with("::") || before.trim_end().ends_with("use");
            if starts_path && used {
                lines.insert(at + 1);
            }
        }
    }
    lines
}

struct Source {
    /// Path relative to the root, with slashes.
    path: String,
    text: String,
    /// The text with the same lines, but blanks for comments and for the contents of strings.
    code: String,
}

impl Source {
    fn line(&self, number: usize) -> &str {
        self.text.lines().nth(number - 1).unwrap_or("")
    }
}

/// Replaces comments and literals of strings and characters by blanks. Keeps every line break.
fn without_comments_and_strings(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let blank = |out: &mut Vec<u8>, part: &[u8]| out.extend(part.iter().map(|&b| if b == b'\n' { b } else { b' ' }));
    while at < bytes.len() {
        let (Piece::Comment(len) | Piece::Literal(len)) = piece(bytes, at) else {
            out.push(bytes[at]);
            at += 1;
            continue;
        };
        blank(&mut out, &bytes[at..at + len]);
        at += len;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The kind of text at an offset of a source, with its length.
enum Piece {
    Comment(usize),
    /// A string or a character.
    Literal(usize),
    Code,
}

fn piece(bytes: &[u8], at: usize) -> Piece {
    let rest = &bytes[at..];
    if rest.starts_with(b"//") {
        Piece::Comment(rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()))
    } else if rest.starts_with(b"/*") {
        Piece::Comment(block_comment(rest))
    } else if let Some(len) = raw_string(rest, at.checked_sub(1).map(|before| bytes[before])) {
        Piece::Literal(len)
    } else if rest[0] == b'"' {
        Piece::Literal(quoted(rest))
    } else {
        character(rest).map_or(Piece::Code, Piece::Literal)
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// Returns the length of `r"..."` or `r#"..."#`, and `None` for other text. The length does not include a `b` or `c`
/// before it.
fn raw_string(rest: &[u8], before: Option<u8>) -> Option<usize> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if rest[0] != b'r' || before.is_some_and(|b| word(b) && b != b'b' && b != b'c') {
        return None;
    }
    let hashes = rest[1..].iter().take_while(|&&b| b == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.extend(std::iter::repeat_n(b'#', hashes));
    let body = &rest[2 + hashes..];
    let close = body.windows(end.len()).position(|window| window == end)?;
    Some(2 + hashes + close + end.len())
}

fn quoted(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// Returns the length of a character literal, and `None` for a lifetime or other text.
fn character(rest: &[u8]) -> Option<usize> {
    if rest[0] != b'\'' {
        return None;
    }
    if rest.get(1) == Some(&b'\\') {
        let close = rest.iter().skip(3).position(|&b| b == b'\'')?;
        return Some(close + 4);
    }
    let close = rest.iter().skip(2).take(4).position(|&b| b == b'\'')? + 2;
    let one = std::str::from_utf8(&rest[1..close]).is_ok_and(|text| text.chars().count() == 1);
    one.then_some(close + 1)
}

/// Returns every Rust file among [`tracked_files`].
fn rust_files() -> Vec<Source> {
    let paths = tracked_files().into_iter().filter(|path| path.ends_with(".rs"));
    let read = |path: String| {
        let text = std::fs::read_to_string(root().join(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
        let code = crates::as_one_crate(&path, &without_comments_and_strings(&text));
        Source { path, text, code }
    };
    paths.map(read).collect()
}

/// Returns all files except those that git ignores; without git, all files but build output.
pub(crate) fn tracked_files() -> Vec<String> {
    let git = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let mut files: Vec<String> = match git {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.split('\0')
                .filter(|path| !path.is_empty())
                .map(str::to_owned)
                .collect()
        }
        _ => {
            let mut files = Vec::new();
            walk(&root(), &mut files);
            files
        }
    };
    // The list excludes files that are removed, but whose removal is not committed yet.
    files.retain(|path| root().join(path).is_file());
    files.sort();
    files.dedup();
    assert!(files.iter().any(|path| path == "src/lib.rs"), "no sources found");
    files
}

fn walk(folder: &Path, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_file() {
            files.push(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
        } else if !["target", "node_modules", ".git", "alluvium-data"].contains(&&*name.to_string_lossy()) {
            walk(&path, files);
        }
    }
}

/// The root of the package.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Lines that break rules. A test collects all such lines and reports them together.
#[derive(Default)]
pub(crate) struct Findings(String);

impl Findings {
    pub(crate) fn add(&mut self, path: &str, line: usize, rule: &str, text: &str) {
        let _ = writeln!(self.0, "{path}:{line}: {rule}\n    {}", text.trim());
    }

    pub(crate) fn none(self) {
        assert!(self.0.is_empty(), "\n{}", self.0);
    }
}

#[test]
fn the_scanner_sees_through_comments_strings_and_groups() {
    let code = without_comments_and_strings(
        "// crate::a\nuse crate::{b::{x, y}, c,\n  d::z};\nlet s = \"crate::e\"; /* crate::f /* g */ */ fn f<'a>(x: \
         &'a str) { crate::h::i() }\n\
         let r = r#\"crate::j \" \"#; let c = '\"'; crate::k; let b = b\"\\\"crate::l\"; '\\''; $crate::m; crate::n",
    );
    let found: Vec<(usize, String)> = crate_paths(&code);
    let expected = [(2, "b"), (2, "c"), (3, "d"), (4, "h"), (5, "k"), (5, "n")];
    let expected: Vec<_> = expected
        .iter()
        .map(|(line, name)| (*line, (*name).to_owned()))
        .collect();
    assert_eq!(found, expected, "{code}");
}

#[test]
fn the_scanner_tells_an_outside_crate_from_a_path_that_ends_so() {
    let uses = |code: &str| outside_uses(code, "arrow").into_iter().collect::<Vec<_>>();
    assert_eq!(
        uses("use arrow::array;\nuse crate::arrow::x;\nlet arrow = 1;\nfn f(a: arrow::T)"),
        [1, 4]
    );
    assert_eq!(uses("use arrow as a;\narrow_schema::x;\n::arrow::y\nx.arrow()"), [1, 3]);
}

#[test]
fn the_scanner_knows_which_component_a_file_is_of() {
    let of = |path: &str| component_of(path).map(|parts| parts.join("."));
    assert_eq!(
        of("src/components/pyroscope/scrape/delta.rs").as_deref(),
        Some("pyroscope.scrape")
    );
    assert_eq!(
        of("src/components/discovery/file.rs").as_deref(),
        Some("discovery.file")
    );
    assert_eq!(of("src/components/mod.rs"), None);
    assert_eq!(of("src/components/common/arguments/targets.rs"), None);
    assert_eq!(of("src/components/discovery/mod.rs"), None);
    let paths = component_paths("use crate::components::discovery::file::X;\nuse crate::components::common;");
    assert_eq!(paths[0], (1, vec!["discovery".to_owned(), "file".into(), "X".into()]));
    assert_eq!(paths[1], (2, vec!["common".to_owned()]));
}
