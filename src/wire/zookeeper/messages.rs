//! Messages of ZooKeeper's protocol in its own encoding: big-endian numbers, and length-prefixed texts, bytes and
//! lists. Each message has a length prefix of four bytes.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut, TryGetError};

/// Request number in replies that report changes.
pub(super) const EVENT: i32 = -1;
/// Request number of a ping and of its reply.
pub(super) const PING: i32 = -2;
/// Error code: the node does not exist.
pub(super) const NO_NODE: i32 = -101;

/// Maximum size of a message in bytes. This is enough for a node with some hundred thousand children.
pub(super) const MAX_MESSAGE: usize = 16 << 20;
/// The password of a new session: all zero bytes.
const PASSWORD: [u8; 16] = [0; 16];

/// A request about a node, which also sets a watch on the node.
#[derive(Clone, Copy)]
pub(super) enum Question {
    Exists,
    Data,
    Children,
}

/// The first fields of a reply.
pub(super) struct Header {
    pub(super) number: i32,
    pub(super) error: i32,
}

/// Encodes the request for a new session with this timeout in milliseconds.
pub(super) fn connect(timeout: i32) -> BytesMut {
    framed(|out| {
        out.put_i32(0);
        out.put_i64(0);
        out.put_i32(timeout);
        out.put_i64(0);
        put_bytes(out, &PASSWORD);
        out.put_u8(0);
    })
}

/// Reads the reply to [`connect`]: the timeout of the session in milliseconds, or zero when the server granted no
/// session.
pub(super) fn connected(mut message: Bytes) -> Result<i32, TryGetError> {
    message.try_get_i32()?;
    message.try_get_i32()
}

pub(super) fn question(number: i32, question: Question, path: &str) -> BytesMut {
    framed(|out| {
        out.put_i32(number);
        out.put_i32(match question {
            Question::Exists => 3,
            Question::Data => 4,
            Question::Children => 8,
        });
        put_bytes(out, path.as_bytes());
        // Sets a watch on the node.
        out.put_u8(1);
    })
}

pub(super) fn ping() -> BytesMut {
    framed(|out| {
        out.put_i32(PING);
        out.put_i32(11);
    })
}

/// Removes the first complete message from the received bytes and returns it, if there is one. The error is the length
/// of a message that is too long.
pub(super) fn message(input: &mut BytesMut) -> Result<Option<Bytes>, usize> {
    let Some(length) = input.first_chunk::<4>() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
    if length > MAX_MESSAGE {
        return Err(length);
    }
    if input.len() < 4 + length {
        return Ok(None);
    }
    input.advance(4);
    Ok(Some(input.split_to(length).freeze()))
}

/// Reads the header of a reply. Its transaction id is not used.
pub(super) fn header(message: &mut Bytes) -> Result<Header, TryGetError> {
    let number = message.try_get_i32()?;
    message.try_get_i64()?;
    let error = message.try_get_i32()?;
    Ok(Header { number, error })
}

/// Reads the path of an event. It is empty when the event concerns the session.
pub(super) fn event(message: &mut Bytes) -> Result<String, TryGetError> {
    message.try_get_i32()?;
    message.try_get_i32()?;
    text(message)
}

/// Reads the contents of a node. Null is treated as empty.
pub(super) fn data(message: &mut Bytes) -> Result<Bytes, TryGetError> {
    let length = message.try_get_i32()?;
    let length = usize::try_from(length).unwrap_or_default();
    if message.len() < length {
        let (requested, available) = (length, message.len());
        return Err(TryGetError { requested, available });
    }
    Ok(message.split_to(length))
}

/// Reads the names of a node's children.
pub(super) fn children(message: &mut Bytes) -> Result<Vec<String>, TryGetError> {
    let count = message.try_get_i32()?;
    (0..count).map(|_| text(message)).collect()
}

fn text(message: &mut Bytes) -> Result<String, TryGetError> {
    data(message).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn put_bytes(out: &mut BytesMut, bytes: &[u8]) {
    // Paths from the configuration are far shorter than the limit.
    out.put_i32(i32::try_from(bytes.len()).unwrap_or(i32::MAX));
    out.put_slice(bytes);
}

fn framed(write: impl FnOnce(&mut BytesMut)) -> BytesMut {
    let mut body = BytesMut::new();
    write(&mut body);
    let mut message = BytesMut::with_capacity(4 + body.len());
    message.put_u32(u32::try_from(body.len()).unwrap_or(u32::MAX));
    message.put_slice(&body);
    message
}
