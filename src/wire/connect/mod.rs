//! Unary Connect: which encoding a call has, its body to a message, a message to its body, errors with their codes.
//!
//! In: headers and bytes. Out: messages and [`ConnectError`]s. Streaming is refused by name; gRPC is in `grpc`. No HTTP
//! library but the header types: `server` and the clients bring theirs. Protocol:
//! <https://connectrpc.com/docs/protocol>.

use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};

pub(crate) use crate::base::encoding::{accepts, gzip};
use crate::wire::error_detail::ErrorDetail;
use crate::wire::json::{self, FromJson, ToJson};

/// Longest timeout that the protocol can express: ten digits of milliseconds.
const TIMEOUT_DIGITS: usize = 10;

/// Room for JSON, by the bytes of the binary form: a small number takes one byte there, four as a text in a list.
const JSON_FACTOR: usize = 4;

/// Why a call failed, in Connect's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Code {
    /// The caller gave the call up.
    Canceled,
    /// An error of no other kind.
    Unknown,
    /// The same request fails again.
    InvalidArgument,
    /// The call took too long.
    DeadlineExceeded,
    /// There is no such thing or route.
    NotFound,
    /// The thing exists already.
    AlreadyExists,
    /// The caller may not do this.
    PermissionDenied,
    /// A limit was reached; later it may work.
    ResourceExhausted,
    /// The state does not allow it.
    FailedPrecondition,
    /// It collided with something else.
    Aborted,
    /// Outside of the valid range.
    OutOfRange,
    /// This server does not do that.
    Unimplemented,
    Internal,
    /// The server cannot answer now.
    Unavailable,
    /// Data is lost or damaged.
    DataLoss,
    /// The caller did not say who it is.
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
    /// Name on the wire, as `invalid_argument`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// HTTP status that belongs to the code.
    pub fn status(self) -> u16 {
        self.row().2
    }

    /// The code of a name on the wire.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        CODES.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Number in gRPC, where 0 is success.
    pub(crate) fn grpc_number(self) -> i32 {
        self as i32 + 1
    }

    /// The code of a number in gRPC.
    pub(crate) fn from_grpc_number(number: i32) -> Option<Self> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        CODES.get(index).map(|row| row.0)
    }

    /// True when the same call may succeed later.
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
        // The table has every variant in the order of the enum (tested), so the fallback is never taken.
        CODES.get(self as usize).unwrap_or(&CODES[1])
    }
}

/// Why a call failed: code, HTTP status and message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ConnectError {
    /// What clients decide by.
    pub code: Code,
    /// HTTP status; mostly that of the code, but 413 and 415 have no code of their own.
    pub status: u16,
    /// What was being done and what went wrong, lower case.
    pub message: String,
    pub details: Vec<ErrorDetail>,
}

impl ConnectError {
    /// An error of `code` with the code's HTTP status.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            status: code.status(),
            message: message.into(),
            details: Vec::new(),
        }
    }

    /// The request is wrong: 400.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    /// The request is too large: 413. The code is `invalid_argument` and not `resource_exhausted`, so that nobody sends
    /// the same bytes again.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::invalid(message).with_status(413)
    }

    /// The same error under another HTTP status.
    #[must_use]
    pub(crate) fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The same error with a detail more.
    #[must_use]
    pub(crate) fn with_detail(mut self, detail: ErrorDetail) -> Self {
        self.details.push(detail);
        self
    }

    /// The body `{"code": ..., "message": ..., "details": [...]}` of the answer; its content type is `application/json`
    /// whatever the request had.
    pub fn to_json(&self) -> Bytes {
        let body = ErrorBody {
            code: self.code.name().to_owned(),
            message: self.message.clone(),
            details: self.details.clone(),
        };
        serde_json::to_vec(&body).unwrap_or_default().into()
    }

    /// Reads the body of a failed call; `None` when it is not Connect's JSON.
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

#[derive(Serialize, Deserialize)]
struct ErrorBody {
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    details: Vec<ErrorDetail>,
}

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Protobuf's binary form, `application/proto`.
    Proto,
    /// Protobuf's JSON form, `application/json`.
    Json,
}

impl Codec {
    /// Content type of answers.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Codec::Proto => "application/proto",
            Codec::Json => "application/json",
        }
    }
}

/// What the headers of a call say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallHeaders {
    /// Encoding of request and answer.
    pub codec: Codec,
    /// Compression of the request's body.
    pub compression: Compression,
    /// True when the answer may be compressed by gzip.
    pub accepts_gzip: bool,
    /// Time that the caller gives, from `Connect-Timeout-Ms`.
    pub timeout: Option<Duration>,
}

/// How the body of a request is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    Identity,
    /// gzip, of one or several members.
    Gzip,
    /// Zstandard with windows of up to 8 MiB.
    Zstd,
}

impl CallHeaders {
    /// Reads the headers of a unary call. Errors: 415 for other content types, 400 for a wrong version or timeout,
    /// `unimplemented` for an unknown compression.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, ConnectError> {
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

    /// The time that the caller gives, from `Connect-Timeout-Ms`.
    pub(crate) fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, ConnectError> {
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
        "" => unsupported("the request has no content type: application/proto or application/json".to_owned()),
        kind if kind.starts_with("application/connect+") => unsupported(format!(
            "content type `{kind}` is that of a stream, this call is unary: application/proto or application/json"
        )),
        kind => unsupported(format!(
            "content type `{kind}` is not supported: application/proto or application/json"
        )),
    }
}

impl Compression {
    /// Reads `Content-Encoding`.
    pub fn read(headers: &HeaderMap) -> Result<Self, ConnectError> {
        Self::named(headers.get(CONTENT_ENCODING))
    }

    /// The compression that the value of a header names; none is the body as it is.
    pub fn named(value: Option<&HeaderValue>) -> Result<Self, ConnectError> {
        let value = value.map_or("", |value| value.to_str().unwrap_or("?"));
        match value.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            other => Err(ConnectError::new(
                Code::Unimplemented,
                format!("content encoding `{other}` is not supported: gzip, zstd or identity"),
            )
            .with_status(415)),
        }
    }

    /// Its name, as in `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Compression::Identity => "identity",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        }
    }

    /// The body without its compression; `None` when that is more than `max_bytes`, of which then no more is held than
    /// these. Error: 400 for damaged data.
    pub fn open(self, body: &[u8], max_bytes: usize) -> Result<Option<Vec<u8>>, ConnectError> {
        let opened = match self {
            Compression::Identity => read_bounded(body, max_bytes),
            Compression::Gzip => read_bounded(flate2::read::MultiGzDecoder::new(body), max_bytes),
            Compression::Zstd => zstd::stream::read::Decoder::with_buffer(body).and_then(|mut decoder| {
                // 8 MiB is the largest window that a decoder must support (RFC 8878, 3.1.1.1.2).
                decoder.window_log_max(23)?;
                read_bounded(decoder, max_bytes)
            }),
        };
        let name = self.name();
        opened.map_err(|error| ConnectError::invalid(format!("cannot decompress the {name} body: {error}")))
    }
}

/// Reads into a buffer that is there from the start: one that grows would be there twice when it is copied. What is not
/// written to takes no memory.
fn read_bounded(reader: impl Read, max_bytes: usize) -> std::io::Result<Option<Vec<u8>>> {
    let mut out = Vec::with_capacity(max_bytes.saturating_add(1));
    reader
        .take((max_bytes as u64).saturating_add(1))
        .read_to_end(&mut out)?;
    Ok((out.len() <= max_bytes).then_some(out))
}

/// Body (already decompressed) to message. An empty JSON body is an error, as in protobuf's JSON; an empty binary one
/// is the empty message.
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

/// Writes a message as a body.
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
