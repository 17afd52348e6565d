//! Cuts one message of a client out of the incoming bytes, and checks its form before `pgwire` decodes it.
//!
//! In: bytes. Out: a message, or the reason why the bytes violate the protocol. `pgwire` trusts the counts and lengths
//! inside a message. It panics on wrong counts and lengths. If a text is not terminated, `pgwire` reads on into the
//! next message. Therefore this module checks each message and decodes it from a buffer that contains nothing else.

use bytes::{Buf, BytesMut};
use pgwire::messages::startup::{Password, PasswordMessageFamily, SASLInitialResponse};
use pgwire::messages::{DecodeContext, PgWireFrontendMessage, ProtocolVersion, SslNegotiationMetaMessage};

use crate::server::postgres::failure::Failure;

const TLS_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;

/// Returns the next message of `incoming`, or `None` until the whole message has arrived. `longest` is the maximum size
/// of a message in bytes.
pub(super) fn next(
    incoming: &mut BytesMut,
    context: &DecodeContext,
    longest: usize,
) -> Result<Option<PgWireFrontendMessage>, Failure> {
    let has_type = !context.awaiting_frontend_startup;
    if has_type
        && let Some(kind) = incoming.first()
        && !b"pQPBCDEHSXdcf".contains(kind)
    {
        return Err(Failure::protocol(format!("there is no message of type {kind}")));
    }
    // The header has the type and the length. A startup message and a TLS, GSS or cancel request have no type: their
    // header has the length and a code.
    let (length_offset, header) = if has_type { (1, 5) } else { (0, 8) };
    let Some(length) = incoming.get(length_offset..length_offset + 4) else {
        return Ok(None);
    };
    let length = u32_of(length) as usize;
    if length + length_offset < header {
        return Err(Failure::protocol(format!(
            "a message has the impossible length {length}"
        )));
    }
    if length > longest {
        return Err(Failure::protocol(format!(
            "a message of {length} bytes is longer than {longest} bytes"
        )));
    }
    let message_length = length + length_offset;
    if !has_type {
        let Some(code) = incoming.get(4..8).map(u32_of) else {
            return Ok(None);
        };
        let is_request = matches!(code, TLS_REQUEST | GSS_REQUEST);
        if is_request && length != 8 || code == CANCEL_REQUEST && length != 16 {
            return Err(Failure::protocol(format!(
                "a request before the startup message has the impossible length {length}"
            )));
        }
        if context.awaiting_frontend_ssl && !is_request {
            // The bytes stay in `incoming`. The caller switches to the startup message and reads the same bytes again.
            let no_request = PgWireFrontendMessage::SslNegotiation(SslNegotiationMetaMessage::None);
            return Ok(Some(no_request));
        }
    }
    if incoming.len() < message_length {
        return Ok(None);
    }
    let mut frame = incoming.split_to(message_length);
    let body = &frame[header..];
    let well_formed = if has_type {
        is_message(frame[0], body).is_some()
    } else {
        matches!(u32_of(&frame[4..8]), TLS_REQUEST | GSS_REQUEST | CANCEL_REQUEST) || is_startup(body).is_some()
    };
    if !well_formed {
        return Err(Failure::protocol(if has_type {
            format!("a message of type `{}` is malformed", char::from(frame[0]))
        } else {
            "the startup message is malformed".to_owned()
        }));
    }
    PgWireFrontendMessage::decode(&mut frame, context)
        .map_err(|error| Failure::protocol(format!("a message cannot be read: {error}")))
}

/// Returns the total size in bytes of the message at the start of `incoming`, from the length in its header. Returns
/// `None` until this length has arrived.
pub(super) fn message_bytes(incoming: &BytesMut, context: &DecodeContext) -> Option<usize> {
    let length_offset = usize::from(!context.awaiting_frontend_startup);
    incoming
        .get(length_offset..length_offset + 4)
        .map(|length| u32_of(length) as usize + length_offset)
}

/// Reads a password that a client has sent in the clear.
pub(super) fn password(message: PasswordMessageFamily) -> Result<Password, Failure> {
    let malformed = || Failure::protocol("a password message is malformed");
    let PasswordMessageFamily::Raw(body) = &message else {
        return Err(malformed());
    };
    let mut left = UncheckedBytes(body);
    left.text().and_then(|()| left.end()).ok_or_else(malformed)?;
    message.into_password().map_err(|_| malformed())
}

/// Reads the first message of a SASL authentication.
pub(super) fn sasl_initial(message: PasswordMessageFamily) -> Result<SASLInitialResponse, Failure> {
    let malformed = || Failure::protocol("an authentication message is malformed");
    let PasswordMessageFamily::Raw(body) = &message else {
        return Err(malformed());
    };
    let mut left = UncheckedBytes(body);
    let read = left.text().and_then(|()| left.value()).and_then(|()| left.end());
    read.ok_or_else(malformed)?;
    message.into_sasl_initial_response().map_err(|_| malformed())
}

/// Reads messages until the bytes end or violate the protocol, and returns their number. If `is_started` is true, the
/// bytes start after the startup message. The fuzz target calls this function.
pub fn count_messages(bytes: &[u8], is_started: bool) -> usize {
    let mut incoming = BytesMut::from(bytes);
    let mut context = DecodeContext::new(ProtocolVersion::PROTOCOL3_0);
    if is_started {
        (context.awaiting_frontend_ssl, context.awaiting_frontend_startup) = (false, false);
    }
    let mut count = 0;
    while let Ok(Some(message)) = next(&mut incoming, &context, 1 << 20) {
        match message {
            PgWireFrontendMessage::SslNegotiation(SslNegotiationMetaMessage::None) => {
                context.awaiting_frontend_ssl = false;
            }
            PgWireFrontendMessage::Startup(_) => context.awaiting_frontend_startup = false,
            PgWireFrontendMessage::PasswordMessageFamily(PasswordMessageFamily::Raw(body)) => {
                let _ = password(PasswordMessageFamily::Raw(body.clone()));
                let _ = sasl_initial(PasswordMessageFamily::Raw(body));
            }
            _ => {}
        }
        count += 1;
    }
    count
}

/// Returns `Some` if the body of a message has the form of its type.
fn is_message(kind: u8, body: &[u8]) -> Option<()> {
    let mut left = UncheckedBytes(body);
    match kind {
        // The form of a password depends on the preceding request. Data of COPY may be any bytes.
        b'p' | b'd' => return Some(()),
        b'Q' | b'f' => left.text()?,
        b'P' => {
            left.text()?;
            left.text()?;
            left.list(4)?;
        }
        b'B' => {
            left.text()?;
            left.text()?;
            left.list(2)?;
            for _ in 0..left.count()? {
                left.value()?;
            }
            left.list(2)?;
        }
        b'C' | b'D' => {
            left.skip(1)?;
            left.text()?;
        }
        b'E' => {
            left.text()?;
            left.skip(4)?;
        }
        // Flush, Sync, Terminate and CopyDone have no body.
        _ => {}
    }
    left.end()
}

/// Returns `Some` if the parameters of a startup message are pairs of texts, followed by one empty text.
fn is_startup(parameters: &[u8]) -> Option<()> {
    let mut left = UncheckedBytes(parameters);
    while left.0.first()? != &0 {
        left.text()?;
        left.text()?;
    }
    left.skip(1)?;
    left.end()
}

/// The bytes of a message that are not checked yet. Each check returns `None` if there are not enough bytes.
struct UncheckedBytes<'a>(&'a [u8]);

impl UncheckedBytes<'_> {
    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.get(bytes..)?;
        Some(())
    }

    fn text(&mut self) -> Option<()> {
        let end = memchr::memchr(0, self.0)?;
        self.skip(end + 1)
    }

    fn count(&mut self) -> Option<usize> {
        let count = self.0.get(..2)?.get_u16();
        self.skip(2)?;
        Some(usize::from(count))
    }

    fn list(&mut self, item_bytes: usize) -> Option<()> {
        let count = self.count()?;
        self.skip(count * item_bytes)
    }

    /// Skips a length and the value of that length. The length -1 means null, without a value.
    fn value(&mut self) -> Option<()> {
        let length = self.0.get(..4)?.get_i32();
        self.skip(4)?;
        match length {
            -1 => Some(()),
            length => self.skip(usize::try_from(length).ok()?),
        }
    }

    fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}

fn u32_of(mut bytes: &[u8]) -> u32 {
    if bytes.len() < 4 { 0 } else { bytes.get_u32() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(is_started: bool) -> DecodeContext {
        let mut context = DecodeContext::new(ProtocolVersion::PROTOCOL3_0);
        context.awaiting_frontend_ssl = false;
        context.awaiting_frontend_startup = !is_started;
        context
    }

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[kind], &length.to_be_bytes()[..], body].concat()
    }

    fn startup(body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 8).unwrap();
        [&length.to_be_bytes()[..], &196_608_u32.to_be_bytes(), body].concat()
    }

    fn code(bytes: &[u8], is_started: bool) -> Result<bool, &'static str> {
        let result = next(&mut BytesMut::from(bytes), &context(is_started), 1000);
        result.map(|message| message.is_some()).map_err(|failure| failure.code)
    }

    #[test]
    fn counts_and_lengths_that_lie_are_violations() {
        let body = [b"\0SELECT 1\0".as_slice(), &[255, 255]].concat();
        for bytes in [
            message(b'P', &body),
            message(b'P', b"\0SELECT 1"),
            message(b'B', b"\0\0\0\x09"),
            message(b'B', b"\0\0\0\0\0\x01\0\0\0\x09ab\0\0"),
            message(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0"),
            message(b'B', b"\0\0\0\0\0\0\xff\xff"),
            message(b'B', b"\0\0\0\0\0\0\0\0more"),
            message(b'Q', b"SELECT 1"),
            message(b'Q', b""),
            message(b'D', b""),
            message(b'D', b"S"),
            message(b'E', b"\0\0"),
            message(b'S', b"x"),
            message(b'~', b""),
            [b'Q', 0, 0, 0, 3].to_vec(),
            [b'Q', 127, 255, 255, 255].to_vec(),
        ] {
            assert_eq!(code(&bytes, true), Err("08P01"), "{bytes:?}");
        }
        for bytes in [
            startup(b""),
            startup(b"user"),
            startup(b"user\0a"),
            startup(b"user\0a\0"),
            startup(b"user\0a\0\0more\0"),
            [0, 0, 0, 7, 0, 3, 0, 0].to_vec(),
            [0, 0, 0, 12, 4, 210, 22, 46, 0, 0, 0, 1].to_vec(),
            [0, 0, 0, 9, 4, 210, 22, 47, 0].to_vec(),
        ] {
            assert_eq!(code(&bytes, false), Err("08P01"), "{bytes:?}");
        }
    }

    #[test]
    fn a_message_is_read_once_it_is_whole_and_leaves_the_next_one() {
        let parse = message(b'P', b"name\0SELECT $1\0\0\x01\0\0\0\x17");
        let bind = message(b'B', b"\0name\0\0\x01\0\0\0\x02\0\0\0\x01a\xff\xff\xff\xff\0\0");
        let messages = [parse.as_slice(), &bind].concat();
        for end in 0..parse.len() {
            assert_eq!(code(&messages[..end], true), Ok(false));
        }
        let mut incoming = BytesMut::from(messages.as_slice());
        assert!(next(&mut incoming, &context(true), 1000).unwrap().is_some());
        assert_eq!(incoming, bind.as_slice());
        assert!(next(&mut incoming, &context(true), 1000).unwrap().is_some());
        assert!(incoming.is_empty());
        assert_eq!(code(&startup(b"user\0a\0\0"), false), Ok(true));
        assert_eq!(code(&startup(b"\0"), false), Ok(true));
    }

    #[test]
    fn messages_of_an_authentication_are_checked() {
        let raw = |bytes: &[u8]| PasswordMessageFamily::Raw(BytesMut::from(bytes));
        assert_eq!(password(raw(b"secret\0")).unwrap().password, "secret");
        for bytes in [b"".as_slice(), b"secret", b"secret\0more"] {
            assert_eq!(password(raw(bytes)).unwrap_err().code, "08P01");
        }
        let first = sasl_initial(raw(b"SCRAM\0\0\0\0\x02n,")).unwrap();
        assert_eq!(first.data.as_deref(), Some(b"n,".as_slice()));
        assert_eq!(sasl_initial(raw(b"SCRAM\0\xff\xff\xff\xff")).unwrap().data, None);
        for bytes in [
            b"SCRAM".as_slice(),
            b"SCRAM\0",
            b"SCRAM\0\0\0\0\x09n,",
            b"S\0\xff\xff\xff\xfe",
        ] {
            assert_eq!(sasl_initial(raw(bytes)).unwrap_err().code, "08P01");
        }
    }
}
