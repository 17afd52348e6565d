//! A parsed path: its steps, and the conditions of its filters, which may contain paths.

use alluvium_base::re2::Expression;
use serde_json::Value as Json;

/// A condition of a filter.
#[derive(Debug)]
pub(super) enum Filter {
    Value(Json),
    Pattern(Expression),
    List(Vec<Filter>),
    /// A path, preceded by a flag: true if the path starts at the document, false if it starts at the element.
    Path(bool, Vec<Step>),
    Not(Box<Filter>),
    Binary(&'static str, Box<Filter>, Box<Filter>),
}

/// The children that a step selects.
#[derive(Debug)]
pub(super) enum Selector {
    Name(String),
    Index(i64),
    /// Elements by start, end and stride.
    Slice(Option<i64>, Option<i64>, i64),
    All,
    Filter(Box<Filter>),
}

/// A part of a path that selects children.
#[derive(Debug)]
pub(super) struct Step {
    /// True if the step also applies to all descendants.
    pub(super) is_recursive: bool,
    pub(super) selectors: Vec<Selector>,
}
