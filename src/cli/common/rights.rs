//! The flag `--keep-rights`, with which long-running commands keep the capabilities and system calls that they
//! otherwise drop at their start.

use clap::Args;

/// The flag `--keep-rights` of long-running commands.
#[derive(Debug, Clone, Copy, Args)]
pub struct RightsArgs {
    /// Keep all capabilities and system calls. By default, the process drops at its start the capabilities and system
    /// calls that it does not need.
    #[arg(long, help_heading = "Process")]
    pub keep_rights: bool,
}
