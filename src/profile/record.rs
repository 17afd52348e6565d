//! A profile as one record of a file: the format that the store's log and the collector's queue share.
//!
//! `version u8 | time i64 (Unix ms) | fields of the file | id | label count u32 | (name, value)* | pprof to the end`.
//! Numbers are little endian, and a text is `length u32 | UTF-8`. Each kind of file may add its own numbers and texts
//! between time and id, depending on the version. The log stores two limits and the tenant there, and since version 2
//! the relabel rules. The queue stores nothing there. [`alluvium_base::segment`] adds framing and checksums. Files on
//! disk have this layout: a change requires a new version, and the old version must stay readable.

use std::sync::Arc;

use bytes::Bytes;

use crate::{Labels, RawProfile};

/// The version of most records.
const VERSION: u8 = 1;

/// The reason why a payload is not a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A later release or another program wrote the record.
    #[error("unknown record version {0}")]
    Version(u8),
    /// A field extends beyond the end of the record.
    #[error("record is too short")]
    TooShort,
    /// A name, a value, the id or a field of the file is not valid text.
    #[error("record contains text that is not UTF-8")]
    Text,
    /// The tenant of a log record is not valid.
    #[error("record contains an invalid tenant id")]
    Tenant,
    /// The relabel rules of a log record are not in the form that this program writes.
    #[error("record contains invalid relabel rules")]
    Rules,
}

/// Writes the part of a record before the pprof bytes.
pub struct Writer(Vec<u8>);

impl Writer {
    /// Starts a record with the time `time_ms`, in milliseconds since 1970.
    pub fn new(time_ms: i64) -> Self {
        Self::of_version(VERSION, time_ms)
    }

    /// Starts a record of another version, in which the fields of the file differ from version 1.
    pub fn of_version(version: u8, time_ms: i64) -> Self {
        let mut out = Vec::with_capacity(256);
        out.push(version);
        out.extend_from_slice(&time_ms.to_le_bytes());
        Self(out)
    }

    /// Adds a number to the fields of the file, which lie between time and id.
    pub fn number(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Adds a text to the fields of the file, which lie between time and id.
    pub fn text(&mut self, text: &str) {
        self.number(text.len() as u32);
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Returns the header of the record. In the file, the pprof bytes of `profile` follow it.
    pub fn finish(mut self, profile: &RawProfile) -> Vec<u8> {
        self.text(&profile.id);
        self.number(profile.labels.len() as u32);
        for (name, value) in profile.labels.iter() {
            self.text(name);
            self.text(value);
        }
        self.0
    }
}

/// Reads a record, field by field in the order of writing.
pub struct Reader<'a> {
    payload: &'a Bytes,
    position: usize,
    /// Version, which determines the fields of the file.
    pub version: u8,
    /// Time in milliseconds since 1970.
    pub time_ms: i64,
}

impl<'a> Reader<'a> {
    /// Reads version and time.
    pub fn new(payload: &'a Bytes) -> Result<Self, RecordError> {
        Self::up_to(VERSION, payload)
    }

    /// Like [`Reader::new`], for a kind of file with versions up to `newest`.
    pub fn up_to(newest: u8, payload: &'a Bytes) -> Result<Self, RecordError> {
        let mut reader = Self {
            payload,
            position: 0,
            version: 0,
            time_ms: 0,
        };
        let [version] = reader.array()?;
        if !(VERSION..=newest).contains(&version) {
            return Err(RecordError::Version(version));
        }
        reader.version = version;
        reader.time_ms = i64::from_le_bytes(reader.array()?);
        Ok(reader)
    }

    /// Reads the next number of the fields of the file, which lie between time and id.
    pub fn number(&mut self) -> Result<u32, RecordError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads the next text of the fields of the file, which lie between time and id.
    pub fn text(&mut self) -> Result<&'a str, RecordError> {
        let length = self.number()? as usize;
        std::str::from_utf8(self.take(length)?).map_err(|_| RecordError::Text)
    }

    /// Returns the profile. Its pprof bytes share the payload.
    pub fn finish(mut self) -> Result<RawProfile, RecordError> {
        let id = Arc::from(self.text()?);
        let count = self.number()?;
        let mut pairs = Vec::new();
        for _ in 0..count {
            pairs.push((self.text()?, self.text()?));
        }
        Ok(RawProfile {
            labels: Labels::from_pairs(pairs),
            id,
            pprof: self.payload.slice(self.position..),
        })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        self.take(N)?.try_into().map_err(|_| RecordError::TooShort)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], RecordError> {
        let end = self.position.checked_add(length).ok_or(RecordError::TooShort)?;
        let bytes = self.payload.get(self.position..end).ok_or(RecordError::TooShort)?;
        self.position = end;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_record_survives_the_round_trip(
            time_ms: i64, number: u32, text in ".{0,8}", id in ".{0,12}",
            pairs in proptest::collection::vec(("[a-z]{1,5}", ".{1,9}"), 0..5),
            pprof in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let profile = RawProfile { labels: Labels::from_pairs(pairs), id: id.into(), pprof: pprof.into() };
            let mut writer = Writer::new(time_ms);
            writer.number(number);
            writer.text(&text);
            let mut payload = writer.finish(&profile);
            payload.extend_from_slice(&profile.pprof);
            let payload = payload.into();
            let mut reader = Reader::new(&payload).unwrap();
            prop_assert_eq!(reader.time_ms, time_ms);
            prop_assert_eq!(reader.number(), Ok(number));
            prop_assert_eq!(reader.text(), Ok(text.as_str()));
            let decoded = reader.finish().unwrap();
            prop_assert_eq!((decoded.labels, decoded.id, decoded.pprof), (profile.labels, profile.id, profile.pprof));
        }

        #[test]
        fn arbitrary_bytes_never_panic(payload in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Reader::new(&payload.into()).and_then(Reader::finish);
        }
    }

    #[test]
    fn a_record_says_why_it_cannot_be_read() {
        let read = |payload: &'static [u8]| Reader::new(&Bytes::from_static(payload)).and_then(Reader::finish).err();
        assert_eq!(read(b""), Some(RecordError::TooShort));
        assert_eq!(read(b"\x02"), Some(RecordError::Version(2)));
        assert_eq!(read(b"\x0112345678\xff\xff\xff\xff"), Some(RecordError::TooShort));
        assert_eq!(read(b"\x0112345678\x01\0\0\0\xff"), Some(RecordError::Text));
    }
}
