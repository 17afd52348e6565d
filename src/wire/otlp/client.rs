//! Sends export requests of OTLP by gRPC, or by HTTP with protobuf.
//!
//! In: an encoded request. Out: the response, or the error of the call. The caller retries failed calls.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::BodyExt as _;
use percent_encoding::percent_decode_str;
use prost::Message as _;

use crate::call::{CallError, Caller, retry_after};
use crate::client::read_beginning;
use crate::connect::{Code, Codec, Compression, ConnectError};
use crate::grpc::{Prefix, only_message};
use crate::grpc_status;
use crate::otlp::messages::ExportProfilesServiceResponse;
use crate::otlp::{EXPORT_ROUTE, content_type};
use alluvium_profile::pprof;

/// Maximum size of a response in bytes. A response has only a count and a text.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Accepts binary headers with and without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Protocol of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// gRPC; the caller's URL is the address of the server.
    Grpc,
    /// A POST; the caller's URL is the URL of the route.
    Http,
}

/// Compression of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    None,
    Gzip,
}

/// Sends one request and reads its response.
pub async fn export(
    caller: &Caller,
    transport: Transport,
    packing: Packing,
    body: Bytes,
) -> Result<ExportProfilesServiceResponse, CallError> {
    let body = match packing {
        Packing::None => body,
        Packing::Gzip => pprof::gzip(&body).into(),
    };
    match transport {
        Transport::Http => send_http(caller, packing, body).await,
        Transport::Grpc => send_grpc(caller, packing, body).await,
    }
}

async fn send_http(caller: &Caller, packing: Packing, body: Bytes) -> Result<ExportProfilesServiceResponse, CallError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type(Codec::Proto)));
    if packing == Packing::Gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let response = caller.send("", headers, body).await?;
    let (url, status) = (response.url().to_string(), response.status());
    let retry_after = retry_after(response.headers());
    let compression = Compression::read(response.headers()).map_err(ConnectError::from);
    let body = read_beginning(response, MAX_ANSWER_BYTES).await;
    let opened = compression.and_then(|compression| open(compression, &body));
    if status.is_success() {
        return decode(url, opened);
    }
    let body = opened.unwrap_or(body);
    let message = match grpc_status::decode(&body) {
        Some(error) => error.message,
        None => String::from_utf8_lossy(&body).trim_end().to_owned(),
    };
    Err(CallError::Refused {
        url,
        status: status.as_u16(),
        code: None,
        message,
        details: Vec::new(),
        retry_after,
    })
}

async fn send_grpc(caller: &Caller, packing: Packing, body: Bytes) -> Result<ExportProfilesServiceResponse, CallError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert("te", HeaderValue::from_static("trailers"));
    headers.insert("grpc-accept-encoding", HeaderValue::from_static("identity,gzip"));
    if packing == Packing::Gzip {
        headers.insert("grpc-encoding", HeaderValue::from_static("gzip"));
    }
    if let Some(timeout) = caller.timeout() {
        // The protocol allows at most eight digits.
        let milliseconds = timeout.as_millis().min(99_999_999);
        if let Ok(value) = format!("{milliseconds}m").try_into() {
            headers.insert("grpc-timeout", value);
        }
    }
    let prefix = Prefix {
        is_compressed: packing == Packing::Gzip,
        length: body.len() as u32,
    };
    let body = [&prefix.to_bytes(), body.as_ref()].concat().into();
    let response = caller.send(EXPORT_ROUTE, headers, body).await?;
    let (url, status) = (response.url().to_string(), response.status());
    let wait = retry_after(response.headers());
    let response: http::Response<reqwest::Body> = response.into();
    let (parts, mut body) = response.into_parts();
    let (mut message, mut trailers) = (BytesMut::new(), HeaderMap::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|source| CallError::Transport {
            url: url.clone(),
            source,
        })?;
        match frame.into_data() {
            Ok(data) if message.len() + data.len() <= MAX_ANSWER_BYTES => message.extend_from_slice(&data),
            Ok(_) => break,
            Err(frame) => trailers = frame.into_trailers().unwrap_or_default(),
        }
    }
    // A call that failed immediately has its status in the headers.
    let find = |name: &'static str| {
        let name = HeaderName::from_static(name);
        let value = trailers.get(&name).or(parts.headers.get(&name))?;
        value.to_str().ok()
    };
    let Some(number) = find("grpc-status").and_then(|number| number.parse().ok()) else {
        return Err(CallError::Refused {
            url,
            status: status.as_u16(),
            code: None,
            message: "the response has no gRPC status".to_owned(),
            details: Vec::new(),
            retry_after: wait,
        });
    };
    if number == 0 {
        return decode(url, open_message(&parts.headers, &message.freeze()));
    }
    let code = Code::from_grpc_number(number).unwrap_or(Code::Unknown);
    let text = find("grpc-message").unwrap_or_default();
    let details = find("grpc-status-details-bin").and_then(|text| BASE64.decode(text).ok());
    let details = details.and_then(|details| grpc_status::decode(&details));
    let mut error = ConnectError::new(code, percent_decode_str(text).decode_utf8_lossy());
    // Servers in Go report a message that is too large with the code of a rate limit.
    if code == Code::ResourceExhausted && error.message.contains("larger than max") {
        error = ConnectError::too_large(error.message);
    }
    Err(CallError::Refused {
        url,
        status: error.status,
        code: Some(error.code),
        message: error.message,
        details: details.map(|details| details.details).unwrap_or_default(),
        retry_after: wait,
    })
}

/// Returns the message of a response without its prefix, decompressed. gRPC servers in Go compress the response like
/// the request.
fn open_message(headers: &HeaderMap, body: &Bytes) -> Result<Bytes, ConnectError> {
    if body.is_empty() {
        return Ok(Bytes::new());
    }
    let (prefix, message) = only_message(body)?;
    if !prefix.is_compressed {
        return Ok(body.slice_ref(message));
    }
    open(Compression::named(headers.get("grpc-encoding"))?, message)
}

fn open(compression: Compression, body: &[u8]) -> Result<Bytes, ConnectError> {
    if body.is_empty() {
        return Ok(Bytes::new());
    }
    let opened = compression.open(body, MAX_ANSWER_BYTES)?;
    let opened = opened.ok_or_else(|| ConnectError::too_large("the response is too large"))?;
    Ok(opened.into())
}

fn decode(url: String, opened: Result<Bytes, ConnectError>) -> Result<ExportProfilesServiceResponse, CallError> {
    let message = match opened.map(ExportProfilesServiceResponse::decode) {
        Ok(Ok(response)) => return Ok(response),
        Ok(Err(error)) => format!("cannot read the body as protobuf: {error}"),
        Err(error) => error.message,
    };
    Err(CallError::Answer { url, message })
}
