//! The exchange with one remote configuration server: registration, requests for the configuration, and status reports
//! about the received configurations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::app::remote::endpoint::{Endpoint, hash};
use crate::app::remote::running::Running;
use alluvium_base::Shutdown;
use alluvium_lang::Diagnostics;
use alluvium_wire::call::{CallError, Caller};
use alluvium_wire::client::ClientError;
use alluvium_wire::collector::{self, Answer, Status};
use alluvium_wire::connect::Code;

/// Timeout of a request to the server.
const REQUEST: Duration = Duration::from_secs(30);
/// Timeout of the request that removes the registration.
const FAREWELL: Duration = Duration::from_secs(5);

/// The reason why a request to the server failed.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    /// The credentials for the server cannot be obtained.
    #[error(transparent)]
    Credentials(#[from] ClientError),
    #[error("cannot register this collector: {0}")]
    Register(#[source] CallError),
    #[error(transparent)]
    Call(#[from] CallError),
}

/// A session with a remote configuration server.
pub(super) struct Session {
    pub(super) endpoint: Arc<Endpoint>,
    is_registered: bool,
    /// Hash that the server sent with its last configuration.
    hash: String,
    /// The last configuration of the server, valid or not.
    received: Option<Arc<str>>,
    /// Status of the received configuration.
    status: Option<Status>,
    /// The last status that was reported to the server.
    reported: Option<Status>,
}

impl Session {
    pub(super) fn new(endpoint: Arc<Endpoint>) -> Self {
        Self {
            endpoint,
            is_registered: false,
            hash: String::new(),
            received: None,
            status: None,
            reported: None,
        }
    }

    /// Sends the first request. If the request fails or the received configuration cannot be loaded, loads the
    /// configuration that is cached on disk.
    pub(super) async fn begin(&mut self, running: &Running, shutdown: &Shutdown) {
        if self.look(running, shutdown).await || shutdown.is_cancelled() {
            return;
        }
        let text = match self.endpoint.read_cache().await {
            Ok(text) => text,
            Err(error) => {
                tracing::warn!(
                    %error,
                    "there is no cached remote configuration either; the next request follows after poll_frequency"
                );
                return;
            }
        };
        if running.in_force().as_ref() == Some(&text) {
            return;
        }
        match running.load(&text).await {
            Ok(()) => tracing::info!(hash = hash(&text), "the cached remote configuration is in force"),
            Err(error) => {
                tracing::error!(%error, "cannot load the cached remote configuration");
            }
        }
    }

    /// Requests the configuration and loads it if it changed. Returns false if the request failed or the server's
    /// configuration is not in force.
    pub(super) async fn look(&mut self, running: &Running, shutdown: &Shutdown) -> bool {
        running.metrics.asks();
        match shutdown.run_until_cancelled(self.ask()).await {
            None => false,
            Some(Ok((answer, duration))) => {
                running.metrics.answered(duration);
                match answer {
                    Answer::NotModified => {
                        running.metrics.not_modified();
                        self.retry(running, shutdown).await
                    }
                    Answer::Config { content, hash } => {
                        running.metrics.modified();
                        self.hash = hash;
                        self.take(running, content.into(), shutdown).await
                    }
                }
            }
            Some(Err(error)) => {
                running.metrics.failed();
                tracing::error!(
                    %error,
                    "cannot fetch the remote configuration; the running configuration stays in force"
                );
                false
            }
        }
    }

    /// Removes the registration, unless the next session is for the same collector and server.
    pub(super) async fn leave(self, next: Option<&Endpoint>) {
        let own = &self.endpoint;
        let is_same = next.is_some_and(|next| next.base == own.base && next.identity.id == own.identity.id);
        if is_same || !self.is_registered {
            return;
        }
        let farewell = async {
            let caller = self.caller().await?;
            collector::unregister(&caller, &own.identity.id).await?;
            Ok::<(), RequestError>(())
        };
        match tokio::time::timeout(FAREWELL, farewell).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "cannot unregister this collector"),
            Err(_) => tracing::warn!("cannot unregister this collector: timeout"),
        }
    }

    async fn caller(&self) -> Result<Caller, ClientError> {
        let endpoint = &self.endpoint;
        let headers = endpoint.client.headers().await?;
        let caller = Caller::new(endpoint.client.client().clone(), endpoint.base.clone());
        Ok(caller.with_headers(headers).with_timeout(REQUEST))
    }

    async fn ask(&mut self) -> Result<(Answer, Duration), RequestError> {
        let caller = self.caller().await?;
        let identity = &self.endpoint.identity;
        if !self.is_registered {
            let registered = collector::register(&caller, identity).await;
            registered.map_err(RequestError::Register)?;
            self.is_registered = true;
        }
        let news = self
            .status
            .as_ref()
            .filter(|status| self.reported.as_ref() != Some(status));
        let started = Instant::now();
        let answer = collector::get_config(&caller, identity, &self.hash, news).await;
        match answer {
            Ok(answer) => {
                self.reported.clone_from(&self.status);
                Ok((answer, started.elapsed()))
            }
            Err(error) => {
                // After a restart the server may not know this collector, so the next request registers it again.
                let forgot = matches!(
                    &error,
                    CallError::Refused {
                        code: Some(Code::NotFound),
                        ..
                    }
                );
                self.is_registered &= !forgot;
                Err(error.into())
            }
        }
    }

    /// If the received configuration could not be loaded, loads it again, because something that it needs may exist by
    /// now. Returns false if the load fails.
    async fn retry(&mut self, running: &Running, shutdown: &Shutdown) -> bool {
        match (&self.status, &self.received) {
            (Some(Status::Failed(_)), Some(text)) => {
                let text = text.clone();
                self.run(running, &text, shutdown).await
            }
            _ => true,
        }
    }

    async fn take(&mut self, running: &Running, text: Arc<str>, shutdown: &Shutdown) -> bool {
        if self.received.as_ref() == Some(&text) {
            return self.retry(running, shutdown).await;
        }
        running.metrics.received(&hash(&text));
        self.received = Some(text.clone());
        self.run(running, &text, shutdown).await
    }

    async fn run(&mut self, running: &Running, text: &Arc<str>, shutdown: &Shutdown) -> bool {
        let is_in_force = running.in_force().as_ref() == Some(text);
        let result = if is_in_force {
            running.metrics.in_force(Some(&hash(text)));
            Ok(())
        } else {
            running.load(text).await
        };
        let status = match result {
            Ok(()) => {
                if !is_in_force {
                    tracing::info!(hash = hash(text), "a new remote configuration is in force");
                }
                self.endpoint.write_cache(text.clone()).await;
                Status::Applied
            }
            Err(diagnostics) => {
                running.metrics.failed();
                tracing::error!(
                    hash = hash(text),
                    errors = diagnostics.len(),
                    "cannot load the remote configuration; the running configuration stays in force"
                );
                Status::Failed(messages(&diagnostics))
            }
        };
        let is_well = status == Status::Applied;
        if self.status.as_ref() != Some(&status) {
            self.status = Some(status);
            self.tell(shutdown).await;
        }
        is_well
    }

    /// Reports the status to the server at once. A configuration in the response is ignored, because the server sends
    /// it again at the next request.
    async fn tell(&mut self, shutdown: &Shutdown) {
        if let Some(Err(error)) = shutdown.run_until_cancelled(self.ask()).await {
            tracing::debug!(%error, "cannot report the status of the configuration");
        }
    }
}

/// Formats the diagnostics, one per line.
fn messages(diagnostics: &Diagnostics) -> String {
    let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
