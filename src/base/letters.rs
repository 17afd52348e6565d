//! Converts text to upper or lower case one letter at a time, like Go's `strings.ToUpper` and `strings.ToLower`. Both
//! use the simple mappings of Unicode, which never change the number of letters. So `to_upper` does not change U+00DF
//! (sharp s), and `to_lower` converts U+03A3 (sigma) to the same letter inside a word and at its end.

/// Converts the text to upper case.
pub fn to_upper(text: &str) -> String {
    text.chars().map(upper).collect()
}

/// Converts the text to lower case.
pub fn to_lower(text: &str) -> String {
    text.chars().map(lower).collect()
}

/// Converts a letter to upper case with the simple mapping. The standard library has only full mappings. Of the letters
/// whose full mapping has several letters, only those listed in this function have a simple mapping.
fn upper(letter: char) -> char {
    let code = u32::from(letter);
    let simple = match code {
        0x1f80..=0x1f87 | 0x1f90..=0x1f97 | 0x1fa0..=0x1fa7 => char::from_u32(code + 8),
        0x1fb3 | 0x1fc3 | 0x1ff3 => char::from_u32(code + 9),
        _ => single_letter(letter.to_uppercase()),
    };
    simple.unwrap_or(letter)
}

fn lower(letter: char) -> char {
    match letter {
        '\u{130}' => 'i',
        _ => single_letter(letter.to_lowercase()).unwrap_or(letter),
    }
}

/// Returns the letter of a mapping, or `None` if the mapping has several letters.
fn single_letter(mut mapped: impl Iterator<Item = char>) -> Option<char> {
    mapped.next().filter(|_| mapped.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected mappings are those that Go 1.26 prints.
    #[test]
    fn letters_are_mapped_one_by_one() {
        for (text, expected) in [
            ("stra\u{df}e", "STRA\u{df}E"),
            ("\u{149}\u{fb01}", "\u{149}\u{fb01}"),
            (
                "\u{1f80}\u{1f97}\u{1fa3}\u{1fb3}\u{1fc3}\u{1ff3}",
                "\u{1f88}\u{1f9f}\u{1fab}\u{1fbc}\u{1fcc}\u{1ffc}",
            ),
            ("\u{1c6}\u{3c2}\u{131}", "\u{1c4}\u{3a3}I"),
        ] {
            assert_eq!(to_upper(text), expected);
        }
        for (text, expected) in [
            ("\u{39f}\u{394}\u{39f}\u{3a3}", "\u{3bf}\u{3b4}\u{3bf}\u{3c3}"),
            ("\u{130}I\u{1e9e}", "ii\u{df}"),
            ("\u{1f88}\u{1c5}", "\u{1f80}\u{1c6}"),
        ] {
            assert_eq!(to_lower(text), expected);
        }
    }
}
