//! `discovery.http` and `discovery.dns`: targets from a web service and from the domain name system.
//!
//! Schema and checks.

use crate::components::common::{checks, discovery, http_client};
use crate::lang::schema::{Arguments, Attribute, Kind, Schema, attributes};
use crate::pipeline::component::{ArgumentError, Definition, Stability};

/// `discovery.http`
pub const HTTP: Definition = Definition {
    name: "discovery.http",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: attributes!(
            &[
                discovery::refresh_interval("\"60s\""),
                Attribute::required("url", Kind::String, "URL that answers with targets as JSON."),
            ],
            http_client::ATTRIBUTES
        ),
        blocks: http_client::BLOCKS,
    },
    exports: discovery::EXPORTS,
    validate: |arguments| {
        checks::http_url(arguments, "", "url")?;
        http_client::check(arguments, "")
    },
    build: None,
    doc: "`discovery.http` asks a web service for targets, in the format of `discovery.file`.",
};

/// `discovery.dns`
pub const DNS: Definition = Definition {
    name: "discovery.dns",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            Attribute::required("names", Kind::List(&Kind::String), "Names to look up."),
            Attribute::with_default(
                "port",
                Kind::Int,
                "0",
                "Port of the targets; must be given for every type but SRV, which knows it.",
            ),
            discovery::refresh_interval("\"30s\""),
            Attribute::with_default(
                "type",
                Kind::String,
                "\"SRV\"",
                "Type of the records: SRV, A, AAAA, MX or NS.",
            ),
        ],
        blocks: &[],
    },
    exports: discovery::EXPORTS,
    validate: check_dns,
    build: None,
    doc: "`discovery.dns` looks names up and takes the answers for targets.",
};

fn check_dns(arguments: &Arguments) -> Result<(), ArgumentError> {
    let kind = arguments.string("type").to_uppercase();
    match kind.as_str() {
        "SRV" => Ok(()),
        "A" | "AAAA" | "MX" | "NS" if arguments.int("port") == 0 => {
            let message = format!("records of type {kind} know no port: give port");
            Err(checks::error("port", message))
        }
        "A" | "AAAA" | "MX" | "NS" => Ok(()),
        _ => checks::choice(arguments, "", "type", &["SRV", "A", "AAAA", "MX", "NS"]),
    }
}
