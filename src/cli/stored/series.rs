//! `alluvium series`: lists the label sets of stored profiles, or the label sets that the profiles of files would get.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::cli::common::output;
use crate::cli::common::remote::{ServerArgs, call_error};
use crate::cli::common::time::{RangeArgs, now_ms};
use crate::cli::readers::source;
use crate::cli::sending::upload;
use crate::profile::Labels;
use crate::profile::selector;
use crate::wire::querier::QuerierClient;

/// Arguments of `alluvium series`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium series '{service_name=~\"shop.*\"}' --from now-1d\n  \
                        alluvium series --label service_name --label __profile_type__\n  \
                        alluvium series --file cpu.pb.gz"
)]
pub struct SeriesArgs {
    /// Conditions on the labels: `{label="value", ...}`. Without it, all series.
    #[arg(value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// Show only this label; may be repeated.
    #[arg(long = "label", value_name = "NAME")]
    pub labels: Vec<String>,
    /// Show the labels that `import` would give this file's profiles, instead of querying a server.
    #[arg(long = "file", value_name = "FILE", conflicts_with = "selector")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub list: ListArgs,
}

/// Flags of commands that list stored data.
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// Output format of the result.
    // An id of its own: the global `--log.format` has the id `format`.
    #[arg(
        id = "answer_format",
        long = "format",
        value_enum,
        default_value = "text",
        value_name = "FORMAT"
    )]
    pub format: ListFormat,
    #[command(flatten)]
    pub range: RangeArgs,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Format of a result that is a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// One item of the list on each line.
    Text,
    /// One array with all items of the list.
    Json,
}

pub(crate) async fn run(args: SeriesArgs) -> anyhow::Result<()> {
    let all = list(&args).await?;
    let text = match args.list.format {
        ListFormat::Text => all.iter().map(|labels| format!("{labels}\n")).collect(),
        ListFormat::Json => {
            let objects = all.iter().map(|labels| {
                let pairs = labels.iter().map(|(name, value)| (name.to_owned(), value.into()));
                serde_json::Value::Object(pairs.collect())
            });
            format!("{:#}\n", serde_json::Value::Array(objects.collect()))
        }
    };
    output::write_text(text.as_bytes())
}

/// Returns the distinct label sets, sorted.
async fn list(args: &SeriesArgs) -> anyhow::Result<Vec<Labels>> {
    let mut found = Vec::new();
    if args.files.is_empty() {
        let (start, end) = args.list.range.range(now_ms())?;
        let client = QuerierClient::new(args.list.server.caller().await?);
        let series = client.series(matchers(args.selector.as_deref())?, args.labels.clone(), start, end);
        found.extend(series.await.map_err(call_error)?);
    }
    for path in &args.files {
        for profile in source::read_file(path).await? {
            found.push(upload::labels(path, &profile, None, &[])?);
        }
    }
    let is_wanted = |name: &str| args.labels.is_empty() || args.labels.iter().any(|wanted| wanted == name);
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for labels in found {
        let labels = labels.filtered(is_wanted);
        if seen.insert(labels.to_string()) {
            all.push(labels);
        }
    }
    all.sort_by_cached_key(ToString::to_string);
    Ok(all)
}

/// Checks the conditions and returns them in the form that the server expects.
pub(in crate::cli) fn matchers(text: Option<&str>) -> anyhow::Result<Vec<String>> {
    Ok(match text {
        None => Vec::new(),
        Some(text) => vec![selector::format(&selector::parse(text.trim())?)],
    })
}
