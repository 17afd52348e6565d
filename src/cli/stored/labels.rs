//! `alluvium labels`: lists the names of labels, or the values of one label. The labels belong to stored profiles, or
//! to the samples in files.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use crate::cli::common::remote::call_error;
use crate::cli::readers::source;
use crate::cli::stored::listing::{ListArgs, Stored};
use alluvium_profile::pprof::SampleLabel;

/// Arguments of `alluvium labels`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  alluvium labels\n  \
                        alluvium labels service_name --match '{region=\"eu\"}' --from now-1d\n  \
                        alluvium labels route --file cpu.pb.gz")]
pub struct LabelsArgs {
    /// Label whose values the command lists. Without NAME, the command lists the names of all labels.
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Conditions on the labels of the series: `{label="value", ...}`.
    #[arg(long = "match", value_name = "SELECTOR", conflicts_with = "files")]
    pub selector: Option<String>,
    /// List the labels of the samples in this file instead of querying a server; may be repeated.
    #[arg(long = "file", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub list: ListArgs,
}

pub(crate) async fn run(args: LabelsArgs) -> anyhow::Result<()> {
    let all: Vec<String> = if args.files.is_empty() {
        stored(&args).await?
    } else {
        of_samples(&args).await?
    };
    args.list.write(&all, |item| item.as_str().into())
}

async fn stored(args: &LabelsArgs) -> anyhow::Result<Vec<String>> {
    let Stored {
        client,
        matchers,
        start_ms,
        end_ms,
    } = args.list.stored(args.selector.as_deref()).await?;
    let texts = match &args.name {
        Some(name) => client.label_values(name, matchers, start_ms, end_ms).await,
        None => client.label_names(matchers, start_ms, end_ms).await,
    };
    texts.map_err(call_error)
}

async fn of_samples(args: &LabelsArgs) -> anyhow::Result<Vec<String>> {
    let mut texts = BTreeSet::new();
    for path in &args.files {
        for profile in source::read_file(path).await? {
            for label in &profile.columns.get().labels {
                let (name, value) = match label {
                    SampleLabel::Text(name, value) => (*name, (*value).to_owned()),
                    SampleLabel::Number(name, value, "") => (*name, value.to_string()),
                    SampleLabel::Number(name, value, unit) => (*name, format!("{value} {unit}")),
                };
                match args.name.as_deref() {
                    None => texts.insert(name.to_owned()),
                    Some(requested_name) => requested_name == name && texts.insert(value),
                };
            }
        }
    }
    Ok(texts.into_iter().collect())
}
