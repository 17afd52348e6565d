//! Arguments of `discovery.process`.

use std::time::Duration;

use crate::components::common::discovery;
use crate::components::common::targets::Target;
use crate::lang::schema::{Arguments, Attribute, Block, Kind, Schema, TARGETS};

/// The schema.
pub const SCHEMA: Schema = Schema {
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

/// The arguments as values.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Targets to join with.
    pub join: Vec<Target>,
    /// Time from one full look to the next.
    pub refresh_interval: Duration,
    /// What is found out.
    pub wanted: Wanted,
}

/// What is found out of each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// `__meta_process_exe`
    pub exe: bool,
    /// `__meta_process_cwd`
    pub cwd: bool,
    /// `__meta_process_commandline`
    pub commandline: bool,
    /// `__container_id__`
    pub container_id: bool,
    /// `__meta_process_username`
    pub username: bool,
    /// `__meta_process_uid`
    pub uid: bool,
    /// `__meta_process_cgroup_path`
    pub cgroup_path: bool,
}

impl From<&Arguments> for Settings {
    fn from(arguments: &Arguments) -> Self {
        let wanted = |name| arguments.block("discover_config").is_some_and(|block| block.bool(name));
        Self {
            join: arguments.targets("join"),
            refresh_interval: arguments.duration("refresh_interval"),
            wanted: Wanted {
                exe: wanted("exe"),
                cwd: wanted("cwd"),
                commandline: wanted("commandline"),
                container_id: wanted("container_id"),
                username: wanted("username"),
                uid: wanted("uid"),
                cgroup_path: wanted("cgroup_path"),
            },
        }
    }
}
