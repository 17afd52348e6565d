//! Tests of the Connect codec: headers, limits, both encodings.

use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::proto::push::{PushRequest, RawProfileSeries, RawSample};
use crate::proto::querier::{FlameGraph, Level, SelectMergeStacktracesRequest};
use alluvium_base::encoding::gzip;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| {
            (
                http::HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        })
        .collect()
}

#[test]
fn every_code_has_its_row_in_the_table() {
    for (index, (code, name, status)) in CODES.iter().enumerate() {
        assert_eq!(*code as usize, index);
        assert_eq!((code.name(), code.status()), (*name, *status));
        assert_eq!(Code::from_name(name), Some(*code));
    }
}

#[test]
fn content_types_decide_the_codec_or_are_refused_with_415() {
    for (text, codec) in [
        ("application/proto", Codec::Proto),
        ("Application/JSON; charset=UTF-8", Codec::Json),
        ("application/json;charset=\"utf-8\"; x=y", Codec::Json),
    ] {
        assert_eq!(
            CallHeaders::read(&headers(&[("content-type", text)])).unwrap().codec,
            codec
        );
    }
    for text in [
        "",
        "text/plain",
        "application/connect+proto",
        "application/json; charset=latin1",
    ] {
        let error = CallHeaders::read(&headers(&[("content-type", text)])).unwrap_err();
        assert_eq!(error.status, 415, "{text}: {error}");
    }
}

#[test]
fn version_timeout_and_encodings_are_read() {
    let read = CallHeaders::read(&headers(&[
        ("content-type", "application/proto"),
        ("connect-protocol-version", "1"),
        ("connect-timeout-ms", "2500"),
        ("content-encoding", "gzip"),
        ("accept-encoding", "br;q=1.0, gzip;q=0.5"),
    ]))
    .unwrap();
    assert_eq!(read.timeout, Some(Duration::from_millis(2500)));
    assert_eq!(read.compression, Compression::Gzip);
    assert!(read.accepts_gzip);
    for (name, value) in [
        ("connect-protocol-version", "2"),
        ("connect-timeout-ms", "-1"),
        ("connect-timeout-ms", "12345678901"),
        ("content-encoding", "br"),
    ] {
        assert!(CallHeaders::read(&headers(&[("content-type", "application/proto"), (name, value)])).is_err());
    }
    assert!(!accepts(&headers(&[("accept-encoding", "gzip;q=0")]), "gzip"));
}

#[test]
fn a_body_that_unpacks_beyond_the_limit_is_not_held_and_damage_is_invalid() {
    let zeros = vec![0u8; 10 << 20];
    let packed = gzip(&zeros).unwrap();
    assert!(packed.len() < 200_000);
    let length = |compression: Compression, body: &[u8], limit| {
        let opened = compression
            .open(body, limit)
            .map_err(|error| ConnectError::from(error).status)?;
        Ok::<_, u16>(opened.map(|bytes| bytes.len()))
    };
    assert_eq!(length(Compression::Gzip, &packed, 10 << 20), Ok(Some(10 << 20)));
    assert_eq!(length(Compression::Gzip, &packed, (10 << 20) - 1), Ok(None));
    assert_eq!(
        length(Compression::Gzip, &packed[..packed.len() / 2], 20 << 20),
        Err(400)
    );
    assert_eq!(length(Compression::Gzip, b"garbage", 100), Err(400));
    assert_eq!(length(Compression::Identity, b"garbage", 3), Ok(None));
    assert_eq!(length(Compression::Identity, b"garbage", 7), Ok(Some(7)));

    let packed = zstd::encode_all(zeros.as_slice(), 1).unwrap();
    assert_eq!(length(Compression::Zstd, &packed, 10 << 20), Ok(Some(10 << 20)));
    assert_eq!(length(Compression::Zstd, &packed, 1000), Ok(None));
    assert_eq!(length(Compression::Zstd, b"garbage", 100), Err(400));
}

#[test]
fn json_is_that_of_protobuf_and_tolerates_what_it_does_not_know() {
    let request: SelectMergeStacktracesRequest = decode(
        Codec::Json,
        Bytes::from_static(
            br#"{"profileTypeID":"a:b:c:d:e","label_selector":"{}","start":"1700000000000","end":1700000000001,
                 "format":"PROFILE_FORMAT_SANDWICH","sandwichFunction":{"x":[1]},"maxNodes":"5","frameDetails":true}"#,
        ),
    )
    .unwrap();
    assert_eq!(request.profile_type_id, "a:b:c:d:e");
    assert_eq!((request.start, request.end), (1_700_000_000_000, 1_700_000_000_001));
    assert_eq!(
        (request.format, request.max_nodes, request.frame_details),
        (0, Some(5), true)
    );

    let graph = FlameGraph {
        names: vec!["total".to_owned()],
        levels: vec![Level {
            values: vec![0, i64::MAX, 0, 0],
        }],
        total: i64::MAX,
        ..Default::default()
    };
    let text = encode(Codec::Json, &graph);
    assert_eq!(
        std::str::from_utf8(&text).unwrap(),
        r#"{"names":["total"],"levels":[{"values":["0","9223372036854775807","0","0"]}],"total":"9223372036854775807"}"#
    );
    for body in ["", "{", "[]", "nonsense", r#"{"start":"yesterday"}"#] {
        let error = decode::<SelectMergeStacktracesRequest>(Codec::Json, body.into()).unwrap_err();
        assert_eq!(error.status, 400, "{body}");
    }
}

#[test]
fn an_error_survives_the_round_trip() {
    let error = ConnectError::too_large("body \"x\" is too large");
    assert_eq!(ConnectError::from_json(413, &error.to_json()), Some(error));
    assert_eq!(ConnectError::from_json(502, b"<html>bad gateway</html>"), None);
}

proptest! {
    #[test]
    fn a_push_request_survives_both_codecs(raw in proptest::collection::vec(any::<u8>(), 0..200), id in ".{0,20}") {
        let request = PushRequest {
            series: vec![RawProfileSeries {
                samples: vec![RawSample { raw_profile: raw.into(), id }],
                ..Default::default()
            }],
        };
        for codec in [Codec::Proto, Codec::Json] {
            let body = encode(codec, &request);
            prop_assert_eq!(&decode::<PushRequest>(codec, body).unwrap(), &request);
        }
    }

    #[test]
    fn garbage_is_an_error_or_a_message_but_never_a_panic(raw in proptest::collection::vec(any::<u8>(), 0..200)) {
        for codec in [Codec::Proto, Codec::Json] {
            let _ = decode::<PushRequest>(codec, raw.clone().into());
        }
        for compression in [Compression::Gzip, Compression::Zstd] {
            let _ = compression.open(&raw, 1000);
        }
    }
}
