//! The `remotecfg` block: a configuration from a server. What it may hold, and its settings.
//!
//! In: the block. Out: [`RemoteSettings`], checked as far as that goes without reading a file or opening a connection.
//! Asking the server and running what it sends is the business of who runs it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::lang::ast::Statement;
use crate::lang::decode::{Resolve, decode, locate};
use crate::lang::schema::{Arguments, Attribute, Kind, Schema};
use crate::lang::{Diagnostic, Diagnostics, codes};
use crate::pipeline::check::graph::SourceBlock;

/// `remotecfg { }` without the arguments of HTTP clients, which stand among these.
pub const SCHEMA: Schema = Schema {
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

/// What the block asks for. Holds secrets, and is therefore never printed.
#[derive(Clone, PartialEq)]
pub struct RemoteSettings {
    /// Where the server is; never empty.
    pub url: Arc<str>,
    /// Id of this collector; empty for one that is made once and kept.
    pub id: Arc<str>,
    /// Name for people.
    pub name: Arc<str>,
    /// What the server chooses by.
    pub attributes: BTreeMap<Arc<str>, Arc<str>>,
    /// Time between two looks.
    pub poll_frequency: Duration,
    /// Arguments of the HTTP client.
    pub client: Arguments,
}

/// Reads the block; `None` when it asks for nothing. Where values are not known yet, what depends on them is not
/// checked. `client` are the arguments of HTTP clients.
pub(crate) fn settings(
    text: &SourceBlock,
    client: Option<&'static Schema>,
    resolve: &dyn Resolve,
) -> Result<Option<RemoteSettings>, Diagnostics> {
    let SourceBlock { source, block } = text;
    let is_own = |statement: &Statement| match statement {
        Statement::Attribute(attribute) => SCHEMA.attributes.iter().any(|own| own.name == &*attribute.name.name),
        Statement::Block(_) => false,
    };
    let (own, others): (Vec<Statement>, Vec<Statement>) = block.body.iter().cloned().partition(is_own);
    let decoded = decode(source, block.header(), &own, &SCHEMA, resolve);
    let mut found = decoded.diagnostics;
    let mut client_arguments = Arguments::default();
    if let Some(client) = client {
        let decoded = decode(source, block.header(), &others, client, resolve);
        found.extend(decoded.diagnostics);
        client_arguments = decoded.arguments;
    }
    let arguments = decoded.arguments;
    if found.has_errors() {
        return Err(found);
    }
    let mut wrong = |name: &str, message: String| {
        let span = locate(&block.body, name, block.header());
        found.push(Diagnostic::error(codes::BAD_ARGUMENT, source, span, message));
    };
    let attributes = arguments.string_map("attributes");
    if let Some(key) = attributes.keys().find(|key| key.starts_with(RESERVED)) {
        wrong(
            "attributes",
            format!("\"{key}\" is reserved: keys may not begin with `{RESERVED}`"),
        );
    }
    let poll_frequency = arguments.duration("poll_frequency");
    // Not known yet is zero.
    if poll_frequency < SHORTEST_POLL && decoded.complete {
        wrong("poll_frequency", "poll_frequency must be at least 10s".to_owned());
    }
    let settings = RemoteSettings {
        url: arguments.string("url"),
        id: arguments.string("id"),
        name: arguments.string("name"),
        attributes,
        poll_frequency,
        client: client_arguments,
    };
    let asked = (!settings.url.is_empty()).then_some(settings);
    found.into_result(asked)
}
