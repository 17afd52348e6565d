//! Runs a read-only SQL statement over the tables of some tenants: one `SELECT`, `DESCRIBE` or `EXPLAIN`, with limits
//! on size, time, rows and memory.
//!
//! In: text. Out: [`SqlResult`]. The module `guard` refuses statements that are not queries before planning. Files,
//! addresses, settings and other tenants do not exist in the session. The module `sql_result` enforces the limits on
//! the output.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::config::Dialect;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::execution::{SessionStateDefaults, TaskContext};
use datafusion::physical_plan::execute_stream;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::query::common::error::QueryError;
use crate::query::common::sql_result::{Deadline, SqlResult, limit_result};
use crate::query::common::stream::BatchStream;
use crate::query::common::types::QueryLimits;
use crate::query::decoded::context::Context;
use crate::query::functions;
use crate::query::output::names;
use crate::query::resources::allowance::Allowance;
use crate::query::resources::runtime::Runtime;
use crate::query::sql::explain::{Explain, explain};
use crate::query::sql::guard;
use crate::query::sql::row_bytes::RowBytes;
use crate::query::sql::slices::SmallBatches;
use crate::query::sql::threads::Threads;
use crate::query::sql::watch::Watch;
use crate::query::tables::catalog;
use alluvium_base::BoxFuture;

/// The settings and functions of all sessions, built once, and the slots and threads of SQL queries.
pub(crate) struct Template {
    state: SessionState,
    slots: Arc<Semaphore>,
    threads: Arc<Threads>,
}

impl Template {
    pub(crate) fn new(runtime: &Runtime, limits: &QueryLimits) -> Self {
        let mut functions = functions::with_limits(SessionStateDefaults::default_scalar_functions());
        functions.extend(functions::scalar());
        let mut aggregates = SessionStateDefaults::default_aggregate_functions();
        aggregates.extend(functions::aggregate());
        functions::translate_patterns(&mut functions);
        let matches = functions::with_limit(datafusion::functions::regex::regexp_like());
        let mut planners: Vec<Arc<dyn datafusion::logical_expr::planner::ExprPlanner>> = vec![
            Arc::new(functions::ArithmeticPlanner),
            Arc::new(functions::OperatorPlanner::new(matches)),
        ];
        planners.extend(SessionStateDefaults::default_expr_planners());
        let mut config = runtime.config.clone();
        config.options_mut().execution.enable_recursive_ctes = false;
        // There are no table factories, no file formats, and no table functions except those of this program.
        // Therefore, no statement can open a file.
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime.environment.clone())
            .with_expr_planners(planners)
            .with_scalar_functions(functions)
            .with_higher_order_functions(SessionStateDefaults::default_higher_order_functions())
            .with_aggregate_functions(aggregates)
            .with_window_functions(SessionStateDefaults::default_window_functions())
            .with_physical_optimizer_rule(Arc::new(SmallBatches))
            .build();
        Self {
            state,
            slots: Arc::new(Semaphore::new(limits.max_concurrent_queries.max(1))),
            threads: Arc::new(Threads::new(limits, runtime.parallelism)),
        }
    }

    /// Returns the settings and functions that all queries share.
    pub(crate) fn state(&self) -> &SessionState {
        &self.state
    }

    /// Returns the threads that plan and run SQL.
    pub(crate) fn threads(&self) -> Arc<Threads> {
        self.threads.clone()
    }

    /// Waits for one of the slots for running SQL queries.
    pub(crate) fn slot(
        &self,
        limits: &QueryLimits,
    ) -> BoxFuture<'static, Result<Arc<OwnedSemaphorePermit>, QueryError>> {
        let slots = self.slots.clone();
        let (max, wait) = (limits.max_concurrent_queries, limits.timeout);
        Box::pin(async move {
            match tokio::time::timeout(wait, slots.acquire_owned()).await {
                Ok(Ok(slot)) => Ok(Arc::new(slot)),
                _ => Err(QueryError::Busy(format!(
                    "{max} queries are already running, and none ended in time: retry later, or raise \
                        sql.max_concurrent_queries in the server's configuration"
                ))),
            }
        })
    }
}

/// Plans and starts a query.
pub(crate) fn run(
    template: &Template,
    context: Arc<Context>,
    limits: &QueryLimits,
    text: &str,
) -> BoxFuture<'static, Result<SqlResult, QueryError>> {
    let checked = guard::check_size(text);
    let (state, text) = (template.state.clone(), text.to_owned());
    let (slot, threads) = (template.slot(limits), template.threads());
    let limits = limits.clone();
    Box::pin(async move {
        let tokens = checked?;
        let slot = slot.await?;
        let catalog = catalog::catalog(&context)?;
        let prepare = move |context: &Arc<Context>, watch: &Watch| {
            let mut state = watch.watched_state(&state, context);
            let statement = state.sql_to_statement(&text, &Dialect::Generic)?;
            guard::check_statement(&statement)?;
            state.register_catalog_list(catalog);
            for (name, function) in functions::tables(context) {
                state.register_udtf(name, function);
            }
            Ok((state, statement))
        };
        answer(threads, context, &limits, slot, tokens, prepare).await
    })
}

/// Runs the statement that `prepare` returns, and adds the limits to the result. The statement has `tokens` tokens. All
/// code that recurses over the statement or its plan runs on the threads with large stacks. The slot is released when
/// the returned future or the result is dropped.
pub(crate) fn answer(
    threads: Arc<Threads>,
    context: Arc<Context>,
    limits: &QueryLimits,
    slot: Arc<OwnedSemaphorePermit>,
    tokens: usize,
    prepare: impl FnOnce(&Arc<Context>, &Watch) -> Result<(SessionState, Statement), QueryError> + Send + 'static,
) -> BoxFuture<'static, Result<SqlResult, QueryError>> {
    let deadline = Deadline::after(limits.timeout);
    let limits = limits.clone();
    Box::pin(async move {
        let (claim, kept) = (Arc::downgrade(&slot), threads.clone());
        let work = move |watch: Watch| -> BoxFuture<'static, Result<SqlResult, QueryError>> {
            Box::pin(async move {
                let allowance = Allowance::begin(&context.runtime, tokens)?;
                let (mut state, statement) = prepare(&context, &watch)?;
                allowance.attach_to(&mut state);
                state.mark_start_execution();
                let (schema, rows) = start(state, statement, context, watch, allowance).await?;
                let slot = claim.upgrade().ok_or(QueryError::Cancelled)?;
                Ok(limit_result(&schema, rows, deadline, &limits, Box::new((slot, kept))))
            })
        };
        threads.plan(deadline, work).await
    })
}

/// Plans a statement and starts its streams.
fn start(
    mut state: SessionState,
    statement: Statement,
    context: Arc<Context>,
    watch: Watch,
    allowance: Allowance,
) -> BoxFuture<'static, Result<(SchemaRef, BatchStream), QueryError>> {
    Box::pin(async move {
        let (statement, explained) = split_explain(statement);
        let (plan, names) = names::plan(&state, statement).await?;
        SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false)
            .verify_plan(&plan)?;
        guard::check_plan(&plan)?;
        watch.check()?;
        let plan = state.optimize(&plan)?;
        let rows = RowBytes::of(&plan);
        let batch_rows = allowance.planned(rows.bytes, rows.calls)?;
        *state.config_mut() = state.config().clone().with_batch_size(batch_rows);
        let physical = state.query_planner().create_physical_plan(&plan, &state).await?;
        if let Some(options) = explained {
            return Ok(explain(state, context, &plan, physical, options));
        }
        let schema = names.restore(&physical.schema());
        let rows = execute_stream(physical, Arc::new(TaskContext::from(&state)))?;
        Ok((schema, rows.map(|batch| batch.map_err(QueryError::from)).boxed()))
    })
}

/// Splits an `EXPLAIN` into the explained statement and its options. Returns other statements unchanged.
pub(crate) fn split_explain(statement: Statement) -> (Statement, Option<Explain>) {
    match statement {
        Statement::Explain(explain) => {
            let options = Explain {
                analyze: explain.options.analyze,
                verbose: explain.options.verbose,
            };
            (*explain.statement, Some(options))
        }
        Statement::Statement(inner) => match *inner {
            ast::Statement::Explain {
                analyze,
                verbose,
                statement,
                ..
            } => (Statement::Statement(statement), Some(Explain { analyze, verbose })),
            other => (Statement::Statement(Box::new(other)), None),
        },
        other => (other, None),
    }
}
