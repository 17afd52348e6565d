//! Settings that the program around the controller applies, because they do not belong to components: the protection of
//! the listener (block `http`), and the remote configuration (block `remotecfg`).
//!
//! During a load the program *prepares* the settings without changing anything, and returns a function. The controller
//! calls that function after the load has succeeded.

use std::sync::Arc;

use crate::check::graph::SourceBlock;
use crate::check::settings::http::HttpSettings;
use crate::check::settings::remote::RemoteSettings;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::decode::locate;
use alluvium_lang::{Diagnostic, codes};

/// Applies prepared settings; called once the configuration is in force.
pub type Apply = Box<dyn FnOnce() + Send>;
/// Prepares the protection of the listener: reads certificates, changes nothing. The path of an error is relative to
/// the block.
pub(crate) type PrepareHttp = Arc<dyn Fn(&HttpSettings) -> Result<Apply, ArgumentError> + Send + Sync>;
/// Prepares the remote configuration: reads certificates, changes nothing. The settings are `None` if there is no block
/// or no URL. The path of an error is relative to the block.
pub(crate) type PrepareRemote = Arc<dyn Fn(Option<&RemoteSettings>) -> Result<Apply, ArgumentError> + Send + Sync>;

/// Refuses settings of the listener, in a program that has none.
pub(crate) fn no_listener(settings: &HttpSettings) -> Result<Apply, ArgumentError> {
    match (&settings.tls, &settings.auth) {
        (None, None) => Ok(Box::new(|| {})),
        _ => Err(ArgumentError {
            path: String::new(),
            message: "this program has no listener that the block could protect".to_owned(),
        }),
    }
}

/// Returns the diagnostic for settings that could not be prepared.
pub(super) fn refused_settings(text: &SourceBlock, error: &ArgumentError) -> Diagnostic {
    let SourceBlock { source, block } = text;
    let span = locate(&block.body, &error.path, block.header());
    Diagnostic::error(codes::BAD_ARGUMENT, source, span, error.message.clone())
}

/// Returns the diagnostic of a program that cannot run a configuration from a server.
pub(super) fn unsupported(text: &SourceBlock) -> Diagnostic {
    let SourceBlock { source, block } = text;
    let message = "the `remotecfg` block fetches a configuration from a server, which this program does not support";
    Diagnostic::error(codes::UNSUPPORTED_BLOCK, source, block.header(), message)
        .hint("remove the block, or run the configuration with `alluvium run`")
}
