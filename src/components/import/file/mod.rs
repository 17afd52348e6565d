//! `import.file`: modules from a file, or from the files of a folder, followed while they change.
//!
//! In: a path. Out: the texts under their paths. Of a folder those files count whose names end in `.alloy` or `.river`, without its sub-folders.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::components::common::detector::{self, Detector};
use crate::components::common::source::{self, Exports, Fetch};
use crate::lang::schema::{Arguments, Attribute, Kind, Schema};
use crate::lang::value::Value;
use crate::pipeline::component::{Component, ComponentError, Context, Definition, Stability};

/// The definition of the block.
pub const DEFINITION: Definition = Definition {
    name: "import.file",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            detector::DETECTOR,
            Attribute::required("filename", Kind::String, "File or folder to read."),
            detector::POLL_FREQUENCY,
        ],
        blocks: &[],
    },
    exports: &[],
    validate: |arguments| Detector::new(arguments).map(drop),
    build: Some(build),
    doc: "`import.file` makes the declarations in a file or folder usable as `LABEL.NAME`.",
};

struct Files {
    path: PathBuf,
    detector: Detector,
}

fn build(context: Context, arguments: Arguments) -> Result<Arc<dyn Component>, ComponentError> {
    source::build(context, &arguments, |_, arguments| {
        Ok(Arc::new(Files {
            path: PathBuf::from(&*arguments.string("filename")),
            detector: Detector::new(arguments)?,
        }))
    })
}

impl Files {
    fn folder(&self) -> PathBuf {
        match self.path.is_dir() {
            true => self.path.clone(),
            false => detector::folder_of(&self.path),
        }
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
    let text = detector::read_text(path)?;
    Ok((path.display().to_string(), Value::string(text)))
}

impl Fetch for Files {
    fn fetch(&self) -> Result<Exports, String> {
        Ok(source::module(self.texts()?, Some(self.folder().display().to_string())))
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.detector.interval)
    }

    fn watched(&self) -> Option<PathBuf> {
        self.detector.watches.then(|| self.folder())
    }
}
