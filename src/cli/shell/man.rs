//! `alluvium man`: writes the manual pages, one of the program and one of each command.
//!
//! In: a folder, made when it is not there. Out: `alluvium.1`, `alluvium-serve.1` and so on; other files there stay.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;

/// Arguments of `alluvium man`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:\n  alluvium man ./man1 && man ./man1/alluvium-serve.1")]
pub struct ManArgs {
    /// Folder to write the pages to; made when it is not there.
    pub folder: PathBuf,
}

/// Writes the pages of `command`, the whole command line of the program.
pub(crate) fn run(args: &ManArgs, command: clap::Command) -> anyhow::Result<()> {
    let failed = || format!("cannot write manual pages to {}", args.folder.display());
    std::fs::create_dir_all(&args.folder).with_context(failed)?;
    clap_mangen::generate_to(command, &args.folder).with_context(failed)
}
