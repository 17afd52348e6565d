//! Blocks that configure the program: their checks, and the block `tracing`, which has no effect in this version.
//!
//! In: the block. Out: diagnostics. `tracing` configures the program's own traces, but the program has none. The block
//! is accepted, so that one file works for Alloy and Alluvium, with a warning that the block has no effect.

use std::sync::Arc;
use std::time::Duration;

use crate::check::graph::SourceBlock;
use alluvium_lang::body::{FromBody as _, arguments};
use alluvium_lang::decode::{Resolve, decode};
use alluvium_lang::schema::Schema;
use alluvium_lang::value::Value;
use alluvium_lang::{Diagnostic, Diagnostics, codes};

pub mod http;
pub(crate) mod livedebugging;
pub(crate) mod logging;
pub mod remote;

arguments! {
    /// The body of `tracing { }`.
    struct TracingBody {
        /// Fraction of traces to keep, from 0 to 1.
        sampling_fraction: f64 = 0.1,
        /// If true, requests carry the trace context.
        send_traceparent: bool = false,
        /// Consumers that receive the traces.
        write_to: Vec<Value> = [],
    }
    blocks {
        /// A sampler that replaces `sampling_fraction`.
        sampler: Option<Sampler>,
    }
}

arguments! {
    /// The body of `tracing > sampler { }`.
    struct Sampler {}
    blocks {
        /// Sampling as configured by a Jaeger server.
        jaeger_remote: Option<JaegerRemote>,
    }
}

arguments! {
    /// The body of `tracing > sampler > jaeger_remote { }`.
    struct JaegerRemote {
        /// Maximum number of operations for which the sampling strategy is cached.
        max_operations: i64 = 256,
        /// Interval between requests for the sampling strategies.
        refresh_interval: Duration = "1m",
        /// URL of the Jaeger server's sampling endpoint.
        url: Arc<str> = "http://127.0.0.1:5778/sampling",
    }
}

/// Checks a block that configures the program. `client` is the schema of HTTP client arguments.
pub(crate) fn check(
    name: &str,
    text: &SourceBlock,
    client: Option<&'static Schema>,
    resolve: &dyn Resolve,
) -> Diagnostics {
    let SourceBlock { source, block } = text;
    let body = |schema| decode(source, block.header(), &block.body, schema, resolve).diagnostics;
    match name {
        "http" => http::settings(text, resolve).err().unwrap_or_default(),
        "tracing" => {
            let mut diagnostics = body(TracingBody::SCHEMA);
            if !diagnostics.has_errors() {
                let message = "the `tracing` block has no effect: this program does not trace itself";
                diagnostics.push(Diagnostic::warning(codes::NO_EFFECT, source, block.header(), message));
            }
            diagnostics
        }
        "logging" => logging::settings(text, resolve).err().unwrap_or_default(),
        "livedebugging" => livedebugging::settings(text, resolve).err().unwrap_or_default(),
        "remotecfg" => remote::settings(text, client, resolve).err().unwrap_or_default(),
        _ => Diagnostics::new(),
    }
}
