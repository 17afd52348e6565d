//! The `remotecfg` block, which fetches a configuration from a server: its schema and settings.
//!
//! In: the block. Out: [`RemoteSettings`], checked as far as possible without reading a file or opening a connection.
//! The program fetches and runs the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::check::graph::SourceBlock;
use alluvium_lang::argument_error::{ArgumentError, ArgumentErrors};
use alluvium_lang::ast::Statement;
use alluvium_lang::body::{FromBody as _, arguments};
use alluvium_lang::decode::{Resolve, decode, locate};
use alluvium_lang::schema::{Arguments, Schema};
use alluvium_lang::{Diagnostic, Diagnostics, codes};

arguments! {
    /// The body of `remotecfg { }` without the HTTP client arguments, which are in the same block.
    struct RemoteConfig {
        /// Attributes of this collector, by which the server may choose the configuration.
        attributes: BTreeMap<Arc<str>, Arc<str>> = {},
        /// Id of this collector; if empty, the collector generates and stores one.
        id: Arc<str> = "",
        /// Display name of this collector.
        name: Arc<str> = "",
        /// Interval between requests; at least 10s.
        poll_frequency: Duration = "1m",
        /// URL of the server; if empty, there is no remote configuration.
        url: Arc<str> = "",
    }
    check RemoteConfig::check;
}

/// Minimum interval between requests.
const MIN_POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Prefix of keys that are reserved for the collector.
const RESERVED: &str = "collector.";

/// Settings of the `remotecfg` block. Contains secrets, and is therefore never printed.
#[derive(Clone, PartialEq)]
pub struct RemoteSettings {
    /// URL of the server; never empty.
    pub url: Arc<str>,
    /// Id of this collector; if empty, the collector generates and stores one.
    pub id: Arc<str>,
    /// Display name of this collector.
    pub name: Arc<str>,
    /// Attributes of the collector, by which the server may choose the configuration.
    pub attributes: BTreeMap<Arc<str>, Arc<str>>,
    /// Interval between requests.
    pub poll_frequency: Duration,
    /// Arguments of the HTTP client.
    pub client: Arguments,
}

/// Decodes the block; `None` if it has no URL. Checks that depend on values that are not known yet are skipped.
/// `client` is the schema of HTTP client arguments.
pub(crate) fn settings(
    text: &SourceBlock,
    client: Option<&'static Schema>,
    resolve: &dyn Resolve,
) -> Result<Option<RemoteSettings>, Diagnostics> {
    let SourceBlock { source, block } = text;
    let is_own = |statement: &Statement| match statement {
        Statement::Attribute(attribute) => {
            let mut definitions = RemoteConfig::SCHEMA.attributes.iter();
            definitions.any(|definition| definition.name == &*attribute.name.name)
        }
        Statement::Block(_) => false,
    };
    let (own_statements, others): (Vec<Statement>, Vec<Statement>) = block.body.iter().cloned().partition(is_own);
    let decoded = decode(source, block.header(), &own_statements, RemoteConfig::SCHEMA, resolve);
    let mut diagnostics = decoded.diagnostics;
    let mut client_arguments = Arguments::default();
    if let Some(client) = client {
        let decoded = decode(source, block.header(), &others, client, resolve);
        diagnostics.extend(decoded.diagnostics);
        client_arguments = decoded.arguments;
    }
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    match RemoteConfig::from_body(&decoded.arguments) {
        Ok(body) if !body.url.is_empty() => Ok(Some(RemoteSettings {
            url: body.url,
            id: body.id,
            name: body.name,
            attributes: body.attributes,
            poll_frequency: body.poll_frequency,
            client: client_arguments,
        })),
        Ok(_) => Ok(None),
        // The diagnostic points to the argument in the text, so its message does not contain the path.
        Err(ArgumentErrors(errors)) => {
            let diagnostic = |ArgumentError { path, message }: ArgumentError| {
                let span = locate(&block.body, &path, block.header());
                Diagnostic::error(codes::BAD_ARGUMENT, source, span, message)
            };
            let diagnostics: Diagnostics = errors.into_iter().map(diagnostic).collect();
            diagnostics.into_result(None)
        }
    }
}

impl RemoteConfig {
    fn check(&self) -> Result<(), ArgumentErrors> {
        let mut errors = Vec::new();
        if let Some(key) = self.attributes.keys().find(|key| key.starts_with(RESERVED)) {
            let message = format!("\"{key}\" is reserved: keys may not begin with `{RESERVED}`");
            errors.push(ArgumentError::new("attributes", message));
        }
        if self.poll_frequency < MIN_POLL_INTERVAL {
            errors.push(ArgumentError::new(
                "poll_frequency",
                "poll_frequency must be at least 10s",
            ));
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ArgumentErrors(errors))
        }
    }
}
