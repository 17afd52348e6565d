//! Services as Rust traits: the generated code has one a service of the proto files, with a method for each call.
//!
//! In: a call whose message is there. Out: its answer. Nothing here knows a protocol: Connect, gRPC and gRPC-Web end in
//! the same method ([`Routes`] brings them there).

use bytes::Bytes;

use crate::profile::TenantId;
use crate::wire::connect::{Codec, ConnectError};
use crate::wire::json::{FromJson, ToJson};

/// A call whose message is there.
pub struct Call<Message> {
    /// Whose data it is about.
    pub tenant: TenantId,
    /// The message that came in.
    pub request: Message,
    /// The form that the answer will have, for methods that can write it themselves.
    pub codec: Codec,
    /// Counts the memory of the message until it is dropped.
    pub memory: Memory,
}

/// A claim on a budget of memory, given back when it is dropped.
pub(crate) type Memory = Box<dyn Send>;

/// An answer: a message, or bytes that already are one in protobuf's binary form.
pub enum Answer<Reply> {
    /// A message that is to be encoded.
    Message(Reply),
    /// Encoded; decoded only for a caller that wants JSON.
    Encoded(Bytes),
}

/// What a call gives in the end.
pub(crate) type CallResult<Reply> = Result<Answer<Reply>, ConnectError>;

impl<Reply> From<Reply> for Answer<Reply> {
    fn from(message: Reply) -> Self {
        Self::Message(message)
    }
}

/// A message that a call may bring, in any form.
pub trait RequestMessage: prost::Message + Default + FromJson + 'static {}

impl<T: prost::Message + Default + FromJson + 'static> RequestMessage for T {}

/// A message that may be an answer, in any form.
pub trait ReplyMessage: prost::Message + Default + ToJson + 'static {}

impl<T: prost::Message + Default + ToJson + 'static> ReplyMessage for T {}

/// Where a service hands its calls over, each with its route, such as `push.v1.PusherService/Push`.
pub trait Routes {
    /// A call of one message that has one message as its answer.
    fn unary<Message, Reply, Work>(
        &mut self,
        route: &'static str,
        work: impl Fn(Call<Message>) -> Work + Clone + Send + Sync + 'static,
    ) where
        Message: RequestMessage,
        Reply: ReplyMessage,
        Work: Future<Output = CallResult<Reply>> + Send + 'static;
}
