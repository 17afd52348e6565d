//! Encodes values for the wire, as text or in PostgreSQL's binary format, and decodes parameters.
//!
//! In: [`Cell`]s and the format that the client requested. Out: the bytes of a data row. As in PostgreSQL, binary times
//! and days count from the year 2000.

use std::borrow::Cow;
use std::fmt::Write as _;

use bytes::{BufMut, BytesMut};

use crate::query::SqlValue;
use crate::query::output::cells::{Cell, Cells, Kind, Simple};
use crate::server::postgres::failure::Failure;
use crate::server::postgres::types;

/// 2000-01-01 in microseconds since 1970. [`EPOCH_DAYS`] is the same date in days since 1970.
const EPOCH_MICROS: i64 = 946_684_800_000_000;
const EPOCH_DAYS: i32 = 10_957;
/// Maximum size of a value in bytes. A row with a larger value is an error.
const MAX_VALUE: usize = 256 << 20;

/// Format of values on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// PostgreSQL's text format.
    Text,
    /// The binary format of the type.
    Binary,
}

/// Type and format of a column of a result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) kind: Kind,
    pub(super) format: Format,
}

/// Appends one row as a `DataRow`. If that fails, the function removes the part that it has appended, so that the error
/// message does not follow an incomplete message.
pub(super) fn row(out: &mut BytesMut, cells: &Cells, row_index: usize, fields: &[Field]) -> Result<(), Failure> {
    let start = out.len();
    append_row(out, cells, row_index, fields).inspect_err(|_| out.truncate(start))
}

fn append_row(out: &mut BytesMut, cells: &Cells, row_index: usize, fields: &[Field]) -> Result<(), Failure> {
    let start = out.len();
    out.put_u8(b'D');
    out.put_u32(0);
    out.put_i16(fields.len() as i16);
    for (column, field) in fields.iter().enumerate() {
        let cell = cells.cell(row_index, column).map_err(Failure::from)?;
        value(out, &cell, *field)?;
    }
    let length = out.len() - start - 1;
    let length = u32::try_from(length).map_err(|_| Failure::error("54000", "a row is too large"))?;
    if let Some(length_field) = out.get_mut(start + 1..start + 5) {
        length_field.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// Appends the length of a value, and then the value. The length of null is -1.
fn value(out: &mut BytesMut, cell: &Cell<'_>, Field { kind, format }: Field) -> Result<(), Failure> {
    if *cell == Cell::Null {
        out.put_i32(-1);
        return Ok(());
    }
    let start = out.len();
    out.put_i32(0);
    match (format, cell) {
        (Format::Binary, Cell::List(items)) => list_binary(out, items, kind)?,
        (Format::Binary, cell) => binary(out, cell, kind.simple)?,
        (Format::Text, Cell::Text(text)) => out.put_slice(text.as_bytes()),
        (Format::Text, cell) => {
            let mut words = String::new();
            text(&mut words, cell, kind);
            out.put_slice(words.as_bytes());
        }
    }
    let length = out.len() - start - 4;
    if length > MAX_VALUE {
        return Err(Failure::error(
            "54000",
            format!("a value of {length} bytes is too large"),
        ));
    }
    if let Some(length_field) = out.get_mut(start..start + 4) {
        length_field.copy_from_slice(&(length as u32).to_be_bytes());
    }
    Ok(())
}

fn text(out: &mut String, cell: &Cell<'_>, kind: Kind) {
    // Writing to a String cannot fail.
    let _ = match cell {
        Cell::Null => Ok(()),
        Cell::Bool(value) => out.write_str(if *value { "t" } else { "f" }),
        Cell::Int(value) => write!(out, "{value}"),
        Cell::Float(value) if value.is_nan() => out.write_str("NaN"),
        Cell::Float(value) if value.is_infinite() => out.write_str(if *value > 0.0 { "Infinity" } else { "-Infinity" }),
        Cell::Float(value) if kind.simple == Simple::Float4 => write!(out, "{}", *value as f32),
        Cell::Float(value) => write!(out, "{value}"),
        Cell::Text(text) => out.write_str(text),
        Cell::Bytes(bytes) => {
            out.push_str("\\x");
            bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
        }
        Cell::Date(days) => out.write_str(&date(*days)),
        Cell::Time(micros) => out.write_str(&time_of_day(*micros)),
        Cell::Timestamp(micros) => {
            let days = micros.div_euclid(86_400_000_000);
            let day = date(i32::try_from(days).unwrap_or(i32::MAX));
            let zone = if kind.simple == Simple::TimestampTz { "+00" } else { "" };
            write!(out, "{day} {}{zone}", time_of_day(micros.rem_euclid(86_400_000_000)))
        }
        Cell::Interval { months, days, micros } => interval(out, *months, *days, *micros),
        Cell::List(items) => {
            out.push('{');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                list_item(out, item, kind);
            }
            out.write_str("}")
        }
    };
}

fn list_item(out: &mut String, item: &Cell<'_>, kind: Kind) {
    if *item == Cell::Null {
        out.push_str("NULL");
        return;
    }
    let mut words = String::new();
    text(&mut words, item, Kind { is_list: false, ..kind });
    let is_plain = |c: char| c.is_alphanumeric() || "._-+:".contains(c);
    if !words.is_empty() && words.chars().all(is_plain) && !words.eq_ignore_ascii_case("null") {
        out.push_str(&words);
        return;
    }
    out.push('"');
    for c in words.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

fn date(days: i32) -> String {
    let day = chrono::DateTime::from_timestamp(i64::from(days) * 86_400, 0);
    day.map_or("infinity".to_owned(), |day| day.date_naive().to_string())
}

/// Formats a time of day with as many fractional digits as needed.
fn time_of_day(micros: i64) -> String {
    let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let mut text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction != 0 {
        let _ = write!(text, ".{fraction:06}");
        text.truncate(text.trim_end_matches('0').len());
    }
    text
}

fn interval(out: &mut String, months: i32, days: i32, micros: i64) -> std::fmt::Result {
    let mut parts = Vec::new();
    let named = |count: i32, name: &str| format!("{count} {name}{}", if count.abs() == 1 { "" } else { "s" });
    if months / 12 != 0 {
        parts.push(named(months / 12, "year"));
    }
    if months % 12 != 0 {
        parts.push(named(months % 12, "mon"));
    }
    if days != 0 {
        parts.push(named(days, "day"));
    }
    if micros != 0 || parts.is_empty() {
        let sign = if micros < 0 { "-" } else { "" };
        let magnitude = i64::try_from(micros.unsigned_abs()).unwrap_or(i64::MAX);
        parts.push(format!("{sign}{}", time_of_day(magnitude)));
    }
    out.write_str(&parts.join(" "))
}

fn binary(out: &mut BytesMut, cell: &Cell<'_>, simple: Simple) -> Result<(), Failure> {
    match (cell, simple) {
        (Cell::Bool(value), _) => out.put_u8(u8::from(*value)),
        (Cell::Int(value), Simple::Int2) => out.put_i16(*value as i16),
        (Cell::Int(value), Simple::Int4) => out.put_i32(*value as i32),
        (Cell::Int(value), _) => out.put_i64(*value),
        (Cell::Float(value), Simple::Float4) => out.put_f32(*value as f32),
        (Cell::Float(value), _) => out.put_f64(*value),
        (Cell::Text(text), Simple::Numeric) => numeric(out, text)?,
        (Cell::Text(text), _) => out.put_slice(text.as_bytes()),
        (Cell::Bytes(bytes), _) => out.put_slice(bytes),
        (Cell::Date(days), _) => out.put_i32(days.saturating_sub(EPOCH_DAYS)),
        (Cell::Time(micros), _) => out.put_i64(*micros),
        (Cell::Timestamp(micros), _) => out.put_i64(micros.saturating_sub(EPOCH_MICROS)),
        (Cell::Interval { months, days, micros }, _) => {
            out.put_i64(*micros);
            out.put_i32(*days);
            out.put_i32(*months);
        }
        (Cell::Null | Cell::List(_), _) => {}
    }
    Ok(())
}

fn list_binary(out: &mut BytesMut, items: &[Cell<'_>], kind: Kind) -> Result<(), Failure> {
    let plain = Kind { is_list: false, ..kind };
    out.put_i32(i32::from(!items.is_empty()));
    out.put_i32(i32::from(items.contains(&Cell::Null)));
    out.put_u32(types::number(plain));
    if !items.is_empty() {
        out.put_i32(i32::try_from(items.len()).map_err(|_| Failure::error("54000", "a list is too long"))?);
        out.put_i32(1);
    }
    let field = Field {
        kind: plain,
        format: Format::Binary,
    };
    items.iter().try_for_each(|item| value(out, item, field))
}

/// Appends a decimal number in groups of four digits, the binary format of `numeric`.
fn numeric(out: &mut BytesMut, text: &str) -> Result<(), Failure> {
    let number_error = || Failure::error("XX000", format!("`{text}` is not a decimal number"));
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (integer, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(integer) || !is_number(fraction) || digits.is_empty() || digits.len() > 10_000 {
        return Err(number_error());
    }
    let integer = integer.trim_start_matches('0');
    let before = integer.len().div_ceil(4);
    let padded = format!(
        "{}{integer}{fraction}{}",
        "0".repeat(before * 4 - integer.len()),
        "0".repeat(fraction.len().div_ceil(4) * 4 - fraction.len())
    );
    let mut groups: Vec<i16> = Vec::new();
    for group in padded.as_bytes().chunks(4) {
        groups.push(group.iter().fold(0, |sum, digit| sum * 10 + i16::from(digit - b'0')));
    }
    let mut weight = before as i16 - 1;
    let zeros = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..zeros);
    weight -= zeros as i16;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    out.put_i16(groups.len() as i16);
    out.put_i16(weight);
    out.put_u16(if is_negative && !groups.is_empty() { 0x4000 } else { 0 });
    out.put_i16(fraction.len() as i16);
    groups.iter().for_each(|group| out.put_i16(*group));
    Ok(())
}

/// Decodes the value of a parameter.
pub(super) fn parameter(bytes: Option<&[u8]>, kind: Option<Kind>, format: Format) -> Result<SqlValue, Failure> {
    let Some(bytes) = bytes else {
        return Ok(SqlValue::Null);
    };
    let text = || -> Result<Cow<'_, str>, Failure> {
        let text = std::str::from_utf8(bytes).map_err(|_| Failure::error("22021", "a parameter is not UTF-8"))?;
        if text.contains('\0') {
            return Err(Failure::error("22021", "a parameter has a zero byte"));
        }
        Ok(Cow::Borrowed(text))
    };
    let simple = kind.map(|kind| kind.simple);
    if kind.is_some_and(|kind| kind.is_list) {
        return Err(Failure::error(
            "0A000",
            "list parameters are not supported: write the list into the query, or split a text with string_to_array",
        ));
    }
    if format == Format::Text {
        if simple == Some(Simple::Bytes) {
            return Ok(SqlValue::Bytes(from_hex(&text()?)?));
        }
        return Ok(SqlValue::Text(text()?.into_owned()));
    }
    let length = bytes.len();
    let length_error = || {
        Failure::error(
            "22P03",
            format!("a binary parameter of {length} bytes is not a valid {simple:?}"),
        )
    };
    let int = || -> Result<i64, Failure> {
        match *bytes {
            [one, two] => Ok(i64::from(i16::from_be_bytes([one, two]))),
            [a, b, c, d] => Ok(i64::from(i32::from_be_bytes([a, b, c, d]))),
            _ => <[u8; 8]>::try_from(bytes)
                .map(i64::from_be_bytes)
                .map_err(|_| length_error()),
        }
    };
    Ok(match simple {
        Some(Simple::Bool) => match *bytes {
            [value] => SqlValue::Bool(value != 0),
            _ => return Err(length_error()),
        },
        Some(Simple::Int2 | Simple::Int4 | Simple::Int8) => SqlValue::Int(int()?),
        Some(Simple::Float4 | Simple::Float8) => match *bytes {
            [a, b, c, d] => SqlValue::Float(f64::from(f32::from_be_bytes([a, b, c, d]))),
            _ => SqlValue::Float(
                <[u8; 8]>::try_from(bytes)
                    .map(f64::from_be_bytes)
                    .map_err(|_| length_error())?,
            ),
        },
        Some(Simple::Date) => SqlValue::Date(
            int()?
                .try_into()
                .map_or(i32::MAX, |days: i32| days.saturating_add(EPOCH_DAYS)),
        ),
        Some(Simple::Timestamp | Simple::TimestampTz) => SqlValue::Timestamp(int()?.saturating_add(EPOCH_MICROS)),
        Some(Simple::Bytes) => SqlValue::Bytes(bytes.to_vec()),
        None | Some(Simple::Text | Simple::Json) => SqlValue::Text(text()?.into_owned()),
        Some(Simple::Numeric | Simple::Time | Simple::Interval) => {
            return Err(Failure::error(
                "0A000",
                format!("a parameter of type {simple:?} must be sent as text"),
            ));
        }
    })
}

fn from_hex(text: &str) -> Result<Vec<u8>, Failure> {
    let hex_error = || Failure::error("22P02", "bytes must be written as \\x and hexadecimal digits");
    let digits = text.strip_prefix("\\x").ok_or_else(hex_error)?.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(hex_error);
    digits
        .chunks(2)
        .map(|pair| match *pair {
            [high, low] => Ok((digit(high)? * 16 + digit(low)?) as u8),
            _ => Err(hex_error()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn written(cell: Cell<'_>, simple: Simple) -> String {
        let mut out = String::new();
        let is_list = matches!(cell, Cell::List(_));
        text(&mut out, &cell, Kind { simple, is_list });
        out
    }

    #[test]
    fn values_are_written_as_postgresql_writes_them() {
        let micros = 1_795_176_000_250_000;
        assert_eq!(
            written(Cell::Timestamp(micros), Simple::TimestampTz),
            "2026-11-20 12:00:00.25+00"
        );
        assert_eq!(
            written(Cell::Timestamp(-1), Simple::Timestamp),
            "1969-12-31 23:59:59.999999"
        );
        assert_eq!(written(Cell::Date(0), Simple::Date), "1970-01-01");
        assert_eq!(written(Cell::Bool(true), Simple::Bool), "t");
        assert_eq!(written(Cell::Float(f64::NEG_INFINITY), Simple::Float8), "-Infinity");
        assert_eq!(written(Cell::Float(f64::from(0.1f32)), Simple::Float4), "0.1");
        assert_eq!(written(Cell::Bytes(b"\x00\xff"), Simple::Bytes), "\\x00ff");
        let length = Cell::Interval {
            months: 14,
            days: 1,
            micros: -1_500_000,
        };
        assert_eq!(written(length, Simple::Interval), "1 year 2 mons 1 day -00:00:01.5");
        let list = Cell::List(vec![
            Cell::Text("a b".into()),
            Cell::Null,
            Cell::Text("null".into()),
            Cell::Text("q\"\\".into()),
            Cell::Text("".into()),
        ]);
        assert_eq!(written(list, Simple::Text), r#"{"a b",NULL,"null","q\"\\",""}"#);
    }

    #[test]
    fn a_row_that_cannot_be_written_leaves_no_part_of_itself() {
        let column: arrow::array::ArrayRef = Arc::new(arrow::array::StringArray::from(vec!["12", "no number"]));
        let batch = arrow::record_batch::RecordBatch::try_from_iter([("a", column)]).unwrap();
        let cells = Cells::new(&batch).unwrap();
        let fields = [Field {
            kind: Kind {
                simple: Simple::Numeric,
                is_list: false,
            },
            format: Format::Binary,
        }];
        let mut out = BytesMut::new();
        row(&mut out, &cells, 0, &fields).unwrap();
        let first = out.clone();
        assert!(row(&mut out, &cells, 1, &fields).is_err());
        assert_eq!(out, first);
    }

    #[test]
    fn decimal_numbers_are_in_groups_of_four_digits() {
        let groups = |text: &str| {
            let mut out = BytesMut::new();
            numeric(&mut out, text).unwrap();
            out.chunks(2)
                .map(|pair| i16::from_be_bytes([pair[0], pair[1]]))
                .collect::<Vec<_>>()
        };
        assert_eq!(groups("0"), [0, 0, 0, 0]);
        assert_eq!(groups("12345"), [2, 1, 0, 0, 1, 2345]);
        assert_eq!(groups("-12345.678"), [3, 1, 0x4000, 3, 1, 2345, 6780]);
        assert_eq!(groups("0.0001"), [1, -1, 0, 4, 1]);
        assert_eq!(groups("18446744073709551615"), [5, 4, 0, 0, 1844, 6744, 737, 955, 1615]);
        assert_eq!(groups("10000"), [1, 1, 0, 0, 1]);
        assert!(numeric(&mut BytesMut::new(), "1e5").is_err());
    }

    #[test]
    fn parameters_are_read_in_both_forms() {
        let plain = |simple| Some(Kind { simple, is_list: false });
        let read = |bytes: &[u8], simple, format| parameter(Some(bytes), plain(simple), format);
        assert_eq!(
            read(&[0, 0, 0, 5], Simple::Int4, Format::Binary).unwrap(),
            SqlValue::Int(5)
        );
        assert_eq!(
            read(b"5", Simple::Int4, Format::Text).unwrap(),
            SqlValue::Text("5".to_owned())
        );
        assert_eq!(
            read(&0i64.to_be_bytes(), Simple::TimestampTz, Format::Binary).unwrap(),
            SqlValue::Timestamp(EPOCH_MICROS)
        );
        assert_eq!(
            read(b"\\x0aff", Simple::Bytes, Format::Text).unwrap(),
            SqlValue::Bytes(vec![10, 255])
        );
        assert_eq!(parameter(None, None, Format::Binary).unwrap(), SqlValue::Null);
        assert!(read(&[1, 2, 3], Simple::Int4, Format::Binary).is_err());
        assert!(read(&[0xff], Simple::Text, Format::Binary).is_err());
        assert!(read(b"a\0b", Simple::Text, Format::Text).is_err());
    }
}
