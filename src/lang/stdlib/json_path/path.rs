//! A path as data: its steps, and the conditions of its filters, in which there may be paths.

use regex::Regex;
use serde_json::Value as Json;

/// A condition of a filter.
#[derive(Debug)]
pub(super) enum Filter {
    Value(Json),
    Pattern(Regex),
    List(Vec<Filter>),
    /// A path, from the document when true.
    Path(bool, Vec<Step>),
    Not(Box<Filter>),
    Binary(&'static str, Box<Filter>, Box<Filter>),
}

/// What a step takes of a value.
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
    /// Applies to every value below as well.
    pub(super) deep: bool,
    pub(super) selectors: Vec<Selector>,
}
