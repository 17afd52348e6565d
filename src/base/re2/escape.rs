//! Escapes of single characters: `\n`, `\.`, `\x41`, `\x{1F600}`, `\101`.

use crate::re2::error::{Re2Error, SyntaxError};

/// Largest code point. Surrogates count as code points here, although they match nothing.
const MAX: u32 = 0x10_ffff;

/// Reads the escape at the start of `text`. Returns the code point and the length of the escape in bytes.
pub(super) fn escape(text: &str) -> Result<(u32, usize), Re2Error> {
    let mut letters = text.chars().skip(1);
    let Some(letter) = letters.next() else {
        return Err(SyntaxError::TrailingBackslash.in_part(""));
    };
    let length = 1 + letter.len_utf8();
    let rest = text.get(length..).unwrap_or_default();
    let simple = |code: u32| Ok((code, length));
    match letter {
        'a' => simple(0x07),
        'f' => simple(0x0c),
        'n' => simple(0x0a),
        'r' => simple(0x0d),
        't' => simple(0x09),
        'v' => simple(0x0b),
        // A single digit would be a backreference, which Go does not support.
        '1'..='7' if !rest.starts_with(is_octal) => {
            Err(SyntaxError::Escape.in_part(text.get(..length).unwrap_or(text)))
        }
        '0'..='7' => {
            let further_digits = rest
                .bytes()
                .take(2)
                .take_while(|byte| is_octal(char::from(*byte)))
                .count();
            let digits = text.get(1..length + further_digits).unwrap_or_default();
            Ok((u32::from_str_radix(digits, 8).unwrap_or(0), length + further_digits))
        }
        'x' => hexadecimal(text, rest, length),
        _ if letter.is_ascii() && !letter.is_ascii_alphanumeric() => simple(u32::from(letter)),
        _ => Err(SyntaxError::Escape.in_part(text.get(..length).unwrap_or(text))),
    }
}

fn is_octal(letter: char) -> bool {
    matches!(letter, '0'..='7')
}

/// Reads the part after `\x`: two digits, or any number of digits in braces.
fn hexadecimal(text: &str, rest: &str, start: usize) -> Result<(u32, usize), Re2Error> {
    let in_braces = rest.starts_with('{');
    let (mut code, mut digits, mut length) = (0u32, 0, start + usize::from(in_braces));
    for letter in rest.chars().skip(usize::from(in_braces)) {
        length += letter.len_utf8();
        if in_braces && letter == '}' && digits > 0 {
            return Ok((code, length));
        }
        let Some(digit) = letter.to_digit(16) else { break };
        code = code * 16 + digit;
        if code > MAX {
            break;
        }
        digits += 1;
        if !in_braces && digits == 2 {
            return Ok((code, length));
        }
    }
    Err(SyntaxError::Escape.in_part(text.get(..length).unwrap_or(text)))
}
