//! Remote configuration (`remotecfg`): fetched from a server at intervals, and run by its own controller beside the
//! configuration of the files.
//!
//! In: the settings of the `remotecfg` block, applied together with the configuration that contains them. Out:
//! components whose ids begin with `remotecfg/`. A load applies the whole configuration or nothing of it. If the server
//! is down or sends an invalid configuration, the last valid configuration stays in force. This configuration is also
//! cached on disk for the next start. The configuration of the files never waits for the server.

mod endpoint;
mod metrics;
mod running;
mod seed;
mod session;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::RngExt as _;
use tokio::sync::watch;

use alluvium_base::Shutdown;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_pipeline::Controller;
use alluvium_pipeline::check::settings::remote::RemoteSettings;
use alluvium_pipeline::run::prepare::Apply;
use alluvium_telemetry::metrics::Scope;

use endpoint::Endpoint;
use metrics::RemoteMetrics;
use running::Running;
use session::Session;

pub use endpoint::MODULE;

/// Fetches and runs the remote configuration. Clones share the state.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

struct Inner {
    running: Running,
    /// Folder for the collector id and cached configurations.
    storage: PathBuf,
    user_agent: Arc<str>,
    endpoint: watch::Sender<Option<Arc<Endpoint>>>,
}

impl Remote {
    /// Creates an instance that fetches nothing yet. `controller` runs the remote configuration under the id
    /// [`MODULE`]; `config` is the path of the file configuration.
    pub fn new(controller: Controller, config: &Path, storage: &Path, user_agent: &str, metrics: &Scope) -> Self {
        let folder = if config.is_dir() {
            config
        } else {
            config.parent().unwrap_or(Path::new(""))
        };
        Self(Arc::new(Inner {
            running: Running::new(controller, &folder.join(MODULE), RemoteMetrics::register(metrics)),
            storage: storage.to_owned(),
            user_agent: user_agent.into(),
            endpoint: watch::Sender::new(None),
        }))
    }

    /// Returns the controller that runs the remote configuration.
    pub fn controller(&self) -> &Controller {
        &self.0.running.controller
    }

    /// Returns the remote configuration in force, as name and text.
    pub(crate) fn in_force(&self) -> Option<(Arc<str>, Arc<str>)> {
        let running = &self.0.running;
        running.in_force().map(|text| (running.name.clone(), text))
    }

    /// Prepares to fetch with these settings; `None` stops fetching. Reads certificates without connecting. The
    /// returned function applies the settings.
    pub fn prepare(&self, settings: Option<&RemoteSettings>) -> Result<Apply, ArgumentError> {
        let prepare = |settings| Endpoint::prepare(settings, &self.0.storage, &self.0.user_agent);
        let endpoint = settings.map(prepare).transpose()?;
        let inner = self.0.clone();
        Ok(Box::new(move || {
            drop(inner.endpoint.send_replace(endpoint.map(Arc::new)));
        }))
    }

    /// Fetches the configuration at intervals, and whenever settings are applied, until `shutdown`. Then stops the
    /// remote components.
    pub async fn run(self, shutdown: Shutdown) {
        let inner = &self.0;
        let running = &inner.running;
        let controller = tokio::spawn({
            let (controller, shutdown) = (running.controller.clone(), shutdown.clone());
            async move { controller.run(shutdown).await }
        });
        let mut changes = inner.endpoint.subscribe();
        let mut session: Option<Session> = None;
        while !shutdown.is_cancelled() {
            let endpoint = changes.borrow_and_update().clone();
            match (endpoint, &mut session) {
                (Some(endpoint), Some(current)) if current.endpoint.settings == endpoint.settings => {
                    // Use the new endpoint even if the settings are the same: certificates may have changed, and a
                    // reload should fetch the current configuration.
                    current.endpoint = endpoint;
                    current.look(running, &shutdown).await;
                }
                (endpoint, _) => {
                    let old = session.take();
                    let is_gone = endpoint.is_none() && old.is_some();
                    if let Some(old) = old {
                        old.leave(endpoint.as_deref()).await;
                    }
                    if is_gone {
                        running.stop_all().await;
                    }
                    if let Some(endpoint) = endpoint {
                        let mut new = Session::new(endpoint);
                        new.begin(running, &shutdown).await;
                        session = Some(new);
                    }
                }
            }
            loop {
                tokio::select! {
                    () = shutdown.cancelled() => break,
                    // `self` holds the sender, so `changed` cannot fail.
                    _ = changes.changed() => break,
                    () = next_look(session.as_ref()) => {}
                }
                if let Some(session) = &mut session {
                    session.look(running, &shutdown).await;
                }
            }
        }
        if let Some(session) = session {
            session.leave(None).await;
        }
        // If the task has panicked, the panic is already in the log.
        let _ = controller.await;
    }
}

/// Waits for the poll interval of the session, with jitter, so that collectors that started together spread their
/// requests. Without a session, waits forever.
async fn next_look(session: Option<&Session>) {
    match session {
        Some(session) => {
            let wait = session.endpoint.settings.poll_frequency;
            let wait = wait.mul_f64(rand::rng().random_range(0.95..1.05));
            tokio::time::sleep(wait).await;
        }
        None => std::future::pending().await,
    }
}
