//! `alluvium convert`: a configuration from Alloy syntax to HCL and back, comments included.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use crate::cli::diagnostics::DiagnosticArgs;
use crate::cli::output;
use crate::lang::{self, Diagnostics, hcl, translate};

/// Arguments of `alluvium convert`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  alluvium convert config/alloy-like.river\n  alluvium convert config/alloy-like.hcl \
        --output config.alloy"
)]
pub struct ConvertArgs {
    /// File to convert; `-` reads standard input.
    pub file: PathBuf,
    /// Syntax of the result: `alloy` or `hcl`. Without it, the other one than the file's: a name that ends in `.hcl` is
    /// HCL.
    #[arg(long, value_parser = ["alloy", "hcl"])]
    pub to: Option<String>,
    /// File to write instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How diagnostics are shown.
    #[command(flatten)]
    pub diagnostics: DiagnosticArgs,
}

/// Converts one file; exit code 1 when it has mistakes or something that the other syntax cannot say.
pub fn run(args: &ConvertArgs) -> anyhow::Result<ExitCode> {
    let name = args.file.display().to_string();
    let bytes = if args.file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
        bytes
    } else {
        std::fs::read(&args.file).with_context(|| format!("cannot read {name}"))?
    };
    let to_alloy = match args.to.as_deref() {
        Some(to) => to == "alloy",
        None => hcl::is_hcl(&name),
    };
    let converted = lang::decode_text(&name, bytes)
        .map_err(Diagnostics::from)
        .and_then(|text| {
            if to_alloy {
                translate::to_alloy(&name, &text)
            } else {
                translate::to_hcl(&name, &text)
            }
        });
    match converted {
        Ok(text) => {
            match &args.output {
                Some(path) => std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?,
                None => output::write(text.as_bytes())?,
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(found) => {
            args.diagnostics.print(&found);
            Ok(ExitCode::FAILURE)
        }
    }
}
