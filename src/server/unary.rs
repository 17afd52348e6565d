//! The frame of every unary Connect call: headers, body, message, tenant, deadline, answer.
//!
//! In: a request and a function of tenant and message. Out: an HTTP answer. A call's own work is in the function.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderValue, Request};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::profile::TenantId;
use crate::server::ServerState;
use crate::server::body::Charge;
use crate::server::limits::BodyLimit;
use crate::server::sending::sending;
use crate::server::tenant::tenant;
use crate::wire::connect::{self, CallHeaders, Code, Codec, ConnectError};
use crate::wire::weight;

/// An answer: a message, or the bytes of one.
pub enum Answer<M> {
    /// To be encoded.
    Message(M),
    /// Written already, for a caller that wants protobuf's binary form.
    Encoded(Bytes),
    /// To be encoded, with a function that writes the JSON form of the usual ones faster than the generated code.
    Large(M, fn(&M) -> Option<Vec<u8>>),
}

/// A call whose message is there.
pub struct Call<Ask> {
    /// What its headers say.
    pub headers: CallHeaders,
    /// Whom it is about.
    pub tenant: TenantId,
    /// The message, or what is made of it.
    pub ask: Ask,
    /// The memory of the message.
    pub charge: Charge,
}

/// Runs a call that asks something.
pub async fn unary<Ask, Reply, Work>(
    state: ServerState,
    request: Request<Body>,
    work: impl FnOnce(ServerState, TenantId, Ask) -> Work,
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
    work: impl FnOnce(ServerState, TenantId, Ask) -> Work,
) -> Result<Response, ConnectError>
where
    Ask: prost::Message + Default + DeserializeOwned + 'static,
    Reply: prost::Message + Default + Serialize + DeserializeOwned + 'static,
    Work: Future<Output = Result<Answer<Reply>, ConnectError>>,
{
    let limit = state.options.limits.question();
    let call = receive(&state, request, limit, weight::question, Ok).await?;
    let answer = in_time(call.headers.timeout, work(state.clone(), call.tenant, call.ask)).await?;
    drop(call.charge);
    respond(&state, call.headers, answer).await
}

/// Reads a call: headers, tenant, and the message, of which `make` makes what is wanted. `weigh` tells how much memory
/// the message will take.
pub async fn receive<Ask, Made>(
    state: &ServerState,
    request: Request<Body>,
    limit: BodyLimit,
    weigh: fn(Codec, &[u8]) -> Result<usize, ConnectError>,
    make: impl FnOnce(Ask) -> Result<Made, ConnectError> + Send + 'static,
) -> Result<Call<Made>, ConnectError>
where
    Ask: prost::Message + Default + DeserializeOwned,
    Made: Send + 'static,
{
    let (parts, body) = request.into_parts();
    let headers = CallHeaders::read(&parts.headers)?;
    let tenant = tenant(&parts.headers, state.options.multi_tenant)?;
    let body = state.intake.read(&parts.headers, body, limit).await?;
    let (codec, length) = (headers.codec, body.bytes.len());
    let weigh = move |bytes: Bytes| {
        let weight = weigh(codec, &bytes)?;
        Ok((bytes, weight))
    };
    let make = move |bytes| make(connect::decode(codec, bytes)?);
    let (ask, charge) = state
        .intake
        .make((body.bytes, body.charge), length, weigh, make)
        .await?;
    Ok(Call {
        headers,
        tenant,
        ask,
        charge,
    })
}

/// Runs work within the time that its caller gave, if any.
pub async fn in_time<T>(
    timeout: Option<Duration>,
    work: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    let Some(timeout) = timeout else {
        return work.await;
    };
    tokio::time::timeout(timeout, work).await.unwrap_or_else(|_| {
        Err(ConnectError::new(
            Code::DeadlineExceeded,
            format!(
                "the call took longer than the {} ms that its caller gave",
                timeout.as_millis()
            ),
        ))
    })
}

/// Writes an answer as its caller wants it.
pub async fn respond<Reply>(
    state: &ServerState,
    call: CallHeaders,
    answer: Answer<Reply>,
) -> Result<Response, ConnectError>
where
    Reply: prost::Message + Default + Serialize + DeserializeOwned + 'static,
{
    let size = match &answer {
        Answer::Message(message) | Answer::Large(message, _) => message.encoded_len(),
        Answer::Encoded(bytes) => bytes.len(),
    };
    let written = state.workers.run(size, move || {
        let body = match (answer, call.codec) {
            (Answer::Large(message, json), Codec::Json) => match json(&message) {
                Some(text) => text.into(),
                None => connect::encode(Codec::Json, &message)?,
            },
            (Answer::Message(message) | Answer::Large(message, _), codec) => connect::encode(codec, &message)?,
            (Answer::Encoded(bytes), Codec::Proto) => bytes,
            (Answer::Encoded(bytes), Codec::Json) => {
                connect::encode(Codec::Json, &connect::decode::<Reply>(Codec::Proto, bytes)?)?
            }
        };
        Ok(connect::compress(call.accepts_gzip, body))
    });
    let (body, compressed) = written.await?;
    let mut response = sending(&state.answers, state.engine.limits().timeout, body)?;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(call.codec.content_type()));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}
