//! The `livedebugging` block: its schema and its setting.

use crate::lang::Diagnostics;
use crate::lang::body::arguments;
use crate::lang::decode::Resolve;
use crate::pipeline::check::arguments::known;
use crate::pipeline::check::graph::SourceBlock;

arguments! {
    /// The body of `livedebugging { }`.
    struct LiveDebugging {
        /// If true, clients may watch the data that passes through components.
        enabled: bool = false,
    }
}

/// Decodes the block. Returns true if live debugging is enabled.
pub(crate) fn settings(text: &SourceBlock, resolve: &dyn Resolve) -> Result<bool, Diagnostics> {
    let body: Option<LiveDebugging> = known(text, resolve)?;
    Ok(body.is_some_and(|body| body.enabled))
}
