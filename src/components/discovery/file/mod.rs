//! `discovery.file`: targets from JSON and YAML files, read again when they change.
//!
//! In: paths and globs. Out: the targets of all files. Changes are seen at once through the folders (so that the symlink swap of a Kubernetes
//! ConfigMap is seen too) and at the latest after `refresh_interval`. A file that cannot be read keeps its last good targets.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::base::{BoxFuture, Shutdown};
use crate::components::common::folder_watcher::FolderWatcher;
use crate::components::common::targets;
use crate::lang::schema::{Arguments, Attribute, Kind, Schema, TARGETS};
use crate::lang::value::{Number, Value};
use crate::pipeline::component::live::LiveHandle;
use crate::pipeline::component::{
    ArgumentError, Component, ComponentError, Context, Definition, HealthState, Stability,
};

mod metrics;
mod reader;
#[cfg(test)]
mod tests;

use metrics::FileMetrics;
use reader::Files;

/// Changes that come within this time are read together: an editor writes a file in several steps.
const SETTLE: Duration = Duration::from_millis(50);

/// The component's definition.
pub const DEFINITION: Definition = Definition {
    name: "discovery.file",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            Attribute::required(
                "files",
                Kind::List(&Kind::String),
                "Files to read, or globs of files; names end in .json, .yaml or .yml.",
            ),
            Attribute::with_default(
                "refresh_interval",
                Kind::Duration,
                "\"5m\"",
                "Time after which the files are read again even when no change was seen.",
            ),
        ],
        blocks: &[],
    },
    exports: &[Attribute::required("targets", TARGETS, "The targets of all files.")],
    validate: |arguments| Settings::from_arguments(arguments).map(drop),
    build: Some(build),
    doc: "`discovery.file` reads targets from JSON and YAML files and follows their changes.",
};

#[derive(Clone, Debug, PartialEq)]
struct Settings {
    patterns: Vec<Arc<str>>,
    refresh_interval: Duration,
}

impl Settings {
    fn from_arguments(arguments: &Arguments) -> Result<Self, ArgumentError> {
        let error = |path: String, message: String| Err(ArgumentError { path, message });
        let settings = Self {
            patterns: arguments.strings("files"),
            refresh_interval: arguments.duration("refresh_interval"),
        };
        for (index, pattern) in settings.patterns.iter().enumerate() {
            if reader::Format::of(pattern.as_ref().as_ref()).is_none() {
                let message = format!("`{pattern}` must end in .json, .yaml or .yml");
                return error(format!("files[{index}]"), message);
            }
            if let Err(problem) = glob::Pattern::new(pattern) {
                return error(
                    format!("files[{index}]"),
                    format!("`{pattern}` is not a glob: {problem}"),
                );
            }
        }
        if settings.patterns.is_empty() {
            return error("files".to_owned(), "at least one file must be given".to_owned());
        }
        if settings.refresh_interval.is_zero() {
            return error(
                "refresh_interval".to_owned(),
                "refresh_interval must be greater than 0".to_owned(),
            );
        }
        Ok(settings)
    }
}

struct FileDiscovery {
    context: Context,
    metrics: FileMetrics,
    settings: Mutex<Settings>,
    files: Mutex<Files>,
    /// Wakes the run loop: the settings or a folder changed.
    changed: Arc<Notify>,
}

fn build(context: Context, arguments: Arguments) -> Result<Arc<dyn Component>, ComponentError> {
    let settings = settings(&arguments)?;
    let component = FileDiscovery {
        metrics: FileMetrics::new(&context.metrics),
        context,
        settings: Mutex::new(settings),
        files: Mutex::default(),
        changed: Arc::default(),
    };
    component.refresh();
    Ok(Arc::new(component))
}

fn settings(arguments: &Arguments) -> Result<Settings, ComponentError> {
    Settings::from_arguments(arguments)
        .map_err(|ArgumentError { path, message }| ComponentError(format!("{path}: {message}")))
}

impl FileDiscovery {
    /// Reads all files and tells exports and health.
    fn refresh(&self) {
        let patterns = self.settings.lock().patterns.clone();
        let mut files = self.files.lock();
        let new_errors = files.read(&patterns);
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
                "cannot watch folders, changes are seen at every refresh_interval only"
            );
        }
        loop {
            let (patterns, interval) = {
                let settings = self.settings.lock();
                (settings.patterns.clone(), settings.refresh_interval)
            };
            if let Ok(watcher) = &mut watcher {
                let resolved: Vec<PathBuf> = self.files.lock().resolved_folders();
                watcher.watch(&patterns, resolved);
            }
            // Once after the folders are watched: what changed before is not missed.
            let this = self.clone();
            if tokio::task::spawn_blocking(move || this.refresh()).await.is_err() {
                return;
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.changed.notified() => tokio::time::sleep(SETTLE).await,
                () = tokio::time::sleep(interval) => {}
            }
        }
    }
}

impl Component for FileDiscovery {
    fn update(&self, arguments: Arguments) -> Result<(), ComponentError> {
        *self.settings.lock() = settings(&arguments)?;
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
                Err(ComponentError("reading files panicked".to_owned()))
            }
        })
    }

    fn show_live(&self, _arguments: &Arguments, live: &LiveHandle) {
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
