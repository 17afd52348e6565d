//! Computes an upper bound for the memory of an export request and its profiles, before the request is decoded.
//!
//! In: the body of a call. Out: a number of bytes, or an error with status 413 when the messages alone exceed a limit.
//! Protobuf is counted field by field, because an empty message of two bytes takes a hundred bytes in memory. The count
//! includes fields that prost decodes but that nobody reads. JSON is estimated from the characters that separate its
//! values.

use crate::connect::{Codec, ConnectError};
use crate::otlp::budget;
use crate::otlp::messages::Profile;
use alluvium_profile::pprof::{BYTES, DecodeError, Reader};

/// Maximum number of bytes of memory for the messages of one request. A request of four megabytes, the usual limit of
/// receivers, takes some 60 MB.
const MAX_MESSAGE_BYTES: usize = 128 << 20;

/// Memory in bytes of a message other than a profile. A message has at most 144 bytes, and the list that contains it
/// has room for up to twice as many messages.
const MESSAGE_BYTES: usize = 288;

/// Memory in bytes of a profile, the largest message, in a list that has room for twice as many profiles.
const PROFILE_BYTES: usize = 2 * size_of::<Profile>();

/// Memory in bytes of a text or a list of numbers, besides its contents. Covers the size of the smallest allocation
/// and, for a text, its entry in the list that contains it.
const LIST_BYTES: usize = 64;

/// Memory in bytes of a number in a list that has room for twice as many numbers.
const NUMBER_BYTES: usize = 16;

/// Maximum nesting depth of attribute values. prost refuses more than a hundred levels.
const MAX_DEPTH: usize = 100;

/// Returns the maximum memory of an export request and of its profiles in bytes.
pub fn export(codec: Codec, body: &[u8]) -> Result<usize, ConnectError> {
    let messages = match codec {
        Codec::Proto => {
            let mut weight = Weight::default();
            weight
                .add(Reader::new(body, 0), &REQUEST, 0)
                .map_err(|error| ConnectError::invalid(format!("cannot read the body as protobuf: {error}")))?;
            weight.bytes()
        }
        Codec::Json => json(body),
    };
    if messages > MAX_MESSAGE_BYTES {
        return Err(ConnectError::too_large(format!(
            "the request would take more than {MAX_MESSAGE_BYTES} bytes in memory: send it in parts"
        )));
    }
    Ok(messages + budget::max_bytes(body.len()))
}

/// Returns the maximum memory of the messages of a JSON body in bytes. Counts the braces, brackets and quotes with
/// which messages, lists and texts begin, and the commas between values. Each message may be a profile, so each counts
/// as much as a profile. If a text contains such characters, they only raise the count.
fn json(body: &[u8]) -> usize {
    let messages = memchr::memchr_iter(b'{', body).count();
    let lists = memchr::memchr2_iter(b'[', b'"', body).count();
    let values = memchr::memchr_iter(b',', body).count();
    messages * PROFILE_BYTES + lists * LIST_BYTES + values * NUMBER_BYTES + body.len()
}

/// Kind of content of a message field.
enum Part {
    Message(&'static Fields),
    /// Messages of the type [`Profile`].
    Profile(&'static Fields),
    /// Numbers of variable length.
    Varints,
    /// Numbers of eight bytes.
    Fixed,
    /// Texts and bytes, which are copied.
    Text,
}

/// Fields by number. Fields with a single number are not listed, because they take no additional memory.
type Fields = [(u32, Part)];

static REQUEST: [(u32, Part); 2] = [(1, Part::Message(&RESOURCE_PROFILES)), (2, Part::Message(&DICTIONARY))];
static RESOURCE_PROFILES: [(u32, Part); 3] = [
    (1, Part::Message(&RESOURCE)),
    (2, Part::Message(&SCOPE_PROFILES)),
    (3, Part::Text),
];
static RESOURCE: [(u32, Part); 2] = [(1, Part::Message(&KEY_VALUE)), (3, Part::Message(&ENTITY))];
static ENTITY: [(u32, Part); 4] = [(1, Part::Text), (2, Part::Text), (3, Part::Text), (4, Part::Text)];
static SCOPE_PROFILES: [(u32, Part); 3] = [
    (1, Part::Message(&SCOPE)),
    (2, Part::Profile(&PROFILE)),
    (3, Part::Text),
];
static SCOPE: [(u32, Part); 3] = [(1, Part::Text), (2, Part::Text), (3, Part::Message(&KEY_VALUE))];
static PROFILE: [(u32, Part); 7] = [
    (1, Part::Message(&[])),
    (2, Part::Message(&SAMPLE)),
    (5, Part::Message(&[])),
    (7, Part::Text),
    (9, Part::Text),
    (10, Part::Text),
    (11, Part::Varints),
];
static SAMPLE: [(u32, Part); 3] = [(2, Part::Varints), (4, Part::Varints), (5, Part::Fixed)];
static DICTIONARY: [(u32, Part); 7] = [
    (1, Part::Message(&MAPPING)),
    (2, Part::Message(&LOCATION)),
    (3, Part::Message(&[])),
    (4, Part::Message(&LINK)),
    (5, Part::Text),
    (6, Part::Message(&ATTRIBUTE)),
    (7, Part::Message(&STACK)),
];
static MAPPING: [(u32, Part); 1] = [(5, Part::Varints)];
static LOCATION: [(u32, Part); 2] = [(3, Part::Message(&[])), (4, Part::Varints)];
static LINK: [(u32, Part); 2] = [(1, Part::Text), (2, Part::Text)];
static STACK: [(u32, Part); 1] = [(1, Part::Varints)];
static ATTRIBUTE: [(u32, Part); 1] = [(2, Part::Message(&ANY_VALUE))];
static KEY_VALUE: [(u32, Part); 2] = [(1, Part::Text), (2, Part::Message(&ANY_VALUE))];
static ANY_VALUE: [(u32, Part); 4] = [
    (1, Part::Text),
    (5, Part::Message(&ARRAY_VALUE)),
    (6, Part::Message(&PAIRS)),
    (7, Part::Text),
];
static ARRAY_VALUE: [(u32, Part); 1] = [(1, Part::Message(&ANY_VALUE))];
static PAIRS: [(u32, Part); 1] = [(1, Part::Message(&KEY_VALUE))];

/// Counts of the parts that take memory.
#[derive(Debug, Default, PartialEq, Eq)]
struct Weight {
    /// Number of messages of all types, including profiles.
    messages: usize,
    /// Number of messages that are profiles.
    profiles: usize,
    lists: usize,
    numbers: usize,
    text_bytes: usize,
}

impl Weight {
    /// Counts the fields of a message until its end or until the limit is exceeded.
    fn add(&mut self, mut message: Reader<'_>, fields: &Fields, depth: usize) -> Result<(), DecodeError> {
        while let Some(tag) = message.tag()? {
            let part = fields.iter().find(|(number, _)| *number == tag.field);
            let Some((_, part)) = part else {
                message.skip(tag)?;
                continue;
            };
            if tag.wire != BYTES {
                self.numbers += 1;
                message.skip(tag)?;
                continue;
            }
            let inner = message.message()?;
            match part {
                Part::Message(fields) | Part::Profile(fields) => {
                    self.messages += 1;
                    self.profiles += usize::from(matches!(part, Part::Profile(_)));
                    if depth < MAX_DEPTH {
                        self.add(inner, fields, depth + 1)?;
                    }
                }
                Part::Varints => {
                    self.lists += 1;
                    self.numbers += inner.rest().iter().filter(|byte| **byte < 0x80).count();
                }
                Part::Fixed => {
                    self.lists += 1;
                    self.numbers += inner.rest().len() / 8;
                }
                Part::Text => {
                    self.lists += 1;
                    self.text_bytes += inner.rest().len();
                }
            }
            if self.bytes() > MAX_MESSAGE_BYTES {
                break;
            }
        }
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.messages * MESSAGE_BYTES
            + self.profiles * (PROFILE_BYTES - MESSAGE_BYTES)
            + self.lists * LIST_BYTES
            + self.numbers * NUMBER_BYTES
            + self.text_bytes
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::common::v1::{EntityRef, KeyValueList};
    use prost::Message as _;

    use super::*;
    use crate::connect::encode;
    use crate::otlp::messages as otlp;
    use crate::otlp::tests::request;

    #[test]
    fn what_takes_memory_is_counted() {
        let small = otlp::ExportProfilesServiceRequest {
            resource_profiles: vec![otlp::ResourceProfiles {
                resource: None,
                scope_profiles: vec![otlp::ScopeProfiles {
                    scope: None,
                    profiles: vec![otlp::Profile {
                        samples: vec![otlp::Sample {
                            attribute_indices: vec![1, 300],
                            timestamps_unix_nano: vec![u64::MAX, 1],
                            ..otlp::Sample::default()
                        }],
                        ..otlp::Profile::default()
                    }],
                    ..otlp::ScopeProfiles::default()
                }],
                ..otlp::ResourceProfiles::default()
            }],
            dictionary: Some(otlp::ProfilesDictionary {
                string_table: vec![String::new(), "main".to_owned()],
                ..otlp::ProfilesDictionary::default()
            }),
        };
        let mut weight = Weight::default();
        let body = small.encode_to_vec();
        weight.add(Reader::new(&body, 0), &REQUEST, 0).unwrap();
        let expected = Weight {
            messages: 5,
            profiles: 1,
            lists: 4,
            numbers: 4,
            text_bytes: 4,
        };
        assert_eq!(weight, expected);
        assert_eq!(
            export(Codec::Proto, &body).unwrap(),
            weight.bytes() + budget::max_bytes(body.len())
        );
    }

    #[test]
    fn fields_that_are_decoded_but_not_used_are_counted() {
        let pair = |value| otlp::KeyValue {
            key: "key".to_owned(),
            value: Some(otlp::AnyValue { value: Some(value) }),
            ..otlp::KeyValue::default()
        };
        let resource = otlp::Resource {
            attributes: vec![
                pair(otlp::any_value::Value::BytesValue(vec![1; 50])),
                pair(otlp::any_value::Value::KvlistValue(KeyValueList {
                    values: vec![pair(otlp::any_value::Value::DoubleValue(0.5))],
                })),
            ],
            entity_refs: vec![EntityRef {
                schema_url: "url".to_owned(),
                r#type: "host".to_owned(),
                id_keys: vec!["key".to_owned()],
                description_keys: vec!["key".to_owned(), "key".to_owned()],
            }],
            ..otlp::Resource::default()
        };
        let profile = otlp::Profile {
            original_payload_format: "pprof".to_owned(),
            original_payload: vec![7; 1_000],
            ..otlp::Profile::default()
        };
        let request = otlp::ExportProfilesServiceRequest {
            resource_profiles: vec![otlp::ResourceProfiles {
                resource: Some(resource),
                scope_profiles: vec![otlp::ScopeProfiles {
                    scope: None,
                    profiles: vec![profile],
                    schema_url: "url".to_owned(),
                }],
                schema_url: "url".to_owned(),
            }],
            dictionary: None,
        };
        let mut weight = Weight::default();
        weight
            .add(Reader::new(&request.encode_to_vec(), 0), &REQUEST, 0)
            .unwrap();
        let expected = Weight {
            messages: 12,
            profiles: 1,
            lists: 13,
            numbers: 0,
            text_bytes: 3 * 3 + 50 + 3 + 4 + 3 * 3 + 5 + 1_000 + 3 + 3,
        };
        assert_eq!(weight, expected);
    }

    #[test]
    fn json_weighs_no_less_than_protobuf() {
        let request = request();
        let weight = |codec| export(codec, &encode(codec, &request)).unwrap();
        assert!(weight(Codec::Json) >= weight(Codec::Proto));
    }

    #[test]
    fn runs_of_empty_messages_are_refused_with_the_limit() {
        // Empty profiles in a scope in a resource.
        let nested = |content: Vec<u8>| {
            let mut bytes = vec![0x12];
            prost::encoding::encode_varint(content.len() as u64, &mut bytes);
            bytes.extend(content);
            bytes
        };
        let mut body = nested(nested([0x12, 0].repeat(600_000)));
        body[0] = 0x0a;
        let error = export(Codec::Proto, &body).unwrap_err();
        assert_eq!(error.status, 413, "{error}");
        let error = export(Codec::Json, &b"{".repeat(600_000)).unwrap_err();
        assert_eq!(error.status, 413, "{error}");
    }

    #[test]
    fn what_is_no_message_is_said_and_deep_values_do_not_end_the_program() {
        for body in [&b"garbage"[..], &[0x0a, 5, 1]] {
            let error = export(Codec::Proto, body).unwrap_err();
            assert_eq!(error.status, 400);
            assert!(error.message.contains("protobuf"), "{error}");
        }
        let mut value = Vec::new();
        for field in [0x2a, 0x0a].repeat(2_000) {
            let mut outer = vec![field];
            prost::encoding::encode_varint(value.len() as u64, &mut outer);
            outer.append(&mut value);
            value = outer;
        }
        let mut weight = Weight::default();
        weight.add(Reader::new(&value, 0), &ANY_VALUE, 0).unwrap();
        assert!(weight.messages <= MAX_DEPTH + 1);
    }

    #[test]
    fn messages_are_not_larger_than_they_are_weighed() {
        let sizes = [
            size_of::<otlp::ResourceProfiles>(),
            size_of::<otlp::Resource>(),
            size_of::<EntityRef>(),
            size_of::<otlp::ScopeProfiles>(),
            size_of::<otlp::InstrumentationScope>(),
            size_of::<otlp::Sample>(),
            size_of::<otlp::KeyValue>(),
            size_of::<otlp::KeyValueAndUnit>(),
            size_of::<otlp::AnyValue>(),
            size_of::<otlp::Mapping>(),
            size_of::<otlp::Location>(),
        ];
        let max_size = sizes.into_iter().max().unwrap();
        assert!(2 * max_size <= MESSAGE_BYTES, "{max_size}");
    }
}
