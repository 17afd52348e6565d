//! gRPC and gRPC-Web for components that accept profiles on a port: one message in, one message or a status out.
//!
//! In: a request. Out: its message, uncompressed and within the limits of an [`Intake`], and the response for the
//! result of a component. Health checks and unknown calls are answered here.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderMap, Version};

use crate::common::serving::intake::{Intake, TakenBody};
use alluvium_admin::grpc;
use alluvium_wire::connect::{self, Code, Codec, Compression, ConnectError};
use alluvium_wire::grpc::{PREFIX_BYTES, Prefix, Protocol, call_headers, only_message};
use alluvium_wire::grpc_status;
use alluvium_wire::proto::health::{HealthCheckRequest, HealthCheckResponse, ServingStatus};

/// Route of gRPC's health check.
pub(crate) const HEALTH_ROUTE: &str = "/grpc.health.v1.Health/Check";

/// Responds to a gRPC or gRPC-Web call with the result of `work`: the encoded response, or an error. `count` is
/// called once, with the HTTP status that corresponds to the result: 200, or the status of the error.
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

/// Responds to a health check. The port as a whole, whose name is empty, and each of its `services` are serving. Other
/// names get the status NOT_FOUND.
pub(crate) async fn health(intake: &Intake, services: &[&str], request: Request) -> Response {
    let check = |request: Request| async {
        let (parts, body) = request.into_parts();
        let (message, _held) = read_message(intake, &parts.headers, body).await?.split();
        let HealthCheckRequest { service } = connect::decode(Codec::Proto, message)?;
        if !service.is_empty() && !services.contains(&&*service) {
            let message = format!("this port does not serve `{service}`");
            return Err(ConnectError::new(Code::NotFound, message));
        }
        let response = HealthCheckResponse {
            status: ServingStatus::Serving.into(),
        };
        Ok(connect::encode(Codec::Proto, &response))
    };
    serve(request, |_status| {}, check).await
}

/// Responds to a call that the port does not implement, for `reason`.
pub(crate) fn unimplemented(request: &Request, reason: &str) -> Response {
    let path = request.uri().path().trim_start_matches('/');
    let message = format!("`{path}` is not implemented: {reason}");
    grpc::failure(Code::Unimplemented.grpc_number(), &message, &[])
}

/// Reads the protobuf message of a call.
pub(crate) async fn read_message(intake: &Intake, headers: &HeaderMap, body: Body) -> Result<TakenBody, ConnectError> {
    let call = call_headers(headers)?;
    let mut body = intake.read(headers, body, Vec::new()).await?;
    let (prefix, _) = only_message(&body.bytes)?;
    body.bytes = body.bytes.split_off(PREFIX_BYTES);
    let compression = match call.compression {
        _ if !prefix.is_compressed => Compression::Identity,
        Compression::Identity => {
            let message = "the message is compressed, but the header grpc-encoding names no compression";
            return Err(ConnectError::invalid(message));
        }
        named => named,
    };
    intake.unpack(compression, body).await
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
    //! gRPC calls in the form that clients send.

    use http_body_util::BodyExt as _;

    use super::*;

    /// A response with its trailers.
    pub(crate) struct Answer {
        pub(crate) status: u16,
        pub(crate) headers: HeaderMap,
        pub(crate) trailers: HeaderMap,
        pub(crate) body: Bytes,
    }

    impl Answer {
        /// Returns a header or a trailer.
        pub(crate) fn header(&self, name: &str) -> &str {
            let value = self.headers.get(name).or(self.trailers.get(name));
            value.map_or("", |value| value.to_str().unwrap())
        }
    }

    /// Returns a POST request over HTTP/2 without TLS.
    pub(crate) fn post_http2(url: &str) -> reqwest::RequestBuilder {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge();
        client.build().unwrap().post(url)
    }

    /// Returns a POST request over HTTP/1.1.
    pub(crate) fn post_http1(url: &str) -> reqwest::RequestBuilder {
        let _ = rustls::crypto::ring::default_provider().install_default();
        reqwest::Client::builder().no_proxy().build().unwrap().post(url)
    }

    /// Sends a request and reads the whole response.
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

    /// Returns a message with its prefix.
    pub(crate) fn framed(is_compressed: bool, message: &[u8]) -> Vec<u8> {
        let prefix = Prefix {
            is_compressed,
            length: message.len() as u32,
        };
        [&prefix.to_bytes(), message].concat()
    }
}
