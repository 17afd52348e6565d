//! Regular expressions as Go (RE2) reads them, for Prometheus' relabel rules.
//!
//! In: the text of an expression. Out: an [`Expression`] that is anchored at both ends and whose dot matches line ends,
//! and a [`Template`] that expands `$1` and `${name}` as Go's `Regexp.Expand` does.

mod dialect;
mod expression;
mod template;

pub(crate) use expression::Expression;
pub(crate) use template::Template;
