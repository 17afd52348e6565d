//! State that all connections of the PostgreSQL port share.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::query::QueryEngine;
use crate::server::postgres::auth::Users;
use crate::server::postgres::cancel::Cancels;
use crate::server::postgres::memory::Memory;
use crate::server::postgres::options::PostgresOptions;
use crate::server::postgres::pending_logins::PendingLogins;
use crate::server::postgres::tls::Tls;

/// State that all connections share.
pub(super) struct PortState {
    pub(super) engine: QueryEngine,
    pub(super) users: Users,
    pub(super) tls: Option<Tls>,
    pub(super) options: PostgresOptions,
    pub(super) cancels: Cancels,
    pub(super) slots: Arc<Semaphore>,
    pub(super) arrivals: Arc<PendingLogins>,
    pub(super) memory: Memory,
}
