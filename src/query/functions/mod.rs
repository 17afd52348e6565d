//! SQL functions that DataFusion lacks or that replace its own: functions on stacks, functions on times, and table
//! functions that select profiles by a selector. Each function has its own file.
//!
//! In: the arguments as the planner passes them. Out: columns or relations. The lists in this file contain all
//! functions.

mod arguments;
mod arithmetic;
mod call_limits;
mod checked_sum;
mod computed;
mod diff;
mod flamegraph;
mod function_matches;
mod joined;
mod patterns;
mod pprof;
mod pprof_sum;
mod profile;
mod stack_contains;
mod stack_function;
mod time_bucket;
mod to_char;
mod top;

use std::sync::Arc;

use datafusion::catalog::TableFunctionImpl;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF};

use crate::query::decoded::context::Context;
use crate::query::functions::function_matches::FunctionMatches;
use crate::query::functions::stack_contains::StackContains;
use crate::query::functions::stack_function::StackFunction;
use crate::query::scan::provider::TableFunction;

pub(crate) use arithmetic::ArithmeticPlanner;
pub(crate) use call_limits::{extra_bytes, with_limit, with_limits};
pub(crate) use joined::OperatorPlanner;

/// Returns the scalar functions of this module.
pub(crate) fn scalar() -> Vec<Arc<ScalarUDF>> {
    vec![
        Arc::new(ScalarUDF::new_from_impl(StackFunction::new(FunctionMatches))),
        Arc::new(ScalarUDF::new_from_impl(StackFunction::new(StackContains))),
        Arc::new(ScalarUDF::new_from_impl(time_bucket::TimeBucket::new())),
    ]
}

/// Makes `to_char` accept PostgreSQL's patterns.
pub(crate) fn translate_patterns(functions: &mut [Arc<ScalarUDF>]) {
    for function in functions.iter_mut().filter(|function| function.name() == "to_char") {
        *function = Arc::new(ScalarUDF::new_from_impl(to_char::ToChar::new(function.clone())));
    }
}

/// Returns the aggregate functions of this module.
pub(crate) fn aggregate() -> Vec<Arc<AggregateUDF>> {
    vec![
        Arc::new(AggregateUDF::new_from_impl(checked_sum::CheckedSum::new())),
        Arc::new(AggregateUDF::new_from_impl(pprof_sum::PprofSum::new())),
    ]
}

/// Returns the table functions over the data of one query.
pub(crate) fn tables(context: &Arc<Context>) -> Vec<(&'static str, Arc<dyn TableFunctionImpl>)> {
    let functions: [TableFunction; 6] = [
        diff::function(context.clone()),
        flamegraph::function(context.clone()),
        pprof::function(context.clone()),
        profile::function("profile", context.clone()),
        profile::function("profiles", context.clone()),
        top::function(context.clone()),
    ];
    functions
        .into_iter()
        .map(|function| (function.name, Arc::new(function) as Arc<dyn TableFunctionImpl>))
        .collect()
}
