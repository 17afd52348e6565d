//! The options that the flags of a report select.

use crate::report::filter::Focus;
use crate::report::graph::{Order, Trim};
use crate::report::row_source::Grouping;

/// Contents and form of a report.
#[derive(Debug, Clone)]
pub struct Options {
    /// The unit of source that a row represents.
    pub grouping: Grouping,
    /// The value that determines the order of rows.
    pub order: Order,
    /// Limits on the rows and calls of the report.
    pub trim: Trim,
    /// The samples that the report covers.
    pub focus: Focus,
    /// Unit of all values; `None` for a unit that suits the smallest value.
    pub unit: Option<String>,
}
