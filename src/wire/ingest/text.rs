//! Folded stacks as text. A line is a stack with its count such as `main;work;parse 12` (`groups`), or a stack that
//! counts once (`lines`).
//!
//! The application's name determines the type of the values ([`Meaning`]).

use std::str::Utf8Error;

use bytes::Bytes;
use hashbrown::HashMap;

use crate::connect::ConnectError;
use crate::ingest::format::{Format, Opening, Payload, ReadError, too_large};
use crate::ingest::meaning::Meaning;
use crate::ingest::query::IngestQuery;
use alluvium_profile::DecodedProfile;
use alluvium_profile::decoded::Columns;
use alluvium_profile::pprof::{Builder, Profile};

/// Format in which each line is a stack and its count. It is the default format of the protocol.
pub(crate) static GROUPS: Format = Format {
    names: &["groups", "collapsed"],
    content_type: "",
    field: "",
    opens_gzip: false,
    is_like: |_| true,
    memory: |payload, opening| memory(payload, opening, Counts::TrailingNumber),
    read: |payload, query, opening| read(payload, query, opening, Counts::TrailingNumber),
};

/// Format in which each line is a stack that counts once.
pub(crate) static LINES: Format = Format {
    names: &["lines"],
    content_type: "",
    field: "",
    opens_gzip: false,
    is_like: |_| false,
    memory: |payload, opening| memory(payload, opening, Counts::One),
    read: |payload, query, opening| read(payload, query, opening, Counts::One),
};

/// The source of a line's count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// The number at the end of the line.
    TrailingNumber,
    /// Always one: the whole line is the stack.
    One,
}

/// Maximum length of a line in bytes, as in Pyroscope. If a line is longer, Pyroscope silently drops the rest of the
/// body; Alluvium returns an error.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Maximum number of stacks, frames and names in a text. Each becomes an entry in one or several columns. By default,
/// the store accepts 16,000 stacks of 1,000 frames.
const MAX_STACKS: usize = 1 << 18;
const MAX_FRAMES: usize = 1 << 22;
const MAX_NAMES: usize = 1 << 16;

/// Memory in bytes for each stack, frame and name. It includes the columns (with twice the capacity that they need),
/// the tables of stacks and names, and the profile that is written from the columns.
const STACK_BYTES: usize = 160;
const FRAME_BYTES: usize = 16;
const NAME_BYTES: usize = 512;

/// The text exceeds one of the limits.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text has {count} {noun}, the limit is {limit}")]
struct TooMany {
    count: usize,
    noun: &'static str,
    limit: usize,
}

/// The reason why a text is not a profile.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum StacksError {
    #[error(transparent)]
    Encoding(#[from] Utf8Error),
    #[error("no line is a stack and a count")]
    Empty,
    #[error("line {line} is longer than {MAX_LINE_BYTES} bytes")]
    LongLine { line: usize },
    #[error("line {line}: `{count}` is not a count")]
    Count { line: usize, count: String },
    #[error("there are more than {MAX_NAMES} names")]
    TooManyNames,
}

fn memory(payload: &Payload, opening: Opening, counts: Counts) -> Result<usize, ConnectError> {
    let text = &payload.content;
    if text.len() > opening.limit() {
        return Err(too_large(opening.limit()));
    }
    weight(text, counts).map_err(|reason| ConnectError::too_large(reason.to_string()))
}

fn read(
    payload: &Payload,
    query: &IngestQuery,
    opening: Opening,
    counts: Counts,
) -> Result<Vec<DecodedProfile>, ReadError> {
    if payload.content.len() > opening.limit() {
        return Err(too_large(opening.limit()).into());
    }
    read_stacks(payload.content.clone(), query, counts)
}

fn read_stacks(body: Bytes, query: &IngestQuery, counts: Counts) -> Result<Vec<DecodedProfile>, ReadError> {
    let meaning = Meaning::of(&query.app, query)?;
    let columns = Columns::read(body, |body| {
        let text = std::str::from_utf8(body)?;
        let profile = profile(text, counts, meaning.profile(query), meaning.scale)?;
        if profile.sample_count() == 0 {
            return Err(StacksError::Empty);
        }
        Ok(profile)
    })
    .map_err(|error| ConnectError::invalid(format!("cannot read the profile as folded stacks: {error}")))?;
    Ok(vec![meaning.decoded(query, columns)])
}

/// Returns the maximum memory in bytes of the profile of a text, without building it.
fn weight(text: &[u8], counts: Counts) -> Result<usize, TooMany> {
    let stacks = 1 + memchr::memchr_iter(b'\n', text).count();
    let frames = stacks + memchr::memchr_iter(b';', text).count();
    for (count, noun, limit) in [(stacks, "lines", MAX_STACKS), (frames, "frames", MAX_FRAMES)] {
        if count > limit {
            return Err(TooMany { count, noun, limit });
        }
    }
    // Minimum length of a line with a new name: the name, a blank and a count, or the name and a line end.
    let shortest = match counts {
        Counts::TrailingNumber => 3,
        Counts::One => 2,
    };
    let names = frames.min(text.len() / shortest + 1);
    Ok(cost(text.len(), stacks, frames, names))
}

/// Returns the maximum memory in bytes of a profile of folded stacks with these numbers of stacks, frames and names.
fn cost(text_bytes: usize, stacks: usize, frames: usize, names: usize) -> usize {
    2 * text_bytes + stacks * STACK_BYTES + frames * FRAME_BYTES + names.min(MAX_NAMES) * NAME_BYTES
}

/// Builds the profile of the lines of `text`. Equal stacks become one sample.
fn profile<'a>(text: &'a str, counts: Counts, header: Profile<'a>, scale: i64) -> Result<Profile<'a>, StacksError> {
    let sums = sums(text, counts)?;
    let mut builder = Builder::new(header);
    let mut locations: HashMap<&str, u32> = HashMap::new();
    let mut frames = Vec::new();
    for (stack, count) in sums {
        // The text has the root first, pprof the leaf first.
        frames.clear();
        for name in stack.rsplit(';').filter(|name| !name.is_empty()) {
            frames.push(*locations.entry(name).or_insert_with(|| builder.named(name)));
        }
        if locations.len() > MAX_NAMES {
            return Err(StacksError::TooManyNames);
        }
        builder.sample(frames.iter().copied(), [], &[count.saturating_mul(scale)]);
    }
    Ok(builder.finish())
}

/// Returns the stacks of `text` in the order of their first occurrence, with the sums of their counts.
fn sums(text: &str, counts: Counts) -> Result<Vec<(&str, i64)>, StacksError> {
    let mut sums: Vec<(&str, i64)> = Vec::new();
    let mut indices: HashMap<&str, usize> = HashMap::new();
    for (index, line) in text.lines().enumerate() {
        if line.len() > MAX_LINE_BYTES {
            return Err(StacksError::LongLine { line: index + 1 });
        }
        let (stack, count) = match (counts, line.rsplit_once(' ')) {
            (Counts::One, _) => (line, 1),
            // A line without a count is not a stack.
            (Counts::TrailingNumber, None) => continue,
            (Counts::TrailingNumber, Some((stack, count))) => {
                let count: i64 = count.trim().parse().map_err(|_| StacksError::Count {
                    line: index + 1,
                    count: count.to_owned(),
                })?;
                (stack, count)
            }
        };
        let stack = stack.trim();
        if stack.is_empty() {
            continue;
        }
        let sum_index = *indices.entry(stack).or_insert(sums.len());
        match sums.get_mut(sum_index) {
            Some((_, sum)) => *sum = sum.saturating_add(count),
            None => sums.push((stack, count)),
        }
    }
    Ok(sums)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_weighed_by_lines_frames_and_names() {
        let weight = |text: &str| weight(text.as_bytes(), Counts::TrailingNumber);
        let line = 160 + 16 + 512;
        assert_eq!(weight("main 1"), Ok(12 + line));
        assert_eq!(weight("main;work 1"), Ok(22 + line + 16 + 512));
        let long_text = "a 1\n".repeat(MAX_STACKS);
        assert_eq!(
            weight(&long_text).unwrap_err().to_string(),
            "the text has 262145 lines, the limit is 262144"
        );
        assert_eq!(weight(&";".repeat(MAX_FRAMES)).unwrap_err().noun, "frames");
    }

    fn read(text: &str, counts: Counts) -> Result<Profile<'_>, StacksError> {
        let query = IngestQuery::parse("name=a", 0).unwrap();
        let meaning = Meaning::of(&query.app, &query).unwrap();
        profile(text, counts, meaning.profile(&query), 10)
    }

    #[test]
    fn names_have_a_limit() {
        let count_functions = |count: usize| {
            let text: String = (0..count).map(|name| format!("{name:x} 1\n")).collect();
            read(&text, Counts::TrailingNumber).map(|profile| profile.functions.len())
        };
        assert_eq!(count_functions(MAX_NAMES), Ok(MAX_NAMES));
        assert_eq!(count_functions(MAX_NAMES + 1), Err(StacksError::TooManyNames));
        assert_eq!(StacksError::TooManyNames.to_string(), "there are more than 65536 names");
    }

    #[test]
    fn equal_stacks_are_one_sample() {
        let profile = read("a;b 2\na;c 1\n a;b  3\n", Counts::TrailingNumber).unwrap();
        assert_eq!(profile.values, [50, 10]);
        let text = "main;work\nmain\n".repeat(20_000);
        let profile = read(&text, Counts::One).unwrap();
        assert_eq!(profile.values, [200_000, 200_000]);
        let profile = read("a 9223372036854775807\na 1\n", Counts::TrailingNumber).unwrap();
        assert_eq!(profile.values, [i64::MAX]);
    }
}
