//! A queued profile as a segment record, in the layout of [`alluvium_profile::record`], with the time of queueing.

use bytes::Bytes;

use alluvium_base::segment;
use alluvium_profile::RawProfile;
use alluvium_profile::record::{Reader, RecordError, Writer};

/// Framed records of a batch, which are encoded once for all queues.
pub(crate) struct Encoded {
    /// The concatenated records.
    pub bytes: Vec<u8>,
    /// Length of each record with its framing.
    pub lengths: Vec<u32>,
    /// Time of queueing in Unix milliseconds.
    pub queued_ms: u64,
}

/// Encodes profiles; `queued_ms` is the time of queueing.
pub(crate) fn encode(profiles: &[RawProfile], queued_ms: u64) -> Encoded {
    let mut encoded = Encoded {
        bytes: Vec::new(),
        lengths: Vec::with_capacity(profiles.len()),
        queued_ms,
    };
    for profile in profiles {
        let start = encoded.bytes.len();
        let header = Writer::new(queued_ms.cast_signed()).finish(profile);
        segment::encode_record_parts(&[&header, &profile.pprof], &mut encoded.bytes);
        encoded.lengths.push((encoded.bytes.len() - start) as u32);
    }
    encoded
}

/// Reads the profile in the payload of a record.
pub(crate) fn decode(payload: &Bytes) -> Result<RawProfile, RecordError> {
    Reader::new(payload)?.finish()
}

/// Reads only the time of queueing in the payload of a record, in Unix milliseconds.
pub(crate) fn queued_ms(payload: &Bytes) -> Result<u64, RecordError> {
    Ok(Reader::new(payload)?.time_ms.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_profile::Labels;

    /// A record in the format of the first release, in which the queue had its own codec.
    const OLD: &[u8] = b"\x01{h\xe5\xcf\x8b\x01\0\0\x04\0\0\x007b1d\
        \x02\0\0\0\x08\0\0\0__name__\x0b\0\0\0process_cpu\x0c\0\0\0service_name\x03\0\0\0a/b\x1f\x8b\0";

    #[test]
    fn records_of_older_programs_are_read_and_written_byte_for_byte() {
        let payload = Bytes::from_static(OLD);
        assert_eq!(queued_ms(&payload), Ok(1_700_000_000_123));
        let profile = decode(&payload).unwrap();
        let labels = Labels::from_pairs([("__name__", "process_cpu"), ("service_name", "a/b")]);
        assert_eq!(profile.labels, labels);
        assert_eq!(&*profile.id, "7b1d");
        assert_eq!(profile.pprof, b"\x1f\x8b\0".as_slice());
        let encoded = encode(&[profile], 1_700_000_000_123);
        assert_eq!(encoded.bytes[segment::RECORD_HEADER_BYTES..], *OLD);
        assert_eq!(encoded.lengths, [encoded.bytes.len() as u32]);
    }
}
