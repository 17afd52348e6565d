//! `alluvium flamegraph`: draws stored profiles as one SVG file that any browser opens.
//!
//! Requests the flame graph with files and lines from the server, draws it locally, and writes the file atomically.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use crate::cli::output;
use crate::cli::remote::{QueryArgs, ServerArgs, call_error};
use crate::cli::time::{self, now_ms};
use crate::profile::flamegraph::{SvgOptions, svg};
use crate::profile::selector;
use crate::wire::querier::QuerierClient;

/// Arguments of `alluvium flamegraph`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium flamegraph 'cpu{service_name=\"shop\"}' --from now-15m -o shop.svg\n  \
                        alluvium flamegraph '{region=\"eu\"}' --type inuse --max-nodes 2000 -o - > heap.svg"
)]
pub struct FlamegraphArgs {
    #[command(flatten)]
    pub query: QueryArgs,
    /// File to write; `-` is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "flamegraph.svg")]
    pub output: PathBuf,
    /// Smaller frames are folded when there are more than this.
    #[arg(long, value_name = "COUNT", default_value_t = 16384, value_parser = clap::value_parser!(i64).range(1..))]
    pub max_nodes: i64,
    /// Width of the picture in pixels.
    #[arg(
        long, value_name = "PIXELS", default_value_t = 1600, value_parser = clap::value_parser!(u32).range(200..=20000)
    )]
    pub width: u32,
    /// Heading; the selector and the range by default.
    #[arg(long)]
    pub title: Option<String>,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Draws and writes the file.
#[expect(
    clippy::print_stderr,
    reason = "says where the file is; standard output may be the file"
)]
pub async fn run(args: FlamegraphArgs) -> anyhow::Result<()> {
    let drawing = draw(&args).await?;
    if args.output.as_os_str() == "-" {
        return output::write(drawing.as_bytes());
    }
    tokio::fs::write(&args.output, drawing)
        .await
        .with_context(|| format!("cannot write {}", args.output.display()))?;
    eprintln!("wrote {}", args.output.display());
    Ok(())
}

pub async fn draw(args: &FlamegraphArgs) -> anyhow::Result<String> {
    let question = args.query.question(now_ms())?;
    let client = QuerierClient::new(args.server.caller().await?);
    let graph = client
        .merge_stacktraces(question.selection(), args.max_nodes)
        .await
        .map_err(call_error)?;
    if graph.total == 0 {
        return Err(question.nothing_found());
    }
    let title = args.title.clone().unwrap_or_else(|| {
        format!(
            "{}{} {} to {}",
            question.profile_type.sample_type,
            selector::format(&question.matchers),
            time::format(question.start_ms),
            time::format(question.end_ms)
        )
    });
    let options = SvgOptions {
        title: &title,
        unit: &question.profile_type.sample_unit,
        width: args.width,
    };
    Ok(svg(&graph, &options))
}
