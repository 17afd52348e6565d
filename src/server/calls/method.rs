//! A method of a service: a function from a call to the future of its response.
//!
//! In: the functions that services register. Out: one trait, [`Method`], through which the code of all protocols calls
//! these functions.

use alluvium_wire::service::{Call, CallResult, ReplyMessage, RequestMessage};

/// A method of a service. Every function with this signature implements the trait.
pub(in crate::server) trait Method<Message> {
    /// The type of the response message.
    type Reply: ReplyMessage;
    /// The future of the response.
    type Work: Future<Output = CallResult<Self::Reply>>;

    /// Starts the method for one call.
    fn invoke(&self, call: Call<Message>) -> Self::Work;
}

impl<Message, Reply, Work, Function> Method<Message> for Function
where
    Message: RequestMessage,
    Reply: ReplyMessage,
    Work: Future<Output = CallResult<Reply>>,
    Function: Fn(Call<Message>) -> Work,
{
    type Reply = Reply;
    type Work = Work;

    fn invoke(&self, call: Call<Message>) -> Work {
        self(call)
    }
}
