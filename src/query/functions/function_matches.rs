//! `function_matches(frames, 'regex')`: true if the regular expression matches a part of the name of a function in the
//! stack.

use crate::query::common::error::QueryError;
use crate::query::functions::patterns;
use crate::query::functions::stack_function::StackPredicate;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct FunctionMatches;

impl StackPredicate for FunctionMatches {
    fn name(&self) -> &'static str {
        "function_matches"
    }

    fn compile(&self, pattern: String) -> Result<impl Fn(&str) -> bool, QueryError> {
        let regex = patterns::compile(&pattern)?;
        Ok(move |function: &str| regex.is_match(function))
    }
}
