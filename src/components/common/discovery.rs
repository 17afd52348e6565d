//! What the arguments and exports of the discoveries have in common.
//!
//! Constants and constant functions only; a discovery lists them among its own attributes.

use crate::components::common::checks;
use crate::lang::schema::{Arguments, Attribute, Block, Kind, Schema, TARGETS};
use crate::pipeline::component::ArgumentError;

/// The one export of a discovery.
pub const EXPORTS: &[Attribute] = &[Attribute::required("targets", TARGETS, "The targets that were found.")];

/// `filter { name = ..., values = [...] }` of Docker and AWS.
pub const FILTER: Block = Block::many("filter", &FILTER_SCHEMA, "What is looked for; all filters must match.");

const FILTER_SCHEMA: Schema = Schema {
    attributes: &[
        Attribute::required(
            "name",
            Kind::String,
            "What to filter by, as the API that is asked names it.",
        ),
        Attribute::required("values", Kind::List(&Kind::String), "Values of which one must match."),
    ],
    blocks: &[],
};

/// `refresh_interval`, with its default as an expression.
pub const fn refresh_interval(default: &'static str) -> Attribute {
    Attribute::with_default(
        "refresh_interval",
        Kind::Duration,
        default,
        "Time from one look at the targets to the next.",
    )
}

/// `port`, with its default as an expression.
pub const fn port(default: &'static str) -> Attribute {
    Attribute::with_default(
        "port",
        Kind::Int,
        default,
        "Port of a target whose port is not known otherwise.",
    )
}

/// `tag_separator`.
pub const TAG_SEPARATOR: Attribute = Attribute::with_default(
    "tag_separator",
    Kind::String,
    "\",\"",
    "Text between the tags in the label that holds them all.",
);

/// Checks that `refresh_interval` is more than nothing.
pub fn check_refresh_interval(arguments: &Arguments) -> Result<(), ArgumentError> {
    checks::positive(arguments, "", "refresh_interval")
}

/// Checks that every filter has a value.
pub fn check_filters(arguments: &Arguments) -> Result<(), ArgumentError> {
    for (index, filter) in arguments.blocks("filter").enumerate() {
        checks::not_empty(&filter.body, &format!("filter[{index}]."), "values")?;
    }
    Ok(())
}
