//! Writes values as literals of Alloy syntax.

use std::fmt::Write as _;

/// Quotes a string with double quotes, with escapes where they are needed.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            letter if letter.is_control() || letter == '\u{feff}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// Quotes a string of several lines with backquotes if possible, otherwise with double quotes.
pub(crate) fn quote_lines(text: &str) -> String {
    let raw = text.contains('\n')
        && text.chars().all(|letter| {
            (!letter.is_control() || matches!(letter, '\n' | '\t')) && !matches!(letter, '`' | '\u{feff}')
        });
    if raw { format!("`{text}`") } else { quote(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::unquote;

    #[test]
    fn what_is_quoted_reads_as_it_was() {
        for text in [
            "",
            "a\"b\\c",
            "\u{0}\u{7f}\u{feff}\u{85}",
            "two\n\tlines",
            "`\n`",
            "\r\n",
            "\u{1f600}",
        ] {
            assert_eq!(unquote(&quote(text)).as_deref(), Some(text));
            assert_eq!(unquote(&quote_lines(text)).as_deref(), Some(text));
        }
    }
}
