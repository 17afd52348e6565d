//! Accounts for the memory that the operators of a query do not reserve: the statement during planning, the constants
//! of the plan, and the results of scalar functions.
//!
//! In: the size of a statement, and the size of the rows of its plan. Out: charges to the query, the limits of one
//! call, and the number of rows of a batch. SQL functions find the [`Allowance`] of their query in the options of the
//! session.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use datafusion::common::Result as PlanResult;
use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::common::plan_datafusion_err;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryReservation};
use datafusion::execution::session_state::SessionState;

use crate::query::common::error::QueryError;
use crate::query::resources::runtime::{BATCH_ROWS, Runtime};

/// Memory in bytes that each token of a statement needs during planning: the token, its syntax tree and copies of the
/// tree, and its part of the plan.
const TOKEN_BYTES: usize = 1 << 10;
/// Minimum size in bytes of results that are charged while a query is planned.
const CHARGED_BYTES: usize = 256;

/// Limits of the result of one call of a function, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallLimits {
    /// Maximum size of a result for one batch of rows.
    pub(crate) result: usize,
    /// Maximum size of a single text made by `repeat`, `lpad` and `rpad`.
    pub(crate) value: usize,
    /// Unnesting the lists of a row copies the other columns of the row. This is the maximum size of these copies.
    pub(crate) unrolled: usize,
}

impl CallLimits {
    /// The largest limits. A query with little memory has smaller limits.
    pub(crate) const MAX: Self = Self {
        result: 128 << 20,
        value: 64 << 10,
        unrolled: 128 << 20,
    };

    fn within(memory: usize) -> Self {
        Self {
            result: Self::MAX.result.min(memory / 4),
            value: Self::MAX.value.min(memory / 64),
            unrolled: Self::MAX.unrolled.min(memory / 4),
        }
    }
}

/// Returns the maximum size in bytes of the texts in the result of a table function, for a query with the memory of
/// `runtime`.
pub(crate) fn table_bytes(runtime: &Runtime) -> usize {
    CallLimits::MAX.result.min(memory_of(runtime) / 2)
}

fn memory_of(runtime: &Runtime) -> usize {
    match runtime.environment.memory_pool.memory_limit() {
        MemoryLimit::Finite(bytes) => bytes,
        MemoryLimit::Infinite | MemoryLimit::Unknown => usize::MAX,
    }
}

/// The memory that one query uses besides that of its operators, and the limits of its calls. Clones share both.
#[derive(Debug, Clone)]
pub(crate) struct Allowance(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Memory limit of the query in bytes.
    memory: usize,
    charged: MemoryReservation,
    /// Bytes charged for the statement.
    statement: usize,
    is_planning: AtomicBool,
    /// Maximum size of the result of a call in bytes.
    result: AtomicUsize,
}

impl Allowance {
    /// Charges the query for planning a statement of `tokens` tokens. Fails if the query has too little memory.
    pub(crate) fn begin(runtime: &Runtime, tokens: usize) -> Result<Self, QueryError> {
        let memory = memory_of(runtime);
        let charged = runtime.reservation("planning");
        let statement = tokens.saturating_mul(TOKEN_BYTES);
        charged.try_grow(statement)?;
        Ok(Self(Arc::new(Shared {
            memory,
            charged,
            statement,
            is_planning: AtomicBool::new(true),
            result: AtomicUsize::new(CallLimits::within(memory).result),
        })))
    }

    /// Makes this allowance available to the functions of a session.
    pub(crate) fn attach_to(&self, state: &mut SessionState) {
        state.config_mut().options_mut().extensions.insert(self.clone());
    }

    /// Ends the planning, and returns the number of rows of a batch. A row of the plan has `bytes` bytes, and `calls`
    /// calls of the plan can return large values. The limit of a result is divided by the number of these calls. The
    /// statement is no longer charged, but the constants of the plan remain charged. Fails if a row is too large.
    pub(crate) fn planned(&self, bytes: u64, calls: u64) -> Result<usize, QueryError> {
        let shared = &self.0;
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if bytes > shared.memory / 2 {
            return Err(QueryError::Limit(format!(
                "a row may take {} KiB over all steps of the query, more than half of the query's memory limit of {} \
                    KiB: use shorter texts, or raise sql.max_query_memory in the server's configuration",
                bytes >> 10,
                shared.memory >> 10
            )));
        }
        let limits = CallLimits::within(shared.memory);
        let calls = usize::try_from(calls).unwrap_or(usize::MAX).max(1);
        shared
            .result
            .store((limits.result / calls).max(limits.value), Ordering::Relaxed);
        shared.is_planning.store(false, Ordering::Relaxed);
        shared.charged.shrink(shared.statement);
        // A batch gets a sixteenth of the memory, because several steps hold a batch at the same time, each on several
        // threads.
        Ok((shared.memory / 16 / bytes.max(1)).clamp(1, BATCH_ROWS))
    }

    /// Returns the limits of a call in a session with these options.
    pub(crate) fn limits(options: &ConfigOptions) -> CallLimits {
        match options.extensions.get::<Self>() {
            None => CallLimits::MAX,
            Some(Self(shared)) => CallLimits {
                result: shared.result.load(Ordering::Relaxed),
                ..CallLimits::within(shared.memory)
            },
        }
    }

    /// Charges the result of a call that is made while the query is planned, because the result becomes a constant of
    /// the plan.
    pub(crate) fn charge(options: &ConfigOptions, bytes: usize) -> Result<(), QueryError> {
        let Some(Self(shared)) = options.extensions.get::<Self>() else {
            return Ok(());
        };
        if bytes >= CHARGED_BYTES && shared.is_planning.load(Ordering::Relaxed) {
            shared.charged.try_grow(bytes)?;
        }
        Ok(())
    }
}

impl ConfigExtension for Allowance {
    const PREFIX: &'static str = "alluvium";
}

impl ExtensionOptions for Allowance {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _value: &str) -> PlanResult<()> {
        Err(plan_datafusion_err!("unrecognized configuration parameter \"{key}\""))
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}
