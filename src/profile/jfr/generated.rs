//! Normalises names of generated classes and unpacked libraries. These names differ in every process. Without this
//! step, the same frame would have different names in different processes.
//!
//! In: a symbol. Out: the symbol with `_` in place of numbers, addresses and hashes, as in Pyroscope.

use std::borrow::Cow;

/// The hash in the name of the library that Pyroscope's agent unpacks, in the only version for which Pyroscope
/// normalises frames.
const AGENT_LIBRARY: &str = "17b9a1d8156277a98ccc871afa9a8f69215f92";

/// Returns the symbol without the parts that differ between processes.
pub(super) fn stable_name(symbol: &str) -> Cow<'_, str> {
    if let Some(library) = library(symbol) {
        return Cow::Borrowed(library);
    }
    match class(symbol) {
        Some(known) => Cow::Owned(format!("{known}_")),
        None => Cow::Borrowed(symbol),
    }
}

/// Returns the stable prefix of the name of a generated class.
fn class(symbol: &str) -> Option<&str> {
    const ACCESSOR: &str = "jdk/internal/reflect/GeneratedMethodAccessor";
    const LAMBDA: &str = "$$Lambda";
    const LAMBDA_FORM: &str = "java/lang/invoke/LambdaForm$";
    const ENHANCER: &str = "$$EnhancerBySpringCGLIB$$";
    if symbol.strip_prefix(ACCESSOR).is_some_and(is_digits) {
        return Some(ACCESSOR);
    }
    // Uses the last lambda marker if a name precedes it and only a number or an address follows it.
    if let Some(start) = symbol.rfind(LAMBDA)
        && start > 0
        && is_lambda(&symbol[start + LAMBDA.len()..])
    {
        return Some(&symbol[..start + LAMBDA.len()]);
    }
    if symbol.starts_with(LAMBDA_FORM)
        && let Some(start) = symbol.rfind("0x").and_then(|start| start.checked_sub(1))
        && symbol.get(start..).is_some_and(is_address)
    {
        return symbol.get(..start);
    }
    let start = symbol.rfind(ENHANCER).filter(|start| *start > 0)?;
    Some(&symbol[..start + ENHANCER.len()])
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns true for a number, or for texts such as `$669/0x0000000800fd7318`, `$4/1283928880`, `.0x00007ffa600c4da0`,
/// `$88+0x0000000800c03000/360202`.
fn is_lambda(rest: &str) -> bool {
    if is_digits(rest) {
        return true;
    }
    let rest = rest.strip_prefix('$').unwrap_or(rest);
    is_address(rest.trim_start_matches(|character: char| character.is_ascii_digit()))
}

/// Returns true for the text after the name of a hidden class: its address and an optional hash, as in
/// `/0x0000000800fd7318`, `+0x0000000800c03000/360`.
fn is_address(text: &str) -> bool {
    let Some(address) = text.strip_prefix(['.', '/', '+']) else {
        return false;
    };
    let address = address.strip_prefix("0x").unwrap_or(address);
    match address.split_once('/') {
        Some((address, hash)) => is_hex(address) && is_digits(hash),
        None => is_hex(address),
    }
}

/// Returns the stable name of a library that programs unpack to a temporary file, or `None` for another symbol.
fn library(symbol: &str) -> Option<&'static str> {
    let name = symbol
        .strip_suffix(" (deleted)")
        .unwrap_or(symbol)
        .strip_suffix(".so")?;
    let name = name
        .strip_prefix("./tmp/")
        .or(name.strip_prefix("/tmp/"))
        .unwrap_or(name);
    if let Some(rest) = name.strip_prefix("libzstd-jni-") {
        let (version, random) = rest.split_once('-')?;
        let is_version = version.split('.').count() == 3 && version.split('.').all(is_digits);
        return (is_version && is_digits(random)).then_some("libzstd-jni-_.so");
    }
    if let Some(rest) = name.strip_prefix("libasyncProfiler-") {
        let (platform, random) = rest.rsplit_once('-')?;
        let is_platform = matches!(platform, "linux-arm64" | "linux-musl-x64" | "linux-x64" | "macos");
        return (is_platform && random == AGENT_LIBRARY).then_some("libasyncProfiler-_.so");
    }
    let name = name.strip_prefix("lib").unwrap_or(name);
    let rest = name.strip_prefix("amazonCorrettoCryptoProvider")?;
    let rest = rest.strip_prefix("NativeLibraries.").unwrap_or(rest);
    let (random, file) = rest.split_at_checked(16)?;
    let is_file = matches!(file, "" | "/libcrypto" | "/libamazonCorrettoCryptoProvider");
    (is_hex(random) && is_file).then_some("libamazonCorrettoCryptoProvider_.so")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_processes_is_left_out_of_names() {
        for (symbol, name) in [
            ("shop/Cart$$Lambda$4/1283928880", "shop/Cart$$Lambda_"),
            ("shop/Cart$$Lambda$8/0x0000000800c01220", "shop/Cart$$Lambda_"),
            ("Cart$$Lambda.0x00007ffa600c4da0", "Cart$$Lambda_"),
            ("Cart$$Lambda14", "Cart$$Lambda_"),
            ("Cart$$Lambda$88+0x0000000800c03000/360202", "Cart$$Lambda_"),
            ("Cart$$Lambda+0x00007ffa600c4da0", "Cart$$Lambda_"),
            ("Cart$$Lambda$88+run/3", "Cart$$Lambda$88+run/3"),
            (
                "java/lang/invoke/LambdaForm$DMH+0x0000000800c03000/360202",
                "java/lang/invoke/LambdaForm$DMH_",
            ),
            (
                "java/lang/invoke/LambdaForm$MH/0x0000000800c03000",
                "java/lang/invoke/LambdaForm$MH_",
            ),
            ("java/lang/invoke/LambdaForm$Name", "java/lang/invoke/LambdaForm$Name"),
            ("Cart$$Lambda$14", "Cart$$Lambda$14"),
            ("Cart$$Lambda$run", "Cart$$Lambda$run"),
            ("$$Lambda14", "$$Lambda14"),
            ("shop/Cart$Item", "shop/Cart$Item"),
            (
                "jdk/internal/reflect/GeneratedMethodAccessor31",
                "jdk/internal/reflect/GeneratedMethodAccessor_",
            ),
            (
                "jdk/internal/reflect/GeneratedMethodAccessor",
                "jdk/internal/reflect/GeneratedMethodAccessor",
            ),
            (
                "shop/Cart$$EnhancerBySpringCGLIB$$1f2e",
                "shop/Cart$$EnhancerBySpringCGLIB$$_",
            ),
            ("/tmp/libzstd-jni-1.5.1-16931311898.so (deleted)", "libzstd-jni-_.so"),
            ("./tmp/libzstd-jni-1.5-169.so", "./tmp/libzstd-jni-1.5-169.so"),
            (
                "libasyncProfiler-linux-x64-17b9a1d8156277a98ccc871afa9a8f69215f92.so",
                "libasyncProfiler-_.so",
            ),
            ("libasyncProfiler-macos-17b9.so", "libasyncProfiler-macos-17b9.so"),
            ("libasyncProfiler.so", "libasyncProfiler.so"),
            (
                "./tmp/libamazonCorrettoCryptoProvider109b39cf33c563eb.so",
                "libamazonCorrettoCryptoProvider_.so",
            ),
            (
                "/tmp/amazonCorrettoCryptoProviderNativeLibraries.7382c2f79097f415/libcrypto.so (deleted)",
                "libamazonCorrettoCryptoProvider_.so",
            ),
            ("libjvm.so", "libjvm.so"),
        ] {
            assert_eq!(stable_name(symbol), name, "{symbol}");
        }
    }
}
