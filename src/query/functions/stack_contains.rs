//! `stack_contains(frames, 'name')`: true if a function of exactly this name is in the stack.

use crate::query::common::error::QueryError;
use crate::query::functions::stack_function::StackPredicate;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct StackContains;

impl StackPredicate for StackContains {
    fn name(&self) -> &'static str {
        "stack_contains"
    }

    fn compile(&self, name: String) -> Result<impl Fn(&str) -> bool, QueryError> {
        Ok(move |function: &str| function == name)
    }
}
