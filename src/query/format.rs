//! Encodes SQL answers: JSON, CSV, Arrow, Parquet, pprof.
//!
//! In: [`SqlResult`]. Out: a stream of pieces, so that the server need not hold the whole answer; at the query's
//! deadline everything but the current piece is released. An error after the first piece ends the stream; the bytes
//! before it are then an incomplete document.

use std::collections::VecDeque;
use std::io::Write;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type, SchemaRef, UInt64Type};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use bytes::Bytes;
// DataFusion's version of Parquet: an answer as a Parquet file is not a table of the store.
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;

use crate::query::{QueryError, SqlResult, answer, names};

/// How an answer is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An array of objects, one for each row, with keys in the order of the columns; the second of two columns `a` is
    /// called `a_2`, in Arrow and Parquet as well. Integers beyond 2^53 are strings,
    /// since a JavaScript number cannot represent them; times are RFC 3339 in UTC; maps are objects; NaN and infinities
    /// are null.
    Json,
    /// RFC 4180 with a header line. Lists and maps are written as JSON.
    Csv,
    /// The Arrow IPC stream format.
    Arrow,
    /// A Parquet file, compressed with zstd.
    Parquet,
    /// The pprof profile in the only row and column of the answer.
    Pprof,
}

/// Approximate size of a chunk in bytes, as columns in memory.
const CHUNK_BYTES: usize = 4 << 20;
/// Size of a piece of an answer in bytes.
const PIECE_BYTES: usize = 64 << 10;
/// Size of a row group of Parquet in bytes.
const ROW_GROUP_BYTES: usize = 32 << 20;

/// Largest integer up to which a double represents all integers exactly.
const MAX_EXACT: u64 = 1 << 53;

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
                "`{text}` is not a format; choose json, csv, arrow, parquet or pprof"
            ))),
        }
    }
}

/// Encodes the answer as pieces of bytes, each with its own memory.
pub fn encode(result: SqlResult, format: Format) -> BoxStream<'static, Result<Bytes, QueryError>> {
    let deadline = result.deadline;
    let pieces = chunks(result, format).map_ok(|chunk| stream::iter(pieces(chunk).map(Ok)));
    answer::until(deadline, pieces.try_flatten().boxed())
}

/// Splits a chunk into pieces that share no memory: a piece that waits for a slow reader holds only its own bytes.
fn pieces(chunk: Bytes) -> impl Iterator<Item = Bytes> {
    let starts = (0..chunk.len()).step_by(PIECE_BYTES);
    starts.map(move |start| Bytes::copy_from_slice(&chunk[start..chunk.len().min(start + PIECE_BYTES)]))
}

fn chunks(result: SqlResult, format: Format) -> BoxStream<'static, Result<Bytes, QueryError>> {
    let SqlResult { schema, stream, .. } = result;
    let state = match Encoder::new(format, schema) {
        Ok(encoder) => Ok((stream, Some(encoder), VecDeque::new())),
        Err(error) => Err(error),
    };
    match state {
        Err(error) => stream::once(async move { Err(error) }).boxed(),
        Ok(state) => stream::try_unfold(state, |(mut rows, encoder, mut parts)| async move {
            let Some(mut encoder) = encoder else { return Ok(None) };
            if parts.is_empty()
                && let Some(batch) = rows.next().await.transpose()?
            {
                parts = split(&batch);
            }
            if let Some(part) = parts.pop_front() {
                encoder.batch(&part)?;
                let chunk = encoder.take();
                Ok(Some((chunk, (rows, Some(encoder), parts))))
            } else {
                let chunk = encoder.finish()?;
                Ok(Some((chunk, (rows, None, parts))))
            }
        })
        // Some formats buffer and give no bytes for a batch.
        .try_filter(|chunk| std::future::ready(!chunk.is_empty()))
        .boxed(),
    }
}

/// Splits a batch into parts that are small enough for one chunk each.
fn split(batch: &RecordBatch) -> VecDeque<RecordBatch> {
    let (rows, bytes) = (batch.num_rows(), answer::bytes_of(batch));
    let parts = bytes.div_ceil(CHUNK_BYTES).clamp(1, rows.max(1));
    let each = rows.div_ceil(parts).max(1);
    let starts = (0..rows.max(1)).step_by(each);
    starts.map(|start| batch.slice(start, each.min(rows - start))).collect()
}

/// Encodes the whole answer into one buffer.
pub async fn encode_all(result: SqlResult, format: Format) -> Result<Vec<u8>, QueryError> {
    let mut chunks = encode(result, format);
    let mut all = Vec::new();
    while let Some(chunk) = chunks.next().await {
        all.extend_from_slice(&chunk?);
    }
    Ok(all)
}

/// The batch with the names of a schema.
fn with_names(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, QueryError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let named = RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options);
    Ok(named?)
}

enum Encoder {
    Json {
        out: Vec<u8>,
        schema: SchemaRef,
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
        writer: Option<Box<ArrowWriter<Written>>>,
        written: Written,
        schema: SchemaRef,
    },
    Pprof {
        profile: Option<Vec<u8>>,
    },
}

/// Output of a writer, shared so that it can be taken while the writer is in use.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
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
                schema: names::distinct(&schema),
                rows: 0,
            },
            Format::Csv => {
                let names: Vec<String> = schema.fields().iter().map(|field| csv_field(field.name())).collect();
                Encoder::Csv {
                    out: format!("{}\r\n", names.join(",")).into_bytes(),
                }
            }
            Format::Arrow => {
                let schema = names::distinct(&schema);
                Encoder::Arrow {
                    writer: Box::new(StreamWriter::try_new(Vec::new(), &schema)?),
                    schema,
                }
            }
            Format::Parquet => {
                let schema = names::distinct(&schema);
                let written = Written::default();
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

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        match self {
            Encoder::Json { out, schema, rows } => {
                let names: Vec<String> = schema
                    .fields()
                    .iter()
                    .map(|field| serde_json::Value::from(field.name().as_str()).to_string())
                    .collect();
                let columns: Vec<Column<'_>> = batch.columns().iter().map(Column::new).collect::<Result<_, _>>()?;
                for row in 0..batch.num_rows() {
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
                    // A row group is buffered in memory, so a large one is written early.
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
        Ok(())
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
        "the format pprof needs an answer of one row with one column of bytes, such as SELECT * FROM \
            pprof('TYPE{selector}', from, until)",
    )
}

fn parquet_error(error: ParquetError) -> QueryError {
    QueryError::internal(format!("writing Parquet: {error}"))
}

/// A column prepared for writing value by value.
pub(crate) enum Column<'a> {
    Null,
    Int(&'a arrow::array::Int64Array),
    UInt(&'a arrow::array::UInt64Array),
    Float(&'a arrow::array::Float64Array),
    Float32(&'a arrow::array::Float32Array),
    Bool(&'a arrow::array::BooleanArray),
    List(&'a arrow::array::ListArray, Box<Column<'a>>),
    Struct(&'a arrow::array::StructArray, Vec<(String, Column<'a>)>),
    Map(&'a arrow::array::MapArray, Box<Column<'a>>, Box<Column<'a>>),
    /// Numbers that are written without quotes.
    Number(&'a dyn Array, ArrayFormatter<'a>),
    Text(&'a dyn Array, ArrayFormatter<'a>),
}

const OPTIONS: FormatOptions<'static> = FormatOptions::new()
    .with_timestamp_format(Some("%Y-%m-%dT%H:%M:%S%.6fZ"))
    .with_timestamp_tz_format(Some("%Y-%m-%dT%H:%M:%S%.6fZ"));

impl<'a> Column<'a> {
    pub(crate) fn new(array: &'a Arc<dyn Array>) -> Result<Self, ArrowError> {
        let array = array.as_ref();
        Ok(match array.data_type() {
            DataType::Null => Column::Null,
            DataType::Int64 => Column::Int(array.as_primitive::<Int64Type>()),
            DataType::UInt64 => Column::UInt(array.as_primitive::<UInt64Type>()),
            DataType::Float64 => Column::Float(array.as_primitive::<Float64Type>()),
            DataType::Float32 => Column::Float32(array.as_primitive::<Float32Type>()),
            DataType::Boolean => Column::Bool(array.as_boolean()),
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                Column::List(list, Box::new(Column::new(list.values())?))
            }
            DataType::Struct(fields) => {
                let structs = array.as_struct();
                let columns = fields.iter().zip(structs.columns());
                let columns = columns.map(|(field, column)| Ok((field.name().clone(), Column::new(column)?)));
                Column::Struct(structs, columns.collect::<Result<_, ArrowError>>()?)
            }
            DataType::Map(..) => {
                let map = array.as_map();
                Column::Map(
                    map,
                    Box::new(Column::new(map.keys())?),
                    Box::new(Column::new(map.values())?),
                )
            }
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::UInt8
            | DataType::UInt16
            | DataType::UInt32 => Column::Number(array, ArrayFormatter::try_new(array, &OPTIONS)?),
            _ => Column::Text(array, ArrayFormatter::try_new(array, &OPTIONS)?),
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Column::Null => true,
            Column::Int(array) => array.is_null(row),
            Column::UInt(array) => array.is_null(row),
            Column::Float(array) => array.is_null(row) || !array.value(row).is_finite(),
            Column::Float32(array) => array.is_null(row) || !array.value(row).is_finite(),
            Column::Bool(array) => array.is_null(row),
            Column::List(array, _) => array.is_null(row),
            Column::Struct(array, _) => array.is_null(row),
            Column::Map(array, ..) => array.is_null(row),
            Column::Number(array, _) | Column::Text(array, _) => array.is_null(row),
        }
    }

    pub(crate) fn write(&self, row: usize, out: &mut Vec<u8>) -> Result<(), QueryError> {
        if self.is_null(row) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match self {
            Column::Null => {}
            Column::Int(array) => whole(array.value(row), array.value(row).unsigned_abs(), out),
            Column::UInt(array) => whole(array.value(row), array.value(row), out),
            Column::Float(array) => put(out, format_args!("{}", array.value(row))),
            Column::Float32(array) => put(out, format_args!("{}", array.value(row))),
            Column::Bool(array) => put(out, format_args!("{}", array.value(row))),
            Column::List(array, values) => {
                let offsets = array.value_offsets();
                out.push(b'[');
                for at in offsets[row] as usize..offsets[row + 1] as usize {
                    if at > offsets[row] as usize {
                        out.push(b',');
                    }
                    values.write(at, out)?;
                }
                out.push(b']');
            }
            Column::Struct(_, columns) => {
                out.push(b'{');
                for (index, (name, column)) in columns.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    put(out, format_args!("{}:", serde_json::Value::from(name.as_str())));
                    column.write(row, out)?;
                }
                out.push(b'}');
            }
            Column::Map(array, keys, values) => {
                let offsets = array.value_offsets();
                out.push(b'{');
                for at in offsets[row] as usize..offsets[row + 1] as usize {
                    if at > offsets[row] as usize {
                        out.push(b',');
                    }
                    let mut key = Vec::new();
                    keys.write_plain(at, &mut key)?;
                    put(
                        out,
                        format_args!("{}:", serde_json::Value::from(String::from_utf8_lossy(&key))),
                    );
                    values.write(at, out)?;
                }
                out.push(b'}');
            }
            Column::Number(_, formatter) => formatted(formatter, row, out)?,
            Column::Text(_, formatter) => {
                let mut text = Vec::new();
                formatted(formatter, row, &mut text)?;
                put(
                    out,
                    format_args!("{}", serde_json::Value::from(String::from_utf8_lossy(&text))),
                );
            }
        }
        Ok(())
    }

    /// Writes the value as text, without quotes; nothing for null.
    pub(crate) fn write_plain(&self, row: usize, out: &mut Vec<u8>) -> Result<(), QueryError> {
        match self {
            Column::Null => Ok(()),
            _ if self.is_null(row) => Ok(()),
            Column::Int(array) => {
                put(out, format_args!("{}", array.value(row)));
                Ok(())
            }
            Column::UInt(array) => {
                put(out, format_args!("{}", array.value(row)));
                Ok(())
            }
            Column::Text(_, formatter) => formatted(formatter, row, out),
            _ => self.write(row, out),
        }
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}

fn whole(value: impl std::fmt::Display, magnitude: u64, out: &mut Vec<u8>) {
    if magnitude <= MAX_EXACT {
        put(out, format_args!("{value}"));
    } else {
        put(out, format_args!("\"{value}\""));
    }
}

fn formatted(formatter: &ArrayFormatter<'_>, row: usize, out: &mut Vec<u8>) -> Result<(), QueryError> {
    out.write_fmt(format_args!("{}", formatter.value(row)))
        .map_err(|error| QueryError::internal(format!("writing a value: {error}")))
}

fn csv_field(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
