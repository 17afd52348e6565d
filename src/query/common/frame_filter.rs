//! Frame filters: conditions on the names of all functions of a stack.
//!
//! In: names and regular expressions of a request. Out: the conditions that one name meets. Whoever has the frames of a
//! stack combines them. Regular expressions have Go's syntax and may match any part of a name.

use std::collections::{HashMap, HashSet};

use crate::query::common::error::QueryError;
use alluvium_base::re2::Expression;

/// Maximum size in bytes of a compiled regular expression, and also of the automaton that is built while it runs. The
/// expressions come from users, so their memory must be bounded.
const EXPRESSION_BYTES: usize = 1 << 20;
/// Maximum number of regular expressions of a filter.
const MAX_EXPRESSIONS: usize = 32;
/// Maximum size in bytes of all regular expressions of a filter together, as text.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Conditions on the names of functions, as in a request.
#[derive(Debug, Clone, Default)]
pub struct FrameConditions {
    /// Names that must be equal to the name of a function.
    pub names: Vec<String>,
    /// Regular expressions, which may match any part of the name of a function.
    pub patterns: Vec<String>,
}

/// Selects the stacks that have a function for each included condition, and no function that meets an excluded
/// condition. The default selects all stacks.
#[derive(Debug, Clone, Default)]
pub struct FrameFilter {
    included_names: HashMap<String, usize>,
    included_patterns: Vec<Expression>,
    excluded_names: HashSet<String>,
    excluded_patterns: Vec<Expression>,
}

/// The conditions that the name of a function meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// True if no stack with the function is selected.
    pub(crate) is_excluded: bool,
    /// Numbers of the included conditions that the name meets.
    pub(crate) met: Vec<usize>,
}

impl FrameFilter {
    /// Compiles the conditions. This may take milliseconds for each regular expression.
    pub fn new(included: FrameConditions, excluded: FrameConditions) -> Result<Self, QueryError> {
        let patterns = included.patterns.iter().chain(&excluded.patterns);
        let (count, bytes) = (patterns.clone().count(), patterns.map(String::len).sum::<usize>());
        if count > MAX_EXPRESSIONS {
            return Err(QueryError::invalid(format!(
                "a frame filter may have at most {MAX_EXPRESSIONS} regular expressions, not {count}"
            )));
        }
        if bytes > MAX_TEXT_BYTES {
            return Err(QueryError::invalid(format!(
                "the regular expressions of a frame filter have {bytes} bytes, the limit is {MAX_TEXT_BYTES}"
            )));
        }
        let mut included_names = HashMap::new();
        for name in included.names {
            let number = included_names.len();
            included_names.entry(name).or_insert(number);
        }
        Ok(Self {
            included_names,
            included_patterns: compile("include", &included.patterns)?,
            excluded_names: excluded.names.into_iter().collect(),
            excluded_patterns: compile("exclude", &excluded.patterns)?,
        })
    }

    /// Returns true if the filter selects all stacks.
    pub(crate) fn is_empty(&self) -> bool {
        self.conditions() == 0 && self.excluded_names.is_empty() && self.excluded_patterns.is_empty()
    }

    /// Returns the number of included conditions.
    pub(crate) fn conditions(&self) -> usize {
        self.included_names.len() + self.included_patterns.len()
    }

    /// Returns the conditions that a name meets.
    pub(crate) fn verdict(&self, name: &str) -> Verdict {
        let by_name = self.included_names.get(name).copied();
        let patterns = self.included_patterns.iter().enumerate();
        let by_pattern = patterns.filter(|(_, pattern)| pattern.is_match(name));
        let by_pattern = by_pattern.map(|(index, _)| self.included_names.len() + index);
        Verdict {
            is_excluded: self.excluded_names.contains(name)
                || self.excluded_patterns.iter().any(|pattern| pattern.is_match(name)),
            met: by_name.into_iter().chain(by_pattern).collect(),
        }
    }
}

/// Compiles regular expressions. `kind` names them in errors.
fn compile(kind: &str, patterns: &[String]) -> Result<Vec<Expression>, QueryError> {
    let compiled = patterns.iter().map(|pattern| {
        Expression::search_within(pattern, EXPRESSION_BYTES)
            .map_err(|error| QueryError::invalid(format!("invalid {kind} function name regex `{pattern}`: {error}")))
    });
    compiled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(names: &[&str], patterns: &[&str]) -> FrameConditions {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        FrameConditions {
            names: owned(names),
            patterns: owned(patterns),
        }
    }

    #[test]
    fn a_name_meets_the_conditions_of_its_whole_text_and_of_its_parts() {
        let included = conditions(&["shop.pay", "shop.pay", "shop.list"], &["pay$", "^list"]);
        let filter = FrameFilter::new(included, conditions(&["idle"], &["sleep"])).unwrap();
        let verdict = |name: &str| {
            let verdict = filter.verdict(name);
            (verdict.is_excluded, verdict.met)
        };
        assert_eq!(filter.conditions(), 4);
        assert_eq!(verdict("shop.pay"), (false, vec![0, 2]));
        assert_eq!(verdict("repay"), (false, vec![2]));
        assert_eq!(verdict("list"), (false, vec![3]));
        assert_eq!(verdict("shop.pays"), (false, vec![]));
        assert_eq!(verdict("idle"), (true, vec![]));
        assert_eq!(verdict("idler"), (false, vec![]));
        assert_eq!(verdict("time.sleepUntil"), (true, vec![]));
    }

    #[test]
    fn a_filter_without_conditions_is_empty() {
        assert!(FrameFilter::default().is_empty());
        let excluding = FrameFilter::new(FrameConditions::default(), conditions(&[], &["x"])).unwrap();
        assert!(!excluding.is_empty());
    }

    #[test]
    fn an_invalid_or_oversized_filter_is_refused_with_its_reason() {
        let refusal = |included, excluded| FrameFilter::new(included, excluded).unwrap_err().to_string();
        let of_include = refusal(conditions(&[], &["("]), FrameConditions::default());
        assert!(
            of_include.contains("invalid include function name regex `(`"),
            "{of_include}"
        );
        let of_exclude = refusal(FrameConditions::default(), conditions(&[], &["["]));
        assert!(
            of_exclude.contains("invalid exclude function name regex `[`"),
            "{of_exclude}"
        );
        let many = refusal(conditions(&[], &["a"; 20]), conditions(&[], &["a"; 13]));
        assert!(many.contains("at most 32 regular expressions, not 33"), "{many}");
        let long = refusal(conditions(&[], &[&"a".repeat(70_000)]), FrameConditions::default());
        assert!(long.contains("have 70000 bytes"), "{long}");
    }
}
