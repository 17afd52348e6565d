//! `alluvium completions`: prints a completion script for a shell.
//!
//! Writes to standard output and changes nothing.

use clap::Args;
use clap_complete::Shell;

use crate::cli::common::output;

/// Arguments of `alluvium completions`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium completions bash > ~/.local/share/bash-completion/completions/alluvium\n  \
                        alluvium completions zsh > \"${fpath[1]}/_alluvium\"\n  \
                        alluvium completions fish > ~/.config/fish/completions/alluvium.fish"
)]
pub struct CompletionsArgs {
    /// The shell that uses the script.
    pub shell: Shell,
}

/// Prints the script for `command`, the complete command line of the program.
pub(crate) fn run(args: CompletionsArgs, command: &mut clap::Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, command, "alluvium", &mut script);
    output::write(&script)
}
