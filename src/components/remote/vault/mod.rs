//! `remote.vault`: a secret of HashiCorp Vault, or of a compatible server.
//!
//! In: the path of the secret and a login method. Out: the export `data`, whose values are secrets. `login` implements
//! the login methods, `clouds` the methods with a cloud identity, `secret` the stores and `client` the requests. A
//! token is renewed before it expires, or replaced by a new login. If a later read fails, the last secret stays.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use serde_json::{Value as Json, json};

use crate::common::clouds::environment::Environment;
use crate::common::sources::fetch_error::FetchError;
use crate::common::sources::source;
use crate::common::sources::source::{Exports, Fetch};
use alluvium_lang::schema::{Attribute, Kind};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{Component, ComponentError, Context, Definition, Stability};
use alluvium_telemetry::metrics::Scope;

mod arguments;
mod client;
mod clouds;
mod login;
mod secret;
#[cfg(test)]
mod tests;
mod vault_error;

use arguments::VaultArguments;
use client::{Auth, Request, Vault};
use clouds::Clouds;
use login::Way;
use vault_error::VaultError;

/// Maximum pause after a failed read. If `reread_frequency` is shorter, the pause is that time.
const TRY_AGAIN: Duration = Duration::from_mins(1);
/// Minimum time until the next read if the lease of the token or of the secret determines that time.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);

/// The definition of `remote.vault`.
pub(crate) const DEFINITION: Definition<VaultArguments> = Definition {
    name: "remote.vault",
    stability: Stability::GenerallyAvailable,
    exports: &[Attribute::required(
        "data",
        Kind::Map(&Kind::Secret),
        "The values of the secret, by key.",
    )],
    metrics: |scope| drop(VaultMetrics::new(scope)),
    build: Some(build),
    doc: "`remote.vault` exports a secret of a Vault server and keeps it up to date.",
};

/// Counters, with the names that Alloy uses.
#[derive(Clone, Default)]
struct VaultMetrics {
    logins: Counter,
    renewals: Counter,
    reads: Counter,
}

struct Remote {
    id: Arc<str>,
    arguments: VaultArguments,
    vault: Vault,
    clouds: Clouds,
    metrics: VaultMetrics,
    session: tokio::sync::Mutex<Session>,
    /// Time until the next read, or `None` if no further read is due.
    next: Mutex<Option<Duration>>,
    /// Keys of the values that the last read skipped. The log names each of them once.
    skipped: Mutex<Vec<String>>,
}

/// The state that is kept from one read to the next.
#[derive(Default)]
struct Session {
    token: Option<Token>,
    /// The unwrapped secret ID of an AppRole whose secret is a wrapping token.
    unwrapped: Option<String>,
}

struct Token {
    text: String,
    /// Time at which the token is renewed, or `None` if it does not expire.
    renew: Option<Instant>,
    renewable: bool,
}

impl VaultMetrics {
    fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        for (name, help, counter) in [
            ("remote_vault_auth", "Successful logins", &metrics.logins),
            (
                "remote_vault_auth_lease_renewal",
                "Successful renewals of the token",
                &metrics.renewals,
            ),
            (
                "remote_vault_secret_reads",
                "Successful reads of the secret",
                &metrics.reads,
            ),
        ] {
            scope.register(name, help, counter.clone());
        }
        metrics
    }
}

fn build(
    context: Context,
    arguments: Arc<VaultArguments>,
) -> Result<Arc<dyn Component<VaultArguments>>, ComponentError> {
    let metrics = VaultMetrics::new(&context.metrics);
    source::build(context, &*arguments, move |context, arguments: &VaultArguments| {
        Ok(Remote {
            id: context.id.clone(),
            vault: Vault::new(arguments, &context.user_agent)?,
            clouds: Clouds::new(context, Environment::of_process())?,
            arguments: arguments.clone(),
            metrics: metrics.clone(),
            session: tokio::sync::Mutex::default(),
            next: Mutex::new(Some(TRY_AGAIN)),
            skipped: Mutex::default(),
        })
    })
}

impl Remote {
    async fn read(&self) -> Result<Exports, VaultError> {
        let mut session = self.session.lock().await;
        let is_old = self.token(&mut session).await?;
        let mut read = self.read_with(&session).await;
        if is_old && read.as_ref().is_err_and(VaultError::is_denied) {
            // The token may have been revoked, so the read is retried once with a new token. After another error there
            // is no new login, because each login leaves a token at the server until the token expires.
            self.log_in(&mut session).await?;
            read = self.read_with(&session).await;
        }
        let read = read?;
        self.metrics.reads.inc();
        let token = session.token.as_ref().and_then(|token| token.renew);
        let lease = Some(read.lease_seconds).filter(|seconds| *seconds > 0).map(two_thirds);
        let waits = [
            Some(self.arguments.reread_frequency).filter(|wait| !wait.is_zero()),
            lease,
            token.map(|renew| renew.saturating_duration_since(Instant::now()).max(SHORTEST_LEASE)),
        ];
        *self.next.lock() = waits.into_iter().flatten().min();
        Ok(self.exports(read.data))
    }

    async fn read_with(&self, session: &Session) -> Result<secret::Secret, VaultError> {
        let token = session.token.as_ref().map_or("", |token| &token.text);
        secret::read(&self.arguments, &self.vault, token).await
    }

    /// Ensures that the session has a valid token. Returns true if the previous token is still valid or was renewed,
    /// and false if the session has a new token.
    async fn token(&self, session: &mut Session) -> Result<bool, VaultError> {
        if let Some(token) = &session.token {
            let is_due = token.renew.is_some_and(|renew| renew <= Instant::now());
            if !is_due {
                return Ok(true);
            }
            if token.renewable {
                match self.renew(&token.text).await {
                    Ok(renewed) => {
                        session.token = Some(renewed);
                        return Ok(true);
                    }
                    // The token is probably still valid, and a login may be impossible: a secret ID may permit one
                    // login only.
                    Err(error) if error.is_temporary() => return Err(error),
                    Err(_) => {}
                }
            }
        }
        self.log_in(session).await?;
        Ok(false)
    }

    /// Gives the session a new token. If this fails, the session keeps its token.
    async fn log_in(&self, session: &mut Session) -> Result<(), VaultError> {
        let way = login::way(&self.arguments, &self.vault, &self.clouds, &mut session.unwrapped).await?;
        session.token = Some(match way {
            Way::Token(text) => Token {
                text,
                renew: None,
                renewable: false,
            },
            Way::Login(login) => {
                let request = Request {
                    path: &login.path,
                    token: "",
                    body: Some(login.body),
                    namespace: login.namespace.as_deref(),
                };
                let token = Token::new(self.vault.send(request).await?.auth)?;
                self.metrics.logins.inc();
                token
            }
        });
        Ok(())
    }

    async fn renew(&self, token: &str) -> Result<Token, VaultError> {
        let request = Request {
            path: "auth/token/renew-self",
            token,
            body: Some(json!({})),
            namespace: None,
        };
        let renewed = Token::new(self.vault.send(request).await?.auth)?;
        self.metrics.renewals.inc();
        Ok(renewed)
    }

    /// Exports the values that are strings. Skips other values, because only strings can be secrets in a configuration.
    fn exports(&self, data: serde_json::Map<String, Json>) -> Exports {
        let (mut secrets, mut skipped) = (BTreeMap::new(), Vec::new());
        let mut known = self.skipped.lock();
        for (key, value) in data {
            if let Json::String(text) = value {
                secrets.insert(Arc::<str>::from(key), Value::Secret(text.into()));
                continue;
            }
            if !known.contains(&key) {
                tracing::warn!(component = %self.id, key, "value of the secret skipped, because it is not a string");
            }
            skipped.push(key);
        }
        *known = skipped;
        Exports::from([("data".into(), Value::object(secrets))])
    }
}

impl Token {
    fn new(auth: Option<Auth>) -> Result<Self, VaultError> {
        let auth = auth.filter(|auth| !auth.client_token.is_empty());
        let auth = auth.ok_or(VaultError::NoToken)?;
        let lease = Some(auth.lease_duration).filter(|seconds| *seconds > 0);
        Ok(Self {
            text: auth.client_token,
            renew: lease.and_then(|seconds| Instant::now().checked_add(two_thirds(seconds))),
            renewable: auth.renewable,
        })
    }
}

/// Returns the time from a failed read to the next read.
fn pause_after_failure(reread_frequency: Duration) -> Duration {
    match reread_frequency {
        Duration::ZERO => TRY_AGAIN,
        wait => wait.min(TRY_AGAIN),
    }
}

/// Returns the time after which a token or secret with a lease of `seconds` is renewed or read again: two thirds of the
/// lease, but at least [`SHORTEST_LEASE`].
fn two_thirds(seconds: u64) -> Duration {
    (Duration::from_secs(seconds) * 2 / 3).max(SHORTEST_LEASE)
}

impl Fetch for Remote {
    fn fetch(&self) -> Result<Exports, FetchError> {
        let handle = tokio::runtime::Handle::try_current()?;
        *self.next.lock() = Some(pause_after_failure(self.arguments.reread_frequency));
        let read = handle.block_on(self.read());
        read.map_err(|error| FetchError::Remote(error.into()))
    }

    fn interval(&self) -> Option<Duration> {
        *self.next.lock()
    }
}
