//! Paths of source files as `go tool pprof` reads them: shortened, and without the part that belongs to another
//! machine.

use std::borrow::Cow;

/// Prefixes that some build systems put before every path.
const COMMON_PREFIXES: [&str; 2] = ["/proc/self/cwd/./", "/proc/self/cwd/"];

/// The folders in which source files are searched, and the prefixes that are removed from their paths before the
/// search. Both are lists with colons as separators.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourcePaths {
    /// Folders in which files are searched.
    pub search: String,
    /// Prefixes that are removed from paths.
    pub trim: String,
}

impl SourcePaths {
    /// Returns a path of the profile without the part that belongs to another machine. If no prefixes are given, this
    /// part ends with the name of a searched folder: if `~/shop` is searched, `/build/shop/cart/add.go` becomes
    /// `cart/add.go`.
    pub fn trimmed<'p>(&self, path: &'p str) -> &'p str {
        if self.trim.is_empty() {
            for folder in folders(&self.search) {
                let name = if folder.is_empty() { "." } else { base_name(folder) };
                let infix = format!("/{name}/");
                if let Some(start) = path.find(&infix) {
                    return &path[start + infix.len()..];
                }
            }
        }
        let strip = |prefix: &str| {
            let rest = path.strip_prefix(prefix)?;
            if prefix.ends_with('/') {
                Some(rest)
            } else {
                rest.strip_prefix('/')
            }
        };
        let mut prefixes = folders(&self.trim).chain(COMMON_PREFIXES);
        prefixes.find_map(strip).unwrap_or(path)
    }
}

/// Splits a list of paths. An empty list has no parts.
pub fn folders(list: &str) -> impl Iterator<Item = &str> {
    list.split(':').filter(|_| !list.is_empty())
}

/// Returns the shortest equivalent path, like Go's `path.Clean`.
pub fn clean(path: &str) -> Cow<'_, str> {
    let is_rooted = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match (part, parts.last()) {
            ("" | ".", _) => {}
            ("..", Some(last)) if *last != ".." => {
                parts.pop();
            }
            ("..", _) if is_rooted => {}
            (part, _) => parts.push(part),
        }
    }
    let mut cleaned = parts.join("/");
    if is_rooted {
        cleaned.insert(0, '/');
    } else if cleaned.is_empty() {
        cleaned.push('.');
    }
    if cleaned == path {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(cleaned)
    }
}

/// Returns the last part of a path.
pub(super) fn base_name(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_short_as_in_go() {
        for (path, expected) in [
            ("/a/b.go", "/a/b.go"),
            ("a//b/./c.go", "a/b/c.go"),
            ("/a/../../b", "/b"),
            ("../a/../b", "../b"),
            ("./", "."),
            ("a/..", "."),
        ] {
            assert_eq!(clean(path), expected, "{path}");
        }
        assert_eq!(
            [base_name("/bin/sh"), base_name("[vdso]"), base_name("/")],
            ["sh", "[vdso]", "/"]
        );
    }

    #[test]
    fn what_belongs_to_another_machine_is_taken_off() {
        for (search, trim, path, expected) in [
            ("", "", "/proc/self/cwd/./a.c", "a.c"),
            ("", "", "/build/shop/a.c", "/build/shop/a.c"),
            ("/here/shop", "", "/build/shop/cart/a.c", "cart/a.c"),
            ("/here/shop/", "", "/build/shopping/a.c", "/build/shopping/a.c"),
            ("/here/shop", "/build", "/build/shop/a.c", "shop/a.c"),
            ("", "/other:/build/", "/build/a.c", "a.c"),
            ("", "/build", "/building/a.c", "/building/a.c"),
        ] {
            let paths = SourcePaths {
                search: search.to_owned(),
                trim: trim.to_owned(),
            };
            assert_eq!(paths.trimmed(path), expected, "{search} {trim} {path}");
        }
    }
}
