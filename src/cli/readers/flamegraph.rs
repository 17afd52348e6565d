//! `alluvium flamegraph`: draws stored profiles, or files of any format, as one SVG file that any browser can open.
//!
//! The server computes the flame graph, or this process computes it from the given files. Each frame has its source
//! file and line. This process draws the flame graph.

use std::path::PathBuf;

use clap::Args;

use crate::cli::common::output;
use crate::cli::common::remote::call_error;
use crate::cli::common::time;
use crate::cli::common::time::now_ms;
use crate::cli::readers::source::SourceArgs;
use alluvium_profile::flamegraph::{SvgOptions, Tree, svg};
use alluvium_profile::selector;

/// Arguments of `alluvium flamegraph`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium flamegraph 'cpu{service_name=\"shop\"}' --from now-15m -o shop.svg\n  \
                        alluvium flamegraph '{region=\"eu\"}' --type inuse --max-nodes 2000 -o - > heap.svg\n  \
                        alluvium flamegraph --file app.cpuprofile -o app.svg"
)]
pub struct FlamegraphArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    /// File to write; `-` is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "flamegraph.svg")]
    pub output: PathBuf,
    /// Maximum number of frames. If there are more, the smallest are combined into frames named `other`.
    #[arg(long, value_name = "COUNT", default_value_t = 16384, value_parser = clap::value_parser!(i64).range(1..))]
    pub max_nodes: i64,
    /// Width of the picture in pixels.
    #[arg(
        long, value_name = "PIXELS", default_value_t = 1600, value_parser = clap::value_parser!(u32).range(200..=20000)
    )]
    pub width: u32,
    /// Heading. Defaults to the selector and the time range; with --file, to the sample type and the names of the
    /// files.
    #[arg(long)]
    pub title: Option<String>,
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
    output::write_file(&args.output, drawing.as_bytes())?;
    eprintln!("wrote {}", args.output.display());
    Ok(())
}

pub async fn draw(args: &FlamegraphArgs) -> anyhow::Result<String> {
    if !args.source.files.is_empty() {
        return of_files(args).await;
    }
    let question = args.source.query.question(now_ms())?;
    let client = args.source.server.querier().await?;
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

async fn of_files(args: &FlamegraphArgs) -> anyhow::Result<String> {
    let loaded = args.source.load().await?;
    let profile = loaded.profile();
    let kind = profile.sample_types.get(loaded.value()).copied().unwrap_or_default();
    let mut tree = Tree::by_file();
    tree.insert_profile(profile, loaded.value());
    let graph = tree.to_flamegraph(usize::try_from(args.max_nodes).unwrap_or(0));
    let names = args.source.files.iter().map(|path| path.display().to_string());
    let names: Vec<String> = names.collect();
    let title = args
        .title
        .clone()
        .unwrap_or_else(|| format!("{} {}", kind.kind, names.join(", ")));
    let options = SvgOptions {
        title: &title,
        unit: kind.unit,
        width: args.width,
    };
    Ok(svg(&graph, &options))
}
