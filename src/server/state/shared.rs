//! Shared state of the routes: the store, the query engine, limits and options.
//!
//! The composition root creates it; tests create their own. Nothing here is process-wide.

use std::sync::Arc;

use crate::base::BoxFuture;
use crate::base::bytes::ByteBudget;
use crate::base::pressure::{MemoryPart, MemoryPressure};
use crate::profile::sink::Receiver;
use crate::profile::{DecodedProfile, RawProfile, RefusedProfile, SinkError, SinkErrorKind, TenantId};
use crate::query::QueryEngine;
use crate::server::access::deletion_token::AdminToken;
use crate::server::bodies::body::Intake;
use crate::server::bodies::limits::ServerLimits;
use crate::server::bodies::sending::{Answers, Written};
use crate::server::bodies::workers::Workers;
use crate::server::prometheus::Prometheus;
use crate::server::state::metrics::ServerMetrics;
use crate::server::state::page::{page, page_with_collector};
use crate::server::state::ready::Readiness;
use crate::server::state::senders::Senders;
use crate::server::state::settings::Settings;
use crate::store::maintenance::deletion::request::Deletion;
use crate::store::maintenance::{Report, Work};
use crate::store::tables::shelf::Shelf;
use crate::store::{Limits, Store, StoreError};
use crate::wire::connect::{Code, ConnectError};
use crate::wire::service::Memory;

/// Stores the profiles of all tenants. Implemented by the store and by tests.
pub trait ProfileStore: Send + Sync + 'static {
    /// The receiver for profiles of one tenant. Accepted profiles are durable.
    fn sink(self: Arc<Self>, tenant: &TenantId) -> Receiver;

    /// Flushes all profiles in memory to files.
    fn flush(&self) -> BoxFuture<'_, Result<(), SinkError>>;

    /// The limits of the profiles of `tenant` at this moment. The sink checks them.
    fn limits(&self, _tenant: &TenantId) -> Arc<Limits> {
        Arc::default()
    }

    /// The reason why no profiles are accepted at the moment, if any.
    fn unavailable(&self) -> Option<String> {
        None
    }

    /// Where users keep things beside their profiles, if anywhere.
    fn shelf(&self) -> Option<Shelf> {
        None
    }

    /// Deletes profiles; durable when it returns. The default is an error.
    fn delete(&self, _deletion: Deletion) -> BoxFuture<'_, Result<Report, StoreError>> {
        Box::pin(async {
            Err(StoreError::Request(
                "profiles of this store cannot be deleted".to_owned(),
            ))
        })
    }
}

impl ProfileStore for Store {
    fn sink(self: Arc<Self>, tenant: &TenantId) -> Receiver {
        Self::sink(&self, tenant)
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), SinkError>> {
        let flushed = self.flush();
        Box::pin(async move {
            flushed
                .await
                .map_err(|error| SinkError::new(SinkErrorKind::Unavailable, format!("cannot flush: {error}")))
        })
    }

    fn limits(&self, tenant: &TenantId) -> Arc<Limits> {
        self.limits(tenant)
    }

    fn unavailable(&self) -> Option<String> {
        self.unavailable()
    }

    fn shelf(&self) -> Option<Shelf> {
        Some(self.shelf().clone())
    }

    fn delete(&self, deletion: Deletion) -> BoxFuture<'_, Result<Report, StoreError>> {
        self.maintain(Work::Delete(deletion))
    }
}

/// Options of the HTTP side.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Path prefix under which every route is also served, without a trailing `/`; empty for none.
    pub prefix: String,
    /// True: the tenant is read from the required header `X-Scope-OrgID`. False: all data belongs to `anonymous`.
    pub multi_tenant: bool,
    /// True when a collector runs in this process and its routes are served beside these: the page then shows it.
    pub with_collector: bool,
    /// The server whose metrics are shown beside profiles, if there is one.
    pub prometheus: Option<Prometheus>,
    /// Tokens that allow deletion; without any the route is off.
    pub admin: Vec<AdminToken>,
    /// Sizes and times of the HTTP side.
    pub limits: ServerLimits,
    /// While memory is short requests with a body are refused.
    pub pressure: MemoryPressure,
    /// What the routes of the configuration show.
    pub settings: Arc<Settings>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            prefix: "/profile".to_owned(),
            multi_tenant: false,
            with_collector: false,
            prometheus: None,
            admin: Vec::new(),
            limits: ServerLimits::default(),
            pressure: MemoryPressure::default(),
            settings: Arc::default(),
        }
    }
}

/// State that all routes share; cheap to clone.
#[derive(Clone)]
pub struct ServerState(Arc<Inner>);

/// The parts of a [`ServerState`].
pub struct Inner {
    /// Stores the profiles of all tenants.
    pub store: Arc<dyn ProfileStore>,
    /// Answers queries over the stored profiles.
    pub engine: QueryEngine,
    /// How the server presents itself, and its limits.
    pub options: ServerOptions,
    /// Whether the server is ready, and why not.
    pub readiness: Readiness,
    pub(crate) metrics: ServerMetrics,
    pub(crate) intake: Intake,
    pub(crate) workers: Workers,
    /// Memory of answers that are being sent. Counted separately from requests: a client that does not read its answer
    /// must not block ingestion.
    pub(crate) answers: Answers,
    /// Who sends profiles here.
    pub(crate) senders: Senders,
    pub(crate) page: crate::admin::page::Page,
}

impl ServerState {
    /// Creates the state from its parts.
    pub fn new(
        store: Arc<dyn ProfileStore>,
        engine: QueryEngine,
        mut options: ServerOptions,
        readiness: Readiness,
        metrics: ServerMetrics,
    ) -> Self {
        options.prefix = usable_prefix(&options.prefix);
        let workers = Workers::new();
        Self(Arc::new(Inner {
            store,
            engine,
            readiness,
            metrics,
            intake: Intake::new(&options.limits, options.pressure.clone(), workers.clone()),
            workers,
            answers: Answers::new(options.limits.answers_bytes),
            senders: Senders::default(),
            page: if options.with_collector {
                page_with_collector()
            } else {
                page()
            },
            options,
        }))
    }
}

impl ServerState {
    /// Why nothing should be sent here at the moment; `None` when the server is ready.
    pub(crate) fn not_ready(&self) -> Option<String> {
        self.readiness.reason().or_else(|| self.store.unavailable())
    }

    /// The budget of answers that clients have not read, for the port.
    pub(crate) fn unread(&self) -> ByteBudget {
        self.answers.budget()
    }

    /// What requests and answers hold, which have limits.
    pub(crate) fn memory(&self) -> [MemoryPart; 2] {
        [self.intake.memory(), self.answers.memory()]
    }

    /// Writes an answer, made of a message of about `bytes` bytes, on a thread for such work. Both count as an answer
    /// from now on; without memory for them the request is refused.
    pub(crate) async fn write(
        &self,
        bytes: usize,
        write: impl FnOnce() -> Result<Written, ConnectError> + Send + 'static,
    ) -> Result<Written, ConnectError> {
        let held = self.answers.begin(bytes)?;
        let written = self.workers.run(bytes, move || Ok(write()?.held(held)));
        written.await
    }

    /// Passes profiles to the store. Their memory is charged until the store has them, even if the caller disconnects.
    pub(crate) async fn append(
        &self,
        tenant: TenantId,
        profiles: Vec<RawProfile>,
        memory: Memory,
    ) -> Result<Vec<RefusedProfile>, ConnectError> {
        let sink = self.store.clone().sink(&tenant);
        finished(async move { sink.append(profiles).await }, memory).await
    }

    /// As `append`, for decoded profiles.
    pub(crate) async fn append_decoded(
        &self,
        tenant: TenantId,
        profiles: Vec<DecodedProfile>,
        memory: Memory,
    ) -> Result<Vec<RefusedProfile>, ConnectError> {
        let sink = self.store.clone().sink(&tenant);
        finished(async move { sink.append_decoded(profiles).await }, memory).await
    }
}

/// Runs work to its end even if the caller is dropped, and holds its memory until then.
async fn finished<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
    memory: Memory,
) -> Result<T, ConnectError> {
    let task = tokio::spawn(async move {
        let result = work.await;
        drop(memory);
        result
    });
    task.await
        .map_err(|error| ConnectError::new(Code::Internal, format!("the request made the store fail: {error}")))
}

/// A prefix with a leading `/` and no trailing one. A prefix with special characters of route templates or URLs is
/// ignored, and so is `/-`, below which health has a route of its own.
fn usable_prefix(prefix: &str) -> String {
    let path = prefix.trim_matches('/');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    if !path.bytes().all(is_plain) || path.contains("//") || path == "-" {
        tracing::warn!(prefix, "the path prefix is not usable, routes answer at the root only");
        return String::new();
    }
    match path {
        "" => String::new(),
        path => format!("/{path}"),
    }
}

impl std::ops::Deref for ServerState {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_brought_into_form_or_left_out() {
        for (given, used) in [
            ("/profile", "/profile"),
            ("profile/", "/profile"),
            ("/a/b", "/a/b"),
            ("", ""),
            ("/", ""),
            ("/{x}", ""),
            ("/a b", ""),
            ("/-", ""),
        ] {
            assert_eq!(usable_prefix(given), used, "{given}");
        }
    }
}
