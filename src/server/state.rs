//! What the routes need: where profiles go, who answers questions, limits and options.
//!
//! The composition root fills this in; tests fill in their own. Nothing here is process-wide.

use std::sync::Arc;

use crate::base::BoxFuture;
use crate::profile::sink::Receiver;
use crate::profile::{DecodedProfile, RawProfile, RefusedProfile, SinkError, SinkErrorKind, TenantId};
use crate::query::QueryEngine;
use crate::server::body::Intake;
use crate::server::limits::ServerLimits;
use crate::server::metrics::ServerMetrics;
use crate::server::page::{page, page_with_collector};
use crate::server::ready::Readiness;
use crate::server::sending::Answers;
use crate::server::token::AdminToken;
use crate::server::workers::Workers;
use crate::store::maintenance::deletion::Deletion;
use crate::store::maintenance::{Report, Work};
use crate::store::{Store, StoreError};
use crate::wire::connect::{Code, ConnectError};
use crate::wire::service::Memory;

/// Where the profiles of all tenants are kept. The store is one; tests have others.
pub trait ProfileStore: Send + Sync + 'static {
    /// Where the profiles of one tenant go. What it takes is durable.
    fn sink(self: Arc<Self>, tenant: &TenantId) -> Receiver;

    /// Writes what is in memory to files.
    fn flush(&self) -> BoxFuture<'_, Result<(), SinkError>>;

    /// Why no profiles are taken at the moment, if so.
    fn unavailable(&self) -> Option<String> {
        None
    }

    /// Deletes profiles; durable when it returns. A store that cannot says so.
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

    fn unavailable(&self) -> Option<String> {
        self.unavailable()
    }

    fn delete(&self, deletion: Deletion) -> BoxFuture<'_, Result<Report, StoreError>> {
        self.maintain(Work::Delete(deletion))
    }
}

/// How the server presents itself.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Path under which every route answers once more, without a `/` at its end; empty for none.
    pub prefix: String,
    /// True: the tenant is read from `X-Scope-OrgID` and must be there. False: everything belongs to `anonymous`.
    pub multi_tenant: bool,
    /// A collector runs in this process, and its routes are served beside these: the page shows it.
    pub with_collector: bool,
    /// Who may delete profiles; with none the route is off.
    pub admin: Vec<AdminToken>,
    /// Sizes and times of the HTTP side.
    pub limits: ServerLimits,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            prefix: "/profile".to_owned(),
            multi_tenant: false,
            with_collector: false,
            admin: Vec::new(),
            limits: ServerLimits::default(),
        }
    }
}

/// Shared by all routes; cheap to clone.
#[derive(Clone)]
pub struct ServerState(Arc<Inner>);

/// The parts of a [`ServerState`].
pub struct Inner {
    /// Keeps the profiles of all tenants.
    pub store: Arc<dyn ProfileStore>,
    /// Answers questions about the store's profiles.
    pub engine: QueryEngine,
    /// How the server presents itself, and its limits.
    pub options: ServerOptions,
    /// Whether the server is ready, and why not.
    pub readiness: Readiness,
    pub(crate) metrics: ServerMetrics,
    pub(crate) intake: Intake,
    pub(crate) workers: Workers,
    /// Memory of answers on their way. Counted apart from requests: a client that does not read its answer must not
    /// keep profiles out.
    pub(crate) answers: Answers,
    pub(crate) page: crate::admin::page::Page,
}

impl ServerState {
    /// Puts the parts together.
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
            intake: Intake::new(&options.limits, workers.clone()),
            workers,
            answers: Answers::new(options.limits.answers_bytes),
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
    /// Hands profiles to the store. Their memory counts until the store has them, also when the caller does not wait so
    /// long.
    pub(crate) async fn append(
        &self,
        tenant: TenantId,
        profiles: Vec<RawProfile>,
        memory: Memory,
    ) -> Result<Vec<RefusedProfile>, ConnectError> {
        let sink = self.store.clone().sink(&tenant);
        finished(async move { sink.append(profiles).await }, memory).await
    }

    /// As `append`, of decoded profiles.
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

/// Runs work to its end, also when nobody waits for it, and holds its memory so long.
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

/// A prefix with a `/` before it and none after it. Characters that mean something in a route's template (or in a URL)
/// make no prefix.
fn usable_prefix(prefix: &str) -> String {
    let path = prefix.trim_matches('/');
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte);
    if !path.bytes().all(is_plain) || path.contains("//") {
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
        ] {
            assert_eq!(usable_prefix(given), used, "{given}");
        }
    }
}
