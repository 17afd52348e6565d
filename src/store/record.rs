//! One record of the write-ahead log: who sent a profile, when it came, and its bytes as they came.
//!
//! Layout, little endian: version u8 (1), receive time in milliseconds i64, the limits of stack depth and symbol length in force (u32
//! each, so that a replay makes the same rows under another configuration), then tenant, id, and the count of labels u32
//! followed by name and value of each, every text as length u32 and UTF-8; the pprof bytes fill the rest. Framing and checksum
//! are `base::segment`'s.

use std::sync::Arc;

use bytes::Bytes;

use crate::profile::{Labels, RawProfile};
use crate::store::limits::Limits;

const VERSION: u8 = 1;

/// A profile as the log keeps it.
#[derive(Debug, Clone)]
pub struct Record {
    /// Tenant.
    pub tenant: Arc<str>,
    /// When it was received, milliseconds since 1970.
    pub received_ms: i64,
    /// Limits that change the rows instead of refusing: stack depth and symbol length, as [`Limits`] has them.
    pub cuts: [u32; 2],
    /// Labels, id and bytes.
    pub profile: RawProfile,
}

impl Record {
    /// Limits that make the same rows as when the profile was accepted, and refuse nothing.
    pub fn limits(&self) -> Limits {
        Limits {
            max_profile_stacktrace_depth: self.cuts[0] as usize,
            max_profile_symbol_value_length: self.cuts[1] as usize,
            ..Limits::unlimited()
        }
    }
}

/// Everything of a record before the pprof bytes.
pub fn encode_header(tenant: &str, received_ms: i64, limits: &Limits, profile: &RawProfile) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.push(VERSION);
    out.extend_from_slice(&received_ms.to_le_bytes());
    for cut in [
        limits.max_profile_stacktrace_depth,
        limits.max_profile_symbol_value_length,
    ] {
        out.extend_from_slice(&u32::try_from(cut).unwrap_or(u32::MAX).to_le_bytes());
    }
    put_text(&mut out, tenant);
    put_text(&mut out, &profile.id);
    out.extend_from_slice(&(profile.labels.len() as u32).to_le_bytes());
    for (name, value) in profile.labels.iter() {
        put_text(&mut out, name);
        put_text(&mut out, value);
    }
    out
}

/// Reads a record; the pprof bytes share `payload`. The error says what is wrong with it.
pub fn decode(payload: &Bytes) -> Result<Record, String> {
    let mut reader = Reader {
        data: payload,
        position: 0,
    };
    let version = reader.take(1)?[0];
    if version != VERSION {
        return Err(format!("record version {version} is not known"));
    }
    let received_ms = i64::from_le_bytes(reader.array()?);
    let cuts = [u32::from_le_bytes(reader.array()?), u32::from_le_bytes(reader.array()?)];
    let tenant = Arc::from(reader.text()?);
    let id = Arc::from(reader.text()?);
    let count = u32::from_le_bytes(reader.array()?);
    let mut pairs: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    for _ in 0..count {
        pairs.push((Arc::from(reader.text()?), Arc::from(reader.text()?)));
    }
    let pprof = payload.slice(reader.position..);
    Ok(Record {
        tenant,
        received_ms,
        cuts,
        profile: RawProfile {
            labels: Labels::from_pairs(pairs),
            id,
            pprof,
        },
    })
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

struct Reader<'a> {
    data: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let end = self.position.checked_add(length).ok_or("record is too short")?;
        let bytes = self.data.get(self.position..end).ok_or("record is too short")?;
        self.position = end;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        self.take(N)?.try_into().map_err(|_| "record is too short".to_owned())
    }

    fn text(&mut self) -> Result<&'a str, String> {
        let length = u32::from_le_bytes(self.array()?);
        std::str::from_utf8(self.take(length as usize)?).map_err(|_| "record holds text that is not utf-8".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_record_survives_the_round_trip(
            tenant in "[a-z]{1,8}", id in ".{0,12}", received_ms: i64,
            pairs in proptest::collection::vec(("[a-z]{1,5}", ".{1,9}"), 0..5),
            body in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let profile = RawProfile { labels: Labels::from_pairs(pairs), id: id.as_str().into(), pprof: body.into() };
            let mut payload = encode_header(&tenant, received_ms, &Limits::default(), &profile);
            payload.extend_from_slice(&profile.pprof);
            let record = decode(&payload.into()).unwrap();
            prop_assert_eq!(&*record.tenant, tenant.as_str());
            prop_assert_eq!(record.received_ms, received_ms);
            prop_assert_eq!(record.cuts, [1_000, 65_535]);
            prop_assert_eq!(record.profile.labels, profile.labels);
            prop_assert_eq!(&*record.profile.id, id.as_str());
            prop_assert_eq!(record.profile.pprof, profile.pprof);
        }

        #[test]
        fn arbitrary_bytes_never_panic(payload in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = decode(&payload.into());
        }
    }
}
