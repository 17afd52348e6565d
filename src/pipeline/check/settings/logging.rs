//! The `logging` block: its schema and settings. The caller applies them.

use std::sync::Arc;

use crate::check::arguments::decode_known;
use crate::check::graph::SourceBlock;
use alluvium_lang::body::arguments;
use alluvium_lang::decode::{Resolve, locate};
use alluvium_lang::value::Value;
use alluvium_lang::{Diagnostic, Diagnostics, codes};

const LEVELS: [&str; 4] = ["debug", "info", "warn", "error"];
const FORMATS: [&str; 2] = ["logfmt", "json"];

/// Settings of the `logging` block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggingSettings {
    /// `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// Format of log lines: `logfmt` or `json`.
    pub format: String,
}

impl Default for LoggingSettings {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: "logfmt".to_owned(),
        }
    }
}

arguments! {
    /// The body of `logging { }`, as in Alloy. An empty text means the default.
    struct Logging {
        /// Destination of log lines; only `stderr`.
        destination: Option<Arc<str>> = "stderr",
        /// Format of log lines: `logfmt` or `json`.
        format: Option<Arc<str>> = "logfmt",
        /// Minimum level of log lines: `debug`, `info`, `warn` or `error`.
        level: Option<Arc<str>> = "info",
        /// Receivers of log lines; must be empty, since no component receives logs.
        write_to: Vec<Value> = [],
    }
}

/// Decodes the block. The settings are the defaults while a value is not known yet.
pub(crate) fn settings(text: &SourceBlock, resolve: &dyn Resolve) -> Result<LoggingSettings, Diagnostics> {
    let Some(Logging {
        destination,
        format,
        level,
        write_to,
    }) = decode_known(text, resolve)?
    else {
        return Ok(LoggingSettings::default());
    };
    let SourceBlock { source, block } = text;
    let refuse = |name: &str, message: String| {
        Diagnostic::error(
            codes::BAD_ARGUMENT,
            source,
            locate(&block.body, name, block.header()),
            message,
        )
    };
    let mut diagnostics = Diagnostics::new();
    for (name, value, allowed) in [
        ("level", &level, &LEVELS[..]),
        ("format", &format, &FORMATS),
        ("destination", &destination, &["stderr"]),
    ] {
        if let Some(value) = value.as_deref().filter(|value| !allowed.contains(value)) {
            let diagnostic = refuse(name, format!("unrecognized {name} \"{value}\""));
            diagnostics.push(diagnostic.hint(format!("one of: {}", allowed.join(", "))));
        }
    }
    if !write_to.is_empty() {
        let message = "logs are written to stderr only; write_to must be empty";
        diagnostics.push(refuse("write_to", message.to_owned()));
    }
    let defaults = LoggingSettings::default();
    diagnostics.into_result(LoggingSettings {
        level: level.map_or(defaults.level, |level| level.to_string()),
        format: format.map_or(defaults.format, |format| format.to_string()),
    })
}
