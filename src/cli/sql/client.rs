//! Runs SQL on a server over HTTP, or on a data folder that this process reads.
//!
//! In: a statement and a format. Out: the result, chunk by chunk. If the reader closes the output pipe, the remaining
//! chunks are dropped without an error.

use std::io::{ErrorKind, Write};
#[cfg(feature = "server")]
use std::path::{Path, PathBuf};

use anyhow::Context;
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};

#[cfg(feature = "server")]
use crate::cli::common::remote::Question;
use crate::cli::common::remote::{ServerArgs, call_error};
#[cfg(feature = "server")]
use crate::cli::common::storage::StorageSource;
use crate::cli::common::table;
use crate::cli::sql::Format;
#[cfg(feature = "server")]
use crate::query::{GoPgo, StackQuery, TimeRange};
#[cfg(feature = "server")]
use alluvium_profile::{TenantId, Tenants, pprof};
use alluvium_wire::call::CallError;
use alluvium_wire::client::error_chain;
use alluvium_wire::sql::SqlFormat;

type Chunks = BoxStream<'static, anyhow::Result<Bytes>>;

/// The server or data folder on which statements run.
#[derive(Clone)]
pub enum SqlClient {
    /// A server, which is queried over HTTP.
    Server(SqlServer),
    /// A data folder, which this process reads.
    #[cfg(feature = "server")]
    Data(DataFolder),
}

impl SqlClient {
    /// Returns the URL or the data folder on which statements run, for messages.
    pub(super) fn location(&self) -> String {
        match self {
            Self::Server(server) => server.url.clone(),
            #[cfg(feature = "server")]
            Self::Data(folder) => folder.path.display().to_string(),
        }
    }

    /// Sends the statement and returns the chunks of the result, or the error.
    async fn send(&self, statement: &str, format: Format) -> anyhow::Result<Chunks> {
        // A final semicolon is not part of the statement.
        let statement = statement.trim().trim_end_matches(';');
        match self {
            Self::Server(server) => server.send(statement, format).await,
            #[cfg(feature = "server")]
            Self::Data(folder) => folder.send(statement, format).await,
        }
    }

    /// Returns the whole result of `statement` in `format`.
    pub async fn ask(&self, statement: &str, format: Format) -> anyhow::Result<Vec<u8>> {
        let mut answer = Vec::new();
        self.answer_to(statement, format, &mut answer).await?;
        Ok(answer)
    }

    /// Writes each chunk of the result to `out` when it arrives. In the table format, the whole result is collected
    /// first. If the reader closes the output pipe, the remaining chunks are dropped without an error.
    pub(crate) async fn answer_to(
        &self,
        statement: &str,
        format: Format,
        out: &mut (dyn Write + Send),
    ) -> anyhow::Result<()> {
        let mut chunks = self.send(statement, format).await?;
        let mut document = Vec::new();
        while let Some(chunk) = chunks.try_next().await? {
            if format == Format::Table {
                document.extend_from_slice(&chunk);
                continue;
            }
            match out.write_all(&chunk) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                result => result.context("cannot write the result")?,
            }
        }
        if format == Format::Table {
            out.write_all(table::from_json(&document)?.as_bytes())?;
        }
        out.flush().context("cannot write the result")
    }
}

/// A server that is queried over HTTP.
#[derive(Debug, Clone)]
pub struct SqlServer {
    client: alluvium_wire::sql::SqlClient,
    url: String,
}

impl SqlServer {
    pub async fn new(server: &ServerArgs) -> anyhow::Result<Self> {
        Ok(Self {
            client: alluvium_wire::sql::SqlClient::new(server.caller().await?),
            url: server.url.clone(),
        })
    }

    async fn send(&self, statement: &str, format: Format) -> anyhow::Result<Chunks> {
        let sql_format = match format {
            Format::Table | Format::Json => SqlFormat::Json,
            Format::Csv => SqlFormat::Csv,
            Format::Arrow => SqlFormat::Arrow,
            Format::Parquet => SqlFormat::Parquet,
            Format::Pprof => SqlFormat::Pprof,
        };
        let response = self
            .client
            .query(statement, sql_format)
            .await
            .map_err(|error| match error {
                // The error contains only the message about the statement and omits the context of the call.
                CallError::Refused { message, .. } => anyhow::anyhow!(message),
                other => call_error(other),
            })?;
        let broken = |error: reqwest::Error| anyhow::anyhow!("the response was cut off: {}", error_chain(&error));
        Ok(response.bytes_stream().map_err(broken).boxed())
    }
}

/// A data folder as it was when it was opened. Tables and log are read; nothing is locked or changed.
#[cfg(feature = "server")]
#[derive(Clone)]
pub struct DataFolder {
    engine: crate::query::QueryEngine,
    path: PathBuf,
    tenants: Tenants,
}

#[cfg(feature = "server")]
impl DataFolder {
    /// Opens the folder at `path` for queries of these tenants.
    pub fn open(
        path: &Path,
        bucket: Option<&crate::store::tables::bucket::BucketOptions>,
        tenants: Tenants,
    ) -> anyhow::Result<Self> {
        let store =
            crate::store::Store::open_read_only(crate::store::tables::root::DataLocation { dir: path, bucket })?;
        let engine = crate::query::QueryEngine::new(std::sync::Arc::new(store), crate::query::QueryLimits::default())?;
        Ok(Self {
            engine,
            path: path.to_owned(),
            tenants,
        })
    }

    /// Opens the folder at `path`, with the bucket and the tenants that the flags of a command name.
    pub(crate) fn open_by_flags(path: &Path, storage: &StorageSource, server: &ServerArgs) -> anyhow::Result<Self> {
        let bucket = storage.bucket()?;
        let tenants = match &server.tenant {
            Some(ids) => ids.parse().context("--tenant")?,
            None => TenantId::anonymous().into(),
        };
        Self::open(path, bucket.as_ref(), tenants)
    }

    /// Returns the merged profile that `question` selects, as a pprof file for Go's compiler.
    pub(crate) async fn merge_for_pgo(&self, question: &Question, pgo: GoPgo) -> anyhow::Result<Bytes> {
        let range = TimeRange::new(question.start_ms, question.end_ms);
        let mut query = StackQuery::new(question.profile_type.clone(), question.matchers.clone(), range);
        query.go_pgo = Some(pgo);
        let profile = self.engine.merge_profile(&self.tenants, query, pprof::encode);
        Ok(profile.await?.into())
    }

    async fn send(&self, statement: &str, format: Format) -> anyhow::Result<Chunks> {
        let result = self.engine.sql(&self.tenants, statement).await?;
        let output_format = match format {
            Format::Table | Format::Json => crate::query::output::format::Format::Json,
            Format::Csv => crate::query::output::format::Format::Csv,
            Format::Arrow => crate::query::output::format::Format::Arrow,
            Format::Parquet => crate::query::output::format::Format::Parquet,
            Format::Pprof => crate::query::output::format::Format::Pprof,
        };
        let chunks = crate::query::output::format::encode(result, output_format);
        Ok(chunks.map_err(anyhow::Error::from).boxed())
    }
}
