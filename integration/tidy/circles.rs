//! No cycles between files, so that a reader can follow the dependencies from top to bottom.
//!
//! In: the sources under `src/` without their tests. Out: every set of files that depend on each other in a cycle, with
//! the lines that form it. The test resolves a path through re-exports to the file that defines the name. So a `mod.rs`
//! that only declares and re-exports is part of no cycle. The test does not see a dependency through types alone, such
//! as a call of a method on a value, if the code never names the type of the value.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{Import, imports, is_mentioned, items, paths, without_tests};
use super::{Source, is_test, rust_files};

/// Maximum number of re-exports through which a name is resolved.
const MOST_RE_EXPORTS: usize = 8;

#[test]
fn no_files_use_each_other_in_a_circle() {
    let circles = Tree::of(&rust_files()).circles();
    let told: String = circles.iter().map(ToString::to_string).collect();
    assert!(circles.is_empty(), "\n{told}");
}

/// A cycle: files that depend on each other, directly or through others.
struct Circle {
    files: BTreeSet<String>,
    /// `path:line` and text of every line in which one of the files uses another.
    ties: Vec<(String, String)>,
}

impl std::fmt::Display for Circle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(out, "{} files depend on each other in a cycle:", self.files.len())?;
        for (place, text) in &self.ties {
            writeln!(out, "  {place}\n      {text}")?;
        }
        Ok(())
    }
}

/// All modules of the library.
struct Tree<'a> {
    /// The modules by their path in the crate, such as `["store", "head"]`.
    modules: BTreeMap<Vec<String>, Module<'a>>,
}

/// A file with the names that occur in it.
struct Module<'a> {
    source: &'a Source,
    /// The code without its tests.
    code: String,
    /// Items defined at the top level.
    items: BTreeSet<String>,
    imports: Vec<Import>,
}

impl<'a> Tree<'a> {
    fn of(sources: &'a [Source]) -> Self {
        let mut modules = BTreeMap::new();
        let mut tests = BTreeSet::new();
        for source in sources {
            let Some(path) = module_path(&source.path) else {
                continue;
            };
            let (code, test_modules) = without_tests(&source.code);
            tests.extend(test_modules.into_iter().map(|name| child(&path, &name)));
            if is_test(&source.path) {
                continue;
            }
            let module = Module {
                source,
                items: items(&code),
                imports: imports(&code),
                code,
            };
            modules.insert(path, module);
        }
        modules.retain(|path, _| !tests.iter().any(|test| path.starts_with(test)));
        Self { modules }
    }

    fn circles(&self) -> Vec<Circle> {
        let uses: BTreeMap<&Vec<String>, _> = self.modules.keys().map(|path| (path, self.uses(path))).collect();
        let reach: BTreeMap<_, _> = uses.keys().map(|path| (*path, reachable(path, &uses))).collect();
        let mut circles = Vec::new();
        let mut seen = BTreeSet::new();
        for (path, reached) in &reach {
            if !reached.contains(*path) || !seen.insert(*path) {
                continue;
            }
            let members: BTreeSet<_> = reached.iter().filter(|other| reach[*other].contains(*path)).collect();
            seen.extend(members.iter().copied());
            let mut ties = Vec::new();
            for from in &members {
                let source = self.modules[**from].source;
                for (line, to) in &uses[**from] {
                    let place = format!("{}:{line}", source.path);
                    if members.contains(&to) && ties.last().is_none_or(|(last, _)| *last != place) {
                        ties.push((place, source.line(*line).trim().to_owned()));
                    }
                }
            }
            let files = members.iter().map(|path| self.modules[**path].source.path.clone());
            circles.push(Circle {
                files: files.collect(),
                ties,
            });
        }
        circles
    }

    /// Returns the lines of a module that use other modules, with those modules.
    fn uses(&self, from: &Vec<String>) -> BTreeSet<(usize, &Vec<String>)> {
        let module = &self.modules[from];
        let mut uses = BTreeSet::new();
        let mut add = |line: usize, path: &[String]| {
            let target = self.resolve(path, MOST_RE_EXPORTS);
            uses.extend(target.filter(|target| *target != from).map(|target| (line, target)));
        };
        for import in &module.imports {
            let Some(path) = self.absolute(from, &import.path) else {
                continue;
            };
            // An imported module counts as used in the lines in which its name occurs. A name that is only re-exported
            // does not count as used.
            let is_module = import.name != "*" && self.modules.contains_key(&path);
            let is_only_passed_on = import.is_re_export && !is_mentioned(&module.code, &import.name);
            if !is_module && !is_only_passed_on {
                add(import.line, &path);
            }
        }
        for (line, path) in paths(&module.code) {
            // If the path begins with an imported item (`Imported::new`), the line of its `use` already counts.
            let mut own = module.imports.iter().filter(|import| import.name == path[0]);
            let is_imported_item = own.any(|import| {
                let target = self.absolute(from, &import.path);
                target.is_some_and(|target| !self.modules.contains_key(&target))
            });
            if let Some(path) = self.absolute(from, &path).filter(|_| !is_imported_item) {
                add(line, &path);
            }
        }
        uses
    }

    /// Converts a path in a module to a path from the crate. Returns `None` for a path to another crate.
    fn absolute(&self, from: &[String], path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let mut whole = match first.as_str() {
            "crate" => Vec::new(),
            "self" => from.to_vec(),
            "super" => from.split_last()?.1.to_vec(),
            name => {
                let below = child(from, name);
                if self.modules.contains_key(&below) {
                    below
                } else {
                    let module = self.modules.get(from)?;
                    let import = module.imports.iter().find(|import| import.name == name)?;
                    // `use name::x as name` would resolve to itself.
                    if import.path.first() == Some(first) {
                        return None;
                    }
                    self.absolute(from, &import.path)?
                }
            }
        };
        for name in rest {
            match name.as_str() {
                "self" => {}
                "super" => _ = whole.pop(),
                _ => whole.push(name.clone()),
            }
        }
        Some(whole)
    }

    /// Returns the module that defines the item of a path from the crate.
    fn resolve(&self, path: &[String], re_exports: usize) -> Option<&Vec<String>> {
        let depth = (0..=path.len())
            .rev()
            .find(|depth| self.modules.contains_key(&path[..*depth]))?;
        let (at, module) = self.modules.get_key_value(&path[..depth])?;
        let Some((name, rest)) = path[depth..].split_first() else {
            return Some(at);
        };
        if module.items.contains(name) || re_exports == 0 {
            return Some(at);
        }
        for import in module
            .imports
            .iter()
            .filter(|import| import.name == *name || import.name == "*")
        {
            let Some(mut target) = self.absolute(at, &import.path) else {
                continue;
            };
            if import.name == "*" {
                target.push(name.clone());
                if !self.defines(&target) {
                    continue;
                }
            }
            target.extend(rest.iter().cloned());
            if let Some(found) = self.resolve(&target, re_exports - 1) {
                return Some(found);
            }
        }
        Some(at)
    }

    /// Returns true if the module of a path defines or imports the last name of the path.
    fn defines(&self, path: &[String]) -> bool {
        let Some((name, module)) = path.split_last() else {
            return false;
        };
        self.modules.get(module).is_some_and(|module| {
            module.items.contains(name) || module.imports.iter().any(|import| import.name == *name)
        })
    }
}

/// Returns all modules that a module uses, directly or through others.
fn reachable<'p>(
    from: &Vec<String>,
    uses: &BTreeMap<&'p Vec<String>, BTreeSet<(usize, &'p Vec<String>)>>,
) -> BTreeSet<&'p Vec<String>> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(path) = waiting.pop() {
        for (_, target) in &uses[path] {
            if reached.insert(*target) {
                waiting.push(target);
            }
        }
    }
    reached
}

/// Returns the module of a file: `store::head` for `src/store/head/mod.rs`, and `lang` for `src/lang/lib.rs`. `main.rs`
/// has no module that others use.
fn module_path(path: &str) -> Option<Vec<String>> {
    let rest = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    let rest = rest.strip_suffix("/mod").or(rest.strip_suffix("/lib")).unwrap_or(rest);
    match rest {
        "main" => None,
        "lib" => Some(Vec::new()),
        _ => Some(rest.split('/').map(str::to_owned).collect()),
    }
}

fn child(path: &[String], name: &str) -> Vec<String> {
    let mut below = path.to_vec();
    below.push(name.to_owned());
    below
}

#[test]
fn a_circle_is_found_through_re_exports_and_told_with_its_lines() {
    let files = [
        ("src/lib.rs", "pub mod a;\n"),
        (
            "src/a/mod.rs",
            "mod one;\nmod two;\nmod three;\npub use one::One;\npub use two::{Two as Second, two};\n",
        ),
        (
            "src/a/one.rs",
            "use crate::a::{\n    Second,\n};\npub struct One(Second);\n",
        ),
        (
            "src/a/two.rs",
            "use super::three;\npub struct Two;\npub fn two() { three::go() }\n",
        ),
        (
            "src/a/three.rs",
            "pub fn go() { let one = crate::a::One; }\n#[cfg(test)]\nmod tests {\n    use crate::a::two;\n}\n",
        ),
    ];
    let circles = circles_of(&files);
    assert_eq!(circles.len(), 1);
    let places: Vec<&str> = circles[0].ties.iter().map(|(place, _)| place.as_str()).collect();
    assert_eq!(places, ["src/a/one.rs:2", "src/a/three.rs:1", "src/a/two.rs:3"]);
    let files: Vec<&str> = circles[0].files.iter().map(String::as_str).collect();
    assert_eq!(files, ["src/a/one.rs", "src/a/three.rs", "src/a/two.rs"]);
}

#[test]
fn a_folder_that_only_re_exports_and_a_use_in_tests_are_no_circle() {
    let files = [
        (
            "src/a/mod.rs",
            "mod one;\nmod two;\npub use one::One;\npub use two::*;\n",
        ),
        ("src/a/one.rs", "use crate::a::Two;\npub struct One(Two);\n"),
        (
            "src/a/two.rs",
            "pub struct Two;\n#[cfg(test)]\nmod tests {\n    use crate::a::One;\n}\n",
        ),
    ];
    assert!(circles_of(&files).is_empty());
}

#[test]
fn who_takes_all_names_of_a_file_and_a_folder_with_code_of_its_own_can_be_in_a_circle() {
    let files = [
        ("src/a/one.rs", "use super::two::*;\npub struct One(Two);\n"),
        (
            "src/a/two.rs",
            "pub struct Two;\nfn up() -> super::one::One { todo!() }\n",
        ),
    ];
    assert_eq!(circles_of(&files).len(), 1);
    let files = [
        ("src/a/mod.rs", "mod one;\nuse one::One;\npub struct All(One);\n"),
        (
            "src/a/one.rs",
            "pub struct One;\nimpl One { fn up(&self) -> super::All { todo!() } }\n",
        ),
    ];
    assert_eq!(circles_of(&files).len(), 1);
}

fn circles_of(files: &[(&str, &str)]) -> Vec<Circle> {
    let source = |(path, text): &(&str, &str)| Source {
        path: (*path).to_owned(),
        text: (*text).to_owned(),
        code: super::without_comments_and_strings(text),
    };
    let sources: Vec<Source> = files.iter().map(source).collect();
    Tree::of(&sources).circles()
}
