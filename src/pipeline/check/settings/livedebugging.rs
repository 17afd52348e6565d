//! The `livedebugging` block: its schema and its setting.

use crate::lang::Diagnostics;
use crate::lang::body::arguments;
use crate::lang::decode::Resolve;
use crate::pipeline::check::arguments::known;
use crate::pipeline::check::graph::SourceBlock;

arguments! {
    /// The body of `livedebugging { }`.
    struct LiveDebugging {
        /// Whether one may look at what passes through components.
        enabled: bool = false,
    }
}

/// Reads the block: whether live debugging is enabled.
pub(crate) fn settings(text: &SourceBlock, resolve: &dyn Resolve) -> Result<bool, Diagnostics> {
    let body: Option<LiveDebugging> = known(text, resolve)?;
    Ok(body.is_some_and(|body| body.enabled))
}
