//! `alluvium list`: prints the source of some functions with the value of each line, as `go tool pprof -list` does.

use alluvium_base::re2::Expression;
use anyhow::Context;
use clap::Args;

use crate::cli::common::output;
use crate::cli::readers::source::SourceArgs;
use crate::cli::readers::source_files;
use alluvium_profile::report::{Focus, Listing, SourcePaths};

/// Arguments of `alluvium list`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium list 'cart\\.Add' 'cpu{service_name=\"shop\"}' --source-path ~/src/shop\n  \
                        alluvium list main.work alloc_space --file heap.pb.gz --trim-path /build"
)]
pub struct ListArgs {
    /// Regular expression. The functions whose names it matches are shown.
    #[arg(value_name = "REGEX")]
    pub functions: Expression,
    #[command(flatten)]
    pub source: SourceArgs,
    /// Folders in which to look for source files, separated by colons; their parent folders are searched too. Defaults
    /// to the current folder.
    #[arg(
        long,
        alias = "source_path",
        value_name = "FOLDERS",
        default_value = "",
        hide_default_value = true
    )]
    pub source_path: String,
    /// Prefixes to remove from the paths of source files, separated by colons.
    #[arg(
        long,
        alias = "trim_path",
        value_name = "PATHS",
        default_value = "",
        hide_default_value = true
    )]
    pub trim_path: String,
    /// Include only samples with a frame whose function, file or binary matches REGEX.
    #[arg(long, value_name = "REGEX", help_heading = "Report")]
    pub focus: Option<Expression>,
    /// Exclude samples with a frame whose function, file or binary matches REGEX.
    #[arg(long, value_name = "REGEX", help_heading = "Report")]
    pub ignore: Option<Expression>,
    /// Unit of all values, such as ms or MB, instead of a suitable unit for each value.
    #[arg(long, help_heading = "Report")]
    pub unit: Option<String>,
}

#[expect(clippy::print_stderr, reason = "standard output is the listing")]
pub(crate) async fn run(args: ListArgs) -> anyhow::Result<()> {
    let loaded = args.source.load().await?;
    let source_paths = SourcePaths {
        search: args.source_path.clone(),
        trim: args.trim_path.clone(),
    };
    let focus = Focus {
        focus: args.focus.clone(),
        ignore: args.ignore.clone(),
    };
    let profile = loaded.profile().clone();
    let listing = Listing::new(profile, loaded.value(), &focus, args.unit.as_deref(), &source_paths);
    for flag in listing.unmatched() {
        eprintln!("--{flag} matched no frame");
    }
    // `--source-path` also changes the printed file names. Its default, the current folder, must not change them.
    let searched = if source_paths.search.is_empty() {
        let current = std::env::current_dir().context("cannot determine the current folder")?;
        SourcePaths {
            search: current.display().to_string(),
            ..source_paths
        }
    } else {
        source_paths
    };
    let text = listing.text(&args.functions, |path| source_files::read(path, &searched))?;
    output::write_text(&text)
}
