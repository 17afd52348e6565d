//! gRPC and gRPC-Web for components that take profiles on a port: one message in, one message or a status out.
//!
//! In: a request. Out: its message, uncompressed and within the limits of an [`Intake`]; and the response for what a
//! component makes of it.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, Version};

use crate::admin::grpc;
use crate::components::common::serving::intake::{Intake, TakenBody};
use crate::wire::connect::{Code, Compression, ConnectError};
use crate::wire::grpc::{PREFIX_BYTES, Prefix, Protocol, call_headers};
use crate::wire::grpc_status;

/// Answers a call of either protocol with what `work` makes of its request: the encoded answer, or an error. `count` is
/// called once, with the status that the answer would have over HTTP.
pub(crate) async fn serve<Work>(request: Request, count: impl Fn(u16), work: impl Fn(Request) -> Work) -> Response
where
    Work: Future<Output = Result<Bytes, ConnectError>>,
{
    let answer = |request| async {
        let answered = work(request).await;
        count(answered.as_ref().map_or_else(|error| error.status, |_| 200));
        answered.map_or_else(|error| refusal(&error), |message| success(&message))
    };
    if Protocol::of(request.headers()) == Protocol::GrpcWeb {
        return grpc::web(request, answer).await;
    }
    if !grpc::takes_trailers(&request) {
        let message = "gRPC needs HTTP/2, or `TE: trailers`; otherwise use gRPC-Web or Connect";
        let error = ConnectError::new(Code::Unimplemented, message);
        count(error.status);
        return refusal(&error);
    }
    let version = request.version();
    let response = answer(request).await;
    if version == Version::HTTP_2 {
        response
    } else {
        grpc::announced(response)
    }
}

/// Reads the message of a call, which is protobuf.
pub(crate) async fn read_message(intake: &Intake, headers: &HeaderMap, body: Body) -> Result<TakenBody, ConnectError> {
    let call = call_headers(headers)?;
    let mut body = intake.read(headers, body, Vec::new()).await?;
    let prefix = prefix_of(&body.bytes)?;
    body.bytes = body.bytes.split_off(PREFIX_BYTES);
    let compression = match call.compression {
        _ if !prefix.is_compressed => Compression::Identity,
        Compression::Identity => {
            let message = "the message is compressed, and the header grpc-encoding does not say how";
            return Err(ConnectError::invalid(message));
        }
        named => named,
    };
    intake.unpack(compression, body).await
}

/// The bytes before the one message of a body.
fn prefix_of(body: &[u8]) -> Result<Prefix, ConnectError> {
    let (prefix, message) = body
        .split_first_chunk()
        .ok_or_else(|| ConnectError::invalid("the body ends before its message"))?;
    let prefix = Prefix::read(*prefix)?;
    if prefix.length as usize != message.len() {
        return Err(ConnectError::invalid(format!(
            "the message has {} bytes, and {} are announced",
            message.len(),
            prefix.length
        )));
    }
    Ok(prefix)
}

fn success(message: &[u8]) -> Response {
    let prefix = Prefix {
        is_compressed: false,
        length: message.len() as u32,
    };
    grpc::success([&prefix.to_bytes(), message].concat().into(), None)
}

fn refusal(error: &ConnectError) -> Response {
    tracing::debug!(status = error.status, error = %error, "profiles refused");
    let details = if error.details.is_empty() {
        Bytes::new()
    } else {
        grpc_status::encode(error)
    };
    grpc::failure(error.code.grpc_number(), &error.message, &details)
}

#[cfg(test)]
pub(crate) mod testing {
    //! Calls of gRPC as clients make them.

    use http_body_util::BodyExt as _;

    use super::*;

    /// An answer with its trailers.
    pub(crate) struct Answer {
        pub(crate) status: u16,
        pub(crate) headers: HeaderMap,
        pub(crate) trailers: HeaderMap,
        pub(crate) body: Bytes,
    }

    impl Answer {
        /// A header, wherever it stands.
        pub(crate) fn header(&self, name: &str) -> &str {
            let value = self.headers.get(name).or(self.trailers.get(name));
            value.map_or("", |value| value.to_str().unwrap())
        }
    }

    /// Posts over HTTP/2 without TLS.
    pub(crate) fn post_http2(url: &str) -> reqwest::RequestBuilder {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge();
        client.build().unwrap().post(url)
    }

    /// A request over HTTP/1.1, for tests.
    pub(crate) fn post_http1(url: &str) -> reqwest::RequestBuilder {
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder().no_proxy().build().unwrap().post(url)
    }

    /// Sends a request and reads all of the answer.
    pub(crate) async fn send(
        mut request: reqwest::RequestBuilder,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> Answer {
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response: http::Response<reqwest::Body> = request.body(body).send().await.unwrap().into();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap();
        Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            trailers: body.trailers().cloned().unwrap_or_default(),
            body: body.to_bytes(),
        }
    }

    /// A message with the bytes that stand before it.
    pub(crate) fn framed(is_compressed: bool, message: &[u8]) -> Vec<u8> {
        let prefix = Prefix {
            is_compressed,
            length: message.len() as u32,
        };
        [&prefix.to_bytes(), message].concat()
    }
}
