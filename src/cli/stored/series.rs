//! `alluvium series`: lists the label sets of stored profiles, or the label sets that `import` would give to the
//! profiles in files.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use crate::cli::common::remote::call_error;
use crate::cli::readers::source;
use crate::cli::sending::upload;
use crate::cli::stored::listing::{ListArgs, Stored};
use alluvium_profile::Labels;

/// Arguments of `alluvium series`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium series '{service_name=~\"shop.*\"}' --from now-1d\n  \
                        alluvium series --label service_name --label __profile_type__\n  \
                        alluvium series --file cpu.pb.gz"
)]
pub struct SeriesArgs {
    /// Conditions on the labels: `{label="value", ...}`. Without conditions, the command lists all series.
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

pub(crate) async fn run(args: SeriesArgs) -> anyhow::Result<()> {
    let all = list(&args).await?;
    args.list.write(&all, |labels| {
        let pairs = labels.iter().map(|(name, value)| (name.to_owned(), value.into()));
        serde_json::Value::Object(pairs.collect())
    })
}

/// Returns the distinct label sets, sorted.
async fn list(args: &SeriesArgs) -> anyhow::Result<Vec<Labels>> {
    let mut all_labels = Vec::new();
    if args.files.is_empty() {
        let Stored {
            client,
            matchers,
            start_ms,
            end_ms,
        } = args.list.stored(args.selector.as_deref()).await?;
        let series = client.series(matchers, args.labels.clone(), start_ms, end_ms);
        all_labels.extend(series.await.map_err(call_error)?);
    }
    for path in &args.files {
        for profile in source::read_file(path).await? {
            all_labels.push(upload::labels(path, &profile, None, &[])?);
        }
    }
    let is_wanted = |name: &str| args.labels.is_empty() || args.labels.iter().any(|requested| requested == name);
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    for labels in all_labels {
        let labels = labels.filtered(is_wanted);
        if known.insert(labels.to_string()) {
            all.push(labels);
        }
    }
    all.sort_by_cached_key(ToString::to_string);
    Ok(all)
}
