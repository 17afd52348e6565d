//! `alluvium fmt`: prints configuration in the one canonical form, byte for byte as `alloy fmt` does.

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::lang;

/// Arguments of `alluvium fmt`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  alluvium fmt -w config/alloy-like.river")]
pub struct FmtArgs {
    /// File to format; `-` or nothing reads standard input.
    pub file: Option<PathBuf>,
    /// Write the result to the file instead of standard output.
    #[arg(short, long)]
    pub write: bool,
    /// Print nothing; exit with 1 when the file is not formatted.
    #[arg(short, long, conflicts_with = "write")]
    pub test: bool,
}

/// Formats one file.
pub fn run(args: &FmtArgs) -> anyhow::Result<ExitCode> {
    let file = args.file.as_deref().filter(|file| *file != Path::new("-"));
    let (name, text) = match file {
        Some(file) => (file.display().to_string(), read(file)?),
        None if args.write => bail!("--write needs a file: standard input has no place to write to"),
        None => {
            let mut text = String::new();
            std::io::stdin()
                .lock()
                .read_to_string(&mut text)
                .context("cannot read standard input")?;
            ("(stdin)".to_owned(), text)
        }
    };
    let formatted = match lang::fmt_named(&name, &text) {
        Ok(formatted) => formatted,
        Err(diagnostics) => {
            let shown = diagnostics.render(std::io::stderr().is_terminal());
            std::io::stderr().lock().write_all(shown.as_bytes())?;
            return Ok(ExitCode::FAILURE);
        }
    };
    match file {
        _ if args.test => {
            return Ok(if formatted == text {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            });
        }
        Some(file) if args.write => {
            if formatted != text {
                std::fs::write(file, formatted).with_context(|| format!("cannot write {}", file.display()))?;
            }
        }
        _ => std::io::stdout().lock().write_all(formatted.as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> anyhow::Result<String> {
    if file.is_dir() {
        bail!("{} is a folder; name a file", file.display());
    }
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    String::from_utf8(bytes).map_err(|error| {
        anyhow::anyhow!(
            "{} is not UTF-8 text: bad byte at offset {}",
            file.display(),
            error.utf8_error().valid_up_to()
        )
    })
}
