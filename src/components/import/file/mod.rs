//! `import.file`: modules from a file or from the files of a folder. The import follows changes of these files.
//!
//! In: a path. Out: the texts by their paths. From a folder the import reads the files whose names end in `.alloy` or
//! `.river`, without subfolders.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::common::sources::detector;
use crate::common::sources::detector::{Detector, TextError};
use crate::common::sources::fetch_error::FetchError;
use crate::common::sources::source;
use crate::common::sources::source::{Exports, Fetch};
use alluvium_lang::body::arguments;
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{Definition, Stability, no_metrics};

arguments! {
    /// Arguments of `import.file`.
    pub(crate) struct FileArguments {
        /// Path of the file or folder to read.
        filename: PathBuf,
    }
    shared { detector: Detector }
}

/// The definition of the block.
pub(crate) const DEFINITION: Definition<FileArguments> = Definition {
    name: "import.file",
    stability: Stability::GenerallyAvailable,
    exports: &[],
    metrics: no_metrics,
    build: Some(|context, arguments| {
        source::build(context, &arguments, |_, arguments: &FileArguments| {
            Ok(Files {
                path: arguments.filename.clone(),
                detector: arguments.detector.clone(),
            })
        })
    }),
    doc: "`import.file` makes the declarations in a file or folder usable as `LABEL.NAME`.",
};

struct Files {
    path: PathBuf,
    detector: Detector,
}

impl Files {
    fn folder(&self) -> PathBuf {
        if self.path.is_dir() {
            self.path.clone()
        } else {
            detector::folder_of(&self.path)
        }
    }

    fn texts(&self) -> Result<Vec<(String, Value)>, FetchError> {
        let path = &self.path;
        if !path.is_dir() {
            return Ok(vec![read(path)?]);
        }
        let failed = |source: io::Error| FetchError::Folder {
            path: path.clone(),
            source,
        };
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

fn read(path: &Path) -> Result<(String, Value), TextError> {
    let text = detector::read_text(path)?;
    Ok((path.display().to_string(), Value::string(text)))
}

impl Fetch for Files {
    fn fetch(&self) -> Result<Exports, FetchError> {
        Ok(source::module(self.texts()?, Some(self.folder().display().to_string())))
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.detector.poll_frequency.get())
    }

    fn watched(&self) -> Option<PathBuf> {
        self.detector.watches().then(|| self.folder())
    }
}
