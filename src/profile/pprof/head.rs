//! What a profile says of itself without its samples: the names of its values, and its time. Found without decoding it,
//! in little memory.
//!
//! What else is in it is passed over and not checked.

use hashbrown::HashMap;

use crate::profile::pprof::error::{DecodeError, DecodeErrorKind};
use crate::profile::pprof::reader::{BYTES, Reader, VARINT};

// Fields of `Profile`, and `type` of `ValueType`.
const SAMPLE_TYPE: u32 = 1;
const STRING_TABLE: u32 = 6;
const TIME_NANOS: u32 = 9;
const DURATION_NANOS: u32 = 10;
const KIND: u32 = 1;

/// Most kinds of values that are looked at. Go's profiles have up to four.
const MAX_SAMPLE_TYPES: usize = 256;

/// Names of the values, and the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head<'a> {
    /// `cpu`, `alloc_space` and so on, in the order of the profile.
    pub kinds: Vec<&'a str>,
    /// Unix nanoseconds; 0 when not said.
    pub time_nanos: i64,
    /// Nanoseconds; 0 when not said.
    pub duration_nanos: i64,
}

/// The head of an uncompressed profile.
pub fn head(data: &[u8]) -> Result<Head<'_>, DecodeError> {
    let start = Reader::new(data, 0);
    if data.is_empty() {
        return Err(start.error(DecodeErrorKind::Empty));
    }
    let mut head = Head {
        kinds: Vec::new(),
        time_nanos: 0,
        duration_nanos: 0,
    };
    let mut indices = Vec::new();
    let mut reader = start;
    while let Some(tag) = reader.tag()? {
        match (tag.field, tag.wire) {
            (SAMPLE_TYPE, BYTES) if indices.len() < MAX_SAMPLE_TYPES => indices.push(kind(reader.message()?)?),
            (SAMPLE_TYPE, BYTES) => return Err(reader.error(DecodeErrorKind::SampleTypes(MAX_SAMPLE_TYPES))),
            (TIME_NANOS, VARINT) => head.time_nanos = reader.varint()? as i64,
            (DURATION_NANOS, VARINT) => head.duration_nanos = reader.varint()? as i64,
            (SAMPLE_TYPE | TIME_NANOS | DURATION_NANOS, _) => return Err(reader.wrong_wire_type("profile", tag)),
            _ => reader.skip(tag)?,
        }
    }
    if indices.is_empty() {
        return Err(start.error(DecodeErrorKind::NoSampleTypes));
    }
    head.kinds = strings(data, &indices)?;
    Ok(head)
}

/// An uncompressed profile with another time: of a field that is there twice the last counts.
pub fn with_time(data: &[u8], time_nanos: i64, duration_nanos: i64) -> Vec<u8> {
    let mut changed = Vec::with_capacity(data.len() + 2 * (1 + 10));
    changed.extend_from_slice(data);
    for (field, value) in [(TIME_NANOS, time_nanos), (DURATION_NANOS, duration_nanos)] {
        changed.push((field as u8) << 3 | VARINT);
        let mut rest = value as u64;
        while rest >= 0x80 {
            changed.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        changed.push(rest as u8);
    }
    changed
}

/// Index of the string that names a kind of value.
fn kind(mut message: Reader<'_>) -> Result<u64, DecodeError> {
    let mut index = 0;
    while let Some(tag) = message.tag()? {
        match (tag.field, tag.wire) {
            (KIND, VARINT) => index = message.varint()?,
            _ => message.skip(tag)?,
        }
    }
    Ok(index)
}

/// Some strings of the table.
fn strings<'a>(data: &'a [u8], indices: &[u64]) -> Result<Vec<&'a str>, DecodeError> {
    let mut wanted: HashMap<u64, &str> = indices.iter().map(|index| (*index, "")).collect();
    let mut reader = Reader::new(data, 0);
    let mut count = 0;
    while let Some(tag) = reader.tag()? {
        if (tag.field, tag.wire) != (STRING_TABLE, BYTES) {
            reader.skip(tag)?;
            continue;
        }
        let message = reader.message()?;
        if let Some(text) = wanted.get_mut(&count) {
            *text = std::str::from_utf8(message.rest())
                .map_err(|_| message.error(DecodeErrorKind::Utf8 { index: count as usize }))?;
        }
        count += 1;
    }
    // Index 0 is the empty string even when there is no table.
    let outside = indices.iter().find(|index| **index >= count.max(1));
    if let Some(index) = outside {
        return Err(reader.error(DecodeErrorKind::StringIndex {
            index: *index as i64,
            count: count as usize,
        }));
    }
    Ok(indices
        .iter()
        .map(|index| wanted.get(index).copied().unwrap_or_default())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::pprof::model::{Profile, ValueType};
    use crate::profile::pprof::{decode, encode};

    fn profile(kinds: &[&'static str]) -> Profile<'static> {
        Profile {
            sample_types: kinds.iter().map(|kind| ValueType { kind, unit: "count" }).collect(),
            time_nanos: 1_700_000_000_000_000_000,
            sample_starts: vec![0],
            label_starts: vec![0],
            ..Profile::default()
        }
    }

    #[test]
    fn the_head_is_what_decoding_finds() {
        for kinds in [&["samples", "cpu"][..], &["cpu"], &["", "a", "a"]] {
            let bytes = encode(&profile(kinds));
            let head = head(&bytes).unwrap();
            assert_eq!(head.kinds, kinds);
            assert_eq!((head.time_nanos, head.duration_nanos), (1_700_000_000_000_000_000, 0));
        }
    }

    #[test]
    fn another_time_is_read_by_every_decoder() {
        let bytes = with_time(&encode(&profile(&["cpu"])), 5, i64::MAX);
        let decoded = decode(&bytes).unwrap();
        assert_eq!((decoded.time_nanos, decoded.duration_nanos), (5, i64::MAX));
        let head = head(&bytes).unwrap();
        assert_eq!((head.time_nanos, head.duration_nanos), (5, i64::MAX));
    }

    #[test]
    fn what_is_no_profile_is_said() {
        let reason = |bytes: &[u8]| head(bytes).unwrap_err().to_string();
        assert!(reason(b"").contains("empty"));
        assert!(reason(b"garbage").contains("wire type"));
        assert!(reason(&[0x12, 0]).contains("no sample types"));
        assert!(reason(&[0x0a, 2, 8, 9]).contains("string index 9 is out of range"));
        assert!(reason(&[0x0a, 0].repeat(MAX_SAMPLE_TYPES + 1)).contains("more than 256 sample types"));
        assert!(reason(&[0x0a, 2, 8, 0, 0x32, 1, 0xff]).contains("string 0 is not valid UTF-8"));
    }
}
