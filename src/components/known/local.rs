//! `local.file` and `local.file_match`: the content of a file, and the files that patterns match.
//!
//! Schemas and checks. Nothing is read here.

use crate::components::common::{checks, discovery};
use crate::lang::schema::{Arguments, Attribute, Kind, Schema, TARGETS};
use crate::pipeline::component::{ArgumentError, Definition, Stability};

/// `local.file`
pub const FILE: Definition = Definition {
    name: "local.file",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            Attribute::with_default(
                "detector",
                Kind::String,
                "\"fsnotify\"",
                "How changes are seen: fsnotify (the system tells) or poll.",
            ),
            Attribute::required("filename", Kind::String, "File to read."),
            Attribute::with_default(
                "is_secret",
                Kind::Bool,
                "false",
                "Whether the content is a secret, which is never shown.",
            ),
            Attribute::with_default(
                "poll_frequency",
                Kind::Duration,
                "\"1m\"",
                "Time from one look at the file to the next.",
            ),
        ],
        blocks: &[],
    },
    exports: &[Attribute::required(
        "content",
        Kind::OptionalSecret,
        "The content of the file.",
    )],
    validate: check_file,
    build: None,
    doc: "`local.file` reads a file and follows its changes.",
};

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

fn check_file(arguments: &Arguments) -> Result<(), ArgumentError> {
    // An empty text means the default, as in Alloy.
    if !arguments.string("detector").is_empty() {
        checks::choice(arguments, "", "detector", &["fsnotify", "poll"])?;
    }
    checks::positive(arguments, "", "poll_frequency")
}
