//! Blocks of Alloy's that configure the program and that this version does not act on: `http`, `tracing`, `remotecfg`.
//!
//! In: the block. Out: what is wrong with it. A check takes them, so that a user's file stays one file for both programs; a run refuses what would mislead: a listener
//! that is not protected, a configuration that is not fetched. `tracing` is about the program's own traces, of which there are none: it has no effect.

use crate::lang::decode::{Resolve, decode};
use crate::lang::schema::{Attribute, Block, Kind, Schema};
use crate::lang::{Diagnostic, Diagnostics, codes};
use crate::pipeline::graph::SourceBlock;
use crate::pipeline::live;

const STRINGS: Kind = Kind::List(&Kind::String);

/// `http { }`.
pub const HTTP: Schema = Schema {
    attributes: &[],
    blocks: &[
        Block::optional("auth", &AUTH, "Who is let in."),
        Block::optional("tls", &TLS, "Certificates of the listener."),
    ],
};

const AUTH: Schema = Schema {
    attributes: &[],
    blocks: &[
        Block::optional("basic", &BASIC, "User and password."),
        Block::optional("filter", &FILTER, "Paths that need them."),
    ],
};

const BASIC: Schema = Schema {
    attributes: &[
        Attribute::required("password", Kind::Secret, "Password."),
        Attribute::required("username", Kind::String, "User."),
    ],
    blocks: &[],
};

const FILTER: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "authenticate_matching_paths",
            Kind::Bool,
            "true",
            "Whether it is the paths named that need them, or all others.",
        ),
        Attribute::with_default("paths", STRINGS, "[]", "Beginnings of paths."),
    ],
    blocks: &[],
};

const TLS: Schema = Schema {
    attributes: &[
        Attribute::optional("cert_file", Kind::String, "File with the certificate."),
        Attribute::optional("cert_pem", Kind::String, "The certificate, as PEM text."),
        Attribute::with_default("cipher_suites", STRINGS, "[]", "Cipher suites to use."),
        Attribute::optional("client_auth_type", Kind::String, "Whether clients show certificates."),
        Attribute::optional("client_ca_file", Kind::String, "File with the authorities of clients."),
        Attribute::optional(
            "client_ca_pem",
            Kind::String,
            "The authorities of clients, as PEM text.",
        ),
        Attribute::with_default("curve_preferences", STRINGS, "[]", "Curves to use."),
        Attribute::optional("key_file", Kind::String, "File with the key."),
        Attribute::optional("key_pem", Kind::Secret, "The key, as PEM text."),
        Attribute::optional("max_version", Kind::String, "Highest version of TLS."),
        Attribute::optional("min_version", Kind::String, "Lowest version of TLS."),
    ],
    blocks: &[],
};

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

/// What is wrong with one of these blocks; `run` when the configuration is to run and not only to be checked.
pub(crate) fn check(name: &str, text: &SourceBlock, run: bool, resolve: &dyn Resolve) -> Diagnostics {
    let SourceBlock { source, block } = text;
    let body = |schema| decode(source, block.header(), &block.body, schema, resolve).diagnostics;
    let refuse = |what: &str, hint: &str| -> Diagnostics {
        let message = format!("{what}, which this version does not do");
        Diagnostic::error(codes::UNSUPPORTED_BLOCK, source, block.header(), message)
            .hint(hint)
            .into()
    };
    match name {
        "http" => {
            let mut found = body(&HTTP);
            // An empty block asks for nothing.
            if run && !block.body.is_empty() {
                found.extend(refuse(
                    "the `http` block protects the listener",
                    "listen on a local address (--server.http.listen-addr) behind a proxy that does it, and remove the block",
                ));
            }
            found
        }
        "tracing" => body(&TRACING),
        "livedebugging" => live::settings(text, resolve).err().unwrap_or_default(),
        "remotecfg" if run && !block.body.is_empty() => refuse(
            "the `remotecfg` block fetches a configuration from a server",
            "remove the block; modules can be fetched by `import.http` and `import.git`",
        ),
        _ => Diagnostics::new(),
    }
}
