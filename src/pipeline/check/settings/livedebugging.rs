//! The `livedebugging` block: what it may hold, and its setting.

use crate::lang::Diagnostics;
use crate::lang::decode::{Resolve, decode};
use crate::lang::schema::{Attribute, Kind, Schema};
use crate::pipeline::check::graph::SourceBlock;

/// The attributes of the block, as Alloy has them.
pub const SCHEMA: Schema = Schema {
    attributes: &[Attribute::with_default(
        "enabled",
        Kind::Bool,
        "false",
        "Whether one may look at what passes through components.",
    )],
    blocks: &[],
};

/// Reads the block: whether live debugging is enabled.
pub(crate) fn settings(text: &SourceBlock, resolve: &dyn Resolve) -> Result<bool, Diagnostics> {
    let SourceBlock { source, block } = text;
    let decoded = decode(source, block.header(), &block.body, &SCHEMA, resolve);
    decoded.diagnostics.into_result(decoded.arguments.bool("enabled"))
}
