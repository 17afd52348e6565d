//! `alluvium man`: writes the manual pages, one for the program and one for each command.
//!
//! In: a folder, which is created if it does not exist. Out: `alluvium.1`, `alluvium-serve.1` and so on. Other files in
//! the folder are not changed.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

/// Arguments of `alluvium man`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  alluvium man ./man1 && man ./man1/alluvium-serve.1")]
pub struct ManArgs {
    /// Folder for the pages; created if it does not exist.
    pub folder: PathBuf,
}

/// Writes the pages of `command`, the complete command line of the program.
pub(crate) fn run(args: &ManArgs, command: clap::Command) -> anyhow::Result<()> {
    let failed = || format!("cannot write manual pages to {}", args.folder.display());
    std::fs::create_dir_all(&args.folder).with_context(failed)?;
    clap_mangen::generate_to(command, &args.folder).with_context(failed)
}
