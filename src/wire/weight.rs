//! Computes an upper bound for the memory of a message before it is decoded.
//!
//! In: the body of a call. Out: an upper bound in bytes, or an error when a limit is exceeded. An empty message inside
//! another takes two bytes on the wire and up to a hundred in memory, so the number of repeated elements matters.
//! Pushes have large bodies and are counted field by field. Queries have small bodies and are estimated by a factor.

use prost::DecodeError;
use prost::bytes::Buf as _;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

use crate::connect::{Codec, ConnectError};

/// Maximum number of profiles, and of series, in one push. By default, Alluvium's collector puts up to 256 profiles
/// into one push. Alloy puts one profile into a push. Each profile has entries in several lists until it is stored.
pub(crate) const MAX_PROFILES: usize = 10_000;

/// Maximum number of labels in one push, over all series. This is enough for more than a thousand series with 30
/// labels, the maximum for a series.
pub(crate) const MAX_LABELS: usize = 50_000;

/// Maximum total length in bytes of names, values and ids in one push: 160 bytes for each of [`MAX_LABELS`] labels.
/// These texts are copied, while profiles are slices of the body.
pub(crate) const MAX_TEXT_BYTES: usize = 8 << 20;

/// Maximum size in bytes of a push as JSON, where profiles are copied too. Programs push in
/// binary, so the limit rarely applies.
pub(crate) const MAX_JSON_BYTES: usize = 32 << 20;

/// Memory in bytes of a series, a profile or a label, as a message and in later forms. A message has at most 72 bytes,
/// and the capacity of a growing list is up to twice its length.
const ENTRY_BYTES: usize = 256;

/// Number of copies of a text: in the message, in the data that is created from it, and for a short time in an error.
const TEXT_COPIES: usize = 3;

/// Memory in bytes for each byte of a query. The worst case is a list of empty strings: each takes two bytes in the
/// query and 24 bytes in memory, and the capacity of the list is up to twice its length.
const QUESTION_FACTOR: usize = 40;

/// Returns the maximum memory of a `PushRequest` in bytes.
pub fn push(codec: Codec, body: &[u8]) -> Result<usize, ConnectError> {
    let counts = match codec {
        Codec::Proto => Counts::of(body)
            .map_err(|error| ConnectError::invalid(format!("cannot read the body as protobuf: {error}")))?,
        Codec::Json => return json_push(body),
    };
    counts.check()?;
    Ok((counts.profiles + counts.series + counts.labels) * ENTRY_BYTES + counts.text_bytes * TEXT_COPIES)
}

/// Returns the maximum memory of any query request in bytes.
pub fn question(_codec: Codec, body: &[u8]) -> Result<usize, ConnectError> {
    Ok(body.len().saturating_mul(QUESTION_FACTOR))
}

/// Returns the maximum memory in bytes of a request whose fields are single texts, including the data that is decoded
/// from the texts.
pub fn text(_codec: Codec, body: &[u8]) -> Result<usize, ConnectError> {
    Ok(body.len().saturating_mul(TEXT_COPIES))
}

/// Returns the maximum memory of a push as JSON in bytes. Counts braces, because every JSON message begins with one.
/// Braces in texts raise the count. This is harmless, because the limits are far above usual values.
fn json_push(body: &[u8]) -> Result<usize, ConnectError> {
    if body.len() > MAX_JSON_BYTES {
        return Err(ConnectError::too_large(format!(
            "a push of {} bytes of JSON is too large, the limit is {MAX_JSON_BYTES}: push in binary",
            body.len()
        )));
    }
    let messages = memchr::memchr_iter(b'{', body).count();
    let limit = 2 * MAX_PROFILES + MAX_LABELS;
    if messages > limit {
        return Err(ConnectError::too_large(format!(
            "the push has {messages} series, profiles and labels, the limit is {limit}"
        )));
    }
    Ok(messages * ENTRY_BYTES + body.len())
}

/// Numbers of repeated elements in a `PushRequest`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    series: usize,
    profiles: usize,
    /// Number of labels and annotations. Annotations are decoded but not used.
    labels: usize,
    text_bytes: usize,
}

impl Counts {
    /// Counts until the end of the body or until a limit is exceeded.
    fn of(body: &[u8]) -> Result<Self, DecodeError> {
        let mut counts = Self::default();
        fields(body, &mut |tag, series| {
            let (1, Some(series)) = (tag, series) else {
                return Ok(true);
            };
            counts.series += 1;
            fields(series, &mut |tag, inner| {
                match (tag, inner) {
                    (1 | 3, Some(pair)) => {
                        counts.labels += 1;
                        counts.text_bytes += pair.len();
                    }
                    (2, Some(sample)) => {
                        counts.profiles += 1;
                        fields(sample, &mut |tag, id| {
                            counts.text_bytes += id.filter(|_| tag != 1).map_or(0, <[u8]>::len);
                            Ok(true)
                        })?;
                    }
                    _ => {}
                }
                Ok(counts.check().is_ok())
            })?;
            Ok(counts.check().is_ok())
        })?;
        Ok(counts)
    }

    fn check(&self) -> Result<(), ConnectError> {
        for (count, limit, noun) in [
            (self.series, MAX_PROFILES, "series"),
            (self.profiles, MAX_PROFILES, "profiles"),
            (self.labels, MAX_LABELS, "labels"),
            (self.text_bytes, MAX_TEXT_BYTES, "bytes of labels and ids"),
        ] {
            if count > limit {
                return Err(ConnectError::too_large(format!(
                    "the push has more than {limit} {noun}: send it in parts"
                )));
            }
        }
        Ok(())
    }
}

/// Handles a field; returns false to stop.
type EachField<'a> = dyn FnMut(u32, Option<&[u8]>) -> Result<bool, DecodeError> + 'a;

/// Calls `visit` with the number of every field, and with the content of length-delimited fields, until `visit` returns
/// false.
fn fields(mut message: &[u8], visit: &mut EachField<'_>) -> Result<(), DecodeError> {
    while message.has_remaining() {
        let (tag, wire) = decode_key(&mut message)?;
        let content = if wire == WireType::LengthDelimited {
            let start = message;
            skip_field(wire, tag, &mut message, DecodeContext::default())?;
            let mut field = &start[..start.len() - message.len()];
            decode_varint(&mut field)?;
            Some(field)
        } else {
            skip_field(wire, tag, &mut message, DecodeContext::default())?;
            None
        };
        if !visit(tag, content)? {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::proto::push::{PushRequest, RawProfileSeries, RawSample};
    use crate::proto::types::LabelPair;

    fn request() -> PushRequest {
        let pair = |name: &str, value: &str| LabelPair {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let sample = |length: usize, id: &str| RawSample {
            raw_profile: vec![7; length].into(),
            id: id.to_owned(),
        };
        let series = RawProfileSeries {
            labels: vec![pair("__name__", "cpu"), pair("service_name", "shop")],
            samples: vec![sample(1000, "one"), sample(10, "")],
            annotations: Vec::new(),
        };
        PushRequest {
            series: vec![series, RawProfileSeries::default()],
        }
    }

    #[test]
    fn a_push_is_weighed_by_what_repeats_and_by_its_texts() {
        let counts = Counts::of(&request().encode_to_vec()).unwrap();
        let expected = Counts {
            series: 2,
            profiles: 2,
            labels: 2,
            // Each text of a label has two bytes of framing.
            text_bytes: 8 + 3 + 4 + 12 + 4 + 4 + 3,
        };
        assert_eq!(counts, expected);
        assert_eq!(
            push(Codec::Proto, &request().encode_to_vec()).unwrap(),
            6 * 256 + 38 * 3
        );
        let json = crate::connect::encode(Codec::Json, &request());
        assert_eq!(push(Codec::Json, &json).unwrap(), 7 * 256 + json.len());
    }

    #[test]
    fn a_push_of_empty_messages_is_refused_with_the_limit() {
        let series = |content: &[u8], length: u32| {
            let mut bytes = vec![0x0a];
            prost::encoding::encode_varint(length.into(), &mut bytes);
            bytes.extend_from_slice(content);
            bytes
        };
        let inner = |field: u8, count: usize| series(&[field, 0].repeat(count), 2 * count as u32);
        let text = PushRequest {
            series: vec![RawProfileSeries {
                samples: vec![RawSample {
                    id: "x".repeat(MAX_TEXT_BYTES + 1),
                    ..RawSample::default()
                }],
                ..RawProfileSeries::default()
            }],
        };
        for (body, reason) in [
            ([0x0a, 0].repeat(MAX_PROFILES + 1), "10000 series"),
            (inner(0x12, MAX_PROFILES + 1), "10000 profiles"),
            (inner(0x0a, MAX_LABELS + 1), "50000 labels"),
            (inner(0x1a, MAX_LABELS + 1), "50000 labels"),
            (text.encode_to_vec(), "8388608 bytes"),
        ] {
            let error = push(Codec::Proto, &body).unwrap_err();
            assert_eq!(error.status, 413);
            assert!(error.message.contains(reason), "{error}");
        }
        assert!(push(Codec::Proto, &[0x0a, 0].repeat(MAX_PROFILES)).is_ok());
        let error = push(Codec::Json, &b"{".repeat(2 * MAX_PROFILES + MAX_LABELS + 1)).unwrap_err();
        assert_eq!(error.status, 413);
        let error = push(Codec::Json, &vec![b' '; MAX_JSON_BYTES + 1]).unwrap_err();
        assert_eq!(error.status, 413);
    }

    #[test]
    fn what_is_no_message_is_said() {
        for body in [&b"garbage"[..], &[0x0a, 5, 1], &[0x0a, 2, 0x12, 9]] {
            let error = push(Codec::Proto, body).unwrap_err();
            assert_eq!(error.status, 400);
            assert!(error.message.contains("protobuf"), "{error}");
        }
    }

    #[test]
    fn messages_are_not_larger_than_they_are_weighed() {
        let max_size = size_of::<RawProfileSeries>()
            .max(size_of::<RawSample>())
            .max(size_of::<LabelPair>());
        assert!(2 * max_size <= ENTRY_BYTES, "{max_size}");
    }
}
