//! Blocks that configure the program: their checks, and what this version does not act on, `tracing` and `remotecfg`.
//!
//! In: the block. Out: what is wrong with it. A check takes them, so that a user's file stays one file for both programs; a run refuses what would mislead: a configuration
//! that is not fetched. `tracing` is about the program's own traces, of which there are none: it has no effect, and a run says so.

use std::time::Duration;

use crate::lang::ast::Statement;
use crate::lang::decode::{Resolve, decode, locate};
use crate::lang::schema::{Attribute, Block, Kind, Schema};
use crate::lang::{Diagnostic, Diagnostics, codes};
use crate::pipeline::graph::SourceBlock;
use crate::pipeline::{http, live};

/// `tracing { }`.
pub const TRACING: Schema = Schema {
    attributes: &[
        Attribute::with_default("sampling_fraction", Kind::Float, "0.1", "Share of traces kept."),
        Attribute::with_default(
            "send_traceparent",
            Kind::Bool,
            "false",
            "Whether requests carry the trace on.",
        ),
        Attribute::with_default("write_to", Kind::List(&Kind::Any), "[]", "Consumers of traces."),
    ],
    blocks: &[Block::optional("sampler", &SAMPLER, "Another sampler.")],
};

const SAMPLER: Schema = Schema {
    attributes: &[],
    blocks: &[Block::optional("jaeger_remote", &JAEGER, "Jaeger's remote sampler.")],
};

const JAEGER: Schema = Schema {
    attributes: &[
        Attribute::with_default("max_operations", Kind::Int, "256", "Operations kept."),
        Attribute::with_default("refresh_interval", Kind::Duration, "\"1m\"", "Time between two looks."),
        Attribute::with_default(
            "url",
            Kind::String,
            "\"http://127.0.0.1:5778/sampling\"",
            "Where to look.",
        ),
    ],
    blocks: &[],
};

/// What is wrong with one of these blocks; `run` when the configuration is to run and not only to be checked. `client` are the arguments of HTTP clients.
pub(crate) fn check(
    name: &str,
    text: &SourceBlock,
    client: Option<&'static Schema>,
    run: bool,
    resolve: &dyn Resolve,
) -> Diagnostics {
    let SourceBlock { source, block } = text;
    let body = |schema| decode(source, block.header(), &block.body, schema, resolve).diagnostics;
    let refuse = |what: &str, hint: &str| -> Diagnostics {
        let message = format!("{what}, which this version does not do");
        Diagnostic::error(codes::UNSUPPORTED_BLOCK, source, block.header(), message)
            .hint(hint)
            .into()
    };
    match name {
        "http" => http::settings(text, resolve).err().unwrap_or_default(),
        "tracing" => {
            let mut found = body(&TRACING);
            if run && !found.has_errors() {
                let message = "the `tracing` block has no effect: this program makes no traces of itself";
                found.push(Diagnostic::warning(codes::NO_EFFECT, source, block.header(), message));
            }
            found
        }
        "livedebugging" => live::settings(text, resolve).err().unwrap_or_default(),
        "remotecfg" => {
            // An empty block asks for nothing.
            if block.body.is_empty() {
                return Diagnostics::new();
            }
            let mut found = remotecfg(text, client, resolve);
            if run {
                found.extend(refuse(
                    "the `remotecfg` block fetches a configuration from a server",
                    "remove the block; modules can be fetched by `import.http` and `import.git`",
                ));
            }
            found
        }
        _ => Diagnostics::new(),
    }
}

/// `remotecfg { }` without the arguments of HTTP clients, which stand among these.
pub const REMOTECFG: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "attributes",
            Kind::Map(&Kind::String),
            "{}",
            "What the server is told of this collector.",
        ),
        Attribute::with_default("id", Kind::String, "\"\"", "Id of this collector."),
        Attribute::with_default("name", Kind::String, "\"\"", "Name of this collector for people."),
        Attribute::with_default("poll_frequency", Kind::Duration, "\"1m\"", "Time between two looks."),
        Attribute::with_default("url", Kind::String, "\"\"", "Server of the configuration."),
    ],
    blocks: &[],
};

/// Shortest time between two looks.
const SHORTEST_POLL: Duration = Duration::from_secs(10);
/// Keys that begin so are the collector's own.
const RESERVED: &str = "collector.";

fn remotecfg(text: &SourceBlock, client: Option<&'static Schema>, resolve: &dyn Resolve) -> Diagnostics {
    let SourceBlock { source, block } = text;
    let is_own = |statement: &Statement| match statement {
        Statement::Attribute(attribute) => REMOTECFG.attributes.iter().any(|own| own.name == &*attribute.name.name),
        Statement::Block(_) => false,
    };
    let (own, others): (Vec<Statement>, Vec<Statement>) = block.body.iter().cloned().partition(is_own);
    let decoded = decode(source, block.header(), &own, &REMOTECFG, resolve);
    let mut found = decoded.diagnostics;
    if let Some(client) = client {
        found.extend(decode(source, block.header(), &others, client, resolve).diagnostics);
    }
    if found.has_errors() {
        return found;
    }
    let mut wrong = |name: &str, message: String| {
        let span = locate(&block.body, name, block.header());
        found.push(Diagnostic::error(codes::BAD_ARGUMENT, source, span, message));
    };
    let attributes = decoded.arguments.string_map("attributes");
    if let Some(key) = attributes.keys().find(|key| key.starts_with(RESERVED)) {
        wrong(
            "attributes",
            format!("\"{key}\" is reserved: keys may not begin with `{RESERVED}`"),
        );
    }
    // Not known yet is zero.
    let poll = decoded.arguments.duration("poll_frequency");
    if poll < SHORTEST_POLL && decoded.complete {
        wrong("poll_frequency", "poll_frequency must be at least 10s".to_owned());
    }
    found
}
