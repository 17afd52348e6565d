//! Repetitions: `*`, `+?`, `{2,5}`.

use crate::re2::error::{Re2Error, SyntaxError};

/// Maximum count of a repetition. It also limits the product of nested counts.
pub(super) const MAX_COUNT: u32 = 1000;
/// Value for a count that does not fit in 32 bits. It is larger than [`MAX_COUNT`], so the count is refused.
const OVERSIZED_COUNT: u32 = 100_000_000;

/// The minimum and maximum count of a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) min: u32,
    /// `None` if the repetition is unlimited.
    pub(super) max: Option<u32>,
    /// False for `*`, `+` and `?`. Their nesting is not limited by [`MAX_COUNT`].
    pub(super) is_counted: bool,
}

/// Reads the operator at the start of `text`, without a following `?`. Returns the counts and the length in bytes.
/// If `text` starts with a `{` that no counts follow, returns `None`: the `{` is then a literal.
pub(super) fn counts(text: &str) -> Result<Option<(Counts, usize)>, Re2Error> {
    let simple = |min, max| {
        let is_counted = false;
        Ok(Some((Counts { min, max, is_counted }, 1)))
    };
    match text.as_bytes().first() {
        Some(b'*') => simple(0, None),
        Some(b'+') => simple(1, None),
        Some(b'?') => simple(0, Some(1)),
        _ => braces(text),
    }
}

fn braces(text: &str) -> Result<Option<(Counts, usize)>, Re2Error> {
    let Some(read) = text.strip_prefix('{').and_then(numbers) else {
        return Ok(None);
    };
    let (min, max, length) = read;
    let length = length + 1;
    let is_invalid = min > MAX_COUNT || max.is_some_and(|max| max > MAX_COUNT || min > max);
    if is_invalid {
        return Err(SyntaxError::RepeatCount.in_part(text.get(..length).unwrap_or(text)));
    }
    let counts = Counts {
        min,
        max,
        is_counted: true,
    };
    Ok(Some((counts, length)))
}

/// Reads `2}`, `2,}` or `2,5}`. Returns both numbers and the length in bytes.
fn numbers(text: &str) -> Option<(u32, Option<u32>, usize)> {
    let (min, rest) = number(text)?;
    let (max, rest) = match rest.strip_prefix(',') {
        None => (Some(min), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => {
            let (max, rest) = number(rest)?;
            (Some(max), rest)
        }
    };
    let rest = rest.strip_prefix('}')?;
    Some((min, max, text.len() - rest.len()))
}

/// Reads a number without leading zeros. Returns the number and the text after it.
fn number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at_checked(digits)?;
    if number.is_empty() || number.len() > 1 && number.starts_with('0') {
        return None;
    }
    Some((number.parse().unwrap_or(OVERSIZED_COUNT), rest))
}
