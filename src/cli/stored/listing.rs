//! The flags, the request and the output that `labels` and `series` share.

use std::fmt::Display;

use clap::{Args, ValueEnum};

use crate::cli::common::output;
use crate::cli::common::remote::ServerArgs;
use crate::cli::common::time::{RangeArgs, now_ms};
use alluvium_profile::selector;
use alluvium_wire::querier::QuerierClient;

/// Flags of commands that list stored data.
#[derive(Debug, Clone, Args)]
pub struct ListArgs {
    /// Output format of the result.
    // This argument has its own id, which differs from the ids of all other arguments named `format`.
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

/// A client of a server, and the selection of its stored series.
pub(super) struct Stored {
    pub client: QuerierClient,
    /// Conditions on the labels, in the form that the server expects.
    pub matchers: Vec<String>,
    pub start_ms: i64,
    pub end_ms: i64,
}

impl ListArgs {
    /// Returns a client of the server, the range, and the conditions in `selector`. Without a selector, there are no
    /// conditions.
    pub(super) async fn stored(&self, selector: Option<&str>) -> anyhow::Result<Stored> {
        let (start_ms, end_ms) = self.range.range(now_ms())?;
        let client = self.server.querier().await?;
        let matchers = match selector {
            None => Vec::new(),
            Some(text) => vec![selector::format(&selector::parse(text.trim())?)],
        };
        Ok(Stored {
            client,
            matchers,
            start_ms,
            end_ms,
        })
    }

    /// Writes the items to standard output. `json` converts an item to its JSON form.
    pub(super) fn write<T: Display>(&self, items: &[T], json: impl Fn(&T) -> serde_json::Value) -> anyhow::Result<()> {
        let text = match self.format {
            ListFormat::Text => items.iter().map(|item| format!("{item}\n")).collect(),
            ListFormat::Json => format!("{:#}\n", serde_json::Value::Array(items.iter().map(json).collect())),
        };
        output::write_text(text.as_bytes())
    }
}
