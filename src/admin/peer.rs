//! The other end of a connection, as requests carry it.

use std::net::SocketAddr;
use std::sync::Arc;

/// The other end of the connection of a request, in the extensions of the request.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its address, which may be that of a proxy.
    pub address: SocketAddr,
    /// True when the connection is TLS.
    pub is_secure: bool,
    /// Its certificate as DER, which the handshake has verified.
    pub certificate: Option<Arc<[u8]>>,
}
