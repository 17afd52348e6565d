//! The other end of a connection, as requests carry it.

use std::net::SocketAddr;
use std::sync::Arc;

/// Other end of a request's connection, stored in the extensions of the request.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Address of the peer, which may be that of a proxy.
    pub address: SocketAddr,
    /// True when the connection is TLS.
    pub is_secure: bool,
    /// Certificate of the peer as DER, verified by the handshake.
    pub certificate: Option<Arc<[u8]>>,
}
