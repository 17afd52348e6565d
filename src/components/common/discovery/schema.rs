//! Arguments and exports that the discoveries share.

use std::sync::Arc;

use alluvium_lang::attribute::NotEmpty;
use alluvium_lang::body::arguments;
use alluvium_lang::schema::{Attribute, TARGETS};

/// Maximum number of targets that one discovery exports. The limit protects against wrong responses. It is far above
/// the number of targets that one collector can profile.
pub(crate) const MAX_TARGETS: usize = 100_000;

/// The only export of a discovery.
pub(crate) const EXPORTS: &[Attribute] = &[Attribute::required("targets", TARGETS, "The discovered targets.")];

arguments! {
    /// The body of `filter { }` in the discoveries of Docker and AWS.
    pub(crate) struct Filter {
        /// Name of the filter in the API.
        name: Arc<str>,
        /// Accepted values. At least one of them must match.
        values: NotEmpty<Vec<Arc<str>>>,
    }
}
