//! Unary gRPC and gRPC-Web: detects the protocol of a request, parses its headers and the five-byte prefix of a
//! message.
//!
//! In: headers and bytes. Out: the same [`CallHeaders`] as for Connect, so that later steps do not depend on the
//! protocol. Protocol: <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>.

use std::time::Duration;

use http::HeaderMap;
use http::header::CONTENT_TYPE;

use crate::connect::{CallHeaders, Codec, Compression, ConnectError};

/// Beginning of all content types of gRPC and gRPC-Web.
const CONTENT: &str = "application/grpc";

/// Maximum number of digits of a timeout.
const TIMEOUT_DIGITS: usize = 8;

/// Length of the prefix of a message: one byte of flags, four of length.
pub const PREFIX_BYTES: usize = 5;

/// The protocol of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Connect, or a request that is not a call.
    Connect,
    /// gRPC, for clients that read trailers.
    Grpc,
    /// gRPC-Web, over any version of HTTP.
    GrpcWeb,
}

impl Protocol {
    /// Returns the protocol that the content type of the request names.
    pub fn of(headers: &HeaderMap) -> Self {
        let kind = content_type(headers);
        match kind.strip_prefix(CONTENT) {
            Some(rest) if rest.starts_with("-web") => Self::GrpcWeb,
            Some("") => Self::Grpc,
            Some(rest) if rest.starts_with(['+', ';']) => Self::Grpc,
            _ => Self::Connect,
        }
    }
}

/// Parses the headers of a gRPC call. Errors: 415 for messages that are not protobuf, 400 for a wrong timeout,
/// `unimplemented` for an unknown compression.
pub fn call_headers(headers: &HeaderMap) -> Result<CallHeaders, ConnectError> {
    let kind = content_type(headers);
    let kind = kind.split(';').next().unwrap_or_default().trim_end();
    if !matches!(kind.strip_prefix(CONTENT), Some("" | "+proto")) {
        return Err(ConnectError::invalid(format!(
            "content type `{kind}` is not supported: expected application/grpc+proto"
        ))
        .with_status(415));
    }
    let encodings = headers.get_all("grpc-accept-encoding").iter();
    let mut encodings = encodings.flat_map(|value| value.to_str().unwrap_or_default().split(','));
    Ok(CallHeaders {
        codec: Codec::Proto,
        compression: Compression::named(headers.get("grpc-encoding"))?,
        accepts_gzip: encodings.any(|name| name.trim() == "gzip"),
        timeout: timeout(headers)?,
    })
}

fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE);
    value.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Parses the caller's timeout from `grpc-timeout`.
fn timeout(headers: &HeaderMap) -> Result<Option<Duration>, ConnectError> {
    let Some(value) = headers.get("grpc-timeout") else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let read = || {
        let unit_offset = text.len().checked_sub(1)?;
        let (digits, unit) = text.split_at_checked(unit_offset)?;
        if digits.len() > TIMEOUT_DIGITS || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number: u64 = digits.parse().ok()?;
        Some(match unit {
            "H" => Duration::from_secs(number * 3600),
            "M" => Duration::from_secs(number * 60),
            "S" => Duration::from_secs(number),
            "m" => Duration::from_millis(number),
            "u" => Duration::from_micros(number),
            "n" => Duration::from_nanos(number),
            _ => return None,
        })
    };
    read().map(Some).ok_or_else(|| {
        ConnectError::invalid(format!(
            "grpc-timeout must be up to {TIMEOUT_DIGITS} digits and one of H, M, S, m, u, n, not {value:?}"
        ))
    })
}

/// The five bytes before a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// True if the message is compressed with the encoding that `grpc-encoding` names.
    pub is_compressed: bool,
    /// Length of the message on the wire in bytes.
    pub length: u32,
}

impl Prefix {
    /// Parses the five bytes before a message.
    pub fn read(bytes: [u8; PREFIX_BYTES]) -> Result<Self, ConnectError> {
        let [flags, length @ ..] = bytes;
        let is_compressed = match flags {
            0 => false,
            1 => true,
            flags => {
                return Err(ConnectError::invalid(format!(
                    "the flags before the message must be 0 or 1, not {flags}"
                )));
            }
        };
        Ok(Self {
            is_compressed,
            length: u32::from_be_bytes(length),
        })
    }

    /// Encodes the prefix as the five bytes before the message.
    pub fn to_bytes(self) -> [u8; PREFIX_BYTES] {
        let [a, b, c, d] = self.length.to_be_bytes();
        [self.is_compressed.into(), a, b, c, d]
    }
}

/// Returns the prefix and the bytes of the only message of a body. Fails if the body has less or more than one message.
pub fn only_message(body: &[u8]) -> Result<(Prefix, &[u8]), ConnectError> {
    let (prefix, message) = body
        .split_first_chunk()
        .ok_or_else(|| ConnectError::invalid("the body ends before its message"))?;
    let prefix = Prefix::read(*prefix)?;
    if prefix.length as usize != message.len() {
        return Err(ConnectError::invalid(format!(
            "the message has {} bytes, but its prefix announces {}",
            message.len(),
            prefix.length
        )));
    }
    Ok((prefix, message))
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn the_content_type_names_the_protocol() {
        for (kind, protocol) in [
            ("application/grpc", Protocol::Grpc),
            ("application/grpc+proto", Protocol::Grpc),
            ("application/grpc; charset=utf-8", Protocol::Grpc),
            ("application/grpc-web", Protocol::GrpcWeb),
            ("application/grpc-web-text+proto", Protocol::GrpcWeb),
            ("application/grpcx", Protocol::Connect),
            ("application/proto", Protocol::Connect),
            ("", Protocol::Connect),
        ] {
            assert_eq!(Protocol::of(&headers(&[("content-type", kind)])), protocol, "{kind}");
        }
        let json = call_headers(&headers(&[("content-type", "application/grpc+json")]));
        assert_eq!(json.unwrap_err().status, 415);
    }

    #[test]
    fn headers_say_compression_and_time() {
        let read = |pairs: &[(&'static str, &str)]| {
            let mut all = headers(&[("content-type", "application/grpc")]);
            all.extend(headers(pairs));
            call_headers(&all)
        };
        let plain = read(&[]).unwrap();
        assert_eq!(
            (plain.compression, plain.accepts_gzip, plain.timeout),
            (Compression::Identity, false, None)
        );
        let all = read(&[
            ("grpc-encoding", "gzip"),
            ("grpc-accept-encoding", "identity, gzip"),
            ("grpc-timeout", "250m"),
        ])
        .unwrap();
        assert_eq!(
            (all.compression, all.accepts_gzip, all.timeout),
            (Compression::Gzip, true, Some(Duration::from_millis(250)))
        );
        let time = |text| read(&[("grpc-timeout", text)]).map(|headers| headers.timeout);
        assert_eq!(time("99999999H").unwrap(), Some(Duration::from_hours(99_999_999)));
        assert_eq!(time("7u").unwrap(), Some(Duration::from_micros(7)));
        for timeout in ["", "S", "1", "1s", "-1S", "123456789S", "1.5S"] {
            assert_eq!(time(timeout).unwrap_err().status, 400, "{timeout}");
        }
        assert!(read(&[("grpc-encoding", "br")]).is_err());
    }

    #[test]
    fn a_prefix_survives_the_round_trip_and_unknown_flags_are_refused() {
        let prefix = Prefix {
            is_compressed: true,
            length: 0x0102_0304,
        };
        assert_eq!(prefix.to_bytes(), [1, 1, 2, 3, 4]);
        assert_eq!(Prefix::read(prefix.to_bytes()).unwrap(), prefix);
        assert_eq!(Prefix::read([2, 0, 0, 0, 0]).unwrap_err().status, 400);
    }

    #[test]
    fn a_body_has_exactly_one_message() {
        let body = [0, 0, 0, 0, 2, 7, 8];
        let (prefix, message) = only_message(&body).unwrap();
        assert_eq!((prefix.is_compressed, message), (false, &[7, 8][..]));
        assert!(only_message(&[0; PREFIX_BYTES]).unwrap().1.is_empty());
        for wrong in [&body[..4], &body[..6], &[&body[..], &[0]].concat()] {
            assert_eq!(only_message(wrong).unwrap_err().status, 400, "{wrong:?}");
        }
    }
}
