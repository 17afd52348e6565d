//! `google.rpc.Status`: code, message and details of an error. gRPC sends it as `grpc-status-details-bin`, OTLP as the
//! body of an error.
//!
//! In: a [`ConnectError`]. Out: the encoded status, which gRPC's header contains in base64. The module also decodes a
//! status. In a status, Connect's codes are numbers.

use bytes::Bytes;
use prost::Message;

use crate::connect::{Code, ConnectError};
use crate::error_detail::ErrorDetail;

/// Prefix of a type's name in the URL of an `Any`.
const TYPE_URL: &str = "type.googleapis.com/";

/// The message `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// The message `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct Any {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "bytes", tag = "2")]
    value: Bytes,
}

/// Encodes an error as a status.
pub fn encode(error: &ConnectError) -> Bytes {
    let details = error.details.iter().map(|detail| Any {
        type_url: format!("{TYPE_URL}{}", detail.type_name),
        value: detail.value.clone(),
    });
    let status = Status {
        code: error.code.grpc_number(),
        message: error.message.clone(),
        details: details.collect(),
    };
    status.encode_to_vec().into()
}

/// Encodes an error as a status in JSON. Omits the details: they are encoded messages, whose JSON form is not known
/// here.
pub fn to_json(error: &ConnectError) -> Bytes {
    let status = serde_json::json!({"code": error.code.grpc_number(), "message": error.message});
    status.to_string().into()
}

/// Decodes the error of a status. Returns `None` when the bytes are invalid or the status is a success.
pub fn decode(status: &[u8]) -> Option<ConnectError> {
    let status = Status::decode(status).ok()?;
    let mut error = ConnectError::new(Code::from_grpc_number(status.code)?, status.message);
    error.details = status
        .details
        .into_iter()
        .map(|any| ErrorDetail {
            type_name: any.type_url.rsplit('/').next().unwrap_or_default().to_owned(),
            value: any.value,
        })
        .collect();
    Some(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_with_details_survives_both_protocols() {
        let mut error = ConnectError::new(Code::ResourceExhausted, "too many series");
        error.details = vec![ErrorDetail {
            type_name: "push.v1.PushRefusals".to_owned(),
            value: Bytes::from_static(&[0, 1, 0xff, 0x10]),
        }];
        assert_eq!(decode(&encode(&error)), Some(error.clone()));
        let json = error.to_json();
        assert_eq!(ConnectError::from_json(429, &json), Some(error.clone()));
        let text = std::str::from_utf8(&json).unwrap();
        assert!(
            text.ends_with(r#""details":[{"type":"push.v1.PushRefusals","value":"AAH/EA"}]}"#),
            "{text}"
        );
        let status: serde_json::Value = serde_json::from_slice(&to_json(&error)).unwrap();
        assert_eq!(status, serde_json::json!({"code": 8, "message": "too many series"}));
        let padded = text.replace("AAH/EA", "AAH/EA==");
        assert_eq!(ConnectError::from_json(429, padded.as_bytes()), Some(error));
    }

    #[test]
    fn codes_have_the_numbers_of_grpc() {
        let numbered = [
            (Code::Canceled, 1),
            (Code::InvalidArgument, 3),
            (Code::ResourceExhausted, 8),
            (Code::Unavailable, 14),
            (Code::Unauthenticated, 16),
        ];
        for (code, number) in numbered {
            assert_eq!(code.grpc_number(), number);
            assert_eq!(Code::from_grpc_number(number), Some(code));
        }
        assert_eq!([0, 17, -1].map(Code::from_grpc_number), [None; 3]);
        assert_eq!(decode(b""), None);
    }
}
