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
        discover_config: ProcessLabels,
    }
}

arguments! {
    /// The body of `discover_config { }`: the attributes of a process that become labels.
    pub(crate) struct ProcessLabels {
        /// If true, `__meta_process_cgroup_path` contains the lines of `/proc/PID/cgroup`, joined by `;`.
        cgroup_path: bool = false,
        /// If true, `__meta_process_commandline` contains the command line.
        commandline: bool = true,
        /// If true, `__container_id__` contains the ID of the container that the process runs in.
        container_id: bool = true,
        /// If true, `__meta_process_cwd` contains the working directory.
        cwd: bool = true,
        /// If true, `__meta_process_exe` contains the path of the executable.
        exe: bool = true,
        /// If true, `__meta_process_uid` contains the real user ID of the process.
        uid: bool = false,
        /// If true, `__meta_process_username` contains the name of the user with the real user ID of the process.
        username: bool = false,
    }
}
