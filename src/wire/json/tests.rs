//! Tests the JSON form of real messages against handwritten texts.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::proto::google::{Mapping, Profile, Sample, ValueType};
use crate::proto::push::{PushRequest, RawProfileSeries, RawSample};
use crate::proto::querier::{SelectSeriesRequest, SelectSeriesResponse, SeriesRequest};
use crate::proto::types::{LabelPair, Point, Series, TimeSeriesAggregationType};

fn text(message: &impl ToJson) -> String {
    let mut out = Writer::with_capacity(0);
    message.write(&mut out);
    String::from_utf8(out.into_bytes()).unwrap()
}

#[test]
fn a_message_is_written_without_the_defaults_of_its_fields() {
    let profile = Profile {
        sample_type: vec![ValueType { r#type: 1, unit: 2 }, ValueType::default()],
        sample: vec![Sample {
            location_id: vec![0, u64::MAX],
            value: vec![i64::MIN, -1],
            label: Vec::new(),
        }],
        mapping: vec![Mapping {
            id: 1,
            has_functions: true,
            ..Mapping::default()
        }],
        string_table: vec![String::new(), "\"\n\u{e9}".to_owned()],
        period_type: Some(ValueType::default()),
        ..Profile::default()
    };
    assert_eq!(
        text(&profile),
        concat!(
            r#"{"sampleType":[{"type":"1","unit":"2"},{}],"#,
            r#""sample":[{"locationId":["0","18446744073709551615"],"value":["-9223372036854775808","-1"]}],"#,
            r#""mapping":[{"id":"1","hasFunctions":true}],"stringTable":["","\"\n"#,
            "\u{e9}\"],",
            r#""periodType":{}}"#
        )
    );
    assert_eq!(text(&Profile::default()), "{}");
}

#[test]
fn numbers_with_a_point_enumerations_bytes_and_fields_with_presence_have_their_forms() {
    let point = |value| Point {
        value,
        timestamp: 7,
        ..Point::default()
    };
    let series = Series {
        labels: Vec::new(),
        points: [1.0, 0.5, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0]
            .map(point)
            .to_vec(),
    };
    assert_eq!(
        text(&SelectSeriesResponse { series: vec![series] }),
        concat!(
            r#"{"series":[{"points":[{"value":1.0,"timestamp":"7"},{"value":0.5,"timestamp":"7"},"#,
            r#"{"value":1e+300,"timestamp":"7"},{"value":"NaN","timestamp":"7"},"#,
            r#"{"value":"Infinity","timestamp":"7"},{"value":"-Infinity","timestamp":"7"},{"timestamp":"7"}]}]}"#
        )
    );
    let request = SelectSeriesRequest {
        profile_type_id: "a:b".to_owned(),
        aggregation: Some(TimeSeriesAggregationType::Sum.into()),
        limit: Some(0),
        exemplar_type: 77,
        ..SelectSeriesRequest::default()
    };
    assert_eq!(
        text(&request),
        concat!(
            r#"{"profileTypeID":"a:b","aggregation":"TIME_SERIES_AGGREGATION_TYPE_SUM","#,
            r#""limit":"0","exemplarType":77}"#
        )
    );
    let sample = RawSample {
        raw_profile: Bytes::from_static(&[0xfb, 0xff]),
        id: "x".to_owned(),
    };
    assert_eq!(text(&sample), r#"{"rawProfile":"+/8=","ID":"x"}"#);
}

#[test]
fn a_message_is_read_in_all_forms_that_protobuf_allows() {
    for (form, expected) in [
        (r#"{"start":"5","end":6}"#, (5, 6)),
        (r#"{"start":5.0,"end":1e3}"#, (5, 1000)),
        (r#"{"start":null,"labelNames":null,"end":"-7"}"#, (0, -7)),
        (r#"{"unknown":{"x":[1,{}]},"start":1}"#, (1, 0)),
        (" {} ", (0, 0)),
        ("null", (0, 0)),
    ] {
        let request: SeriesRequest = read(form.as_bytes()).unwrap();
        assert_eq!((request.start, request.end), expected, "{form}");
    }
    for form in [r#"{"label_names":["a"]}"#, r#"{"labelNames":["a"]}"#] {
        assert_eq!(read::<SeriesRequest>(form.as_bytes()).unwrap().label_names, ["a"]);
    }
    for (form, aggregation) in [
        (r#"{"aggregation":"TIME_SERIES_AGGREGATION_TYPE_AVERAGE"}"#, Some(1)),
        (r#"{"aggregation":1}"#, Some(1)),
        (r#"{"aggregation":"OF_TOMORROW"}"#, None),
        (r#"{"aggregation":null}"#, None),
    ] {
        assert_eq!(
            read::<SelectSeriesRequest>(form.as_bytes()).unwrap().aggregation,
            aggregation
        );
    }
    for (step, expected) in [("1", 1.0), ("\"Infinity\"", f64::INFINITY), ("\"1.5\"", 1.5)] {
        let form = format!(r#"{{"step":{step},"limit":"0"}}"#);
        let request: SelectSeriesRequest = read(form.as_bytes()).unwrap();
        assert_eq!((request.step, request.limit), (expected, Some(0)));
    }
    for form in ["+/8=", "+/8", "-_8", "-_8="] {
        let form = format!(r#"{{"rawProfile":"{form}"}}"#);
        assert_eq!(
            read::<RawSample>(form.as_bytes()).unwrap().raw_profile,
            [0xfb, 0xff].as_slice()
        );
    }
}

#[test]
fn what_is_no_message_is_refused_with_its_place() {
    for (form, reason) in [
        (r#"{"start":1,"start":2}"#, "duplicate field `start`"),
        (r#"{"labelNames":[],"label_names":[]}"#, "duplicate field `labelNames`"),
        (r#"{"start":"yesterday"}"#, "an integer of 64 bits"),
        (r#"{"start":1.5}"#, "an integer of 64 bits"),
        (r#"{"start":9223372036854775808}"#, "an integer of 64 bits"),
        (r#"{"matchers":"x"}"#, "a list"),
        (r#"{"matchers":[1]}"#, "a text"),
        ("[]", "an object"),
        ("{} {}", "trailing characters"),
        ("", "EOF"),
    ] {
        let error = read::<SeriesRequest>(form.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains("line 1"), "{form}: {error}");
    }
    assert!(read::<RawSample>(br#"{"rawProfile":"!"}"#).is_err());
    let deep = r#"{"series":["#.repeat(200);
    assert!(read::<PushRequest>(deep.as_bytes()).is_err());
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        raw in prop::collection::vec(any::<u8>(), 0..99), id in any::<String>(), name in any::<String>(),
        start: i64, quarters: i16, limit in any::<Option<i64>>(), aggregation in prop::option::of(0..2i32),
    ) {
        let push = PushRequest {
            series: vec![RawProfileSeries {
                labels: vec![LabelPair { name: name.clone(), value: id.clone() }, LabelPair::default()],
                samples: vec![RawSample { raw_profile: raw.into(), id }],
                ..Default::default()
            }, RawProfileSeries::default()],
        };
        prop_assert_eq!(&read::<PushRequest>(text(&push).as_bytes()).unwrap(), &push);
        let request = SelectSeriesRequest {
            group_by: vec![name], start, step: f64::from(quarters) / 4.0, limit, aggregation, ..Default::default()
        };
        prop_assert_eq!(&read::<SelectSeriesRequest>(text(&request).as_bytes()).unwrap(), &request);
    }
}
