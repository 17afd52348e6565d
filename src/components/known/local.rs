//! `local.file_match`: the files that patterns match.
//!
//! Schema and check. Nothing is read here.

use crate::components::common::{checks, discovery};
use crate::lang::schema::{Attribute, Kind, Schema, TARGETS};
use crate::pipeline::component::{Definition, Stability};

/// `local.file_match`
pub const FILE_MATCH: Definition = Definition {
    name: "local.file_match",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            Attribute::with_default(
                "ignore_older_than",
                Kind::Duration,
                "\"0s\"",
                "Files that were not written to for so long are left out; 0 is never.",
            ),
            Attribute::required(
                "path_targets",
                TARGETS,
                "Targets whose label __path__ is a pattern of files and __path_exclude__ a pattern of those to leave out.",
            ),
            Attribute::with_default(
                "sync_period",
                Kind::Duration,
                "\"10s\"",
                "Time from one look at the folders to the next.",
            ),
        ],
        blocks: &[],
    },
    exports: discovery::EXPORTS,
    validate: |arguments| checks::positive(arguments, "", "sync_period"),
    build: None,
    doc: "`local.file_match` finds the files that patterns match and makes a target of each.",
};
