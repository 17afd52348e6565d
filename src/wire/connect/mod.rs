//! Unary Connect: parses the headers of calls, decodes and encodes messages, and maps errors to codes.
//!
//! In: headers and bytes. Out: messages and [`ConnectError`]s. Streaming calls are refused; `grpc` handles gRPC. For
//! HTTP, this file uses only the header types of the crate `http`, because `server` and the clients use different HTTP
//! libraries. Protocol: <https://connectrpc.com/docs/protocol>.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize};

use crate::error_detail::ErrorDetail;
use crate::json::{self, FromJson, ToJson};
pub(crate) use alluvium_base::encoding::accepts;

mod response;

pub use crate::compression::{Compression, CompressionError};
pub use response::log;

/// Maximum number of digits of a timeout in milliseconds.
const TIMEOUT_DIGITS: usize = 10;

/// Estimated size of JSON as a multiple of the binary form. A small number takes one byte in binary and four as a
/// string in a list.
const JSON_FACTOR: usize = 4;

/// Error codes of Connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The caller cancelled the call.
    Canceled,
    /// An error without a more specific code.
    Unknown,
    /// The request is wrong; the same request fails again.
    InvalidArgument,
    /// The call took too long.
    DeadlineExceeded,
    /// The requested object or route does not exist.
    NotFound,
    /// The object exists already.
    AlreadyExists,
    /// The caller may not do this.
    PermissionDenied,
    /// A limit is reached; a later call may succeed.
    ResourceExhausted,
    /// The state of the server does not allow the call.
    FailedPrecondition,
    /// The call conflicts with another one.
    Aborted,
    /// A value is outside of the valid range.
    OutOfRange,
    /// The server does not support the call.
    Unimplemented,
    Internal,
    /// The server is unavailable at the moment.
    Unavailable,
    /// Data is lost or damaged.
    DataLoss,
    /// The caller is not authenticated.
    Unauthenticated,
}

const CODES: [(Code, &str, u16); 16] = [
    (Code::Canceled, "canceled", 499),
    (Code::Unknown, "unknown", 500),
    (Code::InvalidArgument, "invalid_argument", 400),
    (Code::DeadlineExceeded, "deadline_exceeded", 504),
    (Code::NotFound, "not_found", 404),
    (Code::AlreadyExists, "already_exists", 409),
    (Code::PermissionDenied, "permission_denied", 403),
    (Code::ResourceExhausted, "resource_exhausted", 429),
    (Code::FailedPrecondition, "failed_precondition", 400),
    (Code::Aborted, "aborted", 409),
    (Code::OutOfRange, "out_of_range", 400),
    (Code::Unimplemented, "unimplemented", 501),
    (Code::Internal, "internal", 500),
    (Code::Unavailable, "unavailable", 503),
    (Code::DataLoss, "data_loss", 500),
    (Code::Unauthenticated, "unauthenticated", 401),
];

impl Code {
    /// Returns the name on the wire, such as `invalid_argument`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the HTTP status of the code.
    pub fn status(self) -> u16 {
        self.row().2
    }

    /// Returns the code with this name on the wire.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        CODES.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Returns the number in gRPC, where 0 is success.
    pub fn grpc_number(self) -> i32 {
        self as i32 + 1
    }

    /// Returns the code with this number in gRPC.
    pub(crate) fn from_grpc_number(number: i32) -> Option<Self> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        CODES.get(index).map(|row| row.0)
    }

    /// Returns true when a retry of the same call may succeed.
    pub fn is_retryable(self) -> bool {
        matches!(
            self,
            Code::Unknown
                | Code::DeadlineExceeded
                | Code::ResourceExhausted
                | Code::Aborted
                | Code::Internal
                | Code::Unavailable
                | Code::DataLoss
        )
    }

    fn row(self) -> &'static (Code, &'static str, u16) {
        // The table has a row for every variant in the order of the enum (a test checks it), so the fallback is never
        // used.
        CODES.get(self as usize).unwrap_or(&CODES[1])
    }
}

/// The reason why a call failed: code, HTTP status and message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    /// Code by which clients decide how to react.
    pub code: Code,
    /// HTTP status; usually the status of the code. Some statuses have no code of their own, such as 413 and 415.
    pub status: u16,
    /// The failed operation and the reason, in lower case.
    pub message: String,
    pub details: Vec<ErrorDetail>,
}

impl ConnectError {
    /// Creates an error with the HTTP status of `code`.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            status: code.status(),
            message: message.into(),
            details: Vec::new(),
        }
    }

    /// Creates an error for an invalid request: status 400.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// Creates an error for a request that is too large: status 413. The code is `invalid_argument` instead of
    /// `resource_exhausted`, so that clients do not retry.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::invalid(message).with_status(413)
    }

    /// Returns the same error with another HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Returns the same error with an additional detail.
    #[must_use]
    pub fn with_detail(mut self, detail: ErrorDetail) -> Self {
        self.details.push(detail);
        self
    }

    /// Returns the response body `{"code": ..., "message": ..., "details": [...]}`. Its content type is
    /// `application/json`, regardless of the request.
    pub fn to_json(&self) -> Bytes {
        let body = ErrorBody {
            code: self.code.name().to_owned(),
            message: self.message.clone(),
            details: self.details.clone(),
        };
        serde_json::to_vec(&body).unwrap_or_default().into()
    }

    /// Parses the body of a failed call. Returns `None` when it is not a Connect error in JSON.
    pub fn from_json(status: u16, body: &[u8]) -> Option<Self> {
        let body: ErrorBody = serde_json::from_slice(body).ok()?;
        Some(Self {
            code: Code::from_name(&body.code)?,
            status,
            message: body.message,
            details: body.details,
        })
    }
}

/// An unknown compression is `unimplemented` with status 415; damaged data is a wrong argument with status 400.
impl From<CompressionError> for ConnectError {
    fn from(error: CompressionError) -> Self {
        let message = error.to_string();
        match error {
            CompressionError::Unknown(_) => ConnectError::new(Code::Unimplemented, message).with_status(415),
            CompressionError::Damaged { .. } => ConnectError::invalid(message),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct ErrorBody {
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    details: Vec<ErrorDetail>,
}

/// Encoding of the messages of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Protobuf's binary form, `application/proto`.
    Proto,
    /// Protobuf's JSON form, `application/json`.
    Json,
}

impl Codec {
    /// Returns the content type of responses.
    pub fn content_type(self) -> &'static str {
        match self {
            Codec::Proto => "application/proto",
            Codec::Json => "application/json",
        }
    }
}

/// The parsed headers of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallHeaders {
    /// Encoding of request and response.
    pub codec: Codec,
    /// Compression of the request's body.
    pub compression: Compression,
    /// True when the response may be compressed with gzip.
    pub accepts_gzip: bool,
    /// The caller's timeout, from `Connect-Timeout-Ms`.
    pub timeout: Option<Duration>,
}

impl CallHeaders {
    /// Parses the headers of a unary call. Errors: 415 for an unsupported content type, 400 for a wrong version or
    /// timeout, `unimplemented` for an unknown compression.
    pub fn read(headers: &HeaderMap) -> Result<Self, ConnectError> {
        let codec = codec(headers)?;
        if let Some(version) = headers.get("connect-protocol-version")
            && version.as_bytes() != b"1"
        {
            return Err(ConnectError::invalid(format!(
                "connect-protocol-version must be `1`, not {version:?}"
            )));
        }
        Ok(Self {
            codec,
            compression: Compression::read(headers)?,
            accepts_gzip: accepts(headers, "gzip"),
            timeout: Self::timeout(headers)?,
        })
    }

    /// Parses the caller's timeout from `Connect-Timeout-Ms`.
    pub fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, ConnectError> {
        let Some(value) = headers.get("connect-timeout-ms") else {
            return Ok(None);
        };
        let text = value.to_str().unwrap_or_default();
        if text.is_empty() || text.len() > TIMEOUT_DIGITS || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ConnectError::invalid(format!(
                "connect-timeout-ms must be up to {TIMEOUT_DIGITS} digits, not {value:?}"
            )));
        }
        let milliseconds = text.parse().unwrap_or(u64::MAX);
        Ok(Some(Duration::from_millis(milliseconds)))
    }
}

/// Content types that errors list as supported: the names of Connect and of OTLP.
const CONTENT_TYPES: &str = "application/proto, application/x-protobuf or application/json";

fn codec(headers: &HeaderMap) -> Result<Codec, ConnectError> {
    let value = headers
        .get(CONTENT_TYPE)
        .map(|value| value.to_str().unwrap_or_default())
        .unwrap_or_default();
    let unsupported = |message: String| Err(ConnectError::invalid(message).with_status(415));
    let (kind, parameters) = value.split_once(';').unwrap_or((value, ""));
    let charset_is_utf8 = parameters.split(';').all(|parameter| {
        let (name, text) = parameter.split_once('=').unwrap_or((parameter, ""));
        !name.trim().eq_ignore_ascii_case("charset") || text.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    if !charset_is_utf8 {
        return unsupported(format!("content type `{value}` has a charset other than utf-8"));
    }
    match kind.trim().to_ascii_lowercase().as_str() {
        "application/proto" | "application/protobuf" | "application/x-protobuf" => Ok(Codec::Proto),
        "application/json" => Ok(Codec::Json),
        "" => unsupported(format!("the request has no content type: expected {CONTENT_TYPES}")),
        kind if kind.starts_with("application/connect+") => unsupported(format!(
            "content type `{kind}` is for streams, but this call is unary: expected {CONTENT_TYPES}"
        )),
        kind => unsupported(format!(
            "content type `{kind}` is not supported: expected {CONTENT_TYPES}"
        )),
    }
}

/// Decodes a decompressed body to a message. An empty JSON body is an error, as in protobuf's JSON. An empty binary
/// body is the empty message.
pub fn decode<M>(codec: Codec, body: Bytes) -> Result<M, ConnectError>
where
    M: prost::Message + Default + FromJson,
{
    match codec {
        Codec::Proto => {
            M::decode(body).map_err(|error| ConnectError::invalid(format!("cannot read the body as protobuf: {error}")))
        }
        Codec::Json => {
            json::read(&body).map_err(|error| ConnectError::invalid(format!("cannot read the body as JSON: {error}")))
        }
    }
}

/// Encodes a message as a body.
pub fn encode<M>(codec: Codec, message: &M) -> Bytes
where
    M: prost::Message + ToJson,
{
    match codec {
        Codec::Proto => message.encode_to_vec().into(),
        Codec::Json => {
            let mut out = json::Writer::with_capacity(message.encoded_len() * JSON_FACTOR);
            message.write(&mut out);
            out.into_bytes().into()
        }
    }
}

#[cfg(test)]
mod tests;
