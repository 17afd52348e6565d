//! Arguments of `discovery.process`.

use crate::components::common::arguments::targets::Targets;
use crate::lang::attribute::Interval;
use crate::lang::body::arguments;

arguments! {
    /// Arguments of `discovery.process`.
    pub(crate) struct ProcessArguments {
        /// Targets of containers whose labels a process in the container gets.
        join: Targets = [],
        /// Time from one look at the targets to the next.
        refresh_interval: Interval = "60s",
    }
    blocks {
        /// What is found out of a process.
        discover_config: Wanted,
    }
}

arguments! {
    /// `discover_config { }`: what is found out of each process.
    pub(crate) struct Wanted {
        /// Paths of the control groups: `__meta_process_cgroup_path`.
        cgroup_path: bool = false,
        /// The command line: `__meta_process_commandline`.
        commandline: bool = true,
        /// The id of the container: `__container_id__`.
        container_id: bool = true,
        /// The working folder: `__meta_process_cwd`.
        cwd: bool = true,
        /// The path of the program: `__meta_process_exe`.
        exe: bool = true,
        /// The number of the user: `__meta_process_uid`.
        uid: bool = false,
        /// The name of the user: `__meta_process_username`.
        username: bool = false,
    }
}
