//! `alluvium fmt`: prints configurations in the canonical format. Alloy text is formatted exactly as `alloy fmt` does,
//! byte for byte.
//!
//! The command reads standard input, files, and all configuration files in folders and their subfolders. With
//! `--write`, it replaces files atomically and keeps their permissions.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::app::sources;
use crate::cli::common::output;
use crate::cli::configuration::diagnostics::DiagnosticArgs;
use crate::cli::configuration::diff;
use alluvium_lang::Diagnostics;

/// Arguments of `alluvium fmt`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  alluvium fmt config/local.alloy\n  alluvium fmt -w config\
        \n  alluvium fmt --test --diff config"
)]
pub struct FmtArgs {
    /// Files to format. In a folder and its subfolders, all *.alloy, *.river and *.hcl files are formatted. Without
    /// files, or with `-`, the command formats standard input.
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Replace the files with the result instead of writing to standard output.
    #[arg(short, long)]
    pub write: bool,
    /// Print the names of the files that are not in canonical format, and exit with 1 if there are any.
    #[arg(short, long, conflicts_with = "write")]
    pub test: bool,
    /// Print the differences instead of the result.
    #[arg(short, long)]
    pub diff: bool,
    /// Name of standard input in messages. A name that ends in `.hcl` is read as HCL.
    #[arg(long, value_name = "NAME", default_value = "(stdin)")]
    pub stdin_name: String,
    /// How diagnostics are shown.
    #[command(flatten)]
    pub diagnostics: DiagnosticArgs,
}

/// A text to format. The path is `None` for standard input.
struct Input {
    name: String,
    path: Option<PathBuf>,
    bytes: Vec<u8>,
}

/// Formats every input. Inputs that do not parse are reported and left unchanged; all other inputs are formatted.
pub(crate) fn run(args: &FmtArgs) -> anyhow::Result<ExitCode> {
    let mut all_diagnostics = Diagnostics::new();
    let mut unformatted = false;
    for input in inputs(args)? {
        let Input { name, path, bytes } = input;
        let text = match alluvium_lang::decode_text(&name, bytes) {
            Ok(text) => text,
            Err(diagnostic) => {
                all_diagnostics.push(diagnostic);
                continue;
            }
        };
        let formatted = match alluvium_lang::fmt_named(&name, &text) {
            Ok(formatted) => formatted,
            Err(diagnostics) => {
                all_diagnostics.extend(diagnostics);
                continue;
            }
        };
        let changed = formatted != text;
        unformatted |= changed;
        if changed && args.diff {
            output::write(diff::unified(&name, &text, &formatted).as_bytes())?;
        }
        match path {
            _ if args.test => {
                if changed && !args.diff {
                    output::write(format!("{name}\n").as_bytes())?;
                }
            }
            Some(path) if args.write => {
                if changed {
                    output::write_file(&path, formatted.as_bytes())?;
                }
            }
            _ if args.diff => {}
            _ => output::write(formatted.as_bytes())?,
        }
    }
    if args.diagnostics.json() || !all_diagnostics.is_empty() {
        args.diagnostics.print(&all_diagnostics);
    }
    Ok(if all_diagnostics.has_errors() || (args.test && unformatted) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn inputs(args: &FmtArgs) -> anyhow::Result<Vec<Input>> {
    let stdin = Path::new("-");
    let mut inputs = Vec::new();
    let paths: &[PathBuf] = if args.files.is_empty() {
        &[PathBuf::from("-")]
    } else {
        &args.files
    };
    for path in paths {
        if path == stdin {
            if args.write {
                bail!("--write needs a file: it cannot replace standard input");
            }
            let mut bytes = Vec::new();
            std::io::stdin()
                .lock()
                .read_to_end(&mut bytes)
                .context("cannot read standard input")?;
            inputs.push(Input {
                name: args.stdin_name.clone(),
                path: None,
                bytes,
            });
            continue;
        }
        for file in sources::files_below(path)? {
            inputs.push(Input {
                name: file.display().to_string(),
                bytes: std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?,
                path: Some(file),
            });
        }
    }
    Ok(inputs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: FmtArgs,
    }

    fn fmt(words: &[&str], folder: &Path) -> ExitCode {
        let words = words.iter().map(|word| match word.strip_prefix("@") {
            Some(name) => folder.join(name).display().to_string(),
            None => (*word).to_owned(),
        });
        let line = Line::parse_from(std::iter::once("fmt".to_owned()).chain(words));
        run(&line.args).unwrap()
    }

    #[test]
    fn folders_are_formatted_to_their_depth_and_files_keep_their_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("deep/er")).unwrap();
        std::fs::create_dir(path(".hidden")).unwrap();
        for name in [
            "a.alloy",
            "deep/b.river",
            "deep/er/c.alloy",
            "deep/notes.txt",
            ".hidden/d.alloy",
        ] {
            std::fs::write(path(name), "x  =  1\n").unwrap();
        }
        std::fs::set_permissions(path("a.alloy"), std::fs::Permissions::from_mode(0o640)).unwrap();
        symlink(path("a.alloy"), path("deep/link.alloy")).unwrap();
        let code = |code| format!("{code:?}");
        assert_eq!(code(fmt(&["--test", "@"], folder.path())), code(ExitCode::FAILURE));
        assert_eq!(code(fmt(&["-w", "@"], folder.path())), code(ExitCode::SUCCESS));
        assert_eq!(code(fmt(&["--test", "@"], folder.path())), code(ExitCode::SUCCESS));
        for name in ["a.alloy", "deep/b.river", "deep/er/c.alloy"] {
            assert_eq!(std::fs::read_to_string(path(name)).unwrap(), "x = 1\n", "{name}");
        }
        for name in ["deep/notes.txt", ".hidden/d.alloy"] {
            assert_eq!(std::fs::read_to_string(path(name)).unwrap(), "x  =  1\n", "{name}");
        }
        let mode = std::fs::metadata(path("a.alloy")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert!(path("deep/link.alloy").is_symlink());
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 3, "a temporary file stayed: {left:?}");
    }

    #[test]
    fn a_file_that_does_not_parse_is_left_alone_and_the_others_are_formatted() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("bad.alloy"), "x = = 1\n").unwrap();
        std::fs::write(path("latin.alloy"), b"x = \"\xe9\"\n").unwrap();
        std::fs::write(path("good.alloy"), "x=1").unwrap();
        let code = fmt(&["-w", "@bad.alloy", "@latin.alloy", "@good.alloy"], folder.path());
        assert_eq!(format!("{code:?}"), format!("{:?}", ExitCode::FAILURE));
        assert_eq!(std::fs::read_to_string(path("bad.alloy")).unwrap(), "x = = 1\n");
        assert_eq!(std::fs::read_to_string(path("good.alloy")).unwrap(), "x = 1\n");
    }
}
