//! Formats JSON rows as a table: aligned columns, right-aligned numbers, nothing truncated.
//!
//! In: an array of objects, or one object on each line. Out: text.

use anyhow::Context;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::cli::common::plain;

/// Formats the rows of `json`. Columns keep the order of their first occurrence. A missing value is empty.
pub(in crate::cli) fn from_json(json: &[u8]) -> anyhow::Result<String> {
    let mut rows: Vec<Row> = Vec::new();
    for item in serde_json::Deserializer::from_slice(json).into_iter::<Item>() {
        match item.context("the server's response does not consist of JSON rows")? {
            Item::Rows(batch) => rows.extend(batch),
            Item::Row(row) => rows.push(row),
        }
    }
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let find = |row: &Row, name: &str| row.iter().position(|(candidate, _)| candidate == name);
    let value = |row: &Row, name: &str| find(row, name).map_or(Value::Null, |index| row[index].1.clone());
    let lines: Vec<Vec<String>> = rows
        .iter()
        .map(|row| names.iter().map(|name| cell(&value(row, name))).collect())
        .collect();
    let is_number = |name: &&str| {
        let number_or_null = |value: Value| value.is_number() || value.is_null();
        rows.iter().all(|row| number_or_null(value(row, name)))
    };
    let right: Vec<bool> = names.iter().map(is_number).collect();
    Ok(render(&names, &lines, &right))
}

/// An object that keeps the order of its members, unlike `serde_json::Map`.
type Row = Vec<(String, Value)>;

/// An array of rows, or one row.
enum Item {
    Rows(Vec<Row>),
    Row(Row),
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemVisitor)
    }
}

struct ItemVisitor;

impl<'de> Visitor<'de> for ItemVisitor {
    type Value = Item;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("an object or an array of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Item, A::Error> {
        let mut row = Row::new();
        while let Some(member) = map.next_entry()? {
            row.push(member);
        }
        Ok(Item::Row(row))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Item, A::Error> {
        let mut rows = Vec::new();
        while let Some(item) = items.next_element()? {
            match item {
                Item::Row(row) => rows.push(row),
                Item::Rows(_) => return Err(A::Error::custom("found an array instead of a row")),
            }
        }
        Ok(Item::Rows(rows))
    }
}

/// Formats a header and rows. `right` marks the columns that are aligned to the right.
fn render(names: &[&str], lines: &[Vec<String>], right: &[bool]) -> String {
    let width = |column: usize| {
        let cells = lines.iter().map(|line| line[column].chars().count());
        cells.chain([names[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..names.len()).map(width).collect();
    let mut out = String::new();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        for (column, cell) in cells.enumerate() {
            if column > 0 {
                out.push_str("  ");
            }
            let pad = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
            if right[column] {
                out.extend([pad.as_str(), cell]);
            } else {
                out.extend([cell, pad.as_str()]);
            }
        }
        out.truncate(out.trim_end_matches(' ').len());
        out.push('\n');
    };
    if !names.is_empty() {
        line(&mut names.iter().copied());
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        line(&mut rules.iter().map(String::as_str));
    }
    for cells in lines {
        line(&mut cells.iter().map(String::as_str));
    }
    let rows = if lines.len() == 1 { "row" } else { "rows" };
    out.push_str(&format!("({} {rows})\n", lines.len()));
    out
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => return String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    // A line end would break the table.
    plain::line(&text.replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_aligned_and_numbers_stand_right() {
        let json = br#"[{"name":"cpu","n":1200,"labels":{"a":"b"}},{"name":"memory\n","n":7,"x":null}]"#;
        let expected = "\
name        n  labels     x
-------  ----  ---------  -
cpu      1200  {\"a\":\"b\"}
memory      7
(2 rows)
";
        assert_eq!(from_json(json).unwrap(), expected);
    }

    #[test]
    fn rows_one_a_line_and_no_rows_are_fine() {
        assert_eq!(from_json(b"{\"n\":1}\n{\"n\":2}\n").unwrap(), "n\n-\n1\n2\n(2 rows)\n");
        assert_eq!(from_json(b"[]").unwrap(), "(0 rows)\n");
        assert!(from_json(b"[1]").is_err());
        assert!(from_json(b"[[]]").is_err());
        assert!(from_json(b"{").is_err());
    }

    #[test]
    fn a_value_cannot_command_the_terminal() {
        assert!(!from_json(b"[{\"n\":\"\\u001b[2J\"}]").unwrap().contains('\u{1b}'));
    }
}
