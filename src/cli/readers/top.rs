//! `alluvium top`: prints the functions with the largest values, as `go tool pprof -top` does.
//!
//! The merged profile comes from the server, or from files. All values are exact: small functions are not combined.

use anyhow::bail;
use clap::{Args, ValueEnum};

use crate::cli::common::output;
use crate::cli::readers::report::ReportArgs;
use crate::cli::readers::source::{Loaded, SourceArgs};
use alluvium_profile::flamegraph::Tree;
use alluvium_profile::report::Trim;
use alluvium_profile::top::TopTable;

/// Arguments of `alluvium top`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium top 'cpu{service_name=\"shop\"}' --from now-15m\n  \
                        alluvium top '{service_name=~\"shop.*\"}' --type inuse --cum -n 10\n  \
                        alluvium top cpu --file app.cpuprofile --by package\n  \
                        alluvium top alloc_space --file heap.pb.gz --focus encoding/json"
)]
pub struct TopArgs {
    #[command(flatten)]
    pub source: SourceArgs,
    #[command(flatten)]
    pub report: ReportArgs,
    /// Format of the result. JSON contains integers in the profile's own unit.
    // This argument has its own id, which differs from the ids of all other arguments named `format`.
    #[arg(
        id = "answer_format",
        long = "format",
        value_enum,
        default_value = "table",
        value_name = "FORMAT"
    )]
    pub format: TopFormat,
}

/// Output format of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TopFormat {
    /// A table in the form of `go tool pprof -top`.
    Table,
    /// One object: `unit`, `total`, and `rows` of `function`, `file`, `flat`, `cum`.
    Json,
}

pub async fn run(args: TopArgs) -> anyhow::Result<()> {
    output::write_text(table(&args).await?.as_bytes())
}

pub async fn table(args: &TopArgs) -> anyhow::Result<String> {
    if args.format == TopFormat::Json && !args.report.is_plain() {
        bail!("--format json lists all functions: combine it only with --nodecount and --cum");
    }
    let loaded = args.source.load().await?;
    Ok(match args.format {
        TopFormat::Table => args.report.report(&loaded, Trim::TOP).top(),
        TopFormat::Json => json(&loaded, &args.report),
    })
}

fn json(loaded: &Loaded, flags: &ReportArgs) -> String {
    let profile = loaded.profile();
    let mut tree = Tree::by_name();
    tree.insert_profile(profile, loaded.value());
    let mut table = TopTable::from_tree(&tree);
    if flags.cum {
        table.sort_by_cum();
    }
    let count = flags.node_count.filter(|count| *count > 0).unwrap_or(usize::MAX);
    let unit = profile.sample_types.get(loaded.value()).map_or("", |kind| kind.unit);
    let rows: Vec<serde_json::Value> = table
        .rows
        .iter()
        .take(count)
        .map(|row| serde_json::json!({"function": row.name, "file": row.file, "flat": row.flat, "cum": row.cum}))
        .collect();
    format!(
        "{:#}\n",
        serde_json::json!({"unit": unit, "total": table.total, "rows": rows})
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        top: TopArgs,
    }

    async fn of_file(words: &[&str]) -> anyhow::Result<String> {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/integration/fixtures/pprof/go-allocs.pb.gz"
        );
        let words = [&["top", "--file", file], words].concat();
        table(&Command::try_parse_from(words).unwrap().top).await
    }

    #[tokio::test]
    async fn a_file_is_shown_without_a_server() {
        let text = of_file(&["alloc_space", "-n", "1"]).await.unwrap();
        assert!(text.contains("Type: alloc_space\n"), "{text}");
        assert!(text.contains(" 71.64%  main.sortNumbers\n"), "{text}");
        let default = of_file(&[]).await.unwrap();
        assert!(default.contains("Type: alloc_space\n"), "{default}");
        let error = of_file(&["cpu"]).await.unwrap_err().to_string();
        assert!(
            error.contains("only alloc_objects, alloc_space, inuse_objects, inuse_space"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn json_has_all_functions_or_an_error() {
        let text = of_file(&["alloc_space", "--format", "json", "-n", "1"]).await.unwrap();
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["rows"][0]["function"], "main.sortNumbers");
        assert_eq!(answer["unit"], "bytes");
        let error = of_file(&["--format", "json", "--by", "file"]).await.unwrap_err();
        assert!(error.to_string().contains("only with --nodecount"), "{error}");
    }
}
