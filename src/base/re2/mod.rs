//! Regular expressions as Go reads them (RE2), for everything that users of Prometheus, Alloy, Pyroscope and `go tool
//! pprof` write: selectors, relabel rules, deletions, `--focus`.
//!
//! In: the text of an expression. Out: an [`Expression`] that matches the same texts as Go's `regexp`, or an error with
//! Go's text. The language is that of Go 1.26's `regexp/syntax` with the flags `Perl`. This module has a parser of its
//! own, which builds the intermediate form of `regex-syntax`. The languages of Go and of `regex-syntax` differ in too
//! many places to translate texts (docs/adr/0015). `regex-automata` does the matching, in time linear in the text.

mod class;
mod error;
mod escape;
mod expression;
mod flags;
mod parser;
mod repeat;
#[cfg(test)]
mod tests;

pub use error::Re2Error;
pub use expression::{Expression, Groups};
