//! Executes a call, from its complete body to the encoded response, in the same way for all protocols.
//!
//! In: a complete body and the method of a service. Out: the encoded response. The server computes the weight of a
//! message before it decodes the message. The method runs within the caller's timeout, and long work runs on separate
//! threads.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use crate::server::bodies::body::ReceivedBody;
use crate::server::bodies::limits::BodyLimit;
use crate::server::bodies::sending::EncodedResponse;
use crate::server::calls::method::Method;
use crate::server::state::shared::{ServerOptions, ServerState};
use alluvium_profile::Tenants;
use alluvium_wire::connect::{CallHeaders, Code, Codec, ConnectError, decode, encode};
use alluvium_wire::service::{Answer, Call, ReplyMessage, RequestMessage};

/// Converts a message of an older version of the protocol to the current version.
type Upgrade = fn(Codec, Bytes) -> Result<Bytes, ConnectError>;

/// Limits of the calls of a service, and the function that reads the tenants of a call.
#[derive(Clone, Copy)]
pub(in crate::server) struct Bounds {
    /// Maximum size of a message, on the wire and after decompression.
    pub(in crate::server) limit: BodyLimit,
    /// Set if the protocol has older versions.
    pub(in crate::server) upgrade: Option<Upgrade>,
    /// Computes the memory that a message will occupy after it is decoded.
    pub(in crate::server) weigh: fn(Codec, &[u8]) -> Result<usize, ConnectError>,
    /// Reads the tenants from the headers.
    pub(in crate::server) tenants: fn(&HeaderMap, &ServerOptions) -> Result<Tenants, ConnectError>,
}

/// Decodes the message, runs the method, and encodes the response.
pub(in crate::server) async fn perform<Message: RequestMessage>(
    state: &ServerState,
    bounds: Bounds,
    headers: CallHeaders,
    tenants: Tenants,
    body: ReceivedBody,
    method: &impl Method<Message>,
) -> Result<EncodedResponse, ConnectError> {
    let (codec, length) = (headers.codec, body.bytes.len());
    let weigh = move |mut bytes: Bytes| {
        if let Some(upgrade) = bounds.upgrade {
            bytes = upgrade(codec, bytes)?;
        }
        let weight = (bounds.weigh)(codec, &bytes)?;
        Ok((bytes, weight))
    };
    let decoded = state
        .intake
        .make((body.bytes, body.charge), length, weigh, move |bytes| {
            decode(codec, bytes)
        });
    let (request, charge) = decoded.await?;
    let call = Call {
        tenants,
        request,
        codec,
        memory: Box::new(charge),
    };
    let response = with_timeout(headers.timeout, method.invoke(call)).await?;
    write(state, headers, response).await
}

/// Runs work within the caller's timeout, if there is one.
async fn with_timeout<T>(
    timeout: Option<Duration>,
    work: impl Future<Output = Result<T, ConnectError>>,
) -> Result<T, ConnectError> {
    let Some(timeout) = timeout else {
        return work.await;
    };
    tokio::time::timeout(timeout, work).await.unwrap_or_else(|_| {
        Err(ConnectError::new(
            Code::DeadlineExceeded,
            format!("the call exceeded the caller's timeout of {} ms", timeout.as_millis()),
        ))
    })
}

/// Encodes a response with the codec and the compression that the caller accepts.
async fn write<Reply>(
    state: &ServerState,
    headers: CallHeaders,
    response: Answer<Reply>,
) -> Result<EncodedResponse, ConnectError>
where
    Reply: ReplyMessage,
{
    let size = match &response {
        Answer::Message(message) => message.encoded_len(),
        Answer::Encoded(bytes) => bytes.len(),
    };
    let written = state.write(size, move || {
        let body = match (response, headers.codec) {
            (Answer::Encoded(bytes), Codec::Proto) => bytes,
            (Answer::Message(message), codec) => encode(codec, &message),
            (Answer::Encoded(bytes), Codec::Json) => {
                let message = Reply::decode(bytes).map_err(|error| {
                    ConnectError::new(
                        Code::Internal,
                        format!("cannot decode the server's own response: {error}"),
                    )
                })?;
                encode(Codec::Json, &message)
            }
        };
        Ok(if headers.accepts_gzip {
            EncodedResponse::packed(body)
        } else {
            EncodedResponse::plain(body)
        })
    });
    written.await
}
