//! `alluvium convert`: converts a configuration from Alloy syntax to HCL or back, including its comments. It also
//! converts configurations of other programs to either syntax.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Args;

use crate::app::foreign::{Conversion, Format, Problems};
use crate::cli::common::output;
use crate::cli::configuration::diagnostics::DiagnosticArgs;
use alluvium_lang::{Diagnostics, hcl, translate};

/// Arguments of `alluvium convert`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  alluvium convert config/local.alloy\n  alluvium convert config/local.hcl \
        --output config.alloy\n  alluvium convert --source-format conprof conprof.yaml"
)]
pub struct ConvertArgs {
    /// File to convert; `-` reads standard input.
    pub file: PathBuf,
    /// Syntax of the result: `alloy` or `hcl`. Defaults to `alloy` for a file whose name ends in `.hcl` and for a file
    /// of another program, and to `hcl` for all other files.
    #[arg(long, value_parser = ["alloy", "hcl"])]
    pub to: Option<String>,
    /// File to write instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Format of the file if it belongs to another program: `conprof`, `parca` or `prometheus`, or `kube-profefe` or
    /// `coroot` for Kubernetes manifests.
    #[arg(short = 'f', long, value_name = "FORMAT", value_parser = Format::names())]
    pub source_format: Option<String>,
    /// Skip the parts of another program's file that cannot be converted, and list them on standard error.
    #[arg(short, long, requires = "source_format")]
    pub bypass_errors: bool,
    /// Arguments of the converter. `push-url=URL` sets the server that receives the profiles; it defaults to
    /// http://localhost:4040.
    #[arg(
        short,
        long,
        default_value = "",
        requires = "source_format",
        allow_hyphen_values = true
    )]
    pub extra_args: String,
    /// How diagnostics are shown.
    #[command(flatten)]
    pub diagnostics: DiagnosticArgs,
}

/// Converts one file. The exit code is 1 if it has errors or parts that the other syntax cannot express.
pub(crate) fn run(args: &ConvertArgs) -> anyhow::Result<ExitCode> {
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
    let foreign = args.source_format.as_deref().and_then(|format| format.parse().ok());
    let to_alloy = match args.to.as_deref() {
        Some(to) => to == "alloy",
        None => hcl::is_hcl(&name) || foreign.is_some(),
    };
    let text = alluvium_lang::decode_text(&name, bytes).map_err(Diagnostics::from);
    let text = match (foreign, text) {
        (Some(format), Ok(text)) => Ok(from_other(format, &name, &text, args)?),
        (_, text) => text,
    };
    let converted = text.and_then(|text| match (to_alloy, foreign) {
        (true, Some(_)) => Ok(text),
        (true, None) => translate::to_alloy(&name, &text),
        (false, _) => translate::to_hcl(&name, &text),
    });
    match converted {
        Ok(text) => {
            match &args.output {
                Some(path) => output::write_file(path, text.as_bytes())?,
                None => output::write(text.as_bytes())?,
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(diagnostics) => {
            args.diagnostics.print(&diagnostics);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Converts a file of another program to Alloy text and prints the omitted parts.
fn from_other(format: Format, name: &str, text: &str, args: &ConvertArgs) -> anyhow::Result<String> {
    let problems = if args.bypass_errors {
        Problems::Note
    } else {
        Problems::Refuse
    };
    let conversion = Conversion::with_arguments(format, &args.extra_args, problems).context("--extra-args")?;
    let converted = conversion.convert(name, text)?;
    let mut errors = std::io::stderr().lock();
    for note in &converted.notes {
        // An error while writing to standard error cannot be reported anywhere.
        let _ = writeln!(errors, "left out: {note}");
    }
    Ok(converted.text)
}
