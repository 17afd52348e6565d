//! Reads a configuration from disk: one file, or all files of one folder (without subfolders, as in Alloy).

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use parking_lot::Mutex;

use crate::app::foreign::Conversion;
use alluvium_lang::{Diagnostics, decode_text};

/// Extensions of configuration files in a folder.
const EXTENSIONS: [&str; 3] = ["alloy", "river", "hcl"];

/// The file or folder of a configuration, which can be read repeatedly.
#[derive(Debug)]
pub(crate) struct Sources {
    path: PathBuf,
    conversion: Option<Conversion>,
    /// Notes of the last conversion. The next read logs its notes only if they differ from these.
    noted: Mutex<Vec<String>>,
}

impl Sources {
    /// Creates the sources for a file or folder of Alloy text. If there is a conversion, `path` is a file in another
    /// format.
    pub(crate) fn new(path: &Path, conversion: Option<Conversion>) -> Self {
        Self {
            path: path.to_owned(),
            conversion,
            noted: Mutex::default(),
        }
    }

    /// Returns the path of the file or folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the current texts, converted to Alloy's language. New notes of the conversion are logged.
    pub(crate) fn read(&self) -> anyhow::Result<Vec<(String, String)>> {
        let Some(conversion) = &self.conversion else {
            return read(&self.path);
        };
        let name = self.path.display().to_string();
        let bytes = std::fs::read(&self.path).with_context(|| format!("cannot read the configuration {name}"))?;
        let text = decode_text(&name, bytes).map_err(Diagnostics::from)?;
        let converted = conversion.convert(&name, &text)?;
        let mut noted = self.noted.lock();
        if *noted != converted.notes {
            for note in &converted.notes {
                tracing::warn!(config = %name, note, "note on the conversion");
            }
            *noted = converted.notes;
        }
        Ok(vec![(name, converted.text)])
    }
}

/// Reads the texts at `path` with their names, sorted by name. If a text is not UTF-8, the error contains
/// [`Diagnostics`].
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<(String, String)>> {
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
            let name = file.display().to_string();
            let text = decode_text(&name, bytes).map_err(Diagnostics::from)?;
            Ok((name, text))
        })
        .collect()
}

/// Returns the file itself, or all configuration files in a folder and its subfolders, sorted. Hidden folders and links
/// to folders are skipped.
pub(crate) fn files_below(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            std::fs::read_dir(&folder).with_context(|| format!("cannot list the folder {}", folder.display()))?;
        for entry in entries {
            let entry = entry.with_context(|| format!("cannot list the folder {}", folder.display()))?;
            let kind = entry.file_type()?;
            let hidden = entry.file_name().to_string_lossy().starts_with('.');
            if kind.is_dir() && !hidden {
                folders.push(entry.path());
            } else if !kind.is_dir() && is_configuration(&entry.path()) && entry.path().is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn is_configuration(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known))
}

fn files_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list the folder {}", folder.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry
            .with_context(|| format!("cannot list the folder {}", folder.display()))?
            .path();
        if is_configuration(&path) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    if files.is_empty() {
        bail!(
            "the folder {} contains no *.alloy, *.river or *.hcl file",
            folder.display()
        );
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
