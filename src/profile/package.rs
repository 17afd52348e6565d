//! The package that a frame belongs to, and the colour of a package.
//!
//! The package is the owner of the code. For Go, it is the import path of the symbol; for Rust, the crate; for Java,
//! the package of the class. For Python and JavaScript, it is the distribution of the module, or else the file. For
//! native code, it is the binary. The rules use the name and the type of the file, or the form of the symbol if there
//! is no file. The web page uses the same rules and the same [`hue`]. `integration/fixtures/packages.tsv` holds test
//! cases for both.

/// Returns the package of a frame, or an empty text if unknown. The result is a part of one of the arguments, or a
/// constant.
pub fn package<'a>(function: &'a str, file: &'a str, mapping: &'a str) -> &'a str {
    if is_kernel(mapping) {
        return "kernel";
    }
    let extension = base_name(file).rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension {
        "go" | "s" if has_go_form(function) => go(function),
        "rs" => rust(function, file, mapping),
        "java" | "kt" | "scala" | "groovy" | "clj" => java(function),
        "py" | "pyx" | "pyc" => python(file),
        "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" | "jsx" | "tsx" => javascript(file),
        "rb" => after(file, "/gems/").map_or(file, strip_version),
        "php" => after(file, "/vendor/").map_or(file, |rest| segments(rest, 2)),
        "cs" | "fs" | "vb" => dotnet(function),
        _ if file.starts_with("node:") => "node",
        _ if file.is_empty() || extension.is_empty() => by_form(function, mapping, file),
        _ if !mapping.is_empty() => base_name(mapping),
        _ => file,
    }
}

/// Returns the hue of a package in degrees, 0 to 359: 32-bit FNV-1a over its UTF-8 bytes, modulo 360.
pub fn hue(package: &str) -> u32 {
    let hash = package.bytes().fold(0x811c_9dc5u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    hash % 360
}

/// Returns true for packages that are drawn almost without colour: the kernel, language runtimes and standard
/// libraries.
pub fn is_runtime(package: &str) -> bool {
    const NAMES: [&str; 8] = [
        "kernel",
        "runtime",
        "internal/abi",
        "std",
        "core",
        "alloc",
        "java.lang",
        "[vdso]",
    ];
    const PREFIXES: [&str; 12] = [
        "runtime/",
        "internal/runtime/",
        "java.lang.",
        "java/lang",
        "jdk.",
        "jdk/",
        "sun.",
        "libc.",
        "libc-",
        "ld-linux",
        "libpthread",
        "libjvm",
    ];
    NAMES.contains(&package) || PREFIXES.iter().any(|prefix| package.starts_with(prefix))
}

fn is_kernel(mapping: &str) -> bool {
    matches!(
        mapping,
        "[kernel.kallsyms]" | "[kernel]" | "kernel" | "[guest.kernel.kallsyms]"
    ) || base_name(mapping).starts_with("vmlinux")
}

/// Returns the package of a symbol without a source file.
fn by_form<'a>(function: &'a str, mapping: &'a str, file: &'a str) -> &'a str {
    if function.contains("::") && !function.contains('(') {
        return rust(function, file, mapping);
    }
    if function.contains('!') {
        return dotnet(function);
    }
    let class = function.rsplit_once('.').map_or("", |(class, _)| class);
    let class = class.split('(').next().unwrap_or(class);
    let last = class.rsplit(['/', '.']).next().unwrap_or(class);
    if last != class && last.starts_with(|c: char| c.is_ascii_uppercase()) && !function.contains("(*") {
        return java(function);
    }
    if has_go_form(function) {
        return go(function);
    }
    match base_name(mapping) {
        "" => file,
        binary => binary,
    }
}

/// Returns true for `package.function`, but not for a C symbol with a suffix from the compiler.
fn has_go_form(function: &str) -> bool {
    const SUFFIXES: [&str; 7] = [".constprop", ".part.", ".isra", ".cold", ".lto_priv", ".llvm.", "@plt"];
    let dot = function.find('.').is_some_and(|dot| dot > 0);
    dot && !function.starts_with(['_', '<', '[']) && !SUFFIXES.iter().any(|suffix| function.contains(suffix))
}

/// Returns the symbol up to the first dot after the last slash of the import path. Type parameters and receivers are
/// cut off first, because they may also contain slashes and dots.
fn go(function: &str) -> &str {
    let path = function.split(['(', '[']).next().unwrap_or(function);
    let path = path.strip_prefix("type:.eq.").unwrap_or(path);
    let name = path.rfind('/').map_or(0, |slash| slash + 1);
    match path[name..].find('.') {
        Some(dot) => &path[..name + dot],
        None => path.trim_end_matches('.'),
    }
}

/// Returns the crate: the first segment of the path, also inside of `<Type as Trait>` and behind references. A name
/// without a path (as in debug information) belongs to the crate of its file, or else to the binary.
fn rust<'a>(function: &'a str, file: &'a str, mapping: &'a str) -> &'a str {
    let mut path = function;
    while let Some(rest) = ["<", "&", "*const ", "*mut ", "mut ", "dyn ", "impl ", "[", "(", "_<"]
        .iter()
        .find_map(|prefix| path.strip_prefix(prefix))
    {
        path = rest;
    }
    let end = path
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(path.len());
    if end > 0 && path[end..].starts_with("::") {
        return &path[..end];
    }
    if let Some(rest) = after(file, "/library/") {
        return segments(rest, 1);
    }
    if let Some((_, rest)) = after(file, "/registry/src/").and_then(|rest| rest.split_once('/')) {
        return strip_version(rest);
    }
    match (file.rfind("/src/"), base_name(mapping)) {
        (Some(end), _) => base_name(&file[..end]),
        (None, "") => file,
        (None, binary) => binary,
    }
}

/// Returns the part of `java/util/List.add` or `java.util.List.add(int)` before class and method.
fn java(function: &str) -> &str {
    let path = function.split('(').next().unwrap_or(function);
    let class = path.rsplit_once('.').map_or("", |(class, _)| class);
    class.rsplit_once(['.', '/']).map_or(class, |(package, _)| package)
}

/// Returns the top-level package or module of a file in `site-packages`, `dist-packages` or the standard library.
/// Returns `python` for a frozen module, and the path of the file for all other modules.
fn python(file: &str) -> &str {
    if let Some(rest) = after(file, "/site-packages/").or_else(|| after(file, "/dist-packages/")) {
        return module(rest);
    }
    match after(file, "/lib/python") {
        // The folder is `python3.12` or similar.
        Some(rest) => rest.split_once('/').map_or(file, |(_, rest)| module(rest)),
        None if file.starts_with("<frozen ") => "python",
        None => file,
    }
}

fn module(path: &str) -> &str {
    let first = segments(path, 1);
    first.strip_suffix(".py").unwrap_or(first)
}

fn javascript(file: &str) -> &str {
    match after(file, "/node_modules/").or_else(|| file.strip_prefix("node_modules/")) {
        Some(rest) => segments(rest, if rest.starts_with('@') { 2 } else { 1 }),
        None if file.starts_with("node:") => "node",
        None => file,
    }
}

/// Returns the assembly of `Assembly!Namespace.Class.Method`, or the namespace if no assembly is named.
fn dotnet(function: &str) -> &str {
    match function.split_once('!') {
        Some((assembly, _)) => assembly,
        None => java(function),
    }
}

/// Returns the part of `path` after the last `marker`.
fn after<'a>(path: &'a str, marker: &str) -> Option<&'a str> {
    path.rfind(marker).map(|start| &path[start + marker.len()..])
}

/// Returns the first `count` segments of `path`.
fn segments(path: &str, count: usize) -> &str {
    path.match_indices('/')
        .nth(count - 1)
        .map_or(path, |(slash, _)| &path[..slash])
}

/// Strips the version: `rails-7.1.2/lib/x.rb` becomes `rails`.
fn strip_version(path: &str) -> &str {
    let folder = segments(path, 1);
    match folder.rsplit_once('-') {
        Some((name, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => name,
        _ => folder,
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_and_hues_are_those_of_the_shared_cases() {
        let cases = include_str!("../../integration/fixtures/packages.tsv");
        let mut count = 0;
        for line in cases.lines().filter(|line| !line.starts_with('#')) {
            let [function, file, mapping, expected, expected_hue] = line.split('\t').collect::<Vec<_>>()[..] else {
                panic!("five columns: {line}");
            };
            let name = package(function, file, mapping);
            assert_eq!(
                (name, hue(name).to_string().as_str()),
                (expected, expected_hue),
                "{line}"
            );
            count += 1;
        }
        assert!(count > 30);
    }

    proptest::proptest! {
        #[test]
        fn any_names_have_a_package(
            function in ".*", file in ".*(\\.go|\\.rs|\\.java|\\.py|\\.js|\\.rb|\\.php|\\.cs)?", mapping in ".*",
        ) {
            proptest::prop_assert!(hue(package(&function, &file, &mapping)) < 360);
        }
    }
}
