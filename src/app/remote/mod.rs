//! The configuration from a server (`remotecfg`): asked for again and again, and run beside that of the files by a controller of its own.
//!
//! In: the settings of the block, put in force with the configuration that they stand in. Out: components whose ids begin with `remotecfg/`. A load is all or nothing; what
//! was good last stays in force while the server is away or sends what is wrong, and is kept on disk for the next start. The file's configuration never waits for the
//! server.

mod metrics;
mod seed;
mod session;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rand::Rng as _;
use sha2::{Digest, Sha256};
use tokio::sync::watch;
use url::Url;

use crate::app::reload::{give_back_later, show};
use crate::base::Shutdown;
use crate::base::file::replace;
use crate::components::common::http_client::HttpClientArguments;
use crate::components::common::http_values::http_url;
use crate::lang::Diagnostics;
use crate::lang::argument_error::ArgumentError;
use crate::lang::body::FromBody as _;
use crate::pipeline::Controller;
use crate::pipeline::check::settings::remote::RemoteSettings;
use crate::pipeline::run::prepare::Apply;
use crate::telemetry::metrics::Scope;
use crate::wire::client::HttpClient;
use crate::wire::collector::Identity;

use metrics::RemoteMetrics;
use session::Session;

/// The module that the components are in, and the folder below the storage path.
pub const MODULE: &str = "remotecfg";

/// Asks a server for a configuration and runs it. Clones are handles of the same.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

struct Inner {
    controller: Controller,
    /// Where ids and configurations are kept.
    storage: PathBuf,
    /// What the text is called in diagnostics; its folder is that of the file's configuration.
    name: Arc<str>,
    user_agent: Arc<str>,
    wanted: watch::Sender<Option<Arc<Wanted>>>,
    metrics: RemoteMetrics,
    in_force: Mutex<Option<Arc<str>>>,
}

/// A server to ask, prepared.
struct Wanted {
    settings: RemoteSettings,
    identity: Identity,
    base: Url,
    client: HttpClient,
    /// Where its last good configuration is kept.
    cache: PathBuf,
}

impl Remote {
    /// Asks nobody yet. `controller` runs what comes, under the id [`MODULE`]; `config` is where the file's configuration is.
    pub fn new(controller: Controller, config: &Path, storage: &Path, user_agent: &str, metrics: &Scope) -> Self {
        let folder = match config.is_dir() {
            true => config,
            false => config.parent().unwrap_or(Path::new("")),
        };
        Self(Arc::new(Inner {
            controller,
            storage: storage.to_owned(),
            name: folder.join(MODULE).display().to_string().into(),
            user_agent: user_agent.into(),
            wanted: watch::Sender::new(None),
            metrics: RemoteMetrics::register(metrics),
            in_force: Mutex::default(),
        }))
    }

    /// What runs.
    pub fn controller(&self) -> &Controller {
        &self.0.controller
    }

    /// The text in force, under its name.
    pub fn in_force(&self) -> Option<(Arc<str>, Arc<str>)> {
        let text = self.0.in_force.lock().clone();
        text.map(|text| (self.0.name.clone(), text))
    }

    /// Gets ready to ask as the block says, `None` to ask nobody: reads certificates, connects to nobody. The answer puts it in force.
    pub fn prepare(&self, settings: Option<&RemoteSettings>) -> Result<Apply, ArgumentError> {
        let wanted = settings.map(|settings| self.0.wanted(settings)).transpose()?;
        let inner = self.0.clone();
        Ok(Box::new(move || drop(inner.wanted.send_replace(wanted.map(Arc::new)))))
    }

    /// Asks whenever it is time, and whenever the settings were put in force anew, until `shutdown`; then stops what runs.
    pub async fn run(self, shutdown: Shutdown) {
        let inner = &self.0;
        let running = tokio::spawn({
            let (controller, shutdown) = (inner.controller.clone(), shutdown.clone());
            async move { controller.run(shutdown).await }
        });
        let mut changes = inner.wanted.subscribe();
        let mut session: Option<Session> = None;
        while !shutdown.is_cancelled() {
            let wanted = changes.borrow_and_update().clone();
            match (wanted, &mut session) {
                (Some(wanted), Some(current)) if current.wanted.settings == wanted.settings => {
                    // Certificates may be others, and who reloads wants to see what the server has now.
                    current.wanted = wanted;
                    current.look(inner, &shutdown).await;
                }
                (wanted, _) => {
                    let old = session.take();
                    let is_gone = wanted.is_none() && old.is_some();
                    if let Some(old) = old {
                        old.leave(wanted.as_deref()).await;
                    }
                    if is_gone {
                        inner.stop_all().await;
                    }
                    if let Some(wanted) = wanted {
                        let mut new = Session::new(wanted);
                        new.begin(inner, &shutdown).await;
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
                    session.look(inner, &shutdown).await;
                }
            }
        }
        if let Some(session) = session {
            session.leave(None).await;
        }
        // A panic was told by the runtime.
        let _ = running.await;
    }
}

/// Returns when it is time to ask again; collectors that started together do not ask together for ever.
async fn next_look(session: Option<&Session>) {
    match session {
        Some(session) => {
            let wait = session.wanted.settings.poll_frequency;
            let wait = wait.mul_f64(rand::rng().random_range(0.95..1.05));
            tokio::time::sleep(wait).await;
        }
        None => std::future::pending().await,
    }
}

impl Inner {
    fn wanted(&self, settings: &RemoteSettings) -> Result<Wanted, ArgumentError> {
        let error = |path: &str, message: String| ArgumentError {
            path: path.to_owned(),
            message,
        };
        let base = http_url(&settings.url).map_err(|message| error("url", message))?;
        let options = HttpClientArguments::from_body(&settings.client)
            .map_err(|errors| {
                errors
                    .0
                    .into_iter()
                    .next()
                    .unwrap_or_else(|| error("", "not known".to_owned()))
            })?
            .options(&self.user_agent);
        let client = HttpClient::new(&options).map_err(|failed| error("", failed.to_string()))?;
        let id = match settings.id.is_empty() {
            false => settings.id.clone(),
            true => seed::id(&self.storage)
                .map_err(|failed| error("id", format!("no id can be kept under the storage path: {failed}")))?
                .into(),
        };
        let mut attributes = settings.attributes.clone();
        attributes.insert("collector.os".into(), std::env::consts::OS.into());
        attributes.insert(
            "collector.version".into(),
            concat!("v", env!("CARGO_PKG_VERSION")).into(),
        );
        let identity = Identity {
            id,
            name: settings.name.clone(),
            attributes,
        };
        let cache = self
            .storage
            .join(MODULE)
            .join(format!("{}.alloy", key(&identity, settings)));
        Ok(Wanted {
            settings: settings.clone(),
            identity,
            base,
            client,
            cache,
        })
    }

    /// Loads a configuration. When it is refused nothing has changed.
    async fn load(&self, text: &Arc<str>) -> Result<(), Diagnostics> {
        let result = self.controller.load(vec![(self.name.clone(), text.clone())]).await;
        tokio::spawn(give_back_later());
        match result {
            Ok(warnings) => {
                show(&warnings);
                *self.in_force.lock() = Some(text.clone());
                self.metrics.in_force(Some(&hash(text)));
                Ok(())
            }
            Err(diagnostics) => {
                show(&diagnostics);
                Err(diagnostics)
            }
        }
    }

    /// Stops what runs: nobody asks for it any more.
    async fn stop_all(&self) {
        match self.controller.load(vec![(self.name.clone(), "")]).await {
            Ok(_) => {
                *self.in_force.lock() = None;
                self.metrics.in_force(None);
                tracing::info!("there is no configuration from a server any more; its components are stopped");
            }
            // Only a controller that has stopped refuses to run nothing.
            Err(error) => {
                tracing::debug!(%error, "components of the configuration from the server were stopped before");
            }
        }
    }
}

/// Keeps a configuration for the next start.
async fn keep(path: PathBuf, text: Arc<str>) {
    let written = tokio::task::spawn_blocking(move || {
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        replace(&path, text.as_bytes())
    });
    let written = written.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    if let Err(error) = written {
        tracing::error!(%error, "the configuration from the server cannot be kept on disk");
    }
}

/// Configurations of different servers, collectors and attributes are kept apart.
fn key(identity: &Identity, settings: &RemoteSettings) -> String {
    let mut whole = format!("{}\0{}\0{}", settings.url, identity.id, identity.name);
    for (key, value) in &settings.attributes {
        whole.push_str(&format!("\0{key}\0{value}"));
    }
    hash(&whole)
}

/// The start of the SHA-256 of a text: enough to tell texts apart.
fn hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
