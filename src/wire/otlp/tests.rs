//! Tests with handwritten export requests and the profiles that they become.

use proptest::prelude::*;
use prost::Message as _;

use super::*;
use crate::connect::{Code, Codec, ConnectError};
use crate::otlp::messages::any_value::Value;
use crate::otlp::messages::{
    AnyValue, ArrayValue, ExportProfilesServiceRequest, Function, InstrumentationScope, KeyValue, KeyValueAndUnit,
    Line, Link, Location, Mapping, Profile as OtlpProfile, ProfilesDictionary, Resource, ResourceProfiles, Sample,
    ScopeProfiles, Stack, ValueType,
};
use alluvium_profile::pprof::{Profile, SampleLabel, decode, encode};
use alluvium_profile::{RefusedProfile, SinkError, SinkErrorKind};

const NOW: i64 = 1_700_000_000_000_000_000;

/// Texts of the string table.
const TEXTS: [&str; 14] = [
    "",
    "samples",
    "count",
    "cpu",
    "nanoseconds",
    "main",
    "work",
    "/bin/shop",
    "process.executable.build_id.gnu",
    "00ff",
    "thread.name",
    "worker-1",
    "service.name",
    "thread.id",
];
const SAMPLES: i32 = 1;
const COUNT: i32 = 2;
const CPU: i32 = 3;
const NANOSECONDS: i32 = 4;

fn any(value: Value) -> Option<AnyValue> {
    Some(AnyValue { value: Some(value) })
}

fn text(value: &str) -> Option<AnyValue> {
    any(Value::StringValue(value.to_owned()))
}

fn number(value: i64) -> Option<AnyValue> {
    any(Value::IntValue(value))
}

fn pair(key: &str, value: Option<AnyValue>) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value,
        key_strindex: 0,
    }
}

fn attribute(key: i32, value: Option<AnyValue>) -> KeyValueAndUnit {
    KeyValueAndUnit {
        key_strindex: key,
        value,
        unit_strindex: 0,
    }
}

fn sample(stack: i32, values: &[i64]) -> Sample {
    Sample {
        stack_index: stack,
        values: values.to_vec(),
        ..Sample::default()
    }
}

/// Returns the tables of a small program: stack 1 is `work` in `main`, stack 2 is `main`.
fn dictionary() -> ProfilesDictionary {
    let function = |name| Function {
        name_strindex: name,
        filename_strindex: 7,
        ..Function::default()
    };
    let location = |address, functions: &[i32]| Location {
        mapping_index: 1,
        address,
        lines: functions
            .iter()
            .map(|function| Line {
                function_index: *function,
                line: 7,
                ..Line::default()
            })
            .collect(),
        attribute_indices: Vec::new(),
    };
    let stack = |locations: &[i32]| Stack {
        location_indices: locations.to_vec(),
    };
    ProfilesDictionary {
        mapping_table: vec![
            Mapping::default(),
            Mapping {
                memory_start: 0x1000,
                memory_limit: 0x2000,
                filename_strindex: 7,
                attribute_indices: vec![1],
                ..Mapping::default()
            },
        ],
        location_table: vec![Location::default(), location(0x1010, &[2]), location(0x1020, &[1])],
        function_table: vec![Function::default(), function(5), function(6)],
        link_table: vec![
            Link::default(),
            Link {
                trace_id: vec![0xab; 16],
                span_id: vec![0xcd; 8],
            },
        ],
        string_table: TEXTS.map(str::to_owned).to_vec(),
        attribute_table: vec![
            KeyValueAndUnit::default(),
            attribute(8, text("00ff")),
            attribute(10, text("worker-1")),
            attribute(12, text("cart")),
            attribute(13, number(42)),
            attribute(10, text("")),
        ],
        stack_table: vec![Stack::default(), stack(&[1, 2]), stack(&[2])],
    }
}

fn profile(samples: Vec<Sample>) -> OtlpProfile {
    OtlpProfile {
        sample_type: Some(ValueType {
            type_strindex: SAMPLES,
            unit_strindex: COUNT,
        }),
        period_type: Some(ValueType {
            type_strindex: CPU,
            unit_strindex: NANOSECONDS,
        }),
        period: 50,
        samples,
        ..OtlpProfile::default()
    }
}

fn of_profiles(profiles: Vec<OtlpProfile>) -> ExportProfilesServiceRequest {
    ExportProfilesServiceRequest {
        resource_profiles: vec![ResourceProfiles {
            resource: Some(Resource {
                attributes: vec![pair("service.name", text("shop")), pair("zone", text("eu"))],
                ..Resource::default()
            }),
            scope_profiles: vec![ScopeProfiles {
                scope: Some(InstrumentationScope {
                    attributes: vec![pair("zone", text("us")), pair("team", text("a"))],
                    ..InstrumentationScope::default()
                }),
                profiles,
                ..ScopeProfiles::default()
            }],
            ..ResourceProfiles::default()
        }],
        dictionary: Some(dictionary()),
    }
}

/// Returns a request as the profiler of a whole machine sends it.
pub(crate) fn request() -> ExportProfilesServiceRequest {
    of_profiles(vec![profile(vec![sample(1, &[3]), sample(2, &[1, 1])])])
}

fn read(request: &ExportProfilesServiceRequest) -> Result<ExportBatch, ConnectError> {
    ExportBatch::read(request, NOW)
}

/// Returns stack, labels and value of each sample as text.
fn samples(profile: &Profile<'_>) -> Vec<String> {
    let describe = |index: usize| {
        let names = profile.stack(index).iter().flat_map(|location| {
            let lines = profile.lines_of(&profile.locations[*location as usize]);
            lines.iter().map(|line| profile.functions[line.function as usize].name)
        });
        let names: Vec<&str> = names.collect();
        let labels = profile.labels_of(index).iter().map(|label| match label {
            SampleLabel::Text(name, value) => format!(" {name}={value}"),
            SampleLabel::Number(name, value, _) => format!(" {name}={value}"),
        });
        format!(
            "{}{} {:?}",
            names.join("<"),
            labels.collect::<String>(),
            profile.values_of(index)
        )
    };
    (0..profile.sample_count()).map(describe).collect()
}

#[test]
fn ticks_of_a_machine_become_the_cpu_time_of_a_service() {
    let batch = read(&request()).unwrap();
    let [decoded] = batch.profiles.as_slice() else {
        panic!("{batch:?}")
    };
    assert_eq!(
        decoded.labels.to_string(),
        r#"{__delta__="false", __name__="process_cpu", __otel__="true", service_name="shop", team="a", zone="eu"}"#
    );
    let columns = decoded.columns.get();
    assert_eq!(samples(columns), ["work<main [150]", "main [100]"]);
    let [kind] = columns.sample_types.as_slice() else {
        panic!("{columns:?}")
    };
    assert_eq!((kind.kind, kind.unit), ("cpu", "nanoseconds"));
    assert_eq!((columns.period_type, columns.period), (*kind, 50));
    assert_eq!((columns.time_nanos, columns.duration_nanos), (NOW, 10_000_000_000));
    let [mapping] = columns.mappings.as_slice() else {
        panic!("{columns:?}")
    };
    assert_eq!((mapping.file, mapping.build_id), ("/bin/shop", "00ff"));
    assert_eq!(mapping.has, [true, true, true, false]);
    assert_eq!(decode(&encode(columns)).as_ref(), Ok(columns));
}

#[test]
fn times_without_values_count_and_what_is_given_is_kept() {
    let mut with_times = sample(2, &[]);
    with_times.timestamps_unix_nano = vec![7, 8, 9];
    let mut profile_with_times = profile(vec![with_times, sample(1, &[]), sample(2, &[i64::MAX, 1])]);
    profile_with_times.time_unix_nano = 77;
    profile_with_times.duration_nano = 5;
    profile_with_times.period_type = None;
    profile_with_times.profile_id = vec![1; 16];
    let batch = read(&of_profiles(vec![profile_with_times])).unwrap();
    let profile = &batch.profiles[0];
    assert_eq!(&*profile.id, "01010101-0101-0101-0101-010101010101");
    assert_eq!(profile.labels.get("__name__"), Some("samples"));
    let columns = profile.columns.get();
    assert_eq!((columns.time_nanos, columns.duration_nanos), (77, 5));
    assert_eq!(
        samples(columns),
        ["main [3]", "work<main [0]", "main [9223372036854775807]"]
    );
}

#[test]
fn attributes_and_links_become_labels_of_samples_and_services_profiles() {
    let mut labelled = sample(1, &[1]);
    labelled.attribute_indices = vec![2, 4, 1, 5];
    labelled.link_index = 1;
    let mut cart_sample = sample(2, &[2]);
    cart_sample.attribute_indices = vec![3];
    let mut profile = profile(vec![labelled, cart_sample.clone(), sample(2, &[3]), cart_sample]);
    profile.profile_id = vec![1; 16];
    let batch = read(&of_profiles(vec![profile])).unwrap();
    let services: Vec<_> = batch
        .profiles
        .iter()
        .map(|profile| {
            let columns = profile.columns.get();
            (
                profile.labels.get("service_name").unwrap().to_owned(),
                samples(columns),
                columns.functions.len(),
                profile.id.to_string(),
            )
        })
        .collect();
    let trace = "ab".repeat(16);
    let span = "cd".repeat(8);
    let id = "01010101-0101-0101-0101-010101010101".to_owned();
    let first = format!(
        "work<main thread.name=worker-1 thread.id=42 process.executable.build_id.gnu=00ff trace_id={trace} \
            span_id={span} [50]"
    );
    assert_eq!(
        services,
        [
            ("shop".to_owned(), vec![first, "main [150]".to_owned()], 2, id.clone()),
            (
                "cart".to_owned(),
                vec!["main [100]".to_owned(), "main [100]".to_owned()],
                1,
                id
            ),
        ]
    );
}

#[test]
fn samples_that_name_the_service_of_the_resource_are_in_its_profile() {
    for (common, expected) in [(Some("shop"), "shop"), (None, "unknown_service")] {
        for is_named_first in [false, true] {
            let mut named = sample(2, &[1]);
            named.attribute_indices = vec![6];
            let mut cart_sample = sample(2, &[2]);
            cart_sample.attribute_indices = vec![3];
            let mut all = vec![sample(2, &[1]), cart_sample, named];
            if is_named_first {
                all.reverse();
            }
            let mut request = of_profiles(vec![profile(all)]);
            let tables = request.dictionary.as_mut().unwrap();
            tables.attribute_table.push(attribute(12, text(expected)));
            let resource = request.resource_profiles[0].resource.as_mut().unwrap();
            resource.attributes = common
                .map(|name| pair("service.name", text(name)))
                .into_iter()
                .collect();
            let batch = read(&request).unwrap();
            let mut services: Vec<_> = batch
                .profiles
                .iter()
                .map(|profile| {
                    let service = profile.labels.get("service_name").unwrap();
                    (service.to_owned(), samples(profile.columns.get()))
                })
                .collect();
            services.sort();
            let main = |value: i64| format!("main [{}]", 50 * value);
            let mut wanted = vec![
                ("cart".to_owned(), vec![main(2)]),
                (expected.to_owned(), vec![main(1), main(1)]),
            ];
            wanted.sort();
            assert_eq!(services, wanted, "{common:?} {is_named_first}");
        }
    }
}

#[test]
fn a_profile_without_a_time_may_stay_without_one_and_is_the_same_each_time() {
    let request = request();
    let bytes = |default_time_nanos: i64| {
        let batch = ExportBatch::read(&request, default_time_nanos).unwrap();
        let columns = batch.profiles[0].columns.get();
        (columns.time_nanos, encode(columns))
    };
    assert_eq!(bytes(0).0, 0);
    assert_eq!(bytes(0), bytes(0));
    assert_eq!(bytes(NOW).0, NOW);
}

#[test]
fn names_and_values_may_be_in_the_table_of_texts_and_in_lists_of_one() {
    let mut request = request();
    let list = |values: Vec<AnyValue>| any(Value::ArrayValue(ArrayValue { values }));
    let resource = request.resource_profiles[0].resource.as_mut().unwrap();
    resource.attributes = vec![
        KeyValue {
            key_strindex: 12,
            value: any(Value::StringValueStrindex(11)),
            ..KeyValue::default()
        },
        pair("one", list(vec![number(5).unwrap()])),
        pair("two", list(vec![number(5).unwrap(), number(6).unwrap()])),
        pair("none", None),
    ];
    let batch = read(&request).unwrap();
    let labels = &batch.profiles[0].labels;
    assert_eq!(labels.get("service_name"), Some("worker-1"));
    assert_eq!((labels.get("one"), labels.get("two")), (Some("5"), None));
}

#[test]
fn an_index_out_of_range_is_named_with_its_table() {
    type Break = fn(&mut ExportProfilesServiceRequest, i32);
    let breaks: [(&str, Break); 9] = [
        ("stack_index is 99, but stack_table has 3 entries", |request, index| {
            first(request).samples[0].stack_index = index;
        }),
        (
            "attribute_indices is 99, but attribute_table has 6 entries",
            |request, index| first(request).samples[0].attribute_indices = vec![index],
        ),
        ("link_index is 99, but link_table has 2 entries", |request, index| {
            first(request).samples[0].link_index = index;
        }),
        (
            "type_strindex is 99, but string_table has 14 entries",
            |request, index| first(request).sample_type.as_mut().unwrap().type_strindex = index,
        ),
        (
            "location_indices is 99, but location_table has 3 entries",
            |request, index| tables(request).stack_table[1].location_indices[1] = index,
        ),
        (
            "mapping_index is 99, but mapping_table has 2 entries",
            |request, index| tables(request).location_table[1].mapping_index = index,
        ),
        (
            "function_index is 99, but function_table has 3 entries",
            |request, index| tables(request).location_table[1].lines[0].function_index = index,
        ),
        (
            "name_strindex is 99, but string_table has 14 entries",
            |request, index| tables(request).function_table[1].name_strindex = index,
        ),
        (
            "key_strindex is 99, but string_table has 14 entries",
            |request, index| tables(request).attribute_table[1].key_strindex = index,
        ),
    ];
    for (message, breaks) in breaks {
        for index in [99, -1, i32::MIN] {
            let mut request = request();
            breaks(&mut request, index);
            let error = read(&request).unwrap_err();
            assert_eq!(error.status, 400);
            assert_eq!(error.message, message.replace("99", &index.to_string()));
        }
    }
}

fn first(request: &mut ExportProfilesServiceRequest) -> &mut OtlpProfile {
    &mut request.resource_profiles[0].scope_profiles[0].profiles[0]
}

fn tables(request: &mut ExportProfilesServiceRequest) -> &mut ProfilesDictionary {
    request.dictionary.as_mut().unwrap()
}

#[test]
fn without_samples_there_is_no_profile_and_without_what_they_need_an_error() {
    assert!(
        read(&ExportProfilesServiceRequest::default())
            .unwrap()
            .profiles
            .is_empty()
    );
    let mut request = of_profiles(vec![OtlpProfile::default()]);
    assert!(read(&request).unwrap().profiles.is_empty());
    request.dictionary = None;
    assert!(read(&request).unwrap().profiles.is_empty());
    let mut request = super::tests::request();
    first(&mut request).sample_type = None;
    let error = read(&request).unwrap_err();
    assert_eq!(
        (error.status, error.message.as_str()),
        (400, "a profile has samples but no sample_type")
    );
    request.dictionary = None;
    let error = read(&request).unwrap_err();
    assert_eq!(
        (error.status, error.message.as_str()),
        (400, "the request has profiles but no dictionary")
    );
}

#[test]
fn an_empty_entry_is_no_frame_and_a_missing_table_has_only_that() {
    let mut request = request();
    tables(&mut request).stack_table[1].location_indices = vec![0, 1];
    tables(&mut request).location_table[1].lines.insert(0, Line::default());
    tables(&mut request).link_table.clear();
    let batch = read(&request).unwrap();
    let columns = batch.profiles[0].columns.get();
    assert_eq!(samples(columns)[0], "work [150]");
}

/// Returns true if the request is refused because of its size.
fn is_too_large(request: &ExportProfilesServiceRequest) -> bool {
    read(request).is_err_and(|error| error.status == 413)
}

#[test]
fn what_multiplies_is_refused_before_it_is_made() {
    // One stack in many samples.
    let mut request = of_profiles(vec![profile(vec![sample(1, &[1]); 100_000])]);
    assert!(!is_too_large(&request));
    tables(&mut request).stack_table[1].location_indices = vec![1; 2_000];
    assert!(is_too_large(&request));
    // One name in many profiles.
    let mut request = of_profiles(vec![profile(vec![sample(1, &[1])]); 5_000]);
    assert!(!is_too_large(&request));
    tables(&mut request).string_table[5] = "x".repeat(1 << 20);
    assert!(is_too_large(&request));
    // Attributes of one resource in many scopes.
    let mut request = of_profiles(vec![profile(vec![sample(1, &[1])])]);
    let resource = &mut request.resource_profiles[0];
    resource.scope_profiles = vec![resource.scope_profiles[0].clone(); 3_000];
    assert!(!is_too_large(&request));
    let attributes = &mut request.resource_profiles[0].resource.as_mut().unwrap().attributes;
    *attributes = vec![pair("a", text("b")); 3_000];
    assert!(is_too_large(&request));
    // Attributes of one mapping in many profiles.
    let mut request = of_profiles(vec![profile(vec![sample(1, &[1])]); 1_000]);
    assert!(!is_too_large(&request));
    tables(&mut request).mapping_table[1].attribute_indices = vec![1; 100_000];
    assert!(is_too_large(&request));
    // Too many profiles.
    let request = of_profiles(vec![profile(vec![sample(2, &[1])]); 10_001]);
    assert!(is_too_large(&request));
}

#[test]
fn the_json_form_says_the_same() {
    let json = br#"{
        "resourceProfiles": [{
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
            "scopeProfiles": [{"profiles": [{
                "sampleType": {"typeStrindex": 1, "unitStrindex": 2},
                "samples": [{"stackIndex": 1, "values": ["3"], "linkIndex": 1}, {"stackIndex": 0, "values": [4]}],
                "timeUnixNano": "1700000000000000001", "durationNano": 5, "unknown": {}
            }]}]
        }],
        "dictionary": {
            "stringTable": ["", "alloc", "count", "main"],
            "functionTable": [{}, {"nameStrindex": 3}],
            "locationTable": [{}, {"lines": [{"functionIndex": 1, "line": "9"}]}],
            "stackTable": [{}, {"locationIndices": [1]}],
            "linkTable": [{}, {"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "EEE19B7EC3C1B174"}]
        }
    }"#;
    let request: ExportProfilesServiceRequest =
        crate::connect::decode(Codec::Json, bytes::Bytes::from_static(json)).unwrap();
    let batch = read(&request).unwrap();
    let columns = batch.profiles[0].columns.get();
    assert_eq!(
        samples(columns),
        [
            "main trace_id=5b8efff798038103d269b633813fc60c span_id=eee19b7ec3c1b174 [3]",
            " [4]"
        ]
    );
    assert_eq!(columns.time_nanos, 1_700_000_000_000_000_001);
    assert_eq!(batch.profiles[0].labels.get("__name__"), Some("alloc"));
}

#[test]
fn the_response_counts_what_is_refused_for_good_and_asks_again_for_the_rest() {
    let finish = |refused: &[(usize, SinkErrorKind)]| {
        let batch = read(&of_profiles(vec![
            OtlpProfile::default(),
            profile(vec![sample(1, &[1])]),
            profile(vec![sample(1, &[1])]),
            profile(vec![sample(1, &[1])]),
        ]));
        let (profiles, outcome) = batch.unwrap().split();
        assert_eq!(profiles.len(), 3);
        let refused = refused
            .iter()
            .map(|(index, kind)| RefusedProfile::new(*index, SinkError::new(*kind, "no")));
        outcome.finish(refused.collect())
    };
    assert_eq!(finish(&[]).unwrap().partial_success, None);
    let partial = finish(&[(2, SinkErrorKind::TooLarge), (0, SinkErrorKind::Invalid)])
        .unwrap()
        .partial_success
        .unwrap();
    assert_eq!(partial.rejected_profiles, 2);
    assert_eq!(partial.error_message, "profile 3: no\nprofile 1: no");
    let all = [0, 1, 2].map(|index| (index, SinkErrorKind::Invalid));
    assert_eq!(finish(&all).unwrap_err().status, 400);
    let later = finish(&[(0, SinkErrorKind::Invalid), (1, SinkErrorKind::Unavailable)]).unwrap_err();
    assert_eq!((later.code, later.details.len()), (Code::Unavailable, 0));
    let limited = finish(&[(1, SinkErrorKind::LimitExceeded)]).unwrap_err();
    assert_eq!((limited.status, limited.details.len()), (429, 1));
    assert_eq!(limited.details[0].type_name, "google.rpc.RetryInfo");
    assert_eq!(limited.details[0].value, [10, 2, 8, 1].as_slice());
}

proptest! {
    #[test]
    fn arbitrary_indices_give_a_profile_or_an_error(
        stacks in prop::collection::vec(prop::collection::vec(-1..4i32, 0..4), 0..4),
        lines in prop::collection::vec((-1..4i32, -1..3i32), 0..4),
        samples in prop::collection::vec((-1..4i32, prop::collection::vec(-1..6i32, 0..3), -1..3i32), 0..5),
    ) {
        let mut request = of_profiles(vec![profile(
            samples
                .into_iter()
                .map(|(stack, attributes, link)| Sample {
                    stack_index: stack,
                    attribute_indices: attributes,
                    link_index: link,
                    ..sample(0, &[1])
                })
                .collect(),
        )]);
        let tables = tables(&mut request);
        tables.stack_table = stacks.into_iter().map(|location_indices| Stack { location_indices }).collect();
        tables.location_table = lines
            .into_iter()
            .map(|(function_index, mapping_index)| Location {
                mapping_index,
                lines: vec![Line { function_index, line: 1, ..Line::default() }],
                ..Location::default()
            })
            .collect();
        let body = request.encode_to_vec();
        prop_assert!(weight(Codec::Proto, &body).is_ok());
        match read(&request) {
            Ok(batch) => for profile in &batch.profiles {
                let columns = profile.columns.get();
                let encoded = encode(columns);
                let decoded = decode(&encoded);
                prop_assert_eq!(decoded.as_ref(), Ok(columns));
            },
            Err(error) => prop_assert_eq!(error.status, 400),
        }
    }
}

#[test]
fn long_texts_in_many_samples_are_read_once() {
    // Comparing the texts for each sample and location would take an hour.
    let mut request = request();
    let tables = request.dictionary.as_mut().unwrap();
    let text_index = tables.string_table.len() as i32;
    tables.string_table.push("long/".repeat(1 << 20));
    let service = tables.attribute_table.len() as i32;
    for key in ["service.name", "thread.name"] {
        let key_strindex = TEXTS.iter().position(|text| *text == key).unwrap() as i32;
        tables.attribute_table.push(KeyValueAndUnit {
            key_strindex,
            value: any(Value::StringValueStrindex(text_index)),
            unit_strindex: 0,
        });
    }
    tables.mapping_table.push(Mapping {
        filename_strindex: text_index,
        ..Mapping::default()
    });
    let mapping_index = tables.mapping_table.len() as i32 - 1;
    let first = tables.location_table.len() as i32;
    tables.location_table.extend((1..=20_000).map(|address| Location {
        mapping_index,
        address,
        ..Location::default()
    }));
    tables.stack_table.push(Stack {
        location_indices: (first..first + 20_000).collect(),
    });
    let stack_index = tables.stack_table.len() as i32 - 1;
    let profile = &mut request.resource_profiles[0].scope_profiles[0].profiles[0];
    let sample = Sample {
        stack_index,
        values: vec![1],
        attribute_indices: vec![service, service + 1],
        ..Sample::default()
    };
    profile.samples = vec![sample.clone()];
    let small = Sample {
        stack_index: 0,
        ..sample
    };
    profile.samples.extend(vec![small; 20_000]);
    let batch = ExportBatch::read(&request, NOW).unwrap();
    let profile = batch.profiles[0].columns.get();
    assert_eq!((profile.sample_count(), profile.mappings.len()), (20_001, 1));
}
