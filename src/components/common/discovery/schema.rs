//! What the arguments and exports of the discoveries have in common.

use std::sync::Arc;

use crate::lang::attribute::NotEmpty;
use crate::lang::body::arguments;
use crate::lang::schema::{Attribute, TARGETS};

/// Most targets that one discovery exports: far more than one collector can profile, and a bound for an answer that is
/// wrong.
pub(crate) const MAX_TARGETS: usize = 100_000;

/// The one export of a discovery.
pub(crate) const EXPORTS: &[Attribute] = &[Attribute::required("targets", TARGETS, "The targets that were found.")];

arguments! {
    /// `filter { name = ..., values = [...] }` of Docker and AWS
    pub(crate) struct Filter {
        /// What to filter by, as the API that is asked names it.
        name: Arc<str>,
        /// Values of which one must match.
        values: NotEmpty<Vec<Arc<str>>>,
    }
}
