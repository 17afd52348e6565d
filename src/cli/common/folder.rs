//! Lists the files of folders, for commands that accept both files and folders.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// Maximum number of files of one command.
const MAX_FILES: usize = 100_000;
/// Maximum depth of nested folders.
const MAX_DEPTH: usize = 32;

/// Returns the files in `paths`, and all files below the folders in `paths`, sorted by name within each folder. Below a
/// folder, hidden files, hidden folders and links to folders are skipped.
pub(in crate::cli) fn files(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            add(path, 0, &mut files)?;
        } else {
            files.push(path.clone());
        }
    }
    if files.is_empty() {
        bail!("the given folders contain no files");
    }
    Ok(files)
}

fn add(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if depth > MAX_DEPTH {
        bail!("{} is nested more than {MAX_DEPTH} folders deep", folder.display());
    }
    let in_folder = || format!("cannot list {}", folder.display());
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(in_folder)? {
        let entry = entry.with_context(in_folder)?;
        let kind = entry.file_type().with_context(in_folder)?;
        if !entry.file_name().to_string_lossy().starts_with('.') {
            entries.push((entry.path(), kind));
        }
        if files.len() + entries.len() > MAX_FILES {
            bail!("there are more than {MAX_FILES} files");
        }
    }
    entries.sort_by(|left, right| left.0.cmp(&right.0));
    for (path, kind) in entries {
        if kind.is_dir() {
            add(&path, depth + 1, files)?;
        } else if path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_searched_and_hidden_files_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("b/c")).unwrap();
        std::fs::create_dir(path("empty")).unwrap();
        for name in ["b/c/1", "b/0", ".hidden", "a"] {
            std::fs::write(path(name), "x").unwrap();
        }
        let paths = files(&[path("missing"), folder.path().to_owned()]).unwrap();
        assert_eq!(paths, [path("missing"), path("a"), path("b/0"), path("b/c/1")]);
        assert!(files(&[path("empty")]).is_err());
    }
}
