//! Reads targets from files. A file is a list of groups, each with `targets` (addresses) and `labels`.
//!
//! In: paths and globs. Out: the targets of each file. If a file cannot be read or parsed, its last targets stay, and
//! the error is recorded.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::target_groups;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, wrong};
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;

/// Maximum size of a file: 64 MiB. A list of targets is far smaller. The limit guards against a wrong path to a large
/// file.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// A path or glob of files. The extension determines the format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FilePattern(Arc<str>);

impl FilePattern {
    /// Returns the pattern as it is written in the configuration.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl FromValue for FilePattern {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let pattern = Arc::<str>::from_value(name, value)?;
        if Format::of(Path::new(&*pattern)).is_none() {
            return Err(wrong(format!("`{pattern}` must end in .json, .yaml or .yml")));
        }
        if let Err(problem) = glob::Pattern::new(&pattern) {
            return Err(wrong(format!("`{pattern}` is not a valid glob: {problem}")));
        }
        Ok(Self(pattern))
    }
}

/// The format of a file, which its extension determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// JSON: the name ends in `.json`.
    Json,
    /// YAML: the name ends in `.yaml` or `.yml`.
    Yaml,
}

impl Format {
    /// Returns the format of a path or glob, or `None` for another extension.
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "json" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// The files that the patterns match, each with its targets and the error of the last read.
#[derive(Default)]
pub(super) struct Files {
    states: BTreeMap<PathBuf, FileState>,
}

#[derive(Default)]
struct FileState {
    targets: Vec<Target>,
    error: Option<String>,
}

impl Files {
    /// Reads all files that the patterns match. Drops the targets of files that no longer exist. Returns the errors
    /// that are new or changed.
    pub(super) fn read(&mut self, patterns: &[FilePattern]) -> Vec<(PathBuf, String)> {
        let mut old = std::mem::take(&mut self.states);
        let mut new_errors = Vec::new();
        for path in patterns.iter().flat_map(|pattern| matching(pattern.text())) {
            if self.states.contains_key(&path) {
                continue;
            }
            let before = old.remove(&path).unwrap_or_default();
            let state = match read_file(&path) {
                Ok(targets) => FileState { targets, error: None },
                Err(error) => {
                    let error = error.to_string();
                    if before.error.as_deref() != Some(error.as_str()) {
                        new_errors.push((path.clone(), error.clone()));
                    }
                    FileState {
                        targets: before.targets,
                        error: Some(error),
                    }
                }
            };
            self.states.insert(path, state);
        }
        new_errors
    }

    /// Returns the targets of all files, in the order of the paths.
    pub(super) fn targets(&self) -> Vec<Target> {
        self.states
            .values()
            .flat_map(|state| state.targets.iter().cloned())
            .collect()
    }

    /// Returns the files that have an error, each with its error. The error names the file and the reason.
    pub(super) fn errors(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.states
            .iter()
            .filter_map(|(path, state)| Some((path.as_path(), state.error.as_deref()?)))
    }

    /// Returns the path, the number of targets and the error of each file.
    pub(super) fn states(&self) -> impl Iterator<Item = (&Path, usize, Option<&str>)> {
        self.states
            .iter()
            .map(|(path, state)| (path.as_path(), state.targets.len(), state.error.as_deref()))
    }

    /// Returns the number of files that the patterns match.
    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    /// Returns the folders of the files after all symbolic links are resolved.
    pub(super) fn resolved_folders(&self) -> Vec<PathBuf> {
        let folder = |path: &PathBuf| Some(path.canonicalize().ok()?.parent()?.to_owned());
        self.states.keys().filter_map(folder).collect()
    }
}

/// Returns the files that a pattern matches, sorted by path.
fn matching(pattern: &str) -> Vec<PathBuf> {
    glob::glob(pattern).map_or_else(
        |_| Vec::new(),
        |paths| paths.filter_map(Result::ok).filter(|path| path.is_file()).collect(),
    )
}

fn read_file(path: &Path) -> Result<Vec<Target>, DiscoveryError> {
    let unreadable = |source: io::Error| DiscoveryError::File {
        path: path.to_owned(),
        source,
    };
    if std::fs::metadata(path).map_err(unreadable)?.len() > MAX_FILE_BYTES {
        let reason = format!("it is larger than {MAX_FILE_BYTES} bytes");
        return Err(unreadable(io::Error::new(io::ErrorKind::FileTooLarge, reason)));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let groups = match Format::of(path) {
        Some(Format::Json) => target_groups::from_json(text.as_bytes()),
        _ => target_groups::from_yaml(&text),
    };
    let groups = groups.map_err(|source| DiscoveryError::Groups {
        path: path.to_owned(),
        source,
    })?;
    let file: Arc<str> = path.to_string_lossy().into();
    Ok(groups
        .into_iter()
        .flat_map(|group| {
            let labels: Target = group
                .labels
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .chain([(Arc::from("__meta_filepath"), file.clone())])
                .collect();
            group.targets.into_iter().map(move |address| {
                let mut target = labels.clone();
                target.insert("__address__".into(), address.into());
                target
            })
        })
        .collect())
}
