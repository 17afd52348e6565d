//! The `livedebugging` block: its schema and its setting.

use crate::check::arguments::decode_known;
use crate::check::graph::SourceBlock;
use alluvium_lang::Diagnostics;
use alluvium_lang::body::arguments;
use alluvium_lang::decode::Resolve;

arguments! {
    /// The body of `livedebugging { }`.
    struct LiveDebugging {
        /// If true, clients may watch the data that passes through components.
        enabled: bool = false,
    }
}

/// Decodes the block. Returns true if live debugging is enabled.
pub(crate) fn settings(text: &SourceBlock, resolve: &dyn Resolve) -> Result<bool, Diagnostics> {
    let body: Option<LiveDebugging> = decode_known(text, resolve)?;
    Ok(body.is_some_and(|body| body.enabled))
}
