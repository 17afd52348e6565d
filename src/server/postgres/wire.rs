//! Messages over a stream: taken in with a bound on their size, put out through one buffer.
//!
//! In: a TCP or TLS stream. Out: messages of `pgwire`. While a query runs, [`Wire::gone`] tells when the peer goes
//! away; what it sends meanwhile is kept for later.

use std::time::Duration;

use bytes::{Buf, BytesMut};
use pgwire::messages::{DecodeContext, PgWireBackendMessage, PgWireFrontendMessage, ProtocolVersion};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::postgres::failure::Failure;

/// Longest message of a client that has said who it is: a query may have 256 KiB, its parameters a little more.
const MAX_MESSAGE: usize = 1 << 20;
/// Longest message before that.
const MAX_FIRST_MESSAGE: usize = 10_000;
/// What is put out is sent from this size on.
const SEND_FROM: usize = 64 << 10;
/// A peer that takes nothing for so long is given up.
const SEND_TIMEOUT: Duration = Duration::from_mins(1);

/// A stream of bytes both ways.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// A connection as messages.
pub(super) struct Wire {
    stream: Box<dyn Duplex>,
    incoming: BytesMut,
    /// Bytes on their way out; whole messages only.
    pub(super) outgoing: BytesMut,
    context: DecodeContext,
    longest: usize,
    /// True when the stream is TLS.
    pub(super) is_secure: bool,
}

impl Wire {
    /// A new connection, in the phase before the startup message.
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream: Box::new(stream),
            incoming: BytesMut::new(),
            outgoing: BytesMut::new(),
            context: DecodeContext::new(ProtocolVersion::PROTOCOL3_0),
            longest: MAX_FIRST_MESSAGE,
            is_secure: false,
        }
    }

    /// From now on, messages are those of an ordinary connection, not yet longer ones.
    pub(super) fn started(&mut self) {
        self.context.awaiting_frontend_ssl = false;
        self.context.awaiting_frontend_startup = false;
    }

    /// The client has said who it is: longer messages are taken.
    pub(super) fn trusted(&mut self) {
        self.longest = MAX_MESSAGE;
    }

    /// What comes next is the startup message.
    pub(super) fn expect_startup(&mut self) {
        self.context.awaiting_frontend_ssl = false;
    }

    /// Speaks TLS from here on. Bytes that came before it are refused: they could be anybody's.
    pub(super) async fn secure(self, acceptor: &pgwire::tokio::TlsAcceptor) -> Result<Self, Failure> {
        if !self.incoming.is_empty() {
            return Err(Failure::protocol("bytes came before the TLS handshake"));
        }
        let stream = acceptor
            .accept(self.stream)
            .await
            .map_err(|error| Failure::fatal("08006", format!("the TLS handshake failed: {error}")))?;
        Ok(Self {
            stream: Box::new(stream),
            is_secure: true,
            ..self
        })
    }

    /// The next message; none when the peer has closed the connection.
    pub(super) async fn message(&mut self) -> Result<Option<PgWireFrontendMessage>, Failure> {
        loop {
            self.check_length()?;
            let decoded = PgWireFrontendMessage::decode(&mut self.incoming, &self.context)
                .map_err(|error| Failure::protocol(format!("a message cannot be read: {error}")))?;
            if let Some(message) = decoded {
                return Ok(Some(message));
            }
            if !self.fill().await {
                return Ok(None);
            }
        }
    }

    /// Returns when the peer has gone. Dropped at any time it has lost nothing.
    pub(super) async fn gone(&mut self) {
        loop {
            if self.incoming.len() > self.longest {
                std::future::pending::<()>().await;
            }
            if !self.fill().await {
                return;
            }
        }
    }

    /// Writes a message to the buffer of outgoing bytes.
    pub(super) fn put(&mut self, message: &PgWireBackendMessage) -> Result<(), Failure> {
        message
            .encode(&mut self.outgoing)
            .map_err(|error| Failure::fatal("08P01", format!("a message cannot be written: {error}")))
    }

    /// Sends when enough has come together.
    pub(super) async fn send_some(&mut self) -> Result<(), Failure> {
        if self.outgoing.len() < SEND_FROM {
            return Ok(());
        }
        self.send().await
    }

    /// Sends what was put out.
    pub(super) async fn send(&mut self) -> Result<(), Failure> {
        let sending = async {
            self.stream.write_all_buf(&mut self.outgoing).await?;
            self.stream.flush().await
        };
        match tokio::time::timeout(SEND_TIMEOUT, sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Failure::fatal("08006", format!("the connection broke: {error}"))),
            Err(_) => Err(Failure::fatal("08006", "the peer takes nothing any more")),
        }
    }

    /// Sends an error that ends the connection. Whether it arrives is not our concern.
    pub(super) async fn close_with(&mut self, failure: &Failure) {
        let message = PgWireBackendMessage::ErrorResponse(failure.info().into());
        if self.put(&message).is_ok() && self.send().await.is_ok() {
            let _ = tokio::time::timeout(Duration::from_secs(1), self.stream.shutdown()).await;
        }
    }

    async fn fill(&mut self) -> bool {
        self.incoming.reserve(8 << 10);
        matches!(self.stream.read_buf(&mut self.incoming).await, Ok(length) if length > 0)
    }

    /// Looks at the length that a message says it has, before memory is set aside for it.
    fn check_length(&self) -> Result<(), Failure> {
        let at = usize::from(!self.context.awaiting_frontend_startup);
        let Some(mut length) = self.incoming.get(at..at + 4) else {
            return Ok(());
        };
        let length = length.get_u32() as usize;
        if length < 4 {
            return Err(Failure::protocol(format!(
                "a message has the impossible length {length}"
            )));
        }
        if length > self.longest {
            return Err(Failure::protocol(format!(
                "a message of {length} bytes is longer than {} bytes",
                self.longest
            )));
        }
        Ok(())
    }
}
