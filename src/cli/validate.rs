//! `alluvium validate`: checks configuration without running it.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::app::collector::parse_stability;
use crate::app::sources;
use crate::components;
use crate::lang::Diagnostics;
use crate::pipeline;

/// Arguments of `alluvium validate`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  alluvium validate config/alloy-like.river\n\nExit code 1 when there is an error; every mistake is shown with its position."
)]
pub struct ValidateArgs {
    /// Configuration files, or folders whose *.alloy and *.river files are read as one.
    #[arg(required = true)]
    pub paths: Vec<PathBuf>,
    /// Least stability that a component must have.
    #[arg(long = "stability.level", default_value = "generally-available", value_parser = ["generally-available", "public-preview", "experimental"])]
    pub stability: String,
    /// How diagnostics are printed.
    #[arg(long, default_value = "text", value_parser = ["text", "json"])]
    pub format: String,
}

/// Checks every path; the exit code is 1 when any has an error.
pub fn run(args: &ValidateArgs) -> anyhow::Result<ExitCode> {
    let minimum = parse_stability(&args.stability)?;
    let mut all = Diagnostics::new();
    for path in &args.paths {
        all.extend(pipeline::validate(&sources::read(path)?, components::ALL, minimum));
    }
    show(&all, &args.format);
    Ok(if all.has_errors() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

#[expect(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "diagnostics are the output of this command"
)]
fn show(diagnostics: &Diagnostics, format: &str) {
    if format == "json" {
        println!("{}", diagnostics.to_json());
    } else if !diagnostics.is_empty() {
        eprint!("{}", diagnostics.render(std::io::stderr().is_terminal()));
    }
}
