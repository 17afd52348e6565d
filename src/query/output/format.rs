//! Encodes SQL results as JSON, CSV, Arrow, Parquet or pprof.
//!
//! In: [`SqlResult`]. Out: a stream of pieces, so that the server need not hold the whole result. At the query's
//! deadline, all memory of the result is released, except for the current piece. An error after the first piece ends
//! the stream, and the bytes before it are an incomplete document.

use std::collections::VecDeque;
use std::io::Write;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::ipc::writer::StreamWriter;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use bytes::Bytes;
// This file uses the Parquet library that DataFusion re-exports. The store's Parquet writer is only for files of its
// tables.
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;

use crate::query::common::error::QueryError;
use crate::query::common::sql_result;
use crate::query::common::sql_result::SqlResult;
use crate::query::common::stream::BatchStream;
use crate::query::output::names;
use crate::query::output::text_values::Column;

/// The encoding of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An array of objects, one for each row, with keys in the order of the columns. If two columns have the name `a`,
    /// the second becomes `a_2`, in Arrow and Parquet as well. Integers beyond 2^53 are strings, because a JavaScript
    /// number cannot represent them. Times are RFC 3339 in UTC, maps are objects, and NaN and infinities are null.
    Json,
    /// RFC 4180 with a header line. Lists and maps are written as JSON.
    Csv,
    /// The Arrow IPC stream format.
    Arrow,
    /// A Parquet file, compressed with zstd.
    Parquet,
    /// The pprof profile in the only row and column of the result.
    Pprof,
}

/// Approximate size in bytes of a chunk, which is the output for one part of a batch. The size limits the columns of
/// the part in memory and, for JSON and CSV, the text that is written from them.
const CHUNK_BYTES: usize = 4 << 20;
/// Maximum size of a piece of a result in bytes.
const PIECE_BYTES: usize = 64 << 10;
/// Approximate size of a Parquet row group in bytes.
const ROW_GROUP_BYTES: usize = 32 << 20;

impl FromStr for Format {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "json" => Ok(Format::Json),
            "csv" => Ok(Format::Csv),
            "arrow" => Ok(Format::Arrow),
            "parquet" => Ok(Format::Parquet),
            "pprof" => Ok(Format::Pprof),
            _ => Err(QueryError::invalid(format!(
                "unknown format `{text}`; choose json, csv, arrow, parquet or pprof"
            ))),
        }
    }
}

/// Encodes the result as pieces of bytes, each with its own memory.
pub fn encode(result: SqlResult, format: Format) -> BoxStream<'static, Result<Bytes, QueryError>> {
    let deadline = result.deadline;
    let pieces = chunks(result, format).map_ok(|chunk| stream::iter(pieces(chunk).map(Ok)));
    sql_result::run_until(deadline, pieces.try_flatten().boxed())
}

/// Splits a chunk into pieces that share no memory, so that a piece that waits for a slow reader holds only its own
/// bytes.
fn pieces(chunk: Bytes) -> impl Iterator<Item = Bytes> {
    let starts = (0..chunk.len()).step_by(PIECE_BYTES);
    starts.map(move |start| Bytes::copy_from_slice(&chunk[start..chunk.len().min(start + PIECE_BYTES)]))
}

fn chunks(result: SqlResult, format: Format) -> BoxStream<'static, Result<Bytes, QueryError>> {
    let (rows, limit) = (result.stream, result.max_output_bytes);
    let chunks = match Encoder::new(format, result.schema) {
        Err(error) => return stream::once(async move { Err(error) }).boxed(),
        Ok(encoder) => Chunks {
            rows,
            encoder,
            parts: VecDeque::new(),
            text_left: limit,
            limit,
        },
    };
    stream::try_unfold(Some(chunks), |chunks| async move {
        match chunks {
            Some(chunks) => chunks.next().await,
            None => Ok(None),
        }
    })
    // Some formats buffer rows and return no bytes for a batch.
    .try_filter(|chunk| std::future::ready(!chunk.is_empty()))
    .boxed()
}

/// A result while it is encoded.
struct Chunks {
    rows: BatchStream,
    encoder: Encoder,
    parts: VecDeque<RecordBatch>,
    /// Number of bytes of text left until the limit.
    text_left: usize,
    limit: usize,
}

impl Chunks {
    /// Returns the next chunk, and this value for the next call if more chunks may follow.
    async fn next(mut self) -> Result<Option<(Bytes, Option<Self>)>, QueryError> {
        if self.parts.is_empty()
            && let Some(batch) = self.rows.next().await.transpose()?
        {
            self.parts = split(&batch);
        }
        let Some(part) = self.parts.pop_front() else {
            return Ok(Some((self.encoder.finish()?, None)));
        };
        let written = self.encoder.batch(&part)?;
        if written < part.num_rows() {
            self.parts.push_front(part.slice(written, part.num_rows() - written));
        }
        let chunk = self.encoder.take();
        if self.encoder.is_text() {
            self.text_left = self
                .text_left
                .checked_sub(chunk.len())
                .ok_or_else(|| sql_result::too_large(self.limit))?;
        }
        Ok(Some((chunk, Some(self))))
    }
}

/// Splits a batch into parts that are small enough for one chunk each.
fn split(batch: &RecordBatch) -> VecDeque<RecordBatch> {
    let (rows, bytes) = (batch.num_rows(), sql_result::bytes_of(batch));
    let parts = bytes.div_ceil(CHUNK_BYTES).clamp(1, rows.max(1));
    let part_rows = rows.div_ceil(parts).max(1);
    let starts = (0..rows.max(1)).step_by(part_rows);
    starts
        .map(|start| batch.slice(start, part_rows.min(rows - start)))
        .collect()
}

/// Encodes the whole result into one buffer.
pub async fn encode_all(result: SqlResult, format: Format) -> Result<Vec<u8>, QueryError> {
    let mut chunks = encode(result, format);
    let mut all = Vec::new();
    while let Some(chunk) = chunks.next().await {
        all.extend_from_slice(&chunk?);
    }
    Ok(all)
}

/// Returns the batch with the column names of a schema.
fn with_names(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, QueryError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let named = RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options);
    Ok(named?)
}

enum Encoder {
    Json {
        out: Vec<u8>,
        /// Names of the columns as JSON strings.
        names: Vec<String>,
        rows: u64,
    },
    Csv {
        out: Vec<u8>,
    },
    Arrow {
        writer: Box<StreamWriter<Vec<u8>>>,
        schema: SchemaRef,
    },
    Parquet {
        writer: Option<Box<ArrowWriter<SharedOutput>>>,
        written: SharedOutput,
        schema: SchemaRef,
    },
    Pprof {
        profile: Option<Vec<u8>>,
    },
}

/// The output of a writer. The output is shared, so that the encoder can remove the bytes while the writer is in use.
#[derive(Clone, Default)]
struct SharedOutput(Arc<Mutex<Vec<u8>>>);

impl Write for SharedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Encoder {
    fn new(format: Format, schema: SchemaRef) -> Result<Self, QueryError> {
        Ok(match format {
            Format::Json => Encoder::Json {
                out: vec![b'['],
                names: names::unique_names(&schema)
                    .fields()
                    .iter()
                    .map(|field| serde_json::Value::from(field.name().as_str()).to_string())
                    .collect(),
                rows: 0,
            },
            Format::Csv => {
                let names: Vec<String> = schema.fields().iter().map(|field| csv_field(field.name())).collect();
                Encoder::Csv {
                    out: format!("{}\r\n", names.join(",")).into_bytes(),
                }
            }
            Format::Arrow => {
                let schema = names::unique_names(&schema);
                Encoder::Arrow {
                    writer: Box::new(StreamWriter::try_new(Vec::new(), &schema)?),
                    schema,
                }
            }
            Format::Parquet => {
                let schema = names::unique_names(&schema);
                let written = SharedOutput::default();
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .build();
                let writer =
                    ArrowWriter::try_new(written.clone(), schema.clone(), Some(properties)).map_err(parquet_error)?;
                Encoder::Parquet {
                    writer: Some(Box::new(writer)),
                    written,
                    schema,
                }
            }
            Format::Pprof => match schema.fields().iter().as_slice() {
                [field] if *field.data_type() == DataType::Binary => Encoder::Pprof { profile: None },
                _ => return Err(no_profile()),
            },
        })
    }

    /// Writes rows of a batch and returns their number. JSON and CSV stop after the row that fills a chunk, because
    /// names, quotes and escapes can make a text much longer than its columns.
    fn batch(&mut self, batch: &RecordBatch) -> Result<usize, QueryError> {
        match self {
            Encoder::Json { out, names, rows } => {
                let columns: Vec<Column<'_>> = batch.columns().iter().map(Column::new).collect::<Result<_, _>>()?;
                for row in 0..batch.num_rows() {
                    if out.len() >= CHUNK_BYTES {
                        return Ok(row);
                    }
                    out.extend_from_slice(if *rows == 0 { b"\n{" } else { b",\n{" });
                    *rows += 1;
                    for (index, (name, column)) in names.iter().zip(&columns).enumerate() {
                        if index > 0 {
                            out.push(b',');
                        }
                        out.extend_from_slice(name.as_bytes());
                        out.push(b':');
                        column.write(row, out)?;
                    }
                    out.push(b'}');
                }
            }
            Encoder::Csv { out } => {
                let columns: Vec<Column<'_>> = batch.columns().iter().map(Column::new).collect::<Result<_, _>>()?;
                let mut text = Vec::new();
                for row in 0..batch.num_rows() {
                    if out.len() >= CHUNK_BYTES {
                        return Ok(row);
                    }
                    for (index, column) in columns.iter().enumerate() {
                        if index > 0 {
                            out.push(b',');
                        }
                        text.clear();
                        column.write_plain(row, &mut text)?;
                        out.extend_from_slice(csv_field(&String::from_utf8_lossy(&text)).as_bytes());
                    }
                    out.extend_from_slice(b"\r\n");
                }
            }
            Encoder::Arrow { writer, schema } => writer.write(&with_names(batch, schema)?)?,
            Encoder::Parquet { writer, schema, .. } => {
                if let Some(writer) = writer {
                    writer.write(&with_names(batch, schema)?).map_err(parquet_error)?;
                    // The writer buffers a row group in memory, so a large row group is written early.
                    if writer.in_progress_size() > ROW_GROUP_BYTES {
                        writer.flush().map_err(parquet_error)?;
                    }
                }
            }
            Encoder::Pprof { profile } => {
                for bytes in batch.column(0).as_binary::<i32>() {
                    match bytes {
                        Some(bytes) if profile.is_none() => *profile = Some(bytes.to_vec()),
                        _ => return Err(no_profile()),
                    }
                }
            }
        }
        Ok(batch.num_rows())
    }

    fn is_text(&self) -> bool {
        matches!(self, Encoder::Json { .. } | Encoder::Csv { .. })
    }

    fn take(&mut self) -> Bytes {
        Bytes::from(std::mem::take(match self {
            Encoder::Json { out, .. } | Encoder::Csv { out } => out,
            Encoder::Arrow { writer, .. } => writer.get_mut(),
            Encoder::Parquet { written, .. } => return Bytes::from(std::mem::take(&mut *written.0.lock())),
            Encoder::Pprof { .. } => return Bytes::new(),
        }))
    }

    fn finish(mut self) -> Result<Bytes, QueryError> {
        match &mut self {
            Encoder::Json { out, .. } => out.extend_from_slice(b"\n]\n"),
            Encoder::Csv { .. } => {}
            Encoder::Arrow { writer, .. } => writer.finish()?,
            Encoder::Parquet { writer, .. } => {
                if let Some(writer) = writer.take() {
                    writer.close().map_err(parquet_error)?;
                }
            }
            Encoder::Pprof { profile } => return profile.take().map(Bytes::from).ok_or_else(no_profile),
        }
        Ok(self.take())
    }
}

fn no_profile() -> QueryError {
    QueryError::invalid(
        "the format pprof requires a result of one row with one column of bytes, such as SELECT * FROM \
            pprof('TYPE{selector}', from, until)",
    )
}

fn parquet_error(error: ParquetError) -> QueryError {
    QueryError::internal(format!("cannot write Parquet: {error}"))
}

fn csv_field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Array as _, ArrayRef, Int64Array, StringArray};
    use arrow::datatypes::{Field, Schema};

    use super::*;

    fn written(name: &str, column: ArrayRef, format: Format) -> (Vec<usize>, usize) {
        let schema = Arc::new(Schema::new(vec![Field::new(name, column.data_type().clone(), true)]));
        let mut batch = RecordBatch::try_new(schema.clone(), vec![column]).unwrap();
        let mut encoder = Encoder::new(format, schema).unwrap();
        let (mut rows, mut largest) = (Vec::new(), 0);
        while batch.num_rows() > 0 {
            let count = encoder.batch(&batch).unwrap();
            batch = batch.slice(count, batch.num_rows() - count);
            largest = largest.max(encoder.take().len());
            rows.push(count);
        }
        (rows, largest)
    }

    #[test]
    fn a_chunk_of_text_ends_with_the_row_that_fills_it() {
        let numbers = || -> ArrayRef { Arc::new(Int64Array::from_iter_values(0..1000)) };
        let (rows, largest) = written("n", numbers(), Format::Json);
        assert!(rows == [1000] && largest < 20_000, "{rows:?} {largest}");
        let (rows, largest) = written(&"x".repeat(100_000), numbers(), Format::Json);
        assert!(rows.len() > 20 && largest < CHUNK_BYTES + 110_000, "{rows:?} {largest}");
        assert_eq!(rows.iter().sum::<usize>(), 1000);
        let controls: ArrayRef = Arc::new(StringArray::from_iter_values(vec!["\u{1}".repeat(10_000); 400]));
        let (rows, largest) = written("x", controls, Format::Json);
        assert!(rows.len() > 4 && largest < CHUNK_BYTES + 70_000, "{rows:?} {largest}");
        let quotes: ArrayRef = Arc::new(StringArray::from_iter_values(vec!["\"".repeat(10_000); 400]));
        let (rows, largest) = written("x", quotes, Format::Csv);
        assert!(rows.len() > 1 && largest < CHUNK_BYTES + 30_000, "{rows:?} {largest}");
    }
}
