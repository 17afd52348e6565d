//! Services as Rust traits: the generated code has one trait for each service of the proto files, with one method per
//! call.
//!
//! In: a call with its decoded message. Out: its response. This module does not depend on a protocol: Connect, gRPC and
//! gRPC-Web all call the same method through [`Routes`].

use bytes::Bytes;

use crate::connect::{Codec, ConnectError};
use crate::json::{FromJson, ToJson};
use alluvium_profile::Tenants;

/// A call with its decoded message.
pub struct Call<Message> {
    /// The tenants of the request. A query may concern several tenants.
    pub tenants: Tenants,
    /// The decoded request message.
    pub request: Message,
    /// Encoding of the response, for methods that can encode it themselves.
    pub codec: Codec,
    /// Memory charged for the message, released on drop.
    pub memory: Memory,
}

/// A charge on a memory budget, released on drop.
pub trait Charged: Send {
    /// Releases the part of the decoded message's charge that exceeds `bytes`.
    fn keep(&mut self, bytes: usize);
}

/// The charge for the message of a call.
pub type Memory = Box<dyn Charged>;

/// A response: a message, or bytes that are already encoded in protobuf's binary form.
pub enum Answer<Reply> {
    /// A message that still has to be encoded.
    Message(Reply),
    /// Encoded bytes. They are decoded again only for a caller that wants JSON.
    Encoded(Bytes),
}

/// Outcome of a call: a response or an error.
pub type CallResult<Reply> = Result<Answer<Reply>, ConnectError>;

impl<Reply> From<Reply> for Answer<Reply> {
    fn from(message: Reply) -> Self {
        Self::Message(message)
    }
}

/// A request message that all encodings can decode.
pub trait RequestMessage: prost::Message + Default + FromJson + 'static {}

impl<T: prost::Message + Default + FromJson + 'static> RequestMessage for T {}

/// A response message that all encodings can encode.
pub trait ReplyMessage: prost::Message + Default + ToJson + 'static {}

impl<T: prost::Message + Default + ToJson + 'static> ReplyMessage for T {}

/// Receives the calls of a service, each with its route, such as `push.v1.PusherService/Push`.
pub trait Routes {
    /// Registers a call with one request message and one response message.
    fn unary<Message, Reply, Work>(
        &mut self,
        route: &'static str,
        work: impl Fn(Call<Message>) -> Work + Clone + Send + Sync + 'static,
    ) where
        Message: RequestMessage,
        Reply: ReplyMessage,
        Work: Future<Output = CallResult<Reply>> + Send + 'static;
}
