//! The schemas of the four tables: a stable interface for this program and other readers.
//!
//! Every change to a column needs a new [`LAYOUT_VERSION`]. A new column is nullable and the last of its table. Files
//! of an older layout lack the column, and every reader of Delta Lake reads nulls instead. The identities of series
//! and stacks are unsigned 64-bit integers. The tables store the same bits as signed integers, because Delta has no
//! unsigned integers.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, MapArray, RecordBatch, StringArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{
    DataType, Field, FieldRef, Fields, Int32Type, Int64Type, Schema, SchemaRef, TimeUnit, TimestampMicrosecondType,
};
use arrow::error::ArrowError;

use column::{
    DAY, DURATION_NS, FRAMES, LABELS, PERIOD, PROFILE_ID, PROFILE_TYPE, SAMPLE_COUNT, SERIES, SERVICE_NAME, SPAN_ID,
    STACK, START_LINES, TENANT, TIME, TOTAL, TRACE_ID, VALUE,
};

/// Version of the layout. The file `VERSION` of the data folder holds it, and the table property
/// `alluvium.layoutVersion` holds the version at the creation of the table. Layout 1 had no column `start_lines`.
pub const LAYOUT_VERSION: u32 = 2;

/// Names of the columns of the tables.
pub mod column {
    /// Partition: the tenant that owns the rows.
    pub(crate) const TENANT: &str = "tenant";
    /// Partition: the UTC day of the rows.
    pub(crate) const DAY: &str = "day";
    /// Start of the profile in microseconds since 1970.
    pub(crate) const TIME: &str = "time";
    /// Hash of the labels of the series.
    pub(crate) const SERIES: &str = "series";
    /// Text of the profile type.
    pub(crate) const PROFILE_TYPE: &str = "profile_type";
    /// Sum of the values of a profile for one type.
    pub const TOTAL: &str = "total";
    /// Number of sample rows of a profile.
    pub(crate) const SAMPLE_COUNT: &str = "sample_count";
    /// Duration of the collection in nanoseconds.
    pub(crate) const DURATION_NS: &str = "duration_ns";
    /// Period of the pprof profile: the amount that one recorded event stands for.
    pub(crate) const PERIOD: &str = "period";
    /// Id of the profile, chosen by its sender.
    pub(crate) const PROFILE_ID: &str = "profile_id";
    /// Hash of the frames of the stack.
    pub const STACK: &str = "stack";
    /// Value of a sample in the unit of its type.
    pub const VALUE: &str = "value";
    /// Id of the span that a sample belongs to.
    pub(crate) const SPAN_ID: &str = "span_id";
    /// Id of the trace that a sample belongs to.
    pub(crate) const TRACE_ID: &str = "trace_id";
    /// Frames of a stack, leaf first.
    pub(crate) const FRAMES: &str = "frames";
    /// For each frame of a stack, the line at which its function starts, or 0 if unknown. Null if all lines are
    /// unknown.
    pub(crate) const START_LINES: &str = "start_lines";
    /// Label `service_name` of a series.
    pub(crate) const SERVICE_NAME: &str = "service_name";
    /// Labels of a series, as a map of texts.
    pub const LABELS: &str = "labels";
}

/// Number of partition columns. They come first in [`Table::schema`]. The files do not contain them.
pub(crate) const PARTITION_COLUMNS: usize = 2;

/// One of the Delta tables. Its folder under the store's root has the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// One row per stored profile, type and series.
    Profiles,
    /// One row per profile, type, series and stack. Samples with a span or trace id have rows of their own.
    Samples,
    /// At least one row per distinct stack and day.
    Stacks,
    /// At least one row per distinct series and day.
    Series,
}

impl Table {
    /// All tables in the order in which a flush commits them. A table comes before the tables that refer to it.
    pub const ALL: [Table; 4] = [Table::Stacks, Table::Series, Table::Samples, Table::Profiles];

    /// Returns the name in SQL, which is also the name of the folder.
    pub const fn name(self) -> &'static str {
        match self {
            Table::Profiles => "profiles",
            Table::Samples => "samples",
            Table::Stacks => "stacks",
            Table::Series => "series",
        }
    }

    /// Returns the columns in order, the partition columns `tenant` and `day` first. For profiles and samples, `day` is
    /// the UTC day of `time`. Stacks and series are written again on each day on which they occur, and `day` is that
    /// day. Retention can therefore delete whole days.
    pub fn schema(self) -> SchemaRef {
        let mut fields = vec![
            Field::new(TENANT, DataType::Utf8, false),
            Field::new(DAY, DataType::Date32, false),
        ];
        fields.extend(match self {
            Table::Profiles => vec![
                Field::new(TIME, timestamp(), false),
                Field::new(SERIES, DataType::Int64, false),
                Field::new(PROFILE_TYPE, DataType::Utf8, false),
                Field::new(TOTAL, DataType::Int64, false),
                Field::new(SAMPLE_COUNT, DataType::Int64, false),
                Field::new(DURATION_NS, DataType::Int64, false),
                Field::new(PERIOD, DataType::Int64, false),
                Field::new(PROFILE_ID, DataType::Utf8, false),
            ],
            Table::Samples => vec![
                Field::new(TIME, timestamp(), false),
                Field::new(SERIES, DataType::Int64, false),
                Field::new(PROFILE_TYPE, DataType::Utf8, false),
                Field::new(STACK, DataType::Int64, false),
                Field::new(VALUE, DataType::Int64, false),
                Field::new(SPAN_ID, DataType::Utf8, true),
                Field::new(TRACE_ID, DataType::Utf8, true),
            ],
            Table::Stacks => vec![
                Field::new(STACK, DataType::Int64, false),
                Field::new(FRAMES, frames(), false),
                Field::new(START_LINES, start_lines(), true),
            ],
            Table::Series => vec![
                Field::new(SERIES, DataType::Int64, false),
                Field::new(SERVICE_NAME, DataType::Utf8, false),
                Field::new(LABELS, labels(), false),
            ],
        });
        Arc::new(Schema::new(fields))
    }

    /// Returns the columns of the table's files, that is, all except the partition columns.
    pub(crate) fn file_schema(self) -> SchemaRef {
        let schema = self.schema();
        Arc::new(Schema::new(schema.fields()[PARTITION_COLUMNS..].to_vec()))
    }
}

/// Returns the values of an integer column.
pub(crate) fn integers<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ScalarBuffer<i64>, ArrowError> {
    let column = find(batch, name)?.as_primitive_opt::<Int64Type>();
    Ok(column.ok_or_else(|| wrong_type(name, "integers"))?.values())
}

/// Returns the times of a column in microseconds since 1970.
pub fn times<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ScalarBuffer<i64>, ArrowError> {
    let column = find(batch, name)?.as_primitive_opt::<TimestampMicrosecondType>();
    Ok(column.ok_or_else(|| wrong_type(name, "times"))?.values())
}

/// Returns the values of a text column.
pub fn texts<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a StringArray, ArrowError> {
    let column = find(batch, name)?.as_string_opt::<i32>();
    column.ok_or_else(|| wrong_type(name, "text"))
}

/// Returns the values of a list column.
pub fn lists<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ListArray, ArrowError> {
    let column = find(batch, name)?.as_list_opt::<i32>();
    column.ok_or_else(|| wrong_type(name, "lists"))
}

/// The lines at which the functions of stacks start, from the column [`column::START_LINES`] of a batch.
pub(crate) struct StartLines<'a>(Option<(&'a ListArray, &'a [i32])>);

impl<'a> StartLines<'a> {
    /// Reads the column of a batch. If the batch has no such column, as in files of layout 1, no lines are known.
    pub(crate) fn of(batch: &'a RecordBatch) -> Result<Self, ArrowError> {
        if batch.column_by_name(START_LINES).is_none() {
            return Ok(Self(None));
        }
        let column = lists(batch, START_LINES)?;
        let lines = column.values().as_primitive_opt::<Int32Type>();
        let lines = lines.ok_or_else(|| wrong_type(START_LINES, "lists of lines"))?;
        Ok(Self(Some((column, lines.values()))))
    }

    /// Returns the lines at which the functions of a row's frames start, leaf first. Returns an empty slice if no line
    /// is known.
    pub(crate) fn row(&self, row: usize) -> &'a [i32] {
        let Some((column, lines)) = self.0.filter(|(column, _)| row < column.len() && column.is_valid(row)) else {
            return &[];
        };
        let offsets = column.value_offsets();
        lines
            .get(offsets[row] as usize..offsets[row + 1] as usize)
            .unwrap_or(&[])
    }
}

/// Returns a column of text maps, and the keys and values of all its maps.
pub fn maps<'a>(
    batch: &'a RecordBatch,
    name: &str,
) -> Result<(&'a MapArray, &'a StringArray, &'a StringArray), ArrowError> {
    let maps = find(batch, name)?.as_map_opt();
    let maps = maps.ok_or_else(|| wrong_type(name, "maps"))?;
    let text = |part: &'a ArrayRef| {
        let text = part.as_string_opt::<i32>();
        text.ok_or_else(|| wrong_type(name, "maps of text"))
    };
    Ok((maps, text(maps.keys())?, text(maps.values())?))
}

fn find<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, ArrowError> {
    batch
        .column_by_name(name)
        .ok_or_else(|| ArrowError::SchemaError(format!("there is no column `{name}`")))
}

fn wrong_type(name: &str, expected: &str) -> ArrowError {
    ArrowError::SchemaError(format!("the column `{name}` does not contain {expected}"))
}

/// Type of the start of a profile: microseconds since 1970 in UTC, the resolution of Delta's timestamp.
pub fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// Type of the frames of a stack, leaf first.
pub fn frames() -> DataType {
    DataType::List(frame())
}

/// Field of a frame. Inlined functions are separate frames. `inlined` is true for all functions of an address except
/// the outermost.
pub fn frame() -> FieldRef {
    Arc::new(Field::new("element", DataType::Struct(frame_fields()), false))
}

/// The columns of a frame.
pub(crate) fn frame_fields() -> Fields {
    Fields::from(vec![
        Field::new("function", DataType::Utf8, false),
        Field::new("file", DataType::Utf8, false),
        Field::new("line", DataType::Int64, false),
        Field::new("mapping", DataType::Utf8, false),
        Field::new("address", DataType::Int64, false),
        Field::new("build_id", DataType::Utf8, false),
        Field::new("inlined", DataType::Boolean, false),
    ])
}

/// Encodes `mapped` as the `line` of a frame without a function. `mapped` is the offset in the file at which the
/// mapping of the frame begins, and is less than 2^63. The negative `line` shows that the `address` of the frame is
/// also an offset in the file.
pub(crate) fn in_file(mapped: u64) -> i64 {
    -1 - mapped as i64
}

/// Returns the offset that [`in_file`] encoded in the `line` of a frame without a function. Returns `None` if the
/// address of the frame is an address in memory.
pub(crate) fn mapped(line: i64) -> Option<u64> {
    (line < 0).then_some((-1 - line) as u64)
}

/// Type of the lines at which the functions of a stack start.
pub(crate) fn start_lines() -> DataType {
    DataType::List(start_line())
}

/// Field of a start line. The value is 0 if the line is unknown.
pub(crate) fn start_line() -> FieldRef {
    Arc::new(Field::new("element", DataType::Int32, false))
}

/// Type of the labels of a series, `map<string, string>`, without `__name__` and other labels that start with `__`.
pub fn labels() -> DataType {
    let entries = DataType::Struct(Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, true),
    ]));
    DataType::Map(Arc::new(Field::new("key_value", entries, false)), false)
}
