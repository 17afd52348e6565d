//! Tests with requests that are encoded in older layouts by messages defined here.

use proptest::prelude::*;
use prost::Message;

use super::*;
use crate::connect::decode;
use crate::otlp::messages::{ExportProfilesServiceRequest, Profile, ProfilesDictionary, Resource, Sample, ValueType};
use crate::otlp::{ExportBatch, tests};

#[derive(Clone, PartialEq, Message)]
struct OlderRequest {
    #[prost(message, repeated, tag = "1")]
    resource_profiles: Vec<Nested>,
    #[prost(message, optional, tag = "2")]
    dictionary: Option<ProfilesDictionary>,
}

/// The profiles of a resource, or of a scope.
#[derive(Clone, PartialEq, Message)]
struct Nested {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(bytes = "vec", repeated, tag = "2")]
    messages: Vec<Vec<u8>>,
}

/// A sample of OTLP 1.8 and 1.9.
#[derive(Clone, PartialEq, Message)]
struct OlderSample {
    #[prost(int32, tag = "1")]
    stack_index: i32,
    #[prost(int64, repeated, tag = "2")]
    values: Vec<i64>,
    #[prost(int32, repeated, tag = "3")]
    attribute_indices: Vec<i32>,
    #[prost(int32, tag = "4")]
    link_index: i32,
    #[prost(fixed64, repeated, tag = "5")]
    timestamps_unix_nano: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct Profile9 {
    #[prost(message, optional, tag = "1")]
    sample_type: Option<ValueType>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<OlderSample>,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "6")]
    period: i64,
    #[prost(bytes = "vec", tag = "7")]
    profile_id: Vec<u8>,
    #[prost(uint32, tag = "8")]
    dropped_attributes_count: u32,
    #[prost(string, tag = "9")]
    original_payload_format: String,
    #[prost(bytes = "vec", tag = "10")]
    original_payload: Vec<u8>,
    #[prost(int32, repeated, tag = "11")]
    attribute_indices: Vec<i32>,
}

#[derive(Clone, PartialEq, Message)]
struct Profile8 {
    #[prost(message, optional, tag = "1")]
    sample_type: Option<ValueType8>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<OlderSample>,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    #[prost(uint64, tag = "4")]
    duration_nano: u64,
    #[prost(message, optional, tag = "5")]
    period_type: Option<ValueType8>,
    #[prost(int64, tag = "6")]
    period: i64,
    #[prost(int32, repeated, tag = "7")]
    comment_strindices: Vec<i32>,
    #[prost(bytes = "vec", tag = "8")]
    profile_id: Vec<u8>,
    #[prost(uint32, tag = "9")]
    dropped_attributes_count: u32,
    #[prost(string, tag = "10")]
    original_payload_format: String,
    #[prost(bytes = "vec", tag = "11")]
    original_payload: Vec<u8>,
    #[prost(int32, repeated, tag = "12")]
    attribute_indices: Vec<i32>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct ValueType8 {
    #[prost(int32, tag = "1")]
    type_strindex: i32,
    #[prost(int32, tag = "2")]
    unit_strindex: i32,
    #[prost(int32, tag = "3")]
    aggregation_temporality: i32,
}

fn older_samples(profile: &Profile) -> Vec<OlderSample> {
    let older = |sample: &Sample| OlderSample {
        stack_index: sample.stack_index,
        values: sample.values.clone(),
        attribute_indices: sample.attribute_indices.clone(),
        link_index: sample.link_index,
        timestamps_unix_nano: sample.timestamps_unix_nano.clone(),
    };
    profile.samples.iter().map(older).collect()
}

fn profile_9(profile: &Profile) -> Vec<u8> {
    let older = Profile9 {
        sample_type: profile.sample_type,
        samples: older_samples(profile),
        time_unix_nano: profile.time_unix_nano,
        duration_nano: profile.duration_nano,
        period_type: profile.period_type,
        period: profile.period,
        profile_id: profile.profile_id.clone(),
        dropped_attributes_count: profile.dropped_attributes_count,
        original_payload_format: profile.original_payload_format.clone(),
        original_payload: profile.original_payload.clone(),
        attribute_indices: profile.attribute_indices.clone(),
    };
    older.encode_to_vec()
}

fn profile_8(profile: &Profile) -> Vec<u8> {
    let older_type = |value_type: ValueType| ValueType8 {
        type_strindex: value_type.type_strindex,
        unit_strindex: value_type.unit_strindex,
        aggregation_temporality: 1,
    };
    let older = Profile8 {
        sample_type: profile.sample_type.map(older_type),
        sample: older_samples(profile),
        time_unix_nano: profile.time_unix_nano,
        duration_nano: profile.duration_nano,
        period_type: profile.period_type.map(older_type),
        period: profile.period,
        comment_strindices: vec![5, 6],
        profile_id: profile.profile_id.clone(),
        dropped_attributes_count: profile.dropped_attributes_count,
        original_payload_format: profile.original_payload_format.clone(),
        original_payload: profile.original_payload.clone(),
        attribute_indices: profile.attribute_indices.clone(),
    };
    older.encode_to_vec()
}

/// Encodes a request whose profiles are encoded by `encode`. The scopes are without attributes.
fn older_body(request: &ExportProfilesServiceRequest, encode: fn(&Profile) -> Vec<u8>) -> Bytes {
    let nested = |resource: Option<Resource>, messages: Vec<Vec<u8>>| Nested { resource, messages };
    let resources = request.resource_profiles.iter().map(|resource| {
        let scopes = resource.scope_profiles.iter().map(|scope| {
            let profiles = scope.profiles.iter().map(encode).collect();
            nested(None, profiles).encode_to_vec()
        });
        nested(resource.resource.clone(), scopes.collect())
    });
    let older = OlderRequest {
        resource_profiles: resources.collect(),
        dictionary: request.dictionary.clone(),
    };
    older.encode_to_vec().into()
}

/// Returns a request with these samples, whose scopes have no attributes.
fn request(samples: Vec<Sample>) -> ExportProfilesServiceRequest {
    let mut request = tests::request();
    let scope = &mut request.resource_profiles[0].scope_profiles[0];
    scope.scope = None;
    scope.profiles[0].samples = samples;
    request
}

fn sample(values: &[i64], attributes: &[i32], link: i32, times: &[u64]) -> Sample {
    Sample {
        stack_index: 1,
        attribute_indices: attributes.to_vec(),
        link_index: link,
        values: values.to_vec(),
        timestamps_unix_nano: times.to_vec(),
    }
}

fn upgraded(body: Bytes) -> ExportProfilesServiceRequest {
    decode(Codec::Proto, upgrade(Codec::Proto, body).unwrap()).unwrap()
}

#[test]
fn requests_of_otlp_1_8_and_1_9_become_requests_of_the_current_layout() {
    for samples in [
        vec![sample(&[3, -1], &[2, 4], 1, &[]), sample(&[2], &[], 0, &[])],
        // The CPU samples of a profiler have attributes and timestamps.
        vec![sample(&[], &[2, 4], 0, &[7, 8, 9])],
        vec![sample(&[], &[], 1, &[7]), sample(&[1], &[], 0, &[8])],
        vec![sample(&[5], &[], 0, &[])],
    ] {
        let mut request = request(samples);
        let profile = &mut request.resource_profiles[0].scope_profiles[0].profiles[0];
        profile.time_unix_nano = 77;
        profile.duration_nano = 5;
        profile.profile_id = vec![1; 16];
        profile.dropped_attributes_count = 2;
        profile.original_payload_format = "pprof".to_owned();
        profile.original_payload = vec![9; 300];
        profile.attribute_indices = vec![2];
        for encode in [profile_9, profile_8] {
            let body = older_body(&request, encode);
            let place = body.as_ptr();
            let current = upgrade(Codec::Proto, body).unwrap();
            assert_eq!(current.as_ptr(), place, "the body was copied");
            assert_eq!(decode(Codec::Proto, current).as_ref(), Ok(&request));
        }
        let body = Bytes::from(request.encode_to_vec());
        assert_eq!(upgrade(Codec::Proto, body.clone()), Ok(body));
    }
}

#[test]
fn samples_with_only_one_list_are_values_if_they_cannot_be_attributes() {
    // The table of attributes has six entries.
    for (samples, is_older) in [
        // One timestamp for each value, and no attribute has the value as its index.
        (vec![sample(&[900], &[], 0, &[7])], true),
        (
            vec![sample(&[1], &[], 0, &[7]), sample(&[-1, 2], &[], 0, &[7, 8])],
            true,
        ),
        // No timestamps: as attributes, the samples would count nothing.
        (vec![sample(&[1], &[], 0, &[])], true),
        (vec![sample(&[1], &[], 0, &[7]), sample(&[1], &[], 0, &[])], true),
        // Numbers that are valid in both layouts have the meaning of the current one.
        (vec![sample(&[1], &[], 0, &[7])], false),
        // Another number of timestamps: these are no values, and the error names the missing attribute.
        (vec![sample(&[900], &[], 0, &[7, 8])], false),
        (vec![sample(&[900], &[], 0, &[7]), sample(&[1, 2], &[], 0, &[7])], false),
        // One certain sample decides for all others.
        (vec![sample(&[1], &[], 0, &[7]), sample(&[2], &[2], 0, &[])], true),
    ] {
        let request = request(samples);
        let read = upgraded(older_body(&request, profile_9));
        assert_eq!(read == request, is_older, "{:?}", request.resource_profiles);
    }
    let current = request(vec![sample(&[], &[900], 0, &[7, 8])]);
    let body = upgrade(Codec::Proto, current.encode_to_vec().into()).unwrap();
    let error = ExportBatch::read(&decode(Codec::Proto, body).unwrap(), 0).unwrap_err();
    assert_eq!(
        error.message,
        "attribute_indices is 900, but attribute_table has 6 entries"
    );
}

#[test]
fn tags_that_are_longer_than_needed_are_converted() {
    let value = |number: u32, content: &[u8]| {
        let mut bytes = vec![(number << 3) as u8 | 0x82, 0, content.len() as u8];
        bytes.extend(content);
        bytes
    };
    let samples = [value(2, &[7]), value(3, &[2])].concat();
    let profile = value(2, &samples);
    let body = value(1, &value(2, &value(2, &profile)));
    let read = upgraded(body.into());
    assert_eq!(
        read.resource_profiles[0].scope_profiles[0].profiles[0].samples[0],
        Sample {
            values: vec![7],
            attribute_indices: vec![2],
            ..Sample::default()
        }
    );
}

#[test]
fn requests_of_otlp_1_7_are_refused() {
    // Lists of locations in the profile; fields `locations_start_index`, `locations_length`, `value` and
    // `timestamps_unix_nano` of a sample.
    for profile in [&[0x1a, 2, 1, 2][..], &[0x12, 9, 8, 1, 16, 2, 26, 1, 7, 50, 0]] {
        let body = older_body(&request(Vec::new()), |_| Vec::new());
        let mut request = OlderRequest::decode(body).unwrap();
        let scope = Nested {
            resource: None,
            messages: vec![profile.to_vec()],
        };
        request.resource_profiles[0].messages = vec![scope.encode_to_vec()];
        let error = upgrade(Codec::Proto, request.encode_to_vec().into()).unwrap_err();
        assert_eq!(error.status, 400);
        assert!(error.message.contains("OTLP 1.7"), "{error}");
    }
    let json = br#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"sampleType":[{"typeStrindex":1}]}]}]}]}"#;
    let error = decode::<ExportProfilesServiceRequest>(Codec::Json, Bytes::from_static(json)).unwrap_err();
    assert_eq!(error.status, 400);
}

#[test]
fn names_of_fields_in_otlp_1_8_are_read_from_json() {
    let json = r#"{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{"sample":[{"stackIndex":1,"values":["3"]}],
        "sampleType":{"typeStrindex":1,"unitStrindex":2,"aggregationTemporality":1}}]}]}],
        "dictionary":{"locationTable":[{"line":[{"functionIndex":1,"line":"9"}]}]}}"#;
    let body = upgrade(Codec::Json, json.into()).unwrap();
    let request: ExportProfilesServiceRequest = decode(Codec::Json, body).unwrap();
    let profile = &request.resource_profiles[0].scope_profiles[0].profiles[0];
    assert_eq!(profile.samples, [sample(&[3], &[], 0, &[])]);
    let line = &request.dictionary.unwrap().location_table[0].lines[0];
    assert_eq!((line.function_index, line.line), (1, 9));
}

proptest! {
    #[test]
    fn bytes_that_are_no_request_are_left_as_they_are_or_refused(
        cut in 0..400_usize,
        place in 0..400_usize,
        byte in any::<u8>(),
    ) {
        let samples = vec![sample(&[3, -1], &[2, 4], 1, &[7, 8])];
        let mut body = older_body(&request(samples), profile_8).to_vec();
        let place = place % body.len();
        body[place] = byte;
        body.truncate(body.len() - cut % body.len());
        let length = body.len();
        if let Ok(current) = upgrade(Codec::Proto, body.into()) {
            prop_assert_eq!(current.len(), length);
        }
    }
}
