//! Messages over a stream: reads them with a limit on their size, and writes them through one buffer.
//!
//! In: a TCP or TLS stream. Out: messages of `pgwire`. While a query runs, [`Wire::disconnected`] detects a disconnect,
//! and keeps the bytes that the client sends meanwhile. All connections of the PostgreSQL port share a memory budget.
//! The buffer of a large message is charged to this budget until the message has been handled or sent.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use pgwire::messages::{DecodeContext, PgWireBackendMessage, PgWireFrontendMessage, ProtocolVersion};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::postgres::failure::Failure;
use crate::server::postgres::frames;
use crate::server::postgres::memory::Memory;
use crate::server::tls::CurrentTls;
use alluvium_base::bytes::HeldBytes;

/// Maximum message size of an authenticated client. The query layer accepts at most 256 KiB for the text of a query,
/// and at most 256 KiB for all of its parameters together.
const MAX_MESSAGE: usize = 1 << 20;
/// Maximum message size before authentication.
const MAX_FIRST_MESSAGE: usize = 10_000;
/// Buffered output is sent when it reaches this size.
const SEND_THRESHOLD: usize = 64 << 10;
/// Maximum size of buffered input that is not charged to the memory of the port.
const FREE_INPUT: usize = 64 << 10;
/// Maximum size of buffered output that is not charged to the memory of the port: a full buffer, and a row of the same
/// size.
const FREE_OUTPUT: usize = 2 * SEND_THRESHOLD;
/// Maximum size of a buffer that is kept for the next messages.
const MAX_IDLE_BUFFER_BYTES: usize = 2 * FREE_OUTPUT;
/// Free space for input before each read.
const READ_BYTES: usize = 8 << 10;
/// Timeout for sending. After the timeout, the connection is dropped.
const SEND_TIMEOUT: Duration = Duration::from_mins(1);

/// A bidirectional stream of bytes.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// A connection that reads and writes messages.
pub(super) struct Wire {
    stream: Box<dyn Duplex>,
    incoming: BytesMut,
    /// Buffered output. It always consists of whole messages.
    pub(super) outgoing: BytesMut,
    context: DecodeContext,
    longest: usize,
    memory: Memory,
    /// The memory charged for `incoming` while it may be large.
    input_charge: Option<HeldBytes>,
    /// The memory charged for `outgoing` while it is large.
    output_charge: Option<HeldBytes>,
    /// True if the stream uses TLS.
    pub(super) is_secure: bool,
    /// Content of the server's certificate file at the TLS handshake, for the channel binding of SCRAM.
    pub(super) own_certificate: Option<Arc<[u8]>>,
    /// The certificate that the client has presented in the handshake, as DER.
    pub(super) client_certificate: Option<Arc<[u8]>>,
}

impl Wire {
    /// Creates a connection that expects a TLS request or a startup message.
    pub(super) fn new(stream: TcpStream, memory: Memory) -> Self {
        Self {
            stream: Box::new(stream),
            incoming: BytesMut::new(),
            outgoing: BytesMut::new(),
            context: DecodeContext::new(ProtocolVersion::PROTOCOL3_0),
            longest: MAX_FIRST_MESSAGE,
            memory,
            input_charge: None,
            output_charge: None,
            is_secure: false,
            own_certificate: None,
            client_certificate: None,
        }
    }

    /// Switches to ordinary messages. [`MAX_FIRST_MESSAGE`] remains the size limit until the client has authenticated.
    pub(super) fn started(&mut self) {
        self.context.awaiting_frontend_ssl = false;
        self.context.awaiting_frontend_startup = false;
    }

    /// Raises the size limit after the client has authenticated.
    pub(super) fn trusted(&mut self) {
        self.longest = MAX_MESSAGE;
    }

    /// Expects the startup message as the next message.
    pub(super) fn expect_startup(&mut self) {
        self.context.awaiting_frontend_ssl = false;
    }

    /// Switches to TLS. Bytes that arrived before the handshake are an error, because an attacker could have inserted
    /// them.
    pub(super) async fn secure(self, tls: CurrentTls) -> Result<Self, Failure> {
        if !self.incoming.is_empty() {
            return Err(Failure::protocol("bytes arrived before the TLS handshake"));
        }
        let stream = tls
            .acceptor
            .accept(self.stream)
            .await
            .map_err(|error| Failure::fatal("08006", format!("the TLS handshake failed: {error}")))?;
        let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let shown = shown.map(|certificate| Arc::from(certificate.as_ref()));
        Ok(Self {
            stream: Box::new(stream),
            is_secure: true,
            own_certificate: Some(tls.certificate),
            client_certificate: shown,
            ..self
        })
    }

    /// Returns the next message, or `None` if the peer has closed the connection.
    pub(super) async fn message(&mut self) -> Result<Option<PgWireFrontendMessage>, Failure> {
        self.release_input();
        loop {
            if let Some(message) = frames::next(&mut self.incoming, &self.context, self.longest)? {
                return Ok(Some(message));
            }
            let announced = frames::message_bytes(&self.incoming, &self.context).unwrap_or_default();
            self.charge_input(announced.max(self.incoming.len()))?;
            if !self.fill().await {
                return Ok(None);
            }
        }
    }

    /// Returns when the peer has disconnected. The future may be dropped at any time without losing data.
    pub(super) async fn disconnected(&mut self) {
        loop {
            // If the input is too large or cannot be charged, the server reads no more bytes while the query runs.
            // It then notices a disconnect only at the next message.
            let length = self.incoming.len();
            if length > self.longest || length > FREE_INPUT && self.charge_input(self.longest + READ_BYTES).is_err() {
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
            .map_err(|error| Failure::fatal("08P01", format!("cannot encode a message: {error}")))
    }

    /// Charges the memory of the port for large output. The last message starts at `start`. If the memory is exhausted,
    /// this function removes the last message.
    pub(super) fn charge(&mut self, start: usize) -> Result<(), Failure> {
        let length = self.outgoing.len();
        if length <= FREE_OUTPUT {
            return Ok(());
        }
        self.output_charge = None;
        // At most half of the memory is charged. Otherwise a row larger than the whole memory could never be sent.
        let charged = length.min(self.memory.total() / 2);
        match self.memory.take("a row that the client has not read yet", charged) {
            Ok(held) => self.output_charge = Some(held),
            Err(failure) => {
                // The remaining bytes are copied, so that the large buffer is freed before the client reads the error.
                self.outgoing = BytesMut::from(self.outgoing.get(..start).unwrap_or_default());
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Sends the buffer if it is large enough.
    pub(super) async fn send_some(&mut self) -> Result<(), Failure> {
        if self.outgoing.len() < SEND_THRESHOLD {
            return Ok(());
        }
        self.send().await
    }

    /// Sends the whole buffer.
    pub(super) async fn send(&mut self) -> Result<(), Failure> {
        let capacity = self.outgoing.capacity();
        let sending = async {
            self.stream.write_all_buf(&mut self.outgoing).await?;
            self.stream.flush().await
        };
        match tokio::time::timeout(SEND_TIMEOUT, sending).await {
            Ok(Ok(())) => {
                if capacity > MAX_IDLE_BUFFER_BYTES {
                    self.outgoing = BytesMut::new();
                }
                self.output_charge = None;
                Ok(())
            }
            Ok(Err(error)) => Err(Failure::fatal("08006", format!("the connection broke: {error}"))),
            Err(_) => Err(Failure::fatal("08006", "the client does not read its responses")),
        }
    }

    /// Sends an error that ends the connection. A failure to send it is ignored.
    pub(super) async fn close_with(&mut self, failure: &Failure) {
        let message = PgWireBackendMessage::ErrorResponse(failure.info().into());
        if self.put(&message).is_ok() && self.send().await.is_ok() {
            let _ = tokio::time::timeout(Duration::from_secs(1), self.stream.shutdown()).await;
        }
    }

    /// Charges the memory of the port for input of this size.
    fn charge_input(&mut self, bytes: usize) -> Result<(), Failure> {
        let charged_bytes = self.input_charge.as_ref().map_or(FREE_INPUT, HeldBytes::bytes);
        if bytes <= charged_bytes {
            return Ok(());
        }
        let failed = |failure: Failure| Failure {
            is_fatal: true,
            ..failure
        };
        self.input_charge = Some(self.memory.take("a message", bytes).map_err(failed)?);
        Ok(())
    }

    /// Releases the buffer of handled messages, if it may be large.
    fn release_input(&mut self) {
        if self.input_charge.is_some() && self.incoming.len() <= FREE_INPUT {
            self.incoming = BytesMut::from(&self.incoming[..]);
            self.input_charge = None;
        }
    }

    async fn fill(&mut self) -> bool {
        self.incoming.reserve(READ_BYTES);
        matches!(self.stream.read_buf(&mut self.incoming).await, Ok(length) if length > 0)
    }
}
