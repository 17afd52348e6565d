//! `import.file`: modules from a file, or from the files of a folder, followed while they change.
//!
//! In: a path. Out: the texts under their paths. Of a folder those files count whose names end in `.alloy` or `.river`, without its sub-folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::components::common::source::{self, Exports, Fetch};
use crate::lang::schema::{Arguments, Attribute, Kind, Schema};
use crate::lang::value::Value;
use crate::pipeline::component::{ArgumentError, Component, ComponentError, Context, Definition, Stability};

/// The definition of the block.
pub const DEFINITION: Definition = Definition {
    name: "import.file",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            Attribute::with_default(
                "detector",
                Kind::String,
                "\"fsnotify\"",
                "How changes are seen: fsnotify (the system tells) or poll.",
            ),
            Attribute::required("filename", Kind::String, "File or folder to read."),
            Attribute::with_default(
                "poll_frequency",
                Kind::Duration,
                "\"1m\"",
                "Time from one look at the files to the next.",
            ),
        ],
        blocks: &[],
    },
    exports: &[],
    validate: |arguments| Files::new(arguments).map(drop),
    build: Some(build),
    doc: "`import.file` makes the declarations in a file or folder usable as `LABEL.NAME`.",
};

struct Files {
    path: PathBuf,
    watch: bool,
    interval: Duration,
}

fn build(context: Context, arguments: Arguments) -> Result<Arc<dyn Component>, ComponentError> {
    source::build(context, &arguments, |_, arguments| Ok(Arc::new(Files::new(arguments)?)))
}

impl Files {
    fn new(arguments: &Arguments) -> Result<Self, ArgumentError> {
        let error = |path: &str, message: String| ArgumentError {
            path: path.to_owned(),
            message,
        };
        let watch = match &*arguments.string("detector") {
            "fsnotify" => true,
            "poll" => false,
            other => {
                let message = format!("unknown detector \"{other}\"; use fsnotify or poll");
                return Err(error("detector", message));
            }
        };
        let interval = arguments.duration("poll_frequency");
        if interval.is_zero() {
            let message = "poll_frequency must be greater than 0".to_owned();
            return Err(error("poll_frequency", message));
        }
        Ok(Self {
            path: PathBuf::from(&*arguments.string("filename")),
            watch,
            interval,
        })
    }

    fn texts(&self) -> Result<Vec<(String, Value)>, String> {
        let path = &self.path;
        if !path.is_dir() {
            return Ok(vec![read(path)?]);
        }
        let failed = |error: std::io::Error| format!("cannot list the folder {}: {error}", path.display());
        let mut texts = Vec::new();
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let file = entry.map_err(failed)?.path();
            let known = file
                .extension()
                .is_some_and(|ending| ending == "alloy" || ending == "river");
            if known && file.is_file() {
                texts.push(read(&file)?);
            }
        }
        Ok(texts)
    }
}

fn read(path: &Path) -> Result<(String, Value), String> {
    let name = path.display().to_string();
    match std::fs::read(path).map(String::from_utf8) {
        Ok(Ok(text)) => Ok((name, Value::string(text))),
        Ok(Err(error)) => Err(format!(
            "{name} is not UTF-8 text: bad byte at offset {}",
            error.utf8_error().valid_up_to()
        )),
        Err(error) => Err(format!("cannot read {name}: {error}")),
    }
}

impl Fetch for Files {
    fn fetch(&self) -> Result<Exports, String> {
        let folder = match self.path.is_dir() {
            true => self.path.clone(),
            false => folder_of(&self.path),
        };
        Ok(source::module(self.texts()?, Some(folder.display().to_string())))
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn watched(&self) -> Option<PathBuf> {
        let folder = match self.path.is_dir() {
            true => self.path.clone(),
            false => folder_of(&self.path),
        };
        self.watch.then_some(folder)
    }
}

fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}
