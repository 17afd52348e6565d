//! `alluvium top`: prints the functions with the largest values, as `go tool pprof -top` does.
//!
//! The merged profile comes from the server, or from a pprof file; values are exact, since no node is folded.

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use crate::cli::output;
use crate::cli::remote::{QueryArgs, Question, ServerArgs, call_error};
use crate::cli::time::now_ms;
use crate::profile::flamegraph::Tree;
use crate::profile::pprof::{self, Profile};
use crate::profile::top::TopTable;
use crate::wire::querier::QuerierClient;

/// Maximum uncompressed size of a profile that is read from a file: 1 GiB.
const MAX_FILE_BYTES: usize = 1 << 30;

/// Arguments of `alluvium top`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium top 'cpu{service_name=\"shop\"}' --from now-15m\n  \
                        alluvium top '{service_name=~\"shop.*\"}' --type inuse --cum -n 10\n  \
                        alluvium top alloc_space --file heap.pb.gz"
)]
pub struct TopArgs {
    #[command(flatten)]
    pub query: QueryArgs,
    /// Rows to print; 0 for all.
    #[arg(short = 'n', long = "nodes", value_name = "COUNT", default_value_t = 30)]
    pub count: usize,
    /// Sort by the cumulative value.
    #[arg(long)]
    pub cum: bool,
    /// Read this pprof file instead of asking a server; SELECTOR is then the sample type, such as `cpu` or
    /// `alloc_space`.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Form of the answer; JSON has whole numbers in the profile's own unit.
    // An id of its own: the global `--log.format` has the id `format`.
    #[arg(
        id = "answer_format",
        long = "format",
        value_enum,
        default_value = "table",
        value_name = "FORMAT"
    )]
    pub format: TopFormat,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// How the table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TopFormat {
    /// As `go tool pprof -top` prints it.
    Table,
    /// One object: `unit`, `total`, and `rows` of `function`, `file`, `flat`, `cum`.
    Json,
}

pub async fn run(args: TopArgs) -> anyhow::Result<()> {
    output::write(table(&args).await?.as_bytes())
}

pub async fn table(args: &TopArgs) -> anyhow::Result<String> {
    let count = if args.count == 0 { usize::MAX } else { args.count };
    let (heading, unit, mut table) = if let Some(path) = &args.file {
        let packed = tokio::fs::read(path)
            .await
            .with_context(|| format!("cannot read {}", path.display()))?;
        let text = pprof::gunzip(&packed.into(), MAX_FILE_BYTES)?;
        let profile = pprof::decode(&text).with_context(|| path.display().to_string())?;
        let index = sample_type(&profile, &args.query.selector)?;
        let kind = profile.sample_types[index];
        (
            format!("{}: {}", path.display(), kind.kind),
            kind.unit.to_owned(),
            top(&profile, index),
        )
    } else {
        let question = args.query.question(now_ms())?;
        let client = QuerierClient::new(args.server.caller().await?);
        let bytes = client.merge_profile(question.selection()).await.map_err(call_error)?;
        let profile = merged(&bytes, &question)?;
        let index = sample_type(&profile, &question.profile_type.sample_type)?;
        let heading = format!("Type: {}", question.profile_type);
        (heading, question.profile_type.sample_unit.clone(), top(&profile, index))
    };
    if args.cum {
        table.sort_by_cum();
    }
    match args.format {
        TopFormat::Table => Ok(format!("{heading}\n{}", table.render(count, &unit))),
        TopFormat::Json => Ok(json(&table, count, &unit)),
    }
}

fn json(table: &TopTable, count: usize, unit: &str) -> String {
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

/// The merged profile of an answer; for one without samples an error that repeats the query.
pub(crate) fn merged<'a>(bytes: &'a [u8], question: &Question) -> anyhow::Result<Profile<'a>> {
    // Pyroscope answers a query without matching data with an empty message.
    if bytes.is_empty() {
        return Err(question.nothing_found());
    }
    let profile = match pprof::decode(bytes) {
        Ok(profile) => profile,
        Err(error) if error.kind == pprof::DecodeErrorKind::NoSampleTypes => return Err(question.nothing_found()),
        Err(error) => return Err(error).context("the server's answer is no profile"),
    };
    if profile.sample_count() == 0 {
        return Err(question.nothing_found());
    }
    Ok(profile)
}

/// The index of a sample type by name; with a single sample type the name is ignored.
fn sample_type(profile: &Profile<'_>, name: &str) -> anyhow::Result<usize> {
    let names: Vec<&str> = profile.sample_types.iter().map(|kind| kind.kind).collect();
    match names.iter().position(|kind| *kind == name) {
        Some(index) => Ok(index),
        None if names.len() == 1 => Ok(0),
        None => bail!("no sample type `{name}` in the profile, it has {}", names.join(", ")),
    }
}

fn top(profile: &Profile<'_>, index: usize) -> TopTable {
    let mut tree = Tree::by_name();
    tree.insert_profile(profile, index);
    TopTable::from_tree(&tree)
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

    #[tokio::test]
    async fn a_file_is_shown_without_a_server() {
        let file = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/integration/fixtures/pprof/go-allocs.pb.gz"
        );
        let args = |sample_type: &str| {
            let words = ["top", sample_type, "--file", file, "-n", "1"];
            Command::try_parse_from(words).unwrap().top
        };
        let text = table(&args("alloc_space")).await.unwrap();
        assert!(
            text.contains(" main.sortNumbers\n") && text.contains("136 MiB  71.64%"),
            "{text}"
        );
        let error = table(&args("cpu")).await.unwrap_err().to_string();
        assert!(
            error.contains("it has alloc_objects, alloc_space, inuse_objects, inuse_space"),
            "{error}"
        );
    }
}
