//! The flag that keeps what commands that run for long give up at their start.

use clap::Args;

/// The flag of commands that run for long.
#[derive(Debug, Clone, Copy, Args)]
pub struct RightsArgs {
    /// Give up no capability and no system call at the start, as is done with those that nothing here needs.
    #[arg(long, help_heading = "Process")]
    pub keep_rights: bool,
}
