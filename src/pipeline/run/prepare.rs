//! Blocks that are about more than components, from settings to what is in force: the protection of the listener, the
//! configuration from a server.
//!
//! Both are the business of the program around the controller. While a configuration is loaded it *prepares* what the
//! settings ask for and changes nothing; what it answers is called when the load has succeeded.

use std::sync::Arc;

use crate::lang::argument_error::ArgumentError;
use crate::lang::decode::locate;
use crate::lang::{Diagnostic, codes};
use crate::pipeline::check::graph::SourceBlock;
use crate::pipeline::check::settings::http::HttpSettings;
use crate::pipeline::check::settings::remote::RemoteSettings;

/// Puts prepared settings in force; called when the configuration is in force.
pub(crate) type Apply = Box<dyn FnOnce() + Send>;
/// Prepares the protection of the listener: reads certificates, changes nothing. The error is about a path in the
/// block.
pub(crate) type PrepareHttp = Arc<dyn Fn(&HttpSettings) -> Result<Apply, ArgumentError> + Send + Sync>;
/// Prepares the configuration from a server, none when there is no block or its URL is empty: reads certificates,
/// changes nothing. The error is about a path in the block.
pub(crate) type PrepareRemote = Arc<dyn Fn(Option<&RemoteSettings>) -> Result<Apply, ArgumentError> + Send + Sync>;

/// What a program does that has no listener to protect: it refuses to pretend.
pub(crate) fn no_listener(settings: &HttpSettings) -> Result<Apply, ArgumentError> {
    match (&settings.tls, &settings.auth) {
        (None, None) => Ok(Box::new(|| {})),
        _ => Err(ArgumentError {
            path: String::new(),
            message: "this program has no listener of its own that the block could protect".to_owned(),
        }),
    }
}

/// The refusal of settings that could not be prepared.
pub(super) fn refused_settings(text: &SourceBlock, wrong: &ArgumentError) -> Diagnostic {
    let SourceBlock { source, block } = text;
    let span = locate(&block.body, &wrong.path, block.header());
    Diagnostic::error(codes::BAD_ARGUMENT, source, span, wrong.message.clone())
}

/// The refusal of a program that runs no configuration from a server.
pub(super) fn unsupported(text: &SourceBlock) -> Diagnostic {
    let SourceBlock { source, block } = text;
    let message = "the `remotecfg` block fetches a configuration from a server, which this program does not do";
    Diagnostic::error(codes::UNSUPPORTED_BLOCK, source, block.header(), message)
        .hint("remove the block, or run the configuration with `alluvium run`")
}
