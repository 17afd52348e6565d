//! Completion at the SQL prompt: keywords, tables, columns, functions, commands.
//!
//! In: the line and the cursor position. Out: words that complete the text before the cursor. The words are SQL
//! keywords, functions of SQL, and the tables, columns and functions of `docs/sql.md`; completion sends no requests to
//! the server.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

/// Tables and their columns.
pub(super) const TABLES: [(&str, &[&str]); 5] = [
    (
        "flat",
        &[
            "time",
            "service_name",
            "labels",
            "profile_type",
            "function",
            "file",
            "line",
            "stack",
            "value",
            "series",
            "mapping",
            "span_id",
            "trace_id",
            "frames",
        ],
    ),
    (
        "profiles",
        &[
            "tenant",
            "day",
            "time",
            "series",
            "profile_type",
            "total",
            "sample_count",
            "duration_ns",
            "period",
            "profile_id",
        ],
    ),
    (
        "samples",
        &[
            "tenant",
            "day",
            "time",
            "series",
            "profile_type",
            "stack",
            "value",
            "span_id",
            "trace_id",
        ],
    ),
    ("stacks", &["tenant", "day", "stack", "frames", "start_lines"]),
    ("series", &["tenant", "day", "series", "service_name", "labels"]),
];

/// Functions, with their opening parenthesis.
const FUNCTIONS: [&str; 24] = [
    "flamegraph(",
    "top(",
    "diff(",
    "pprof(",
    "profiles(",
    "stack_contains(",
    "function_matches(",
    "time_bucket(",
    "count(",
    "sum(",
    "avg(",
    "min(",
    "max(",
    "approx_percentile_cont(",
    "array_agg(",
    "array_length(",
    "coalesce(",
    "date_trunc(",
    "now(",
    "regexp_like(",
    "round(",
    "to_timestamp(",
    "unnest(",
    "row_number(",
];

const KEYWORDS: [&str; 40] = [
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "ORDER", "LIMIT", "OFFSET", "HAVING", "DISTINCT", "AS", "AND", "OR",
    "NOT", "IN", "IS", "NULL", "LIKE", "ILIKE", "BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "END", "JOIN", "LEFT",
    "FULL", "ON", "USING", "UNION", "ALL", "WITH", "ASC", "DESC", "INTERVAL", "DESCRIBE", "EXPLAIN", "ANALYZE", "OVER",
];

/// Commands of the prompt.
pub(super) const COMMANDS: [&str; 7] = ["\\d", "\\timing", "\\format", "\\pager", "\\help", "\\q", "\\?"];

/// Completes SQL keywords, tables, columns, functions and commands.
pub(super) struct Words;

/// Returns the words that complete the partial word before `position`, and the start position of the partial word.
fn completions(line: &str, position: usize) -> (usize, Vec<String>) {
    let before = line.get(..position).unwrap_or(line);
    let start = before
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_' || c == '\\'))
        .map_or(0, |offset| {
            offset + before[offset..].chars().next().map_or(1, char::len_utf8)
        });
    let part = &before[start..];
    if part.is_empty() {
        return (start, Vec::new());
    }
    let fits = |word: &&&str| {
        word.len() > part.len()
            && word
                .get(..part.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(part))
    };
    if part.starts_with('\\') {
        return (
            start,
            COMMANDS.iter().filter(fits).map(|word| (*word).to_owned()).collect(),
        );
    }
    let is_upper = part.chars().all(|c| !c.is_lowercase());
    let keywords = KEYWORDS.iter().filter(fits).map(|word| {
        if is_upper {
            (*word).to_owned()
        } else {
            word.to_lowercase()
        }
    });
    let columns = TABLES.iter().flat_map(|(_, columns)| columns.iter());
    let names = TABLES.iter().map(|(table, _)| table).chain(columns).chain(&FUNCTIONS);
    let mut words: Vec<String> = names
        .filter(fits)
        .map(|word| (*word).to_owned())
        .chain(keywords)
        .collect();
    words.sort();
    words.dedup();
    (start, words)
}

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, position: usize, _context: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(completions(line, position))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_on_from_what_is_typed() {
        let words = |line: &str| completions(line, line.len()).1;
        assert_eq!(words("SELECT serv"), ["service_name"]);
        assert_eq!(words("sel"), ["select"]);
        assert_eq!(words("SEL"), ["SELECT"]);
        assert_eq!(
            words("SELECT * FROM pro"),
            ["profile_id", "profile_type", "profiles", "profiles("]
        );
        assert_eq!(words("SELECT sum(val"), ["value"]);
        assert_eq!(completions("SELECT sum(val", 14).0, 11);
        assert_eq!(words("\\tim"), ["\\timing"]);
        assert!(words("SELECT ").is_empty());
        assert!(words("SELECT '\u{e9}\u{e9}").is_empty());
        assert_eq!(
            completions("\u{e9} fla", 6),
            (3, vec!["flamegraph(".to_owned(), "flat".to_owned()])
        );
    }

    #[cfg(feature = "server")]
    #[test]
    fn tables_and_columns_are_those_of_the_store() {
        for table in crate::store::common::schema::Table::ALL {
            let schema = table.schema();
            let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            let row = TABLES.iter().find(|row| row.0 == table.name()).unwrap();
            assert_eq!(row.1, columns, "{}", table.name());
        }
    }
}
