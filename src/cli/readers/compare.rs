//! `alluvium diff`: shows the changes between two time ranges, two selections, or two files.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;

use crate::cli::common::output;
use crate::cli::common::time::{RangeArgs, now_ms};
use crate::cli::readers::report::ReportArgs;
use crate::cli::readers::source::SourceArgs;
use alluvium_profile::report::{Difference, Side, Trim};

/// Number of rows that are printed by default.
const ROWS: usize = 30;

/// Arguments of `alluvium diff`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium diff 'cpu{service_name=\"shop\"}' --from now-15m\n  \
                        alluvium diff 'cpu{version=\"2\"}' --base 'cpu{version=\"1\"}'\n  \
                        alluvium diff cpu --file after.pb.gz --base-file before.pb.gz"
)]
pub struct DiffArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    /// Selector of the profiles to compare with. It has the form of the positional argument, and defaults to it.
    #[arg(long, value_name = "SELECTOR", conflicts_with = "base_files")]
    pub base: Option<String>,
    /// Start of the time range to compare with. By default, this range is as long as the range from --from to
    /// --until, and ends at --from. With --base, both ranges are the same by default.
    #[arg(long, value_name = "TIME", requires = "base_until", conflicts_with = "base_files")]
    pub base_from: Option<String>,
    /// End of the time range to compare with, not included.
    #[arg(long, value_name = "TIME", requires = "base_from")]
    pub base_until: Option<String>,
    /// File to compare with --file; may be repeated.
    #[arg(long = "base-file", value_name = "FILE", requires = "files")]
    pub base_files: Vec<PathBuf>,
    #[command(flatten)]
    pub report: ReportArgs,
}

pub(crate) async fn run(args: DiffArgs) -> anyhow::Result<()> {
    let base = args.base_source()?;
    let (mut after, mut before) = (args.source.load().await?, base.load().await?);
    after.alike(&mut before)?;
    let options = args.report.options(Trim::NONE);
    let difference = Difference::new(
        Side {
            profile: before.profile().clone(),
            value: before.value(),
        },
        Side {
            profile: after.profile().clone(),
            value: after.value(),
        },
        &options,
    );
    let rows = match args.report.node_count {
        None => ROWS,
        Some(0) => usize::MAX,
        Some(count) => count,
    };
    output::write_text(difference.text(rows).as_bytes())
}

impl DiffArgs {
    /// Returns the source of the profile to compare with.
    fn base_source(&self) -> anyhow::Result<SourceArgs> {
        let mut base = self.source.clone();
        base.files.clone_from(&self.base_files);
        if !self.source.files.is_empty() {
            if self.base_files.is_empty() {
                bail!("--file needs a file to compare with: add --base-file");
            }
            return Ok(base);
        }
        if let (Some(from), Some(until)) = (&self.base_from, &self.base_until) {
            base.query.range = RangeArgs {
                from: from.clone(),
                until: until.clone(),
            };
        } else if self.base.is_none() {
            let (start, end) = self.source.query.range.range(now_ms())?;
            base.query.range = RangeArgs::of(start.saturating_sub(end.saturating_sub(start)), start);
        }
        if let Some(selector) = &self.base {
            base.query.selector = Some(selector.clone());
        }
        Ok(base)
    }
}
