//! The values of a query result, one by one and independent of Arrow's types, for row-based wire protocols.
//!
//! In: batches of a result. Out: the [`Kind`] of each column and [`Cell`]s. Lists of simple values stay lists. Maps,
//! structs and all other lists become JSON. Each wire protocol encodes the cells itself.

use std::borrow::Cow;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, DurationMicrosecondType, Float64Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit,
    SchemaRef, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
};
use arrow::record_batch::RecordBatch;

use crate::query::common::error::QueryError;
use crate::query::output::text_values;

/// Type of a simple value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Simple {
    Bool,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    /// A decimal number of any precision.
    Numeric,
    Text,
    Bytes,
    Date,
    Time,
    /// A point in time without a time zone.
    Timestamp,
    /// A point in time in UTC.
    TimestampTz,
    Interval,
    /// A JSON text, for maps, structs and lists of values that are not simple.
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub simple: Simple,
    /// True for a list of values of the type `simple`.
    pub is_list: bool,
}

/// Name and type of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ColumnKind {
    pub name: String,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Bool(bool),
    /// A value of the type [`Simple::Int2`], [`Simple::Int4`] or [`Simple::Int8`].
    Int(i64),
    /// A value of the type [`Simple::Float4`] or [`Simple::Float8`].
    Float(f64),
    /// A value of the type [`Simple::Text`], [`Simple::Json`] or [`Simple::Numeric`].
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
    /// A day, as the number of days since 1970.
    Date(i32),
    /// Microseconds since midnight.
    Time(i64),
    /// Microseconds since 1970.
    Timestamp(i64),
    Interval {
        months: i32,
        days: i32,
        micros: i64,
    },
    /// A value of a column whose kind is a list.
    List(Vec<Cell<'a>>),
}

/// Returns the names and types of the columns of `schema`.
pub(crate) fn kinds(schema: &SchemaRef) -> Vec<ColumnKind> {
    let fields = schema.fields().iter();
    fields
        .map(|field| ColumnKind {
            name: field.name().clone(),
            kind: kind(field.data_type()),
        })
        .collect()
}

/// Returns the kind for an Arrow type.
pub(crate) fn kind(kind: &DataType) -> Kind {
    let plain = |simple| Kind { simple, is_list: false };
    plain(match kind {
        DataType::Boolean => Simple::Bool,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => Simple::Int2,
        DataType::Int32 | DataType::UInt16 => Simple::Int4,
        DataType::Int64 | DataType::UInt32 => Simple::Int8,
        DataType::Float16 | DataType::Float32 => Simple::Float4,
        DataType::Float64 => Simple::Float8,
        DataType::UInt64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => Simple::Numeric,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => Simple::Bytes,
        DataType::Date32 | DataType::Date64 => Simple::Date,
        DataType::Time32(_) | DataType::Time64(_) => Simple::Time,
        DataType::Timestamp(_, None) => Simple::Timestamp,
        DataType::Timestamp(_, Some(_)) => Simple::TimestampTz,
        DataType::Interval(_) | DataType::Duration(_) => Simple::Interval,
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => Simple::Json,
        DataType::Dictionary(_, value) => return self::kind(value),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let item = self::kind(item.data_type());
            return if item.is_list || item.simple == Simple::Json {
                plain(Simple::Json)
            } else {
                Kind {
                    simple: item.simple,
                    is_list: true,
                }
            };
        }
        _ => Simple::Text,
    })
}

/// A batch whose columns are converted so that cells can be read.
pub(crate) struct Cells {
    columns: Vec<(Kind, ArrayRef)>,
    rows: usize,
}

impl Cells {
    /// Prepares a batch of a result.
    pub(crate) fn new(batch: &RecordBatch) -> Result<Self, QueryError> {
        let columns = batch.columns().iter().map(|column| {
            let kind = kind(column.data_type());
            Ok((kind, uniform(column, kind)?))
        });
        Ok(Self {
            columns: columns.collect::<Result<_, QueryError>>()?,
            rows: batch.num_rows(),
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the value in a row and column; null outside of the batch.
    pub(crate) fn cell(&self, row: usize, column: usize) -> Result<Cell<'_>, QueryError> {
        match self.columns.get(column) {
            Some((kind, array)) if row < array.len() => cell(*kind, array, row),
            _ => Ok(Cell::Null),
        }
    }
}

/// Converts a column to the Arrow type that represents its kind.
fn uniform(column: &ArrayRef, kind: Kind) -> Result<ArrayRef, QueryError> {
    let column = match column.data_type() {
        DataType::Dictionary(_, value) => cast(column, value)?,
        _ => column.clone(),
    };
    if kind.is_list {
        let list = match column.data_type() {
            DataType::List(_) => column,
            DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                let as_list = DataType::List(item.clone());
                cast(&column, &as_list)?
            }
            _ => column,
        };
        return Ok(list);
    }
    let data_type = match kind.simple {
        Simple::Int2 | Simple::Int4 | Simple::Int8 => DataType::Int64,
        Simple::Float4 | Simple::Float8 => DataType::Float64,
        Simple::Text | Simple::Numeric => DataType::Utf8,
        Simple::Bytes => DataType::Binary,
        Simple::Date => DataType::Date32,
        Simple::Time => DataType::Time64(TimeUnit::Microsecond),
        Simple::Timestamp | Simple::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, None),
        Simple::Interval => match column.data_type() {
            DataType::Duration(_) => DataType::Duration(TimeUnit::Microsecond),
            _ => DataType::Interval(IntervalUnit::MonthDayNano),
        },
        Simple::Bool | Simple::Json => return Ok(column),
    };
    if *column.data_type() == data_type {
        return Ok(column);
    }
    // A time zone affects only the display, not the instant.
    if let (DataType::Timestamp(unit, Some(_)), DataType::Timestamp(..)) = (column.data_type(), &data_type) {
        let in_utc = cast(&column, &DataType::Timestamp(*unit, Some("+00:00".into())))?;
        return Ok(cast(&in_utc, &data_type)?);
    }
    Ok(cast(&column, &data_type)?)
}

fn cell(kind: Kind, array: &ArrayRef, row: usize) -> Result<Cell<'_>, QueryError> {
    if array.is_null(row) || *array.data_type() == DataType::Null {
        return Ok(Cell::Null);
    }
    if kind.is_list {
        let list = array.as_list::<i32>();
        let (start, end) = (
            list.value_offsets()[row] as usize,
            list.value_offsets()[row + 1] as usize,
        );
        let values = list.values();
        let plain = Kind { is_list: false, ..kind };
        // Lists are rare and short, so items are converted one list at a time.
        let items = uniform(&values.slice(start, end - start), plain)?;
        let cells: Result<Vec<Cell<'static>>, QueryError> = (0..items.len())
            .map(|index| Ok(owned(cell(plain, &items, index)?)))
            .collect();
        return Ok(Cell::List(cells?));
    }
    Ok(match kind.simple {
        Simple::Bool => Cell::Bool(array.as_boolean().value(row)),
        Simple::Int2 | Simple::Int4 | Simple::Int8 => Cell::Int(array.as_primitive::<Int64Type>().value(row)),
        Simple::Float4 | Simple::Float8 => Cell::Float(array.as_primitive::<Float64Type>().value(row)),
        Simple::Text | Simple::Numeric => Cell::Text(Cow::Borrowed(array.as_string::<i32>().value(row))),
        Simple::Bytes => Cell::Bytes(array.as_binary::<i32>().value(row)),
        Simple::Date => Cell::Date(array.as_primitive::<Date32Type>().value(row)),
        Simple::Time => Cell::Time(array.as_primitive::<Time64MicrosecondType>().value(row)),
        Simple::Timestamp | Simple::TimestampTz => {
            Cell::Timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row))
        }
        Simple::Interval => {
            if let DataType::Duration(_) = array.data_type() {
                Cell::Interval {
                    months: 0,
                    days: 0,
                    micros: array.as_primitive::<DurationMicrosecondType>().value(row),
                }
            } else {
                let value = array.as_primitive::<IntervalMonthDayNanoType>().value(row);
                Cell::Interval {
                    months: value.months,
                    days: value.days,
                    micros: value.nanoseconds / 1000,
                }
            }
        }
        Simple::Json => {
            let mut text = Vec::new();
            text_values::Column::new(array)?.write(row, &mut text)?;
            Cell::Text(Cow::Owned(String::from_utf8_lossy(&text).into_owned()))
        }
    })
}

fn owned(cell: Cell<'_>) -> Cell<'static> {
    match cell {
        Cell::Null => Cell::Null,
        Cell::Bool(value) => Cell::Bool(value),
        Cell::Int(value) => Cell::Int(value),
        Cell::Float(value) => Cell::Float(value),
        Cell::Text(text) => Cell::Text(Cow::Owned(text.into_owned())),
        Cell::Bytes(bytes) => Cell::Text(Cow::Owned(String::from_utf8_lossy(bytes).into_owned())),
        Cell::Date(value) => Cell::Date(value),
        Cell::Time(value) => Cell::Time(value),
        Cell::Timestamp(value) => Cell::Timestamp(value),
        Cell::Interval { months, days, micros } => Cell::Interval { months, days, micros },
        Cell::List(cells) => Cell::List(cells.into_iter().map(owned).collect()),
    }
}
