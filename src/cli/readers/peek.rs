//! `alluvium peek`: prints the callers and callees of some functions, as `go tool pprof -peek` does.

use alluvium_base::re2::Expression;
use clap::Args;

use crate::cli::common::output;
use crate::cli::readers::report::ReportArgs;
use crate::cli::readers::source::SourceArgs;
use alluvium_profile::report::Trim;

/// Arguments of `alluvium peek`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium peek 'json\\.Unmarshal' 'cpu{service_name=\"shop\"}' --from now-15m\n  \
                        alluvium peek main.work alloc_space --file heap.pb.gz"
)]
pub struct PeekArgs {
    /// Regular expression. The functions whose names it matches are shown, with their callers and callees.
    #[arg(value_name = "REGEX")]
    pub functions: Expression,
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
}

pub(crate) async fn run(args: PeekArgs) -> anyhow::Result<()> {
    let loaded = args.source.load().await?;
    let report = args.report.report(&loaded, Trim::NONE);
    output::write_text(report.peek(&args.functions)?.as_bytes())
}
