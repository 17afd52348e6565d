//! Messages over a stream: reads them with a limit on their size, writes them through one buffer.
//!
//! In: a TCP or TLS stream. Out: messages of `pgwire`. While a query runs, [`Wire::gone`] detects a disconnect; bytes
//! that the client sends meanwhile are kept for later.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use pgwire::messages::{DecodeContext, PgWireBackendMessage, PgWireFrontendMessage, ProtocolVersion};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::postgres::failure::Failure;
use crate::server::postgres::frames;
use crate::server::tls::Current;

/// Maximum message size of an authenticated client: a query may have 256 KiB, its parameters a little more.
const MAX_MESSAGE: usize = 1 << 20;
/// Maximum message size before authentication.
const MAX_FIRST_MESSAGE: usize = 10_000;
/// Buffered output is sent when it reaches this size.
const SEND_FROM: usize = 64 << 10;
/// Time limit for sending, after which the connection is dropped.
const SEND_TIMEOUT: Duration = Duration::from_mins(1);

/// A stream of bytes both ways.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

/// A connection that reads and writes messages.
pub(super) struct Wire {
    stream: Box<dyn Duplex>,
    incoming: BytesMut,
    /// Buffered output, always whole messages.
    pub(super) outgoing: BytesMut,
    context: DecodeContext,
    longest: usize,
    /// True when the stream is TLS.
    pub(super) is_secure: bool,
    /// The certificate file of the handshake, to which an authentication may be bound.
    pub(super) own_certificate: Option<Arc<[u8]>>,
    /// The certificate that the client has shown in the handshake, as DER.
    pub(super) client_certificate: Option<Arc<[u8]>>,
}

impl Wire {
    /// A new connection that expects a TLS request or startup message.
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream: Box::new(stream),
            incoming: BytesMut::new(),
            outgoing: BytesMut::new(),
            context: DecodeContext::new(ProtocolVersion::PROTOCOL3_0),
            longest: MAX_FIRST_MESSAGE,
            is_secure: false,
            own_certificate: None,
            client_certificate: None,
        }
    }

    /// Expects ordinary messages from now on, still with the small size limit.
    pub(super) fn started(&mut self) {
        self.context.awaiting_frontend_ssl = false;
        self.context.awaiting_frontend_startup = false;
    }

    /// Raises the size limit, after the client has authenticated.
    pub(super) fn trusted(&mut self) {
        self.longest = MAX_MESSAGE;
    }

    /// Expects the startup message next.
    pub(super) fn expect_startup(&mut self) {
        self.context.awaiting_frontend_ssl = false;
    }

    /// Switches to TLS. Bytes that arrived before the handshake are an error, because an attacker could have inserted
    /// them.
    pub(super) async fn secure(self, tls: Current) -> Result<Self, Failure> {
        if !self.incoming.is_empty() {
            return Err(Failure::protocol("bytes came before the TLS handshake"));
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

    /// The next message; `None` when the peer has closed the connection.
    pub(super) async fn message(&mut self) -> Result<Option<PgWireFrontendMessage>, Failure> {
        loop {
            if let Some(message) = frames::next(&mut self.incoming, &self.context, self.longest)? {
                return Ok(Some(message));
            }
            if !self.fill().await {
                return Ok(None);
            }
        }
    }

    /// Returns when the peer has disconnected. It may be dropped at any time without losing data.
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

    /// Sends the buffer if it is large enough.
    pub(super) async fn send_some(&mut self) -> Result<(), Failure> {
        if self.outgoing.len() < SEND_FROM {
            return Ok(());
        }
        self.send().await
    }

    /// Sends the whole buffer.
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

    /// Sends an error that ends the connection; a failure to send it is ignored.
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
}
