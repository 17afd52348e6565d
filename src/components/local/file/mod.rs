//! `local.file`: the content of a file, followed while it changes.
//!
//! In: a path. Out: the export `content`, a string or a secret. Watches the folder of the file, not the file: editors and Kubernetes replace files.
//! Takes UTF-8 text of at most 16 MiB.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::metrics::gauge::Gauge;

use crate::components::common::detector::{self, Detector};
use crate::components::common::source::{self, Exports, Fetch};
use crate::lang::schema::{Arguments, Attribute, Kind, Schema};
use crate::pipeline::component::{Component, ComponentError, Context, Definition, Stability};

/// The definition of the component.
pub const DEFINITION: Definition = Definition {
    name: "local.file",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            detector::DETECTOR,
            Attribute::required("filename", Kind::String, "File to read."),
            source::IS_SECRET,
            detector::POLL_FREQUENCY,
        ],
        blocks: &[],
    },
    exports: &[source::CONTENT_EXPORT],
    validate: |arguments| Detector::new(arguments).map(drop),
    build: Some(build),
    doc: "`local.file` reads a file and follows its changes.",
};

/// Seconds since 1970 of the last read that succeeded.
type LastRead = Gauge<f64, AtomicU64>;

struct File {
    path: PathBuf,
    is_secret: bool,
    detector: Detector,
    last_read: LastRead,
}

fn build(context: Context, arguments: Arguments) -> Result<Arc<dyn Component>, ComponentError> {
    let last_read = LastRead::default();
    context.metrics.register(
        "local_file_timestamp_last_accessed_unix_seconds",
        "When the file was last read, in seconds since 1970",
        last_read.clone(),
    );
    source::build(context, &arguments, move |_, arguments| {
        Ok(Arc::new(File {
            path: PathBuf::from(&*arguments.string("filename")),
            is_secret: arguments.bool("is_secret"),
            detector: Detector::new(arguments)?,
            last_read: last_read.clone(),
        }))
    })
}

impl Fetch for File {
    fn fetch(&self) -> Result<Exports, String> {
        let text = detector::read_text(&self.path)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_read.set(now.as_secs_f64());
        Ok(source::content(text, self.is_secret))
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.detector.interval)
    }

    fn watched(&self) -> Option<PathBuf> {
        self.detector.watches.then(|| detector::folder_of(&self.path))
    }
}

#[cfg(test)]
mod tests;
