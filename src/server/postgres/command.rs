//! Statements that the connection executes itself: transactions (without effect), settings, and closing of prepared
//! statements.
//!
//! In: the text of a message. Out: its statements, and the commands among them. All other statements go to the engine,
//! which accepts only queries.

use crate::server::postgres::failure::Failure;

/// Maximum number of statements in one message.
const MAX_STATEMENTS: usize = 64;

/// A statement about the session instead of the data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Starts a transaction, which has no effect on data.
    Begin,
    /// Ends a transaction. A failed transaction is reported as rolled back.
    Commit,
    /// Ends a transaction, whether it has failed or not.
    Rollback,
    /// Savepoints, UNLISTEN and similar statements, accepted without effect on data. The text is the response's tag.
    Nothing(&'static str),
    /// Changes a setting: name and value.
    Set(String, String),
    /// Shows one setting, or all if `None`.
    Show(Option<String>),
    /// Resets one setting, or all if `None`.
    Reset(Option<String>),
    /// Resets all settings, and removes all prepared statements and portals.
    DiscardAll,
    /// Removes one prepared statement, or all if `None`.
    Deallocate(Option<String>),
    /// Removes one portal, or all if `None`.
    Close(Option<String>),
}

impl Command {
    /// Returns the tag for the `CommandComplete` message.
    pub(super) fn tag(&self) -> &'static str {
        match self {
            Command::Begin => "BEGIN",
            Command::Commit => "COMMIT",
            Command::Rollback => "ROLLBACK",
            Command::Nothing(tag) => tag,
            Command::Set(..) => "SET",
            Command::Show(_) => "SHOW",
            Command::Reset(_) => "RESET",
            Command::DiscardAll => "DISCARD ALL",
            Command::Deallocate(None) => "DEALLOCATE ALL",
            Command::Deallocate(Some(_)) => "DEALLOCATE",
            Command::Close(_) => "CLOSE CURSOR",
        }
    }

    /// Parses a statement. Returns `None` if the engine must execute it.
    pub(super) fn read(statement: &str) -> Result<Option<Self>, Failure> {
        let words = words(statement);
        let upper: Vec<String> = words.iter().take(6).map(|word| word.to_ascii_uppercase()).collect();
        let upper: Vec<&str> = upper.iter().map(String::as_str).collect();
        let second = |index: usize| words.get(index).map(|word| unquoted(word));
        Ok(Some(match upper.as_slice() {
            ["BEGIN", ..] | ["START", "TRANSACTION", ..] => Command::Begin,
            ["COMMIT" | "END" | "ROLLBACK", "PREPARED", ..] => return Ok(None),
            ["COMMIT" | "END", ..] => Command::Commit,
            ["ROLLBACK", "TO", ..] | ["ROLLBACK", "WORK" | "TRANSACTION", "TO", ..] => Command::Nothing("ROLLBACK"),
            ["ROLLBACK" | "ABORT", ..] => Command::Rollback,
            ["SAVEPOINT", _] => Command::Nothing("SAVEPOINT"),
            ["RELEASE", ..] => Command::Nothing("RELEASE"),
            ["UNLISTEN", ..] => Command::Nothing("UNLISTEN"),
            ["DISCARD", "ALL" | "PLANS" | "TEMP" | "TEMPORARY" | "SEQUENCES"] => Command::DiscardAll,
            ["DEALLOCATE", "PREPARE", "ALL"] | ["DEALLOCATE", "ALL"] => Command::Deallocate(None),
            ["DEALLOCATE", "PREPARE", _] => Command::Deallocate(second(2)),
            ["DEALLOCATE", _] => Command::Deallocate(second(1)),
            ["CLOSE", "ALL"] => Command::Close(None),
            ["CLOSE", _] => Command::Close(second(1)),
            ["RESET", "ALL"] => Command::Reset(None),
            ["RESET", "SESSION", "AUTHORIZATION"] | ["RESET", "ROLE"] => Command::Nothing("RESET"),
            ["RESET", _] => Command::Reset(second(1)),
            ["SHOW", "ALL"] => Command::Show(None),
            ["SHOW", "TRANSACTION", "ISOLATION", "LEVEL"] => Command::Show(Some("transaction_isolation".to_owned())),
            ["SHOW", "TIME", "ZONE"] => Command::Show(Some("TimeZone".to_owned())),
            ["SHOW", "SESSION", "AUTHORIZATION"] => Command::Show(Some("session_authorization".to_owned())),
            [
                "SHOW",
                "TABLES" | "COLUMNS" | "DATABASES" | "SCHEMAS" | "FUNCTIONS" | "CREATE",
                ..,
            ] => return Ok(None),
            ["SHOW", _] => Command::Show(second(1)),
            ["SET", rest @ ..] => set(&words[1..], rest)?,
            _ => return Ok(None),
        }))
    }
}

/// Parses `SET [SESSION|LOCAL] name {=|TO} value`, and its special forms.
fn set(words: &[&str], upper: &[&str]) -> Result<Command, Failure> {
    let skip = usize::from(matches!(upper.first(), Some(&("SESSION" | "LOCAL"))));
    let (words, upper) = (&words[skip..], &upper[skip..]);
    match upper {
        ["CHARACTERISTICS" | "TRANSACTION", ..] => return Ok(Command::Nothing("SET")),
        ["TIME", "ZONE", ..] => {
            return Ok(Command::Set(
                "TimeZone".to_owned(),
                words.get(2).map_or(String::new(), |word| unquoted(word)),
            ));
        }
        ["NAMES", ..] => {
            return Ok(Command::Set(
                "client_encoding".to_owned(),
                words.get(1).map_or("UTF8".to_owned(), |word| unquoted(word)),
            ));
        }
        ["ROLE" | "AUTHORIZATION", ..] => {
            return Err(Failure::error("42501", "the user of a connection cannot be changed"));
        }
        _ => {}
    }
    let joined = words.join(" ");
    let (name, value) = joined
        .split_once('=')
        .or_else(|| {
            let offset = joined.to_ascii_uppercase().find(" TO ")?;
            Some((&joined[..offset], &joined[offset + 4..]))
        })
        .ok_or_else(|| Failure::error("42601", "expected SET name = value"))?;
    let values: Vec<String> = value.split(',').map(|part| unquoted(part.trim())).collect();
    Ok(Command::Set(unquoted(name.trim()), values.join(", ")))
}

/// Returns the words of a statement, with their quotes and without leading comments. If the statement is long, returns
/// only the first word.
fn words(statement: &str) -> Vec<&str> {
    let mut rest = statement;
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
        } else if rest.starts_with("/*") {
            rest = &rest[comment_end(rest)..];
        } else {
            break;
        }
    }
    // Commands are short. A longer statement is for the engine.
    if rest.len() > 4096 {
        return rest.split_whitespace().take(1).filter(|word| word.len() < 64).collect();
    }
    rest.split_whitespace().collect()
}

fn unquoted(word: &str) -> String {
    let word = word.trim_end_matches(';');
    let inner = |quote: char| word.strip_prefix(quote).and_then(|word| word.strip_suffix(quote));
    match inner('\'').or_else(|| inner('"')) {
        Some(inner) => inner.replace("''", "'"),
        None => word.to_owned(),
    }
}

/// Splits a text into its non-empty statements.
pub(super) fn split(text: &str) -> Result<Vec<&str>, Failure> {
    let bytes = text.as_bytes();
    let mut statements = Vec::new();
    let (mut start, mut offset) = (0, 0);
    while offset < bytes.len() {
        offset = match bytes[offset] {
            b';' => {
                statements.push(&text[start..offset]);
                start = offset + 1;
                offset + 1
            }
            quote @ (b'\'' | b'"') => {
                let escape = (quote == b'\'' && is_escape_string(bytes, offset)).then_some(b'\\');
                quoted_end(bytes, offset, quote, escape)
            }
            b'-' if bytes.get(offset + 1) == Some(&b'-') => {
                let line = memchr::memchr(b'\n', &bytes[offset..]);
                line.map_or(bytes.len(), |length| offset + length)
            }
            b'/' if bytes.get(offset + 1) == Some(&b'*') => offset + comment_end(&text[offset..]),
            b'$' => dollar_end(text, offset),
            _ => offset + 1,
        };
    }
    statements.push(&text[start..]);
    statements.retain(|statement| !is_blank(statement));
    if statements.len() > MAX_STATEMENTS {
        return Err(Failure::error(
            "54000",
            format!(
                "a message may have at most {MAX_STATEMENTS} statements, not {}",
                statements.len()
            ),
        ));
    }
    Ok(statements)
}

/// Returns true for a statement of only whitespace and comments.
fn is_blank(statement: &str) -> bool {
    words(statement).is_empty()
}

/// Returns true if the quote at `offset` starts a text `E'...'`, in which a backslash escapes the next byte.
fn is_escape_string(bytes: &[u8], offset: usize) -> bool {
    let before = |back: usize| offset.checked_sub(back).and_then(|offset| bytes.get(offset)).copied();
    let in_word = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    matches!(before(1), Some(b'e' | b'E')) && !in_word(before(2))
}

/// Returns the end of a quoted text that starts at `start`. `escape` is the byte that escapes the next byte.
fn quoted_end(bytes: &[u8], start: usize, quote: u8, escape: Option<u8>) -> usize {
    let mut offset = start + 1;
    while offset < bytes.len() {
        match bytes[offset] {
            byte if Some(byte) == escape => offset += 2,
            byte if byte == quote => return offset + 1,
            _ => offset += 1,
        }
    }
    bytes.len()
}

/// Returns the length of the comment at the start of the text. Comments nest.
fn comment_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut depth, mut offset) = (0usize, 0);
    while offset + 1 < bytes.len() {
        match (bytes[offset], bytes[offset + 1]) {
            (b'/', b'*') => (depth, offset) = (depth + 1, offset + 2),
            (b'*', b'/') => {
                (depth, offset) = (depth - 1, offset + 2);
                if depth == 0 {
                    return offset;
                }
            }
            _ => offset += 1,
        }
    }
    bytes.len()
}

/// Returns the end of the quoted text `$tag$ ... $tag$`. If the `$` starts no quote, but for example a parameter,
/// returns the position of the next byte.
fn dollar_end(text: &str, start: usize) -> usize {
    let rest = &text[start + 1..];
    let name = rest.find('$').map(|end| &rest[..end]);
    let is_tag = |name: &str| {
        !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    let Some(name) = name.filter(|name| is_tag(name)) else {
        return start + 1;
    };
    let tag = format!("${name}$");
    let body = start + tag.len();
    text[body..].find(&tag).map_or(text.len(), |end| body + end + tag.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_told_apart_where_they_end_and_nowhere_else() {
        let statements = |text: &'static str| split(text).unwrap();
        assert_eq!(statements("SELECT 1; SELECT 2;"), ["SELECT 1", " SELECT 2"]);
        assert_eq!(statements(" ; ;; -- nothing\n /* at ; all */ "), Vec::<&str>::new());
        for one in [
            "SELECT ';', 'it''s; fine', \"a;b\"",
            "SELECT E'\\';' AS x",
            "SELECT $$ a; b $$, $tag$ ; $$ ; $tag$",
            "SELECT 1 -- not; here\n + 1",
            "SELECT /* nor; /* here; */ ; */ 1",
            "SELECT $1 + $2",
            "SELECT 'open; end",
            "SELECT \u{e9}, '\u{e9};'",
        ] {
            assert_eq!(statements(one), [one]);
        }
        assert!(split(&"SELECT 1;".repeat(65)).is_err());
    }

    #[test]
    fn commands_of_clients_are_known() {
        let read_command = |text: &str| Command::read(text).unwrap();
        for (text, tag) in [
            ("begin", "BEGIN"),
            ("START TRANSACTION READ ONLY", "BEGIN"),
            ("/* x */ COMMIT", "COMMIT"),
            ("ROLLBACK", "ROLLBACK"),
            ("SAVEPOINT a", "SAVEPOINT"),
            ("DISCARD ALL", "DISCARD ALL"),
            ("DEALLOCATE ALL", "DEALLOCATE ALL"),
            ("DEALLOCATE \"_p1\"", "DEALLOCATE"),
            ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "SET"),
            ("UNLISTEN *", "UNLISTEN"),
            ("CLOSE ALL", "CLOSE CURSOR"),
        ] {
            assert_eq!(read_command(text).unwrap().tag(), tag, "{text}");
        }
        let set = |name: &str, value: &str| Some(Command::Set(name.to_owned(), value.to_owned()));
        assert_eq!(
            read_command("SET extra_float_digits = 3"),
            set("extra_float_digits", "3")
        );
        assert_eq!(
            read_command("set application_name to 'a b'"),
            set("application_name", "a b")
        );
        assert_eq!(read_command("SET TIME ZONE 'UTC'"), set("TimeZone", "UTC"));
        assert_eq!(
            read_command("SET LOCAL search_path = public, \"x\""),
            set("search_path", "public, x")
        );
        assert_eq!(
            read_command("SHOW transaction isolation level"),
            Some(Command::Show(Some("transaction_isolation".to_owned())))
        );
        assert!(Command::read("SET ROLE admin").is_err());
        for engine in [
            "SELECT 1",
            "PREPARE p AS SELECT 1",
            "EXPLAIN SELECT 1",
            "SHOW TABLES",
            "COPY t TO 'x'",
            "",
        ] {
            assert_eq!(read_command(engine), None, "{engine}");
        }
    }
}
