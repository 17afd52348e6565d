//! `discovery.process`: the processes of this machine as targets.
//!
//! Schema and checks.

use crate::components::common::discovery;
use crate::lang::schema::{Attribute, Block, Kind, Schema, TARGETS};
use crate::pipeline::component::{Definition, Stability};

/// `discovery.process`
pub const DEFINITION: Definition = Definition {
    name: "discovery.process",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            Attribute::with_default(
                "join",
                TARGETS,
                "[]",
                "Targets of containers whose labels a process in the container gets.",
            ),
            discovery::refresh_interval("\"60s\""),
        ],
        blocks: &[Block::implied(
            "discover_config",
            &DISCOVER_CONFIG,
            "What is found out of a process.",
        )],
    },
    exports: discovery::EXPORTS,
    validate: discovery::check_refresh_interval,
    build: None,
    doc: "`discovery.process` finds the processes of this machine and the containers that they run in.",
};

const DISCOVER_CONFIG: Schema = Schema {
    attributes: &[
        Attribute::with_default("cgroup_path", Kind::Bool, "false", "Paths of the control groups."),
        Attribute::with_default("commandline", Kind::Bool, "true", "The command line."),
        Attribute::with_default("container_id", Kind::Bool, "true", "The id of the container."),
        Attribute::with_default("cwd", Kind::Bool, "true", "The working folder."),
        Attribute::with_default("exe", Kind::Bool, "true", "The path of the program."),
        Attribute::with_default("uid", Kind::Bool, "false", "The number of the user."),
        Attribute::with_default("username", Kind::Bool, "false", "The name of the user."),
    ],
    blocks: &[],
};
