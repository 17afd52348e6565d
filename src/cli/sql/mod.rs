//! `alluvium sql`: runs one SQL statement on a server or a data folder; without a statement, opens a prompt.
//!
//! The result is a table, JSON, CSV, Arrow, Parquet or pprof. The prompt is in `session`, the execution in `client`.
//! The query engine checks and runs the SQL; nothing is parsed here.

mod client;
mod complete;
mod format;
mod session;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use crate::cli::common::output;
use crate::cli::common::remote::ServerArgs;

#[cfg(feature = "server")]
pub(crate) use client::DataFolder;
pub use client::{SqlClient, SqlServer};
pub use format::Format;

/// Arguments of `alluvium sql`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium sql \"SELECT profile_type, count(*) AS n FROM profiles GROUP BY 1\"\n  \
                        alluvium sql --format csv \"SELECT * FROM series\" > series.csv\n  \
                        alluvium sql --format parquet --output series.parquet \"SELECT * FROM series\"\n  \
                        alluvium sql                 # interactively\n  \
                        alluvium sql < question.sql\n  \
                        alluvium sql --data ./alluvium-data \"SELECT count(*) FROM profiles\"   # without a server"
)]
pub struct SqlArgs {
    /// Statement to run. Without a statement, the command reads a statement from standard input, or opens a prompt if
    /// standard input is a terminal.
    #[arg(value_name = "STATEMENT")]
    pub statement: Option<String>,
    /// Output format of the result.
    // This argument has its own id, which differs from the ids of all other arguments named `format`.
    #[arg(
        id = "answer_format",
        long = "format",
        value_enum,
        default_value = "table",
        value_name = "FORMAT"
    )]
    pub format: Format,
    /// File to write the result to, instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Data folder to read directly, in its current state, instead of querying a server. The folder's own server may be
    /// running.
    #[cfg(feature = "server")]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// The bucket of the folder's tables, as configured for its server.
    #[cfg(feature = "server")]
    #[command(flatten)]
    pub storage: crate::cli::common::storage::StorageSource,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Runs one statement, or a session at the prompt.
pub async fn run(args: SqlArgs) -> anyhow::Result<()> {
    #[cfg(feature = "server")]
    let client = match &args.data {
        Some(folder) => SqlClient::Data(DataFolder::open_by_flags(folder, &args.storage, &args.server)?),
        None if args.storage.is_given() => {
            anyhow::bail!("a bucket can only be read together with --data, the server's data folder")
        }
        None => SqlClient::Server(SqlServer::new(&args.server).await?),
    };
    #[cfg(not(feature = "server"))]
    let client = SqlClient::Server(SqlServer::new(&args.server).await?);
    let statement = match &args.statement {
        Some(statement) => statement.clone(),
        None if std::io::stdin().is_terminal() => return session::run(client, args.format).await,
        None => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("cannot read standard input")?;
            text
        }
    };
    if statement.trim().is_empty() {
        bail!("there is no statement to run");
    }
    if args.format.is_binary() && args.output.is_none() && std::io::stdout().is_terminal() {
        bail!("cannot write a binary format to a terminal: add --output FILE or redirect standard output");
    }
    match (&args.output, args.format) {
        (Some(path), _) => {
            let in_path = || format!("cannot write {}", path.display());
            let mut output_file = output::WholeFile::create(path).with_context(in_path)?;
            client.answer_to(&statement, args.format, output_file.file()).await?;
            output_file.finish().with_context(in_path)
        }
        (None, format) if format == Format::Table || std::io::stdout().is_terminal() => {
            session::print(&client.ask(&statement, format).await?)
        }
        (None, format) => client.answer_to(&statement, format, &mut std::io::stdout()).await,
    }
}
