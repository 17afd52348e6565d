//! Writes audit lines to the log, with the target `audit`: one for each admin call and one for each login.
//!
//! In: the identity, the call, the address, and the result. Out: one log line. A line never contains a credential or an
//! unproven name, because people type passwords into the name field.

use std::net::SocketAddr;

use crate::server::access::identity::Identity;
use alluvium_admin::peer::Peer;

/// Logs a call that requires the right of an administrator, with its status.
pub(super) fn call(identity: &Identity, call: &str, tenant: &str, peer: Option<&Peer>, status: u16) {
    let (identity, address) = (&*identity.name, address(peer));
    tracing::info!(target: "audit", identity, call, tenant, address, status, "admin call");
}

/// Logs a refused call that requires the right of an administrator, with the reason.
pub(super) fn refused(identity: Option<&Identity>, call: &str, peer: Option<&Peer>, reason: &str) {
    let (identity, address) = (identity.map_or("", |identity| &*identity.name), address(peer));
    tracing::warn!(target: "audit", identity, call, address, reason, "admin call refused");
}

pub(super) fn login(identity: &Identity, peer: Option<&Peer>) {
    let (identity, address) = (&*identity.name, address(peer));
    tracing::info!(target: "audit", identity, address, "logged in");
}

/// Logs a login that was refused.
pub(super) fn login_refused(peer: Option<&Peer>, reason: &str) {
    let address = address(peer);
    tracing::warn!(target: "audit", address, reason, "login refused");
}

fn address(peer: Option<&Peer>) -> String {
    peer.map(|peer| peer.address)
        .as_ref()
        .map(SocketAddr::to_string)
        .unwrap_or_default()
}
