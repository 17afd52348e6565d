//! Names of the files in a table's log: which version they belong to, and which checkpoint the hint names.

/// True for a name of [`temporary_name`](crate::base::file::temporary_name), also with the suffix that `object_store`
/// adds to it.
pub(crate) fn is_temporary(name: &str) -> bool {
    let staged = || {
        let (name, number) = name.rsplit_once('#')?;
        number.parse::<u32>().ok()?;
        Some(name)
    };
    let name = staged().unwrap_or(name);
    name.starts_with('.') && name.ends_with(".tmp")
}

/// The version that a log file, or its file of checksums, belongs to.
pub(crate) fn version_of(name: &str) -> Option<u64> {
    if is_temporary(name) {
        return None;
    }
    let digits = name.strip_prefix('.').unwrap_or(name).get(..20)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { digits.parse().ok() } else { None }
}

/// Version of the checkpoint that the contents of a `_last_checkpoint` name.
pub(crate) fn version_of_hint(text: &[u8]) -> Option<u64> {
    let hint: serde_json::Value = serde_json::from_slice(text).ok()?;
    hint.get("version")?.as_u64()
}
