//! `local.file`: the content of a file. The component follows changes of the file.
//!
//! In: a path. Out: the export `content`, a string or a secret. The component watches the folder and not the file,
//! because editors and Kubernetes replace files. It accepts UTF-8 text of at most 16 MiB.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::metrics::gauge::Gauge;

use crate::common::sources::detector;
use crate::common::sources::detector::Detector;
use crate::common::sources::fetch_error::FetchError;
use crate::common::sources::source;
use crate::common::sources::source::{Exports, Fetch};
use alluvium_lang::body::arguments;
use alluvium_pipeline::component::{Component, ComponentError, Context, Definition, Stability};
use alluvium_telemetry::metrics::Scope;

arguments! {
    /// Arguments of `local.file`.
    pub(crate) struct FileArguments {
        /// Path of the file to read.
        filename: PathBuf,
        /// If true, the content is exported as a secret, which is never shown.
        is_secret: bool = false,
    }
    shared { detector: Detector }
}

/// The definition of the component.
pub(crate) const DEFINITION: Definition<FileArguments> = Definition {
    name: "local.file",
    stability: Stability::GenerallyAvailable,
    exports: &[source::CONTENT_EXPORT],
    metrics: |scope| drop(last_read(scope)),
    build: Some(build),
    doc: "`local.file` reads a file and follows its changes.",
};

/// Time of the last successful read, in seconds since 1970.
type LastRead = Gauge<f64, AtomicU64>;

struct File {
    arguments: FileArguments,
    last_read: LastRead,
}

fn build(context: Context, arguments: Arc<FileArguments>) -> Result<Arc<dyn Component<FileArguments>>, ComponentError> {
    let last_read = last_read(&context.metrics);
    source::build(context, &*arguments, move |_, arguments| {
        Ok(File {
            arguments: arguments.clone(),
            last_read: last_read.clone(),
        })
    })
}

fn last_read(scope: &Scope) -> LastRead {
    let last_read = LastRead::default();
    scope.register(
        "local_file_timestamp_last_accessed_unix_seconds",
        "Time of the last successful read of the file, in seconds since 1970",
        last_read.clone(),
    );
    last_read
}

impl Fetch for File {
    fn fetch(&self) -> Result<Exports, FetchError> {
        let text = detector::read_text(&self.arguments.filename)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.last_read.set(now.as_secs_f64());
        Ok(source::content(text, self.arguments.is_secret.into()))
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.arguments.detector.poll_frequency.get())
    }

    fn watched(&self) -> Option<PathBuf> {
        let FileArguments { filename, detector, .. } = &self.arguments;
        detector.watches().then(|| detector::folder_of(filename))
    }
}

#[cfg(test)]
mod tests;
