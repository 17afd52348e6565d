//! Writes the values of a column one by one, as JSON or as plain text.
//!
//! In: arrays, including lists, structs and maps. Out: bytes. In JSON, integers beyond 2^53 are strings, because a
//! JavaScript number cannot represent them. Not-a-number and infinity are treated as null.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type, UInt64Type};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::query::common::error::QueryError;

/// A floating-point number of 64 bits represents every integer up to this one exactly.
const MAX_EXACT: u64 = 1 << 53;

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
    /// Integers of at most 32 bits, which are always written without quotes.
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
            Column::Int(array) => write_integer(array.value(row), array.value(row).unsigned_abs(), out),
            Column::UInt(array) => write_integer(array.value(row), array.value(row), out),
            Column::Float(array) => append(out, format_args!("{}", array.value(row))),
            Column::Float32(array) => append(out, format_args!("{}", array.value(row))),
            Column::Bool(array) => append(out, format_args!("{}", array.value(row))),
            Column::List(array, values) => {
                let offsets = array.value_offsets();
                out.push(b'[');
                for index in offsets[row] as usize..offsets[row + 1] as usize {
                    if index > offsets[row] as usize {
                        out.push(b',');
                    }
                    values.write(index, out)?;
                }
                out.push(b']');
            }
            Column::Struct(_, columns) => {
                out.push(b'{');
                for (index, (name, column)) in columns.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    append(out, format_args!("{}:", serde_json::Value::from(name.as_str())));
                    column.write(row, out)?;
                }
                out.push(b'}');
            }
            Column::Map(array, keys, values) => {
                let offsets = array.value_offsets();
                out.push(b'{');
                for index in offsets[row] as usize..offsets[row + 1] as usize {
                    if index > offsets[row] as usize {
                        out.push(b',');
                    }
                    let mut key = Vec::new();
                    keys.write_plain(index, &mut key)?;
                    append(
                        out,
                        format_args!("{}:", serde_json::Value::from(String::from_utf8_lossy(&key))),
                    );
                    values.write(index, out)?;
                }
                out.push(b'}');
            }
            Column::Number(_, formatter) => formatted(formatter, row, out)?,
            Column::Text(_, formatter) => {
                let mut text = Vec::new();
                formatted(formatter, row, &mut text)?;
                append(
                    out,
                    format_args!("{}", serde_json::Value::from(String::from_utf8_lossy(&text))),
                );
            }
        }
        Ok(())
    }

    /// Writes the value as text without quotes. Writes nothing for null.
    pub(crate) fn write_plain(&self, row: usize, out: &mut Vec<u8>) -> Result<(), QueryError> {
        match self {
            Column::Null => Ok(()),
            _ if self.is_null(row) => Ok(()),
            Column::Int(array) => {
                append(out, format_args!("{}", array.value(row)));
                Ok(())
            }
            Column::UInt(array) => {
                append(out, format_args!("{}", array.value(row)));
                Ok(())
            }
            Column::Text(_, formatter) => formatted(formatter, row, out),
            _ => self.write(row, out),
        }
    }
}

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(text);
}

fn write_integer(value: impl std::fmt::Display, magnitude: u64, out: &mut Vec<u8>) {
    if magnitude <= MAX_EXACT {
        append(out, format_args!("{value}"));
    } else {
        append(out, format_args!("\"{value}\""));
    }
}

fn formatted(formatter: &ArrayFormatter<'_>, row: usize, out: &mut Vec<u8>) -> Result<(), QueryError> {
    out.write_fmt(format_args!("{}", formatter.value(row)))
        .map_err(|error| QueryError::internal(format!("cannot write a value: {error}")))
}
