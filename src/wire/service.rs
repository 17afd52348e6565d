//! Services as Rust traits: the generated code has one for each service of the proto files, with a method for each
//! call.
//!
//! In: a call with its decoded message. Out: its answer. This module does not depend on a protocol: Connect, gRPC and
//! gRPC-Web all call the same method through [`Routes`].

use bytes::Bytes;

use crate::profile::Tenants;
use crate::wire::connect::{Codec, ConnectError};
use crate::wire::json::{FromJson, ToJson};

/// A call with its decoded message.
pub struct Call<Message> {
    /// The tenants of the request. A question may be about several.
    pub tenants: Tenants,
    /// The message that came in.
    pub request: Message,
    /// Encoding of the answer, for methods that can encode it themselves.
    pub codec: Codec,
    /// Charge for the memory of the message, released on drop.
    pub memory: Memory,
}

/// A charge on a memory budget, released on drop.
pub trait Charged: Send {
    /// Releases what is charged for the decoded message beyond `bytes`.
    fn keep(&mut self, bytes: usize);
}

/// The charge for the message of a call.
pub(crate) type Memory = Box<dyn Charged>;

/// An answer: a message, or bytes that are already encoded in protobuf's binary form.
pub enum Answer<Reply> {
    /// A message that is to be encoded.
    Message(Reply),
    /// Already encoded; decoded again only for a caller that wants JSON.
    Encoded(Bytes),
}

/// The outcome of a call: an answer or an error.
pub(crate) type CallResult<Reply> = Result<Answer<Reply>, ConnectError>;

impl<Reply> From<Reply> for Answer<Reply> {
    fn from(message: Reply) -> Self {
        Self::Message(message)
    }
}

/// A request message, decodable from all encodings.
pub trait RequestMessage: prost::Message + Default + FromJson + 'static {}

impl<T: prost::Message + Default + FromJson + 'static> RequestMessage for T {}

/// An answer message, encodable in all encodings.
pub trait ReplyMessage: prost::Message + Default + ToJson + 'static {}

impl<T: prost::Message + Default + ToJson + 'static> ReplyMessage for T {}

/// Receives the calls of a service, each with its route, such as `push.v1.PusherService/Push`.
pub trait Routes {
    /// Registers a call with one message as the request and one as the answer.
    fn unary<Message, Reply, Work>(
        &mut self,
        route: &'static str,
        work: impl Fn(Call<Message>) -> Work + Clone + Send + Sync + 'static,
    ) where
        Message: RequestMessage,
        Reply: ReplyMessage,
        Work: Future<Output = CallResult<Reply>> + Send + 'static;
}
