//! Shared state of the routes: the store, the query engine, limits and options.
//!
//! The composition root creates the state, and tests create their own. No part of the state is process-wide.

use std::sync::Arc;

use crate::query::QueryEngine;
use crate::server::access::deletion_token::AdminToken;
use crate::server::bodies::body::Intake;
use crate::server::bodies::limits::ServerLimits;
use crate::server::bodies::sending::{EncodedResponse, ResponseBudget};
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
use alluvium_base::BoxFuture;
use alluvium_base::bytes::ByteBudget;
use alluvium_base::pressure::{MemoryPart, MemoryPressure};
use alluvium_profile::sink::Receiver;
use alluvium_profile::{DecodedProfile, RawProfile, RefusedProfile, SinkError, SinkErrorKind, TenantId, Tenants};
use alluvium_wire::connect::{Code, ConnectError};
use alluvium_wire::service::Memory;

/// Stores the profiles of all tenants. The store and tests implement it.
pub trait ProfileStore: Send + Sync + 'static {
    /// Returns the receiver for the profiles of one tenant. Accepted profiles are durable.
    fn sink(self: Arc<Self>, tenant: &TenantId) -> Receiver;

    /// Flushes all profiles in memory to files.
    fn flush(&self) -> BoxFuture<'_, Result<(), SinkError>>;

    /// Returns the current limits of the profiles of `tenant`. The sink checks them.
    fn limits(&self, _tenant: &TenantId) -> Arc<Limits> {
        Arc::default()
    }

    /// Returns the reason why the store accepts no profiles at the moment, if there is one.
    fn unavailable(&self) -> Option<String> {
        None
    }

    /// Returns the shelf, where users keep settings and files, if the store has one.
    fn shelf(&self) -> Option<Shelf> {
        None
    }

    /// Deletes profiles. The deletion is durable when this function returns. The default implementation returns an
    /// error.
    fn delete(&self, _deletion: Deletion) -> BoxFuture<'_, Result<Report, StoreError>> {
        Box::pin(async { Err(StoreError::Request("this store cannot delete profiles".to_owned())) })
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

/// Options of the HTTP server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Path prefix without a trailing `/`. Every route is also served under it. Empty means no prefix.
    pub prefix: String,
    /// If true, every request must name its tenant in the header `X-Scope-OrgID`. If false, all data belongs to the
    /// tenant `anonymous`.
    pub multi_tenant: bool,
    /// True if a collector runs in this process and its routes are served too. The page then shows the collector.
    pub with_collector: bool,
    /// The Prometheus server whose metrics the page shows beside profiles, if there is one.
    pub prometheus: Option<Prometheus>,
    /// Tokens that allow deletion. If there are none and callers need not authenticate, the deletion route is disabled.
    pub admin: Vec<AdminToken>,
    /// Limits of sizes and times of the HTTP server.
    pub limits: ServerLimits,
    /// Memory pressure of the process. While memory is short, the server refuses requests with a body.
    pub pressure: MemoryPressure,
    /// The configuration that the configuration routes show.
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

/// State that all routes share. It is cheap to clone.
#[derive(Clone)]
pub struct ServerState(Arc<Inner>);

/// The parts of a [`ServerState`].
pub struct Inner {
    /// Stores the profiles of all tenants.
    pub store: Arc<dyn ProfileStore>,
    /// Runs queries over the stored profiles.
    pub engine: QueryEngine,
    /// Options of the HTTP server, including its limits.
    pub options: ServerOptions,
    /// The state of readiness: ready, or the reason why the server is not ready.
    pub readiness: Readiness,
    pub(crate) metrics: ServerMetrics,
    pub(crate) intake: Intake,
    pub(crate) workers: Workers,
    /// Memory of responses that are being sent. It is counted separately from requests, because a client that does not
    /// read its response must not block ingestion.
    pub(crate) answers: ResponseBudget,
    /// The senders of profiles.
    pub(crate) senders: Senders,
    pub(crate) page: alluvium_admin::page::Page,
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
            answers: ResponseBudget::new(options.limits.answers_bytes),
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
    /// Returns the reason why clients should send nothing at the moment, or `None` if the server is ready.
    pub(crate) fn not_ready(&self) -> Option<String> {
        self.readiness.reason().or_else(|| self.store.unavailable())
    }

    /// Returns the names of the numeric labels of samples that the store keeps for any of these tenants.
    pub(crate) fn numeric_labels(&self, tenants: &Tenants) -> Vec<String> {
        let limits = tenants.iter().map(|tenant| self.store.limits(tenant));
        let names = limits.filter_map(|limits| Some(limits.rules.as_ref()?.numeric_labels().to_vec()));
        names.flatten().collect()
    }

    /// Returns the budget for responses. The listener also charges to it the bytes that clients have not read yet.
    pub(crate) fn response_budget(&self) -> ByteBudget {
        self.answers.budget()
    }

    /// Returns the memory that requests and responses hold. Both have limits.
    pub(crate) fn memory(&self) -> [MemoryPart; 2] {
        [self.intake.memory(), self.answers.memory()]
    }

    /// Encodes a message of about `bytes` bytes as a response. A message of at most `MAX_INLINE_BYTES` is encoded at
    /// once and not charged here. A worker thread encodes a larger message, after the memory of the message and the
    /// response was charged to the budget for responses. If the budget is exhausted, the request is refused.
    pub(crate) async fn write(
        &self,
        bytes: usize,
        write: impl FnOnce() -> Result<EncodedResponse, ConnectError> + Send + 'static,
    ) -> Result<EncodedResponse, ConnectError> {
        let held = self.answers.begin(bytes)?;
        let written = self.workers.run(bytes, move || Ok(write()?.with_charge(held)));
        written.await
    }

    /// Passes profiles to the store. Their memory stays charged until the store has accepted or refused them, even if
    /// the caller disconnects.
    pub(crate) async fn append(
        &self,
        tenant: TenantId,
        profiles: Vec<RawProfile>,
        memory: Memory,
    ) -> Result<Vec<RefusedProfile>, ConnectError> {
        let sink = self.store.clone().sink(&tenant);
        finished(async move { sink.append(profiles).await }, memory).await
    }

    /// Works like `append`, for decoded profiles.
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

/// Runs work to its end even if the caller is dropped. The memory of the work stays charged until then.
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
        .map_err(|error| ConnectError::new(Code::Internal, format!("the store panicked on the request: {error}")))
}

/// Returns a prefix with a leading `/` and no trailing one. A prefix with special characters of route templates or URLs
/// is ignored. The prefix `/-` is also ignored, because the health routes `/-/ready` and `/-/healthy` begin with it.
fn usable_prefix(prefix: &str) -> String {
    let path = prefix.trim_matches('/');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    if !path.bytes().all(is_plain) || path.contains("//") || path == "-" {
        tracing::warn!(
            prefix,
            "path prefix is not usable, the routes are served only at the root"
        );
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
        for (prefix, used) in [
            ("/profile", "/profile"),
            ("profile/", "/profile"),
            ("/a/b", "/a/b"),
            ("", ""),
            ("/", ""),
            ("/{x}", ""),
            ("/a b", ""),
            ("/-", ""),
        ] {
            assert_eq!(usable_prefix(prefix), used, "{prefix}");
        }
    }
}
