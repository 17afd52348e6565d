//! A component that fetches a value from elsewhere, exports it, and fetches it again when it may have changed.
//!
//! In: a [`Fetch`] that is built from the arguments. Out: exports and health. The first fetch is part of the build: if
//! it fails, the component is not built. A later failure is shown as health, and the last value stays. Fetching may
//! block, so it never runs on the runtime's async threads.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::common::sources::fetch_error::FetchError;
use crate::common::sources::folder_watcher::FolderWatcher;
use alluvium_base::net::hostname;
use alluvium_base::spread::Spread;
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::schema::{Attribute, Kind};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::import::{CONTENT, FOLDER};
use alluvium_pipeline::component::{Component, ComponentError, Context, HealthState};

/// Changes within this time cause a single fetch, as in Alloy.
const SETTLE: Duration = Duration::from_millis(30);

/// The export of a component with a single text as its value.
pub(crate) const CONTENT_EXPORT: Attribute = Attribute::required(
    "content",
    Kind::OptionalSecret,
    "The text. It is a secret if `is_secret` is true.",
);

/// The exports of a component.
pub(crate) type Exports = BTreeMap<Arc<str>, Value>;

/// Fetches the value of a component.
pub(crate) trait Fetch: Send + Sync + 'static {
    /// Fetches the value. May block.
    fn fetch(&self) -> Result<Exports, FetchError>;

    /// Returns the time between two fetches; `None` for a value that cannot change.
    fn interval(&self) -> Option<Duration>;

    /// Returns true if the value comes from a server that many collectors ask. Then the fetches of a fleet are spread
    /// over the interval.
    fn is_spread(&self) -> bool {
        false
    }

    /// Returns the folder whose changes trigger a fetch, or `None` if no folder is watched.
    fn watched(&self) -> Option<PathBuf> {
        None
    }
}

/// Builds a [`Fetch`] from arguments. May open files and sockets.
type Make<A> = Box<dyn Fn(&Context, &A) -> Result<Arc<dyn Fetch>, ComponentError> + Send + Sync>;

struct Source<A> {
    context: Context,
    /// The place of this collector's fetches within the interval.
    spread: Spread,
    make: Make<A>,
    /// The [`Fetch`] for the current arguments. The lock is held during an export, so that a late value for old
    /// arguments is never exported after a value for new arguments. The lock is not held while a value is fetched.
    fetch: Mutex<Arc<dyn Fetch>>,
    /// Wakes the run loop after a change of the watched folder.
    changed: Arc<Notify>,
    /// Wakes the run loop after a change of the arguments.
    updated: Notify,
}

/// Builds the component and exports its first value. `make` builds a [`Fetch`] from arguments.
pub(crate) fn build<A: 'static, F: Fetch>(
    context: Context,
    arguments: &A,
    make: impl Fn(&Context, &A) -> Result<F, ComponentError> + Send + Sync + 'static,
) -> Result<Arc<dyn Component<A>>, ComponentError> {
    let make: Make<A> = Box::new(move |context, arguments| Ok(Arc::new(make(context, arguments)?)));
    let fetch = make(&context, arguments)?;
    let exports = fetch.fetch().map_err(ComponentError::new)?;
    export(&context, exports);
    Ok(Arc::new(Source {
        spread: Spread::new(&hostname(), &context.id),
        context,
        make,
        fetch: Mutex::new(fetch),
        changed: Arc::default(),
        updated: Notify::new(),
    }))
}

/// Whether a text is exported as a string or as a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrecy {
    Public,
    Secret,
}

impl From<bool> for Secrecy {
    fn from(is_secret: bool) -> Self {
        if is_secret { Self::Secret } else { Self::Public }
    }
}

/// Returns the exports of a component with a single text as its value.
pub(crate) fn content(text: impl Into<Arc<str>>, secrecy: Secrecy) -> Exports {
    let text = match secrecy {
        Secrecy::Public => Value::String(text.into()),
        Secrecy::Secret => Value::Secret(text.into()),
    };
    Exports::from([(CONTENT_EXPORT.name.into(), text)])
}

/// Returns the exports of an import: texts by name, and their folder. `None` means the folder of the importing text.
pub(crate) fn module(texts: impl IntoIterator<Item = (String, Value)>, folder: Option<String>) -> Exports {
    let folder = folder.map_or(Value::Null, Value::string);
    Exports::from([(CONTENT.into(), Value::object(texts)), (FOLDER.into(), folder)])
}

fn export(context: &Context, exports: Exports) {
    (context.exports)(exports);
    (context.health)(HealthState::Healthy, "fetched".to_owned());
}

impl<A: 'static> Source<A> {
    fn refresh(&self) {
        let fetch = self.fetch.lock().clone();
        let fetched = fetch.fetch();
        let current = self.fetch.lock();
        if !Arc::ptr_eq(&fetch, &current) {
            return;
        }
        match fetched {
            Ok(exports) => export(&self.context, exports),
            Err(error) => {
                tracing::error!(component = %self.context.id, %error, "cannot fetch the value, keeping the last value");
                (self.context.health)(HealthState::Unhealthy, error.to_string());
            }
        }
    }

    async fn work(self: Arc<Self>, shutdown: Shutdown) -> Result<(), ComponentError> {
        let mut watcher: Option<FolderWatcher> = None;
        // At the start and after an update, the value has just been fetched. If a folder is watched, the value is
        // fetched again, because the folder may have changed before the watch began.
        let mut is_fresh = true;
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
                watcher.watch(std::iter::empty(), vec![folder.clone()]);
            }
            if !is_fresh || watched.is_some() {
                let this = self.clone();
                let refreshed = tokio::task::spawn_blocking(move || this.refresh()).await;
                refreshed.map_err(|error| ComponentError(format!("the fetch panicked: {error}")))?;
            }
            let next = async {
                match fetch.interval() {
                    Some(interval) if is_fresh && fetch.is_spread() => {
                        tokio::time::sleep(self.spread.first_pause(interval)).await;
                    }
                    Some(interval) => tokio::time::sleep(interval).await,
                    None => std::future::pending().await,
                }
            };
            is_fresh = tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                () = self.updated.notified() => true,
                () = self.changed.notified() => {
                    tokio::time::sleep(SETTLE).await;
                    false
                }
                () = next => false,
            };
        }
    }
}

impl<A: 'static> Component<A> for Source<A> {
    fn update(&self, arguments: Arc<A>) -> Result<(), ComponentError> {
        let fetch = (self.make)(&self.context, &arguments)?;
        let exports = fetch.fetch().map_err(ComponentError::new)?;
        let mut current = self.fetch.lock();
        *current = fetch;
        export(&self.context, exports);
        drop(current);
        self.updated.notify_one();
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(self.work(shutdown))
    }
}
