//! Ends planning when nobody waits for its result any more, or when the deadline of the query has passed.
//!
//! In: the rules of a session. Out: the same rules, each of which checks a [`Watch`] first. Planning is pure
//! computation that never yields, so dropping its future would not end it. Most rules of the logical plan apply to each
//! operator, so that planning a large statement makes several thousand checks.

use std::sync::{Arc, Weak};

use datafusion::common::Result as PlanResult;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;

use crate::query::common::error::QueryError;
use crate::query::common::sql_result::Deadline;
use crate::query::decoded::context::Context;

/// Checks during planning that the caller still waits for the result and that the deadline has not passed.
#[derive(Debug, Clone)]
pub(crate) struct Watch {
    waiting: Weak<()>,
    deadline: Deadline,
}

impl Watch {
    /// Creates a watch, and the value that the waiting caller keeps. When this value is dropped, every check fails.
    pub(crate) fn new(deadline: Deadline) -> (Arc<()>, Self) {
        let waiting = Arc::new(());
        let watch = Self {
            waiting: Arc::downgrade(&waiting),
            deadline,
        };
        (waiting, watch)
    }

    /// Fails if the caller no longer waits or the deadline has passed.
    pub(crate) fn check(&self) -> Result<(), QueryError> {
        if self.waiting.strong_count() == 0 {
            return Err(QueryError::Cancelled);
        }
        self.deadline.check()
    }

    /// Returns the session of one query: `state` with the memory pool of the query and rules that check this watch.
    pub(crate) fn watched_state(&self, state: &SessionState, context: &Context) -> SessionState {
        let mut builder =
            SessionStateBuilder::new_from_existing(state.clone()).with_runtime_env(context.runtime.environment.clone());
        if let Some(analyzer) = builder.analyzer() {
            for rule in &mut analyzer.rules {
                *rule = Arc::new(WatchedRule::new(rule, self));
            }
        }
        if let Some(optimizer) = builder.optimizer() {
            for rule in &mut optimizer.rules {
                *rule = Arc::new(WatchedRule::new(rule, self));
            }
        }
        if let Some(optimizer) = builder.physical_optimizers() {
            for rule in &mut optimizer.rules {
                *rule = Arc::new(WatchedRule::new(rule, self));
            }
        }
        builder.build()
    }
}

/// A rule that checks the watch before each of its steps.
#[derive(Debug)]
struct WatchedRule<R: ?Sized> {
    rule: Arc<R>,
    watch: Watch,
}

impl<R: ?Sized> WatchedRule<R> {
    fn new(rule: &Arc<R>, watch: &Watch) -> Self {
        Self {
            rule: rule.clone(),
            watch: watch.clone(),
        }
    }
}

impl AnalyzerRule for WatchedRule<dyn AnalyzerRule + Send + Sync> {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> PlanResult<LogicalPlan> {
        self.watch.check()?;
        self.rule.analyze(plan, config)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }
}

impl OptimizerRule for WatchedRule<dyn OptimizerRule + Send + Sync> {
    fn name(&self) -> &str {
        self.rule.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.rule.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> PlanResult<Transformed<LogicalPlan>> {
        self.watch.check()?;
        self.rule.rewrite(plan, config)
    }
}

impl PhysicalOptimizerRule for WatchedRule<dyn PhysicalOptimizerRule + Send + Sync> {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> PlanResult<Arc<dyn ExecutionPlan>> {
        self.watch.check()?;
        self.rule.optimize(plan, config)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        self.watch.check()?;
        self.rule.optimize_with_context(plan, context)
    }

    fn name(&self) -> &str {
        self.rule.name()
    }

    fn schema_check(&self) -> bool {
        self.rule.schema_check()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_watch_fails_once_the_caller_has_left_or_the_time_is_over() {
        let (waiting, watch) = Watch::new(Deadline::after(Duration::from_mins(1)));
        assert_eq!(watch.check(), Ok(()));
        drop(waiting);
        assert_eq!(watch.check(), Err(QueryError::Cancelled));
        let (_waiting, watch) = Watch::new(Deadline::after(Duration::ZERO));
        assert_eq!(watch.check(), Err(QueryError::Timeout(Duration::ZERO)));
    }
}
