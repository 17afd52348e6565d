//! `discovery.file`: reads targets from JSON and YAML files, and reads the files again when they change.
//!
//! In: paths and globs. Out: the targets of all files. The component watches the folders of the files, so that it also
//! sees the symlink swap of a Kubernetes ConfigMap. It reads the files at least every `refresh_interval`. If a file
//! cannot be read, its last good targets stay.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::common::arguments::targets;
use crate::common::sources::folder_watcher::FolderWatcher;
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::Interval;
use alluvium_lang::body::arguments;
use alluvium_lang::schema::{Attribute, TARGETS};
use alluvium_lang::value::{Number, Value};
use alluvium_pipeline::component::live::LiveHandle;
use alluvium_pipeline::component::{Component, ComponentError, Context, Definition, HealthState, Stability};

mod metrics;
mod reader;
#[cfg(test)]
mod tests;

use metrics::FileMetrics;
use reader::{FilePattern, Files};

/// Time between the first change and the refresh. An editor may write a file in several steps. One refresh then reads
/// the result of all steps.
const SETTLE: Duration = Duration::from_millis(50);

arguments! {
    /// Arguments of `discovery.file`.
    pub(crate) struct FileArguments {
        /// Paths or globs of the files to read. Names must end in `.json`, `.yaml` or `.yml`.
        files: Vec<FilePattern>,
        /// Time after which the files are read again, even if no change was noticed.
        refresh_interval: Interval = "5m",
    }
    check FileArguments::check;
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<FileArguments> = Definition {
    name: "discovery.file",
    stability: Stability::GenerallyAvailable,
    exports: &[Attribute::required("targets", TARGETS, "The targets of all files.")],
    metrics: |scope| drop(FileMetrics::new(scope)),
    build: Some(build),
    doc: "`discovery.file` reads targets from JSON and YAML files and follows their changes.",
};

impl FileArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        if self.files.is_empty() {
            return Err(ArgumentError::new("files", "at least one file must be given"));
        }
        Ok(())
    }
}

struct FileDiscovery {
    context: Context,
    metrics: FileMetrics,
    arguments: Mutex<Arc<FileArguments>>,
    files: Mutex<Files>,
    /// Wakes the run loop after a change of the arguments or of a folder.
    changed: Arc<Notify>,
}

fn build(context: Context, arguments: Arc<FileArguments>) -> Result<Arc<dyn Component<FileArguments>>, ComponentError> {
    let component = FileDiscovery {
        metrics: FileMetrics::new(&context.metrics),
        context,
        arguments: Mutex::new(arguments),
        files: Mutex::default(),
        changed: Arc::default(),
    };
    component.refresh();
    Ok(Arc::new(component))
}

impl FileDiscovery {
    /// Reads all files, then sets the exports and the health.
    fn refresh(&self) {
        let arguments = self.arguments.lock().clone();
        let mut files = self.files.lock();
        let new_errors = files.read(&arguments.files);
        for (path, error) in &new_errors {
            tracing::error!(
                component = %self.context.id, path = %path.display(), error = %error,
                "cannot read targets from file, its last good targets stay"
            );
        }
        self.metrics.refreshes.inc();
        self.metrics.errors.inc_by(files.errors().count() as u64);
        let targets = files.targets();
        self.metrics.targets.set(targets.len() as i64);
        targets::tell(&targets, &self.context.live);
        (self.context.exports)(BTreeMap::from([("targets".into(), targets::to_value(targets))]));
        match files.errors().next() {
            Some((_, error)) => (self.context.health)(HealthState::Unhealthy, error.to_owned()),
            None => (self.context.health)(HealthState::Healthy, format!("{} files read", files.len())),
        }
    }

    async fn work(self: Arc<Self>, shutdown: Shutdown) {
        let mut watcher = FolderWatcher::new(self.changed.clone());
        if let Err(error) = &watcher {
            tracing::warn!(
                component = %self.context.id, error = %error,
                "cannot watch folders, files are read only every refresh_interval"
            );
        }
        loop {
            let arguments = self.arguments.lock().clone();
            if let Ok(watcher) = &mut watcher {
                let resolved: Vec<PathBuf> = self.files.lock().resolved_folders();
                watcher.watch(arguments.files.iter().map(FilePattern::text), resolved);
            }
            // Refresh after the watch has started, so that a change before the watch is not missed.
            let this = self.clone();
            if tokio::task::spawn_blocking(move || this.refresh()).await.is_err() {
                return;
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.changed.notified() => tokio::time::sleep(SETTLE).await,
                () = tokio::time::sleep(arguments.refresh_interval.get()) => {}
            }
        }
    }
}

impl Component<FileArguments> for FileDiscovery {
    fn update(&self, arguments: Arc<FileArguments>) -> Result<(), ComponentError> {
        *self.arguments.lock() = arguments;
        self.refresh();
        self.changed.notify_one();
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(async move {
            self.work(shutdown.clone()).await;
            if shutdown.is_cancelled() {
                Ok(())
            } else {
                Err(ComponentError("the thread that reads files panicked".to_owned()))
            }
        })
    }

    fn show_live(&self, _arguments: &FileArguments, live: &LiveHandle) {
        targets::tell(&self.files.lock().targets(), live);
    }

    fn debug_info(&self) -> Value {
        let files = self.files.lock();
        let entry = |(path, targets, error): (&std::path::Path, usize, Option<&str>)| {
            Value::object([
                ("path", Value::string(path.display().to_string())),
                ("targets", Value::Number(Number::Int(targets as i64))),
                ("last_error", Value::string(error.unwrap_or_default())),
            ])
        };
        Value::object([("files", Value::array(files.states().map(entry)))])
    }
}
