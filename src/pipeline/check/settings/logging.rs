//! The `logging` block: what it may hold, and its settings. Applying them is the caller's business.

use crate::lang::decode::{Resolve, decode};
use crate::lang::schema::{Arguments, Attribute, Kind, Schema};
use crate::lang::{Diagnostic, Diagnostics, codes};
use crate::pipeline::check::graph::SourceBlock;

/// What the block asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggingSettings {
    /// `debug`, `info`, `warn` or `error`.
    pub level: String,
    /// `logfmt` or `json`.
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

/// The attributes of the block, as Alloy has them.
pub const SCHEMA: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "destination",
            Kind::String,
            "\"stderr\"",
            "Where log lines go; only `stderr`.",
        ),
        Attribute::with_default(
            "format",
            Kind::String,
            "\"logfmt\"",
            "Format of log lines: `logfmt` or `json`.",
        ),
        Attribute::with_default(
            "level",
            Kind::String,
            "\"info\"",
            "Least level of lines written: `debug`, `info`, `warn` or `error`.",
        ),
        Attribute::with_default(
            "write_to",
            Kind::List(&Kind::Any),
            "[]",
            "Receivers of log lines; there are no components that receive logs, so it has to be empty.",
        ),
    ],
    blocks: &[],
};

/// Reads the block. Values that are not known yet count as their defaults.
pub(crate) fn settings(text: &SourceBlock, resolve: &dyn Resolve) -> Result<LoggingSettings, Diagnostics> {
    let SourceBlock { source, block } = text;
    let decoded = decode(source, block.header(), &block.body, &SCHEMA, resolve);
    let mut diagnostics = decoded.diagnostics;
    let arguments = decoded.arguments;
    let mut choice = |name: &str, allowed: &[&str]| {
        let value = arguments.string(name).to_string();
        if !value.is_empty() && !allowed.contains(&value.as_str()) {
            let span = crate::lang::decode::locate(&block.body, name, block.header());
            let message = format!("unrecognized {name} \"{value}\"");
            diagnostics.push(
                Diagnostic::error(codes::BAD_ARGUMENT, source, span, message)
                    .hint(format!("one of: {}", allowed.join(", "))),
            );
        }
        value
    };
    let level = choice("level", &["debug", "info", "warn", "error"]);
    let format = choice("format", &["logfmt", "json"]);
    choice("destination", &["stderr"]);
    refuse_receivers(text, &arguments, &mut diagnostics);
    let defaults = LoggingSettings::default();
    let or = |value: String, default: String| if value.is_empty() { default } else { value };
    diagnostics.into_result(LoggingSettings {
        level: or(level, defaults.level),
        format: or(format, defaults.format),
    })
}

fn refuse_receivers(text: &SourceBlock, arguments: &Arguments, diagnostics: &mut Diagnostics) {
    let SourceBlock { source, block } = text;
    if let crate::lang::value::Value::Array(items) = arguments.value("write_to")
        && !items.is_empty()
    {
        let span = crate::lang::decode::locate(&block.body, "write_to", block.header());
        diagnostics.push(Diagnostic::error(
            codes::BAD_ARGUMENT,
            source,
            span,
            "logs are written to stderr only; write_to has to be empty",
        ));
    }
}
