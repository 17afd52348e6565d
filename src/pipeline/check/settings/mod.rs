//! Blocks that configure the program: their checks, and what this version does not act on, `tracing`.
//!
//! In: the block. Out: what is wrong with it. `tracing` is about the program's own traces, of which there are none: it
//! is taken, so that a user's file stays one file for both programs, has no effect, and a run says so.

use crate::lang::decode::{Resolve, decode};
use crate::lang::schema::{Attribute, Block, Kind, Schema};
use crate::lang::{Diagnostic, Diagnostics, codes};
use crate::pipeline::check::graph::SourceBlock;

pub mod http;
pub mod livedebugging;
pub mod logging;
pub mod remote;

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

/// What is wrong with one of these blocks; `run` when the configuration is to run and not only to be checked. `client`
/// are the arguments of HTTP clients.
pub(crate) fn check(
    name: &str,
    text: &SourceBlock,
    client: Option<&'static Schema>,
    run: bool,
    resolve: &dyn Resolve,
) -> Diagnostics {
    let SourceBlock { source, block } = text;
    let body = |schema| decode(source, block.header(), &block.body, schema, resolve).diagnostics;
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
        "logging" => logging::settings(text, resolve).err().unwrap_or_default(),
        "livedebugging" => livedebugging::settings(text, resolve).err().unwrap_or_default(),
        "remotecfg" => remote::settings(text, client, resolve).err().unwrap_or_default(),
        _ => Diagnostics::new(),
    }
}
