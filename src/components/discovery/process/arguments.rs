//! Arguments of `discovery.process`.

use crate::common::arguments::targets::Targets;
use alluvium_lang::attribute::Interval;
use alluvium_lang::body::arguments;

arguments! {
    /// Arguments of `discovery.process`.
    pub(crate) struct ProcessArguments {
        /// Targets of containers. A process gets the labels of the container that it runs in.
        join: Targets = [],
        /// Time between two refreshes of the targets.
        refresh_interval: Interval = "60s",
    }
    blocks {
        /// Attributes of a process that become labels.
        discover_config: Wanted,
    }
}

arguments! {
    /// The body of `discover_config { }`: the attributes of a process that become labels.
    pub(crate) struct Wanted {
        /// If true, `__meta_process_cgroup_path` has the paths of the control groups.
        cgroup_path: bool = false,
        /// If true, `__meta_process_commandline` has the command line.
        commandline: bool = true,
        /// If true, `__container_id__` has the ID of the container.
        container_id: bool = true,
        /// If true, `__meta_process_cwd` has the working directory.
        cwd: bool = true,
        /// If true, `__meta_process_exe` has the path of the executable.
        exe: bool = true,
        /// If true, `__meta_process_uid` has the ID of the user.
        uid: bool = false,
        /// If true, `__meta_process_username` has the name of the user.
        username: bool = false,
    }
}
