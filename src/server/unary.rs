//! The frame of every unary Connect call: headers, body, message, tenant, deadline, answer.
//!
//! In: a request and a function of tenant and message. Out: an HTTP answer. A call's own work is in the function.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderValue, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::server::ServerState;
use crate::server::body::heavy;
use crate::server::sending::sending;
use crate::server::tenant::tenant;
use crate::wire::connect::{self, CallHeaders, Code, Codec, Compression, ConnectError};

/// An answer: a message, or bytes that already are one in protobuf's binary form.
pub enum Answer<M> {
    /// To be encoded.
    Message(M),
    /// Encoded; decoded and written as JSON, by a function as in [`Answer::Large`], only for a caller that wants JSON.
    Encoded(Bytes, fn(&M) -> Option<Vec<u8>>),
    /// To be encoded, with a function that writes the JSON form of the usual ones faster than the generated code.
    Large(M, fn(&M) -> Option<Vec<u8>>),
}

/// Runs a call.
pub async fn unary<Ask, Reply, Work>(
    state: ServerState,
    request: Request<Body>,
    work: impl FnOnce(ServerState, String, Ask) -> Work,
) -> Response
where
    Ask: prost::Message + Default + DeserializeOwned + 'static,
    Reply: prost::Message + Default + Serialize + DeserializeOwned + 'static,
    Work: Future<Output = Result<Answer<Reply>, ConnectError>>,
{
    run(state, request, work)
        .await
        .unwrap_or_else(IntoResponse::into_response)
}

async fn run<Ask, Reply, Work>(
    state: ServerState,
    request: Request<Body>,
    work: impl FnOnce(ServerState, String, Ask) -> Work,
) -> Result<Response, ConnectError>
where
    Ask: prost::Message + Default + DeserializeOwned + 'static,
    Reply: prost::Message + Default + Serialize + DeserializeOwned + 'static,
    Work: Future<Output = Result<Answer<Reply>, ConnectError>>,
{
    let (parts, body) = request.into_parts();
    let call = CallHeaders::read(&parts.headers)?;
    let tenant = tenant(&parts.headers, state.options.multi_tenant)?;
    let limits = &state.options.limits;
    let held = state.bodies.read(&parts.headers, body, limits).await?;
    let (compression, max_bytes) = (call.compression, limits.decompressed_body_bytes);
    let bytes = held.bytes;
    // A binary message that is not compressed is decoded in place: its long fields are slices of the body.
    let cost = match (call.codec, compression) {
        (Codec::Proto, Compression::Identity) => 0,
        _ => bytes.len(),
    };
    let ask = heavy(cost, move || {
        connect::decode::<Ask>(call.codec, compression.decompress(bytes, max_bytes)?)
    })
    .await?;
    let work = work(state.clone(), tenant, ask);
    let answer = match call.timeout {
        None => work.await,
        Some(timeout) => tokio::time::timeout(timeout, work).await.unwrap_or_else(|_| {
            Err(ConnectError::new(
                Code::DeadlineExceeded,
                format!(
                    "the call took longer than the {} ms that its caller gave",
                    timeout.as_millis()
                ),
            ))
        }),
    }?;
    // The body's share of the budget is held until here: its bytes live in the profiles that the call handed over.
    drop(held.permit);
    respond(&state, call, answer).await
}

async fn respond<Reply>(state: &ServerState, call: CallHeaders, answer: Answer<Reply>) -> Result<Response, ConnectError>
where
    Reply: prost::Message + Default + Serialize + DeserializeOwned + 'static,
{
    let size = match &answer {
        Answer::Message(message) | Answer::Large(message, _) => message.encoded_len(),
        Answer::Encoded(bytes, _) => bytes.len(),
    };
    let (body, compressed) = heavy(size, move || {
        let body = match (answer, call.codec) {
            (Answer::Large(message, json), Codec::Json) => match json(&message) {
                Some(text) => text.into(),
                None => connect::encode(Codec::Json, &message)?,
            },
            (Answer::Message(message) | Answer::Large(message, _), codec) => connect::encode(codec, &message)?,
            (Answer::Encoded(bytes, _), Codec::Proto) => bytes,
            (Answer::Encoded(bytes, json), Codec::Json) => {
                let message = connect::decode::<Reply>(Codec::Proto, bytes)?;
                match json(&message) {
                    Some(text) => text.into(),
                    None => connect::encode(Codec::Json, &message)?,
                }
            }
        };
        Ok(connect::compress(call.accepts_gzip, body))
    })
    .await?;
    let mut response = sending(state, body)?;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(call.codec.content_type()));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}
