//! Reloads the configuration on SIGHUP, over HTTP, or when its files change (`--config.watch`).
//!
//! In: the path of the configuration. Out: a load by the controller; the log, the response and the metrics show its
//! outcome. Reading the files and loading them form one critical section, so that an older text never replaces a newer
//! text. A file event only triggers a check: the configuration is loaded if its text differs from the text of the last
//! load, even if that load failed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use parking_lot::Mutex;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::app::sources::Sources;
use crate::app::terminal::Colour;
use alluvium_base::Shutdown;
use alluvium_lang::Diagnostics;
use alluvium_pipeline::Controller;
use alluvium_telemetry::memory;

/// Time between two checks of the files if there is no event, because some file systems report no events.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Delay between a load and the return of freed memory to the system.
const AFTER_LOAD: Duration = Duration::from_millis(500);
/// Files that keep changing are read after this multiple of the settle time (`--config.watch-settle`).
const MOST_SETTLES: u32 = 10;

/// Names and texts of files, shared with the controller that runs them.
pub(crate) type Texts = Vec<(Arc<str>, Arc<str>)>;

/// Wraps file names and texts for sharing.
pub(crate) fn shared(texts: Vec<(String, String)>) -> Texts {
    let shared = |(path, text): (String, String)| (path.into(), text.into());
    texts.into_iter().map(shared).collect()
}

/// The reason why a reload changed nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReloadError {
    /// The files of the configuration cannot be read.
    #[error("{0:#}")]
    Read(anyhow::Error),
    /// The configuration has errors.
    #[error("{}", .0.render())]
    Invalid(Diagnostics),
}

/// Reloads the configuration on request.
pub(crate) struct Reloader {
    controller: Controller,
    sources: Sources,
    /// Locked while the files are read and loaded.
    working: tokio::sync::Mutex<()>,
    texts: Mutex<LoadedTexts>,
}

#[derive(Default)]
struct LoadedTexts {
    /// The texts that were read last, whether or not they could be loaded.
    tried: Option<Texts>,
    in_force: Texts,
}

impl Reloader {
    /// Creates a reloader for a configuration that has been read but not loaded.
    pub(crate) fn new(controller: Controller, sources: Sources) -> Self {
        Self {
            controller,
            sources,
            working: tokio::sync::Mutex::default(),
            texts: Mutex::default(),
        }
    }

    pub(crate) fn in_force(&self) -> Texts {
        self.texts.lock().in_force.clone()
    }

    /// Loads these texts. On an error, the running configuration stays in force.
    pub(crate) async fn load(&self, texts: Texts) -> Result<(), Diagnostics> {
        self.texts.lock().tried = Some(texts.clone());
        let result = self.controller.load(texts.clone()).await;
        tokio::spawn(give_back_later());
        match result {
            Ok(warnings) => {
                show(&warnings);
                self.texts.lock().in_force = texts;
                Ok(())
            }
            Err(diagnostics) => {
                show(&diagnostics);
                Err(diagnostics)
            }
        }
    }

    /// Reads and loads the configuration again. On an error, the running configuration stays in force, and the error
    /// text becomes the HTTP response.
    pub(crate) async fn reload(&self, asked_by: &'static str) -> Result<(), ReloadError> {
        let _working = self.working.lock().await;
        match self.sources.read() {
            Ok(texts) => self.apply(shared(texts), asked_by).await,
            Err(error) => {
                tracing::error!(asked_by, error = %error, "reload failed; the previous configuration stays in force");
                let error = ReloadError::Read(error);
                self.controller
                    .load_failed(&self.sources.path().display().to_string(), &error.to_string());
                Err(error)
            }
        }
    }

    async fn apply(&self, texts: Texts, asked_by: &'static str) -> Result<(), ReloadError> {
        match self.load(texts).await {
            Ok(()) => {
                tracing::info!(asked_by, config = %self.sources.path().display(), "reloaded");
                Ok(())
            }
            Err(diagnostics) => {
                tracing::error!(
                    asked_by,
                    errors = diagnostics.len(),
                    "reload failed; the previous configuration stays in force"
                );
                Err(ReloadError::Invalid(diagnostics))
            }
        }
    }

    /// Reloads at every SIGHUP.
    pub(crate) fn on_hangup(
        self: Arc<Self>,
        shutdown: Shutdown,
    ) -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
        let mut hangup = signal(SignalKind::hangup())?;
        Ok(async move {
            while let Some(Some(())) = shutdown.run_until_cancelled(hangup.recv()).await {
                // The outcome is in the log and in the metrics.
                let _ = self.reload("signal").await;
            }
        })
    }

    /// Reloads whenever the files have changed and then stayed the same for `settle`.
    pub(crate) async fn on_change(self: Arc<Self>, settle: Duration, shutdown: Shutdown) {
        let (changed, mut changes) = mpsc::channel(1);
        let mut watcher = Watch::new(changed);
        loop {
            // The watches are set up again each time, because a rename may have put another folder behind a link. The
            // files are read after that, so no change is missed in between.
            watcher.look_at(self.sources.path());
            self.reload_if_changed().await;
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
                Some(()) = changes.recv() => settled(&mut changes, settle).await,
            }
        }
    }

    async fn reload_if_changed(&self) {
        let _working = self.working.lock().await;
        // A file that is being replaced can be missing for a moment. If it stays missing, the next explicit reload
        // reports that.
        let Ok(texts) = self.sources.read().map(shared) else {
            tracing::debug!(config = %self.sources.path().display(), "the configuration cannot be read at the moment");
            return;
        };
        let is_new = self.texts.lock().tried.as_ref() != Some(&texts);
        if is_new {
            // The outcome is in the log and in the metrics.
            let _ = self.apply(texts, "watch").await;
        }
    }
}

/// Returns memory to the system, [`AFTER_LOAD`] after the load that has freed the memory. By then the new components
/// have started and the caller has received its response. A load frees about as much memory as it allocates.
pub(crate) async fn give_back_later() {
    tokio::time::sleep(AFTER_LOAD).await;
    // The task runs detached, because its result is not needed.
    drop(tokio::task::spawn_blocking(memory::release_unused_memory));
}

/// Returns once nothing has changed for `settle`, or after [`MOST_SETTLES`] times `settle`.
async fn settled(changes: &mut mpsc::Receiver<()>, settle: Duration) {
    let latest = tokio::time::Instant::now() + settle * MOST_SETTLES;
    while tokio::time::Instant::now() < latest
        && tokio::time::timeout(settle, changes.recv())
            .await
            .is_ok_and(|change| change.is_some())
    {}
}

/// Watches the folders in which a change of the configuration is visible.
struct Watch {
    watcher: Option<RecommendedWatcher>,
    folders: Vec<PathBuf>,
}

impl Watch {
    fn new(changed: mpsc::Sender<()>) -> Self {
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Read events are ignored, because our own reads cause them.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                // One pending notification is enough.
                let _ = changed.try_send(());
            }
        });
        let watcher = watcher
            .inspect_err(|error| {
                tracing::warn!(%error, every = ?LOOK_EVERY, "cannot watch files; they are checked \
                    periodically");
            })
            .ok();
        Self {
            watcher,
            folders: Vec::new(),
        }
    }

    /// Watches the folder of the path and, if it is a link, the folder of the real file.
    fn look_at(&mut self, path: &Path) {
        let Some(watcher) = &mut self.watcher else { return };
        let folder = |path: &Path| {
            if path.is_dir() {
                return Some(path.to_owned());
            }
            path.parent().map(|parent| {
                if parent.as_os_str().is_empty() {
                    PathBuf::from(".")
                } else {
                    parent.to_owned()
                }
            })
        };
        let real = std::fs::canonicalize(path).ok();
        let mut folders: Vec<PathBuf> = [Some(path), real.as_deref()]
            .into_iter()
            .flatten()
            .filter_map(folder)
            .collect();
        folders.dedup();
        if folders == self.folders {
            return;
        }
        for old_folder in self.folders.drain(..) {
            // The folder may have been deleted, together with its watch.
            let _ = watcher.unwatch(&old_folder);
        }
        for folder in folders {
            match watcher.watch(&folder, RecursiveMode::NonRecursive) {
                Ok(()) => self.folders.push(folder),
                Err(error) => {
                    tracing::warn!(folder = %folder.display(), %error, every = ?LOOK_EVERY, "cannot watch; the folder \
                        is checked periodically");
                }
            }
        }
    }
}

/// Prints diagnostics to standard error.
#[expect(
    clippy::print_stderr,
    reason = "diagnostics with excerpts are for people at a terminal"
)]
pub(crate) fn show(diagnostics: &Diagnostics) {
    if !diagnostics.is_empty() {
        eprint!("{}", Colour::Auto.render(diagnostics));
    }
}

#[cfg(test)]
#[path = "reload_tests.rs"]
mod tests;
