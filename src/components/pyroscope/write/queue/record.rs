//! One queued profile as the payload of a segment record.
//!
//! `version u8 = 1 | queued u64 (Unix ms) | id | label count u32 | (name, value)* | pprof to the end`; a text is `length u32 | bytes`, all
//! numbers little endian. The layout is on disk: a change takes a new version and keeps reading the old one.

use std::sync::Arc;

use bytes::Bytes;

use crate::base::segment;
use crate::profile::{Labels, RawProfile};

const VERSION: u8 = 1;

/// Framed records of a batch, encoded once for all queues that take it.
pub struct Encoded {
    /// The records, one after the other.
    pub bytes: Vec<u8>,
    /// Length of each record with its framing.
    pub lengths: Vec<u32>,
    /// When they were queued, Unix milliseconds.
    pub queued_ms: u64,
}

/// Encodes profiles; `queued_ms` is the time of queueing.
pub fn encode(profiles: &[RawProfile], queued_ms: u64) -> Encoded {
    let mut encoded = Encoded {
        bytes: Vec::new(),
        lengths: Vec::with_capacity(profiles.len()),
        queued_ms,
    };
    let mut head = Vec::new();
    for profile in profiles {
        head.clear();
        head.push(VERSION);
        head.extend_from_slice(&queued_ms.to_le_bytes());
        put_text(&profile.id, &mut head);
        head.extend_from_slice(&(profile.labels.len() as u32).to_le_bytes());
        for (name, value) in profile.labels.iter() {
            put_text(name, &mut head);
            put_text(value, &mut head);
        }
        let start = encoded.bytes.len();
        segment::encode_record_parts(&[&head, &profile.pprof], &mut encoded.bytes);
        encoded.lengths.push((encoded.bytes.len() - start) as u32);
    }
    encoded
}

/// Reads a payload back: time of queueing and profile. `None` for a payload that is not ours.
pub fn decode(payload: &Bytes) -> Option<(u64, RawProfile)> {
    let mut reader = Reader { payload, position: 0 };
    if reader.take(1)? != [VERSION] {
        return None;
    }
    let queued_ms = u64::from_le_bytes(reader.take(8)?.try_into().ok()?);
    let id: Arc<str> = reader.text()?.into();
    let count = reader.number()?;
    let mut pairs = Vec::new();
    for _ in 0..count {
        pairs.push((reader.text()?, reader.text()?));
    }
    let labels = Labels::from_pairs(pairs);
    let profile = RawProfile {
        labels,
        id,
        pprof: payload.slice(reader.position..),
    };
    Some((queued_ms, profile))
}

/// The time of queueing alone.
pub fn queued_ms(payload: &[u8]) -> Option<u64> {
    let bytes = payload.get(1..9)?;
    (payload.first() == Some(&VERSION)).then_some(u64::from_le_bytes(bytes.try_into().ok()?))
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

struct Reader<'a> {
    payload: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.position.checked_add(length)?;
        let bytes = self.payload.get(self.position..end)?;
        self.position = end;
        Some(bytes)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.number()? as usize;
        std::str::from_utf8(self.take(length)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn profiles_survive_the_round_trip(
            pairs in proptest::collection::vec(("[a-z]{1,8}", "\\PC{1,8}"), 0..6),
            id in "[a-f0-9-]{0,36}",
            pprof in proptest::collection::vec(any::<u8>(), 0..200),
            time in any::<u64>(),
        ) {
            let profile = RawProfile { labels: Labels::from_pairs(pairs), id: id.into(), pprof: pprof.into() };
            let encoded = encode(std::slice::from_ref(&profile), time);
            let mut file = segment::MAGIC.to_vec();
            file.extend_from_slice(&encoded.bytes);
            let contents = segment::parse(file.into()).unwrap();
            let (back_time, back) = decode(&contents.records[0]).unwrap();
            prop_assert_eq!(back_time, time);
            prop_assert_eq!(queued_ms(&contents.records[0]), Some(time));
            prop_assert_eq!((back.labels, back.id, back.pprof), (profile.labels, profile.id, profile.pprof));
        }

        #[test]
        fn foreign_bytes_are_refused_without_panic(payload in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode(&payload.into());
        }
    }
}
