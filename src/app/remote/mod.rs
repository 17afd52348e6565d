//! The configuration from a server (`remotecfg`): asked for again and again, and run beside that of the files by a
//! controller of its own.
//!
//! In: the settings of the block, put in force with the configuration that they stand in. Out: components whose ids
//! begin with `remotecfg/`. A load is all or nothing; what was good last stays in force while the server is away or
//! sends what is wrong, and is kept on disk for the next start. The file's configuration never waits for the server.

mod endpoint;
mod metrics;
mod running;
mod seed;
mod session;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::Rng as _;
use tokio::sync::watch;

use crate::base::Shutdown;
use crate::lang::argument_error::ArgumentError;
use crate::pipeline::Controller;
use crate::pipeline::check::settings::remote::RemoteSettings;
use crate::pipeline::run::prepare::Apply;
use crate::telemetry::metrics::Scope;

use endpoint::Endpoint;
use metrics::RemoteMetrics;
use running::Running;
use session::Session;

pub use endpoint::MODULE;

/// Asks a server for a configuration and runs it. Clones are handles of the same.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

struct Inner {
    running: Running,
    /// Where ids and configurations are kept.
    storage: PathBuf,
    user_agent: Arc<str>,
    wanted: watch::Sender<Option<Arc<Endpoint>>>,
}

impl Remote {
    /// Asks nobody yet. `controller` runs what comes, under the id [`MODULE`]; `config` is where the file's
    /// configuration is.
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
            wanted: watch::Sender::new(None),
        }))
    }

    /// The controller of the configuration from the server.
    pub fn controller(&self) -> &Controller {
        &self.0.running.controller
    }

    /// The text in force, under its name.
    pub(crate) fn in_force(&self) -> Option<(Arc<str>, Arc<str>)> {
        let running = &self.0.running;
        running.in_force().map(|text| (running.name.clone(), text))
    }

    /// Gets ready to ask as the block says, `None` to ask nobody: reads certificates, connects to nobody. The answer
    /// puts it in force.
    pub fn prepare(&self, settings: Option<&RemoteSettings>) -> Result<Apply, ArgumentError> {
        let prepare = |settings| Endpoint::prepare(settings, &self.0.storage, &self.0.user_agent);
        let wanted = settings.map(prepare).transpose()?;
        let inner = self.0.clone();
        Ok(Box::new(move || drop(inner.wanted.send_replace(wanted.map(Arc::new)))))
    }

    /// Asks whenever it is time, and whenever the settings were put in force anew, until `shutdown`; then stops what
    /// runs.
    pub async fn run(self, shutdown: Shutdown) {
        let inner = &self.0;
        let running = &inner.running;
        let controller = tokio::spawn({
            let (controller, shutdown) = (running.controller.clone(), shutdown.clone());
            async move { controller.run(shutdown).await }
        });
        let mut changes = inner.wanted.subscribe();
        let mut session: Option<Session> = None;
        while !shutdown.is_cancelled() {
            let wanted = changes.borrow_and_update().clone();
            match (wanted, &mut session) {
                (Some(wanted), Some(current)) if current.endpoint.settings == wanted.settings => {
                    // Certificates may be others, and who reloads wants to see what the server has now.
                    current.endpoint = wanted;
                    current.look(running, &shutdown).await;
                }
                (wanted, _) => {
                    let old = session.take();
                    let is_gone = wanted.is_none() && old.is_some();
                    if let Some(old) = old {
                        old.leave(wanted.as_deref()).await;
                    }
                    if is_gone {
                        running.stop_all().await;
                    }
                    if let Some(wanted) = wanted {
                        let mut new = Session::new(wanted);
                        new.begin(running, &shutdown).await;
                        session = Some(new);
                    }
                }
            }
            loop {
                tokio::select! {
                    () = shutdown.cancelled() => break,
                    // The sender is held by `self`: it does not end before.
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
        // The runtime has logged a panic.
        let _ = controller.await;
    }
}

/// Returns when it is time to ask again; collectors that started together do not ask together for ever.
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
