//! HTTP/2 frames (RFC 9113) as bytes, for a client that violates the rules.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::program::PATIENCE;

/// Types of frames (RFC 9113, section 6).
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

/// Flags of frames (RFC 9113, section 6).
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// Error codes (RFC 9113, section 7).
pub(super) const CANCEL: u32 = 8;
pub(super) const ENHANCE_YOUR_CALM: u32 = 11;

/// SETTINGS_INITIAL_WINDOW_SIZE.
pub(super) const INITIAL_WINDOW: u16 = 4;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEAD_BYTES: usize = 9;

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Encodes a SETTINGS frame with one setting.
pub(super) fn setting(name: u16, value: u32) -> Vec<u8> {
    let payload = [name.to_be_bytes().as_slice(), &value.to_be_bytes()].concat();
    frame(SETTINGS, 0, 0, &payload)
}

pub(super) fn reset(stream: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())
}

/// Encodes the fields of a request (RFC 7541): pseudo-headers of the static table, with literals for path and host.
pub(super) fn fields(method: &str, path: &str) -> Vec<u8> {
    // `:method: GET` or `:method: POST`, and `:scheme: http`.
    let mut fields = vec![if method == "GET" { 0x82 } else { 0x83 }, 0x86];
    for (name, value) in [(0x04, path), (0x01, "x")] {
        fields.extend([name, u8::try_from(value.len()).unwrap()]);
        fields.extend(value.as_bytes());
    }
    fields
}

/// Encodes a field with a literal name and a literal value, without indexing. Each may have up to 126 bytes.
pub(super) fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut field = vec![0];
    for text in [name, value] {
        field.push(u8::try_from(text.len()).unwrap());
        field.extend(text.as_bytes());
    }
    field
}

/// Encodes the HEADERS frame of a request without a body.
pub(super) fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &fields("GET", path))
}

/// Encodes the HEADERS frame of a request whose body follows.
pub(super) fn post(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, &fields("POST", path))
}

/// Counts and codes of the frames that a server has sent over a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Heard {
    /// Error code of the last GOAWAY.
    pub goaway: Option<u32>,
    /// Number of streams that the server has reset.
    pub resets: usize,
    /// Number of frames with headers.
    pub answers: usize,
    /// First byte of the headers of the last response: its status, if the static table contains it.
    pub status: Option<u8>,
    /// True if the server has closed the connection.
    pub is_closed: bool,
}

impl Heard {
    /// Returns whether the server has refused anything.
    pub(super) fn is_refused(&self) -> bool {
        self.is_closed || self.goaway.is_some_and(|code| code != 0) || self.resets > 0
    }

    fn take(&mut self, kind: u8, payload: &[u8]) {
        match kind {
            GOAWAY => {
                let code = payload
                    .get(4..8)
                    .map(|code| u32::from_be_bytes(code.try_into().unwrap()));
                self.goaway = code.or(self.goaway);
            }
            RST_STREAM => self.resets += 1,
            HEADERS => {
                self.answers += 1;
                self.status = payload.first().copied();
            }
            _ => {}
        }
    }
}

/// A connection that reads everything that arrives while it writes.
pub(super) struct Talk {
    out: OwnedWriteHalf,
    heard: Arc<Mutex<Heard>>,
}

impl Talk {
    /// Sends the preface of a client.
    pub(super) async fn begin(stream: TcpStream) -> Self {
        let (input, mut out) = stream.into_split();
        out.write_all(PREFACE).await.unwrap();
        out.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
        let heard = Arc::<Mutex<Heard>>::default();
        tokio::spawn(listen(input, heard.clone()));
        Self { out, heard }
    }

    /// Sends bytes. Returns false when the server accepts no more.
    pub(super) async fn say(&mut self, bytes: &[u8]) -> bool {
        self.out.write_all(bytes).await.is_ok()
    }

    /// Waits until `holds` is true or the server has closed the connection. Returns the received frames.
    pub(super) async fn until(&self, holds: impl Fn(&Heard) -> bool) -> Heard {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let heard = self.heard.lock().clone();
            if heard.is_closed || holds(&heard) {
                return heard;
            }
            assert!(Instant::now() < deadline, "timed out: {heard:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Reads to the end of the connection.
async fn listen(mut input: OwnedReadHalf, heard: Arc<Mutex<Heard>>) {
    let mut rest: Vec<u8> = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match input.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(length) => rest.extend(&piece[..length]),
        }
        while rest.len() >= HEAD_BYTES {
            let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
            if rest.len() < HEAD_BYTES + length {
                break;
            }
            heard.lock().take(rest[3], &rest[HEAD_BYTES..HEAD_BYTES + length]);
            rest.drain(..HEAD_BYTES + length);
        }
    }
    heard.lock().is_closed = true;
}

/// Writes `frames` up to `times` times and never reads. Ends early if a write fails or takes a second, because the
/// server may stop reading while its responses are not read. Returns how often the server accepted the frames.
pub(super) async fn say_without_reading(stream: &mut TcpStream, frames: &[u8], times: usize) -> usize {
    let begin = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
    if stream.write_all(&begin).await.is_err() {
        return 0;
    }
    for time in 0..times {
        let written = tokio::time::timeout(Duration::from_secs(1), stream.write_all(frames)).await;
        if !matches!(written, Ok(Ok(()))) {
            return time;
        }
    }
    times
}
