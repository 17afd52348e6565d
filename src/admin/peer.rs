//! The client of a connection, as stored in the extensions of its requests.

use std::net::SocketAddr;
use std::sync::Arc;

/// Other end of the connection on which a request arrived: the client, or a proxy.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Address of the client or of the proxy.
    pub address: SocketAddr,
    /// True when the connection is TLS.
    pub is_secure: bool,
    /// Certificate of the peer as DER, verified by the handshake.
    pub certificate: Option<Arc<[u8]>>,
}
