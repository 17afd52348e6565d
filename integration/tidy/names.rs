//! The names in the code of one file: its definitions, its imports, and the paths in its code.
//!
//! In: code without comments and strings. Each function reads one file only.

use std::collections::BTreeSet;

use super::words;

/// One name that a `use` item imports.
pub(super) struct Import {
    /// Line number, counted from 1.
    pub line: usize,
    /// Path as written. It may begin with `crate`, `self`, `super` or a child module.
    pub path: Vec<String>,
    /// Name in this file, or `*` for all names.
    pub name: String,
    /// True for `pub use` with any visibility.
    pub is_re_export: bool,
}

/// Removes test code except for its line breaks. Also returns the names of test modules that are in separate files.
pub(super) fn without_tests(code: &str) -> (String, Vec<String>) {
    let mut kept = String::with_capacity(code.len());
    let mut modules = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find("#[cfg(test)]") {
        let (before, item) = rest.split_at(start);
        kept.push_str(before);
        let end = end_of_item(item);
        let (item, after) = item.split_at(end);
        if let Some(name) = item.strip_suffix(';').and_then(|item| item.split("mod ").nth(1)) {
            modules.push(name.trim().to_owned());
        }
        kept.extend(item.chars().filter(|c| *c == '\n'));
        rest = after;
    }
    kept.push_str(rest);
    (kept, modules)
}

/// Returns the offset at which an item that begins with an attribute ends: after its first `;` or `,`, after its
/// braces, or before the bracket that closes the code around the item.
fn end_of_item(item: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in item.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' if depth == 0 => return at,
            '}' if depth == 1 => return at + 1,
            '}' | ')' | ']' => depth -= 1,
            ';' | ',' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    item.len()
}

/// Returns the names of the items at the top level of a file.
pub(super) fn items(code: &str) -> BTreeSet<String> {
    let kinds = [
        "fn",
        "struct",
        "enum",
        "union",
        "trait",
        "type",
        "const",
        "static",
        "mod",
        "macro_rules",
    ];
    let mut items = BTreeSet::new();
    for line in code.lines().filter(|line| !line.starts_with(char::is_whitespace)) {
        let is_declaration = line.trim_end().ends_with(';') && words(line).any(|(word, _)| word == "mod");
        let mut words = words(line)
            .map(|(word, _)| word)
            .skip_while(|word| !kinds.contains(word));
        // In `const fn name`, the last keyword is before the name.
        let name = words.find(|word| !kinds.contains(word) && *word != "mut" && *word != "unsafe");
        if !is_declaration {
            items.extend(name.map(str::to_owned));
        }
    }
    items
}

/// Returns every name that the `use` items of a file import.
pub(super) fn imports(code: &str) -> Vec<Import> {
    let mut imports = Vec::new();
    for (start, end) in use_items(code) {
        let before = code[..start].trim_end();
        let is_re_export = before.ends_with("pub") || before.ends_with(')');
        let line = code[..start].matches('\n').count() + 1;
        leaves(&code[start + "use".len()..end], &[], &mut |offset, path, name| {
            let line = line + code[start + "use".len()..][..offset].matches('\n').count();
            imports.push(Import {
                line,
                path: path.to_vec(),
                name,
                is_re_export,
            });
        });
    }
    imports
}

/// Returns the offset of each `use` item and the offset of its `;`.
fn use_items(code: &str) -> Vec<(usize, usize)> {
    let mut items = Vec::new();
    for (word, start) in words(code) {
        let rest = &code[start..];
        // `impl X + use<'a>` is not a `use` item.
        if word == "use" && rest["use".len()..].starts_with(char::is_whitespace) {
            items.extend(rest.find(';').map(|end| (start, start + end)));
        }
    }
    items
}

/// Calls `found` for each name that `tree`, the text after `use`, imports. The arguments are the offset of the name,
/// its path, and its name in this file.
fn leaves(tree: &str, prefix: &[String], found: &mut dyn FnMut(usize, &[String], String)) {
    let mut path = prefix.to_vec();
    let mut renamed = None;
    let mut at = 0;
    let mut last = 0;
    while at < tree.len() {
        let rest = &tree[at..];
        if let Some(group) = rest.strip_prefix('{') {
            let end = closing(group);
            let mut start = 0;
            for part in top_level_parts(&group[..end]) {
                let offset = at + 1 + start;
                leaves(part, &path, &mut |inner, path, name| found(offset + inner, path, name));
                start += part.len() + 1;
            }
            return;
        }
        if rest.starts_with('*') {
            found(at, &path, "*".to_owned());
            return;
        }
        match words(rest).next() {
            Some((word, 0)) => {
                last = at;
                at += word.len();
                if word == "as" {
                    renamed = words(&tree[at..]).next().map(|(name, _)| name.to_owned());
                    break;
                }
                path.push(word.to_owned());
            }
            _ => at += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    if path.len() > prefix.len() {
        if path.last().is_some_and(|name| name == "self") {
            path.pop();
        }
        let name = renamed.or_else(|| path.last().cloned()).unwrap_or_default();
        found(last, &path, name);
    }
}

/// Returns the offset of the brace that closes a group. The text starts after the opening brace.
fn closing(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// Splits the text at the commas that are not in braces.
fn top_level_parts(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Returns the line and the segments of every path with at least two names, outside of `use` items.
pub(super) fn paths(code: &str) -> Vec<(usize, Vec<String>)> {
    let skipped = use_items(code);
    let mut paths: Vec<(usize, Vec<String>)> = Vec::new();
    let (mut line, mut counted) = (1, 0);
    let mut end_of_last = None;
    for (word, start) in words(code) {
        if skipped.iter().any(|(from, to)| (*from..*to).contains(&start)) {
            continue;
        }
        line += code[counted..start].matches('\n').count();
        counted = start;
        let before = &code[..start];
        let continues = before.strip_suffix("::").map(str::len);
        match (continues, end_of_last, paths.last_mut()) {
            (Some(end), Some(last), Some((_, path))) if end == last => path.push(word.to_owned()),
            // This function does not know the module of a name after `<T as Trait>::` or `::`.
            (Some(_), ..) => {}
            _ if before.ends_with('$') => {}
            // `pub(in crate::store)` is a visibility and uses nothing.
            _ if before.ends_with("pub(in ") => {}
            _ => paths.push((line, vec![word.to_owned()])),
        }
        end_of_last = Some(start + word.len());
    }
    paths.retain(|(_, path)| path.len() > 1);
    paths
}

/// Returns true if a name occurs outside of `use` items and of declarations of modules.
pub(super) fn is_mentioned(code: &str, name: &str) -> bool {
    let skipped = use_items(code);
    words(code).any(|(word, at)| {
        let is_declared = code[..at].trim_end().ends_with("mod");
        word == name && !is_declared && !skipped.iter().any(|(from, to)| (*from..*to).contains(&at))
    })
}
