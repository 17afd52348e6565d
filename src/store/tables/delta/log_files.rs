//! Functions for the files in a table's log. They read the version in a file name and the checkpoint version in the
//! file `_last_checkpoint` (the hint), and recognize or remove leftovers of an interrupted creation.

use std::path::Path;
use std::{fs, io};

/// Returns true for a name from [`temporary_name`](alluvium_base::file::temporary_name), also with the suffix that
/// `object_store` adds to the name.
pub(crate) fn is_temporary(name: &str) -> bool {
    let staged = || {
        let (name, number) = name.rsplit_once('#')?;
        number.parse::<u32>().ok()?;
        Some(name)
    };
    let name = staged().unwrap_or(name);
    name.starts_with('.') && name.ends_with(".tmp")
}

/// Returns true if a table has a log, that is, any entry or checkpoint. The first entry may be missing, because it is
/// deleted after some time. If there is no log, removes the leftovers of an interrupted creation, such as checksums
/// without an entry. Otherwise delta_kernel would treat the table as an existing table.
pub(crate) fn has_begun(log: &Path) -> io::Result<bool> {
    let mut left = Vec::new();
    for entry in fs::read_dir(log)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_hidden = name.starts_with('.');
        if name == "_last_checkpoint" || !is_hidden && version_of(&name).is_some() {
            return Ok(true);
        }
        if is_temporary(&name) || is_hidden && version_of(&name).is_some() {
            left.push(entry.path());
        }
    }
    for path in left {
        fs::remove_file(path)?;
    }
    Ok(false)
}

/// Returns the version of a log file, or of its file of checksums.
pub(crate) fn version_of(name: &str) -> Option<u64> {
    if is_temporary(name) {
        return None;
    }
    let digits = name.strip_prefix('.').unwrap_or(name).get(..20)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { digits.parse().ok() } else { None }
}

/// Returns the checkpoint version in the contents of a `_last_checkpoint` file.
pub(crate) fn version_of_hint(text: &[u8]) -> Option<u64> {
    let hint: serde_json::Value = serde_json::from_slice(text).ok()?;
    hint.get("version")?.as_u64()
}
