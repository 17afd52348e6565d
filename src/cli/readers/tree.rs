//! `alluvium tree`: prints each function between its callers and callees, as `go tool pprof -tree` does.

use clap::Args;

use crate::cli::common::output;
use crate::cli::readers::report::ReportArgs;
use crate::cli::readers::source::SourceArgs;
use alluvium_profile::report::Trim;

/// Arguments of `alluvium tree`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium tree 'cpu{service_name=\"shop\"}' --from now-15m -n 20\n  \
                        alluvium tree --file cpu.pb.gz --focus json"
)]
pub struct TreeArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

pub(crate) async fn run(args: TreeArgs) -> anyhow::Result<()> {
    let loaded = args.source.load().await?;
    output::write_text(args.report.report(&loaded, Trim::TREE).tree().as_bytes())
}
