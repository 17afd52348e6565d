//! Configuration from disk: one file, or all files of one folder read as one (not its sub-folders, as Alloy does).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// Extensions of configuration files in a folder.
const EXTENSIONS: [&str; 2] = ["alloy", "river"];

/// The texts at `path` with their names, in the order of the names.
pub fn read(path: &Path) -> anyhow::Result<Vec<(String, String)>> {
    let metadata =
        std::fs::metadata(path).with_context(|| format!("cannot read the configuration {}", path.display()))?;
    let files = if metadata.is_dir() {
        files_of(path)?
    } else {
        vec![path.to_owned()]
    };
    files
        .into_iter()
        .map(|file| {
            let bytes =
                std::fs::read(&file).with_context(|| format!("cannot read the configuration {}", file.display()))?;
            let text = String::from_utf8(bytes).map_err(|error| {
                anyhow::anyhow!(
                    "{} is not UTF-8 text: bad byte at offset {}",
                    file.display(),
                    error.utf8_error().valid_up_to()
                )
            })?;
            Ok((file.display().to_string(), text))
        })
        .collect()
}

fn files_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list the folder {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry
            .with_context(|| format!("cannot list the folder {}", folder.display()))?
            .path();
        let known = path
            .extension()
            .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known));
        if known && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        bail!("the folder {} holds no *.alloy or *.river file", folder.display());
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_read_in_the_order_of_its_names_without_other_files() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.alloy", "a.river", "notes.txt"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let texts: Vec<String> = read(folder.path()).unwrap().into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["a.river", "b.alloy"]);
    }

    #[test]
    fn an_empty_folder_and_a_missing_path_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("no *.alloy"));
        assert!(read(&folder.path().join("missing.alloy")).is_err());
    }
}
