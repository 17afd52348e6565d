//! What is chosen by the flags of a report.

use crate::profile::report::filter::Focus;
use crate::profile::report::graph::{Order, Trim};
use crate::profile::report::place::Grouping;

/// What a report shows, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// What a row of the report stands for.
    pub grouping: Grouping,
    /// By which value rows are sorted.
    pub order: Order,
    /// Which rows are left out.
    pub trim: Trim,
    /// Which samples are left out.
    pub focus: Focus,
    /// Unit of all values; `None` for one that suits the smallest.
    pub unit: Option<String>,
}
