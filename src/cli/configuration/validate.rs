//! `alluvium validate`: checks configurations without running them, and explains diagnostic codes.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;

use crate::app::collector::parse_stability;
use crate::app::sources;
use crate::cli::common::output;
use crate::cli::configuration::diagnostics::DiagnosticArgs;
use alluvium_lang::{Diagnostics, catalogue, codes};

/// Arguments of `alluvium validate`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  alluvium validate config/local.alloy\n  alluvium validate --explain E0301\n\
        \nThe exit code is 1 if there is an error. Every mistake is shown with its position."
)]
pub struct ValidateArgs {
    /// Configuration files, or folders. The *.alloy, *.river and *.hcl files of a folder are read as one configuration.
    #[arg(required_unless_present = "explain")]
    pub paths: Vec<PathBuf>,
    /// Minimum stability that a component must have.
    #[arg(
        long = "stability.level", default_value = "generally-available",
        value_parser = ["generally-available", "public-preview", "experimental"]
    )]
    pub stability: String,
    /// Exit with 1 also for warnings, as Alloy does.
    #[arg(long)]
    pub strict: bool,
    /// Explain a diagnostic code with an example, and do nothing else.
    #[arg(long, value_name = "CODE", conflicts_with = "paths")]
    pub explain: Option<String>,
    /// How diagnostics are shown.
    #[command(flatten)]
    pub diagnostics: DiagnosticArgs,
}

/// Checks every path. The exit code is 1 if any configuration has an error or, with `--strict`, a warning.
pub(crate) fn run(args: &ValidateArgs) -> anyhow::Result<ExitCode> {
    if let Some(id) = &args.explain {
        return explain(id);
    }
    let minimum = parse_stability(&args.stability)?;
    let mut all = Diagnostics::new();
    for path in &args.paths {
        match sources::read(path) {
            Ok(texts) => all.extend(alluvium_pipeline::validate(&texts, alluvium_components::ALL, minimum)),
            Err(error) => all.extend(error.downcast::<Diagnostics>()?),
        }
    }
    if args.diagnostics.json() {
        output::write(args.diagnostics.show(&all).as_bytes())?;
    } else {
        args.diagnostics.print(&all);
    }
    Ok(if all.has_errors() || (args.strict && !all.is_empty()) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn explain(id: &str) -> anyhow::Result<ExitCode> {
    let Some(code) = catalogue::find(id) else {
        let nearest = alluvium_lang::diagnostic::nearest(&id.to_uppercase(), codes::ALL.iter().map(|code| code.id));
        match nearest {
            Some(nearest) => bail!("there is no diagnostic code `{id}`; did you mean `{nearest}`?"),
            None => bail!("there is no diagnostic code `{id}`; codes look like `E0301`"),
        }
    };
    output::write(code.explain().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        args: ValidateArgs,
    }

    /// Returns the exit code of `alluvium validate` for a configuration with `statement` in a `pyroscope.write`.
    fn exit_code(statement: &str, flags: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("main.alloy");
        let text = format!(
            "pyroscope.write \"store\" {{\n\tendpoint {{\n\t\turl = \"http://127.0.0.1:1\"\n\t}}\n{statement}\n}}\n\
             pyroscope.scrape \"self\" {{\n\ttargets = []\n\tforward_to = [pyroscope.write.store.receiver]\n}}\n"
        );
        std::fs::write(&path, text).unwrap();
        let words = ["validate", path.to_str().unwrap()];
        let command = Command::try_parse_from(words.iter().chain(flags)).unwrap();
        format!("{:?}", run(&command.args).unwrap())
    }

    #[test]
    fn strict_fails_for_an_argument_without_effect() {
        let (success, failure) = (format!("{:?}", ExitCode::SUCCESS), format!("{:?}", ExitCode::FAILURE));
        assert_eq!(exit_code("", &["--strict"]), success);
        assert_eq!(exit_code("tracing { }", &[]), success);
        assert_eq!(exit_code("tracing { }", &["--strict"]), failure);
    }
}
