//! A component that is a value from elsewhere: it is fetched, exported, and fetched again when it may have changed.
//!
//! In: a [`Fetch`] made of the arguments. Out: exports and health. The first fetch belongs to the build: when it fails the component is not built. A later
//! failure is shown as health, and the last value stays. Fetching may block: it never happens on the runtime's threads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::base::{BoxFuture, Shutdown};
use crate::components::common::folder_watcher::FolderWatcher;
use crate::lang::schema::Arguments;
use crate::lang::value::Value;
use crate::pipeline::component::{ArgumentError, Component, ComponentError, Context, HealthState};
use crate::pipeline::modules::library::{CONTENT, FOLDER};

/// Changes that come within this time are read together, as in Alloy.
const SETTLE: Duration = Duration::from_millis(30);

/// The exports of a component.
pub type Exports = BTreeMap<Arc<str>, Value>;

/// Knows how to get a value.
pub trait Fetch: Send + Sync + 'static {
    /// Gets the value. May block.
    fn fetch(&self) -> Result<Exports, String>;

    /// Time from one fetch to the next; `None` for one that cannot change.
    fn interval(&self) -> Option<Duration>;

    /// The folder whose changes are a reason to fetch.
    fn watched(&self) -> Option<PathBuf> {
        None
    }
}

/// Makes a [`Fetch`] of arguments.
pub type Make = fn(&Context, &Arguments) -> Result<Arc<dyn Fetch>, ArgumentError>;

struct Source {
    context: Context,
    make: Make,
    fetch: Mutex<Arc<dyn Fetch>>,
    /// Wakes the run loop: the arguments or the watched folder changed.
    changed: Arc<Notify>,
}

/// Builds the component, with its first value.
pub fn build(context: Context, arguments: &Arguments, make: Make) -> Result<Arc<dyn Component>, ComponentError> {
    let fetch = made(make, &context, arguments)?;
    let exports = fetch.fetch().map_err(ComponentError)?;
    (context.exports)(exports);
    (context.health)(HealthState::Healthy, "fetched".to_owned());
    Ok(Arc::new(Source {
        context,
        make,
        fetch: Mutex::new(fetch),
        changed: Arc::default(),
    }))
}

/// The exports of an import: texts by name, and their folder; without one the folder is that of the text that imports.
pub fn module(texts: impl IntoIterator<Item = (String, Value)>, folder: Option<String>) -> Exports {
    let folder = folder.map_or(Value::Null, Value::string);
    Exports::from([(CONTENT.into(), Value::object(texts)), (FOLDER.into(), folder)])
}

fn made(make: Make, context: &Context, arguments: &Arguments) -> Result<Arc<dyn Fetch>, ComponentError> {
    make(context, arguments).map_err(|ArgumentError { path, message }| ComponentError(format!("{path}: {message}")))
}

impl Source {
    fn refresh(&self) {
        let fetch = self.fetch.lock().clone();
        match fetch.fetch() {
            Ok(exports) => {
                (self.context.exports)(exports);
                (self.context.health)(HealthState::Healthy, "fetched".to_owned());
            }
            Err(error) => {
                tracing::error!(component = %self.context.id, error, "cannot fetch, the last value stays");
                (self.context.health)(HealthState::Unhealthy, error);
            }
        }
    }

    async fn work(self: Arc<Self>, shutdown: Shutdown) -> Result<(), ComponentError> {
        let mut watcher: Option<FolderWatcher> = None;
        let mut first = true;
        loop {
            let fetch = self.fetch.lock().clone();
            let watched = fetch.watched();
            if let Some(folder) = &watched {
                let watcher = match &mut watcher {
                    Some(watcher) => watcher,
                    None => watcher.insert(
                        FolderWatcher::new(self.changed.clone())
                            .map_err(|error| ComponentError(format!("cannot watch folders: {error}")))?,
                    ),
                };
                watcher.watch(&[], vec![folder.clone()]);
            }
            // Once after the folder is watched: what changed between build and run is not missed.
            if !first || watched.is_some() {
                let this = self.clone();
                let refreshed = tokio::task::spawn_blocking(move || this.refresh()).await;
                refreshed.map_err(|error| ComponentError(format!("the fetch panicked: {error}")))?;
            }
            first = false;
            let next = async {
                match fetch.interval() {
                    Some(interval) => tokio::time::sleep(interval).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                () = self.changed.notified() => tokio::time::sleep(SETTLE).await,
                () = next => {}
            }
        }
    }
}

impl Component for Source {
    fn update(&self, arguments: Arguments) -> Result<(), ComponentError> {
        let fetch = made(self.make, &self.context, &arguments)?;
        let exports = fetch.fetch().map_err(ComponentError)?;
        *self.fetch.lock() = fetch;
        (self.context.exports)(exports);
        (self.context.health)(HealthState::Healthy, "fetched".to_owned());
        self.changed.notify_one();
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(self.work(shutdown))
    }
}
