//! Decides which identity a caller has, whether it has the required right, and which tenants the call may use.
//!
//! In: the credential of a request or a connection, and the [`Need`] of the route. Out: an identity and tenants, or a
//! counted refusal. A server without any source of identities requires no authentication. Once a server requires
//! authentication, it never stops requiring it.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::HeaderMap;

use crate::server::access::credentials::Credential;
use crate::server::access::identity::{Identity, Right, TenantScope};
use crate::server::access::metrics::AccessMetrics;
use crate::server::access::options::{AccessError, AccessOptions};
use crate::server::access::refusal::Refusal;
use crate::server::access::rules::Need;
use crate::server::access::sessions::Sessions;
use crate::server::access::sources::{Proven, Sources};
use alluvium_admin::peer::Peer;
use alluvium_profile::{TenantId, Tenants};
use alluvium_wire::call::TENANT_HEADER;

/// Authenticates and authorizes every call. Clones share their state.
#[derive(Clone)]
pub struct Access(Arc<Inner>);

struct Inner {
    /// True if the options explicitly disable authentication.
    is_open: bool,
    /// True once the server has required authentication.
    has_asked: AtomicBool,
    open_metrics: bool,
    multi_tenant: bool,
    sources: Sources,
    sessions: Sessions,
    metrics: AccessMetrics,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Access")
            .field("asks", &self.asks())
            .finish_non_exhaustive()
    }
}

impl Default for Access {
    fn default() -> Self {
        Self::with_sources(&AccessOptions::default(), Sources::none(), AccessMetrics::default())
    }
}

impl Access {
    /// Reads the files of the options. Fails if one of them is unusable.
    pub fn new(options: AccessOptions, metrics: AccessMetrics) -> Result<Self, AccessError> {
        if options.is_open {
            return Ok(Self::with_sources(&options, Sources::none(), metrics));
        }
        let own_options = AccessOptions {
            open_metrics: options.open_metrics,
            multi_tenant: options.multi_tenant,
            ..AccessOptions::default()
        };
        Ok(Self::with_sources(&own_options, Sources::open(options)?, metrics))
    }

    fn with_sources(options: &AccessOptions, sources: Sources, metrics: AccessMetrics) -> Self {
        Self(Arc::new(Inner {
            is_open: options.is_open,
            has_asked: AtomicBool::new(false),
            open_metrics: options.open_metrics,
            multi_tenant: options.multi_tenant,
            sources,
            sessions: Sessions::new(metrics.sessions.clone()),
            metrics,
        }))
    }

    /// Returns true if callers must authenticate.
    pub fn asks(&self) -> bool {
        if self.0.is_open {
            return false;
        }
        if !self.0.has_asked.load(Ordering::Relaxed) && self.0.sources.are_none() {
            return false;
        }
        self.0.has_asked.store(true, Ordering::Relaxed);
        true
    }

    /// Returns true if authentication is disabled explicitly, so that the server may listen on a non-loopback address.
    pub fn is_open_on_purpose(&self) -> bool {
        self.0.is_open
    }

    pub(super) fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    /// Counts a refusal and returns it.
    pub(crate) fn refused(&self, refusal: Refusal) -> Refusal {
        self.0.metrics.refused(&refusal);
        refusal
    }

    /// Returns true if callers of the route need no identity. `need` is the entry of the route in the table of `rules`.
    pub(super) fn is_free(&self, need: Need, route: &str) -> bool {
        need == Need::Nothing || route == "/metrics" && self.0.open_metrics
    }

    pub(super) async fn identify(&self, headers: &HeaderMap, peer: Option<&Peer>) -> Result<Arc<Identity>, Refusal> {
        if !self.asks() {
            return Ok(Identity::anyone());
        }
        match Credential::of(headers) {
            Credential::Bearer(token) => Ok(self.0.sources.token(&token).await?.identity),
            Credential::Basic(user, password) => {
                let address = peer.map(|peer| peer.address.ip());
                Ok(self.0.sources.password(&user, &password, address).await?.identity)
            }
            Credential::Session(id) => {
                let proof = self.0.sessions.proof(&id);
                let identity = proof.and_then(|proof| self.0.sources.current_identity(&proof));
                if identity.is_none() {
                    self.0.sessions.end(&id);
                }
                // A browser still sends the cookie of an ended session, so a client certificate is checked next.
                identity.or_else(|| self.by_connection(peer)).ok_or(Refusal::Missing)
            }
            Credential::Unknown => Err(Refusal::InvalidCredential),
            Credential::None => self.by_connection(peer).ok_or(Refusal::Missing),
        }
    }

    fn by_connection(&self, peer: Option<&Peer>) -> Option<Arc<Identity>> {
        self.by_certificate(peer?.certificate.as_deref()?)
    }

    /// Authenticates a caller by user and password. If the user is empty, the password is a token.
    pub(super) async fn prove(&self, user: &str, password: &str, address: Option<IpAddr>) -> Result<Proven, Refusal> {
        match user {
            "" => self.0.sources.token(password).await,
            user => self.0.sources.password(user, password, address).await,
        }
    }

    /// Returns the identity of a user and a password. The password may be a token.
    pub(crate) async fn by_password(
        &self,
        user: &str,
        password: &str,
        address: IpAddr,
    ) -> Result<Arc<Identity>, Refusal> {
        Ok(self.0.sources.password(user, password, Some(address)).await?.identity)
    }

    /// Checks whether a client may try a password with SCRAM. Outside SCRAM, the server remembers correct passwords,
    /// and a remembered password bypasses the limits. With SCRAM, the server cannot remember passwords. Therefore,
    /// attempts are counted for each pair of name and address, so that the failed attempts of others do not lock out a
    /// user who knows the password.
    pub(crate) fn may_try(&self, address: IpAddr, name: &str) -> Result<(), Refusal> {
        let name = format!("{name} of {address}");
        if self.0.sources.attempts.has_room(Some(address), &name) {
            Ok(())
        } else {
            Err(Refusal::Attempts)
        }
    }

    /// Counts a wrong password of a SCRAM exchange.
    pub(crate) fn failed(&self, address: IpAddr, name: &str) {
        self.0.metrics.refused(&Refusal::InvalidCredential);
        // `begin` fails only if a limit is reached. In that case, `may_try` has already refused the exchange.
        let _ = self
            .0
            .sources
            .attempts
            .begin(Some(address), &format!("{name} of {address}"));
    }

    /// Returns the identity of a client certificate that the handshake has verified.
    pub(crate) fn by_certificate(&self, certificate: &[u8]) -> Option<Arc<Identity>> {
        self.0.sources.certificate(certificate)
    }

    /// Checks whether an identity has the right that a route needs.
    pub(super) fn allow(&self, identity: &Identity, need: Need) -> Result<(), Refusal> {
        let (right, is_whole) = match need {
            Need::Nothing | Need::Identity => return Ok(()),
            Need::Right(right) => (right, false),
            Need::Server(right) => (right, true),
        };
        Self::may(identity, right)?;
        let has_whole = if self.0.multi_tenant {
            identity.tenants == TenantScope::All
        } else {
            identity.tenants.has(&TenantId::anonymous())
        };
        if is_whole && !has_whole {
            return Err(Refusal::AllTenants);
        }
        Ok(())
    }

    /// Checks whether an identity has a right.
    pub(crate) fn may(identity: &Identity, right: Right) -> Result<(), Refusal> {
        if identity.rights.has(right) {
            Ok(())
        } else {
            Err(Refusal::Right(right))
        }
    }

    /// Returns the tenants of a request, if the identity or the header names them. The identity must have every tenant
    /// of the header. If the result is `None`, the handler decides about the header: a single-tenant server ignores it,
    /// and a multi-tenant server refuses a missing or invalid header.
    pub(super) fn tenants(&self, identity: &Identity, headers: &HeaderMap) -> Result<Option<Tenants>, Refusal> {
        if !self.0.multi_tenant {
            let anonymous_tenant = TenantId::anonymous();
            return if identity.tenants.has(&anonymous_tenant) {
                Ok(None)
            } else {
                Err(Refusal::Tenant(anonymous_tenant))
            };
        }
        let Some(header) = headers.get(TENANT_HEADER) else {
            return Ok(identity.tenants.single().cloned().map(Tenants::from));
        };
        let Some(named) = header.to_str().ok().and_then(|text| text.parse::<Tenants>().ok()) else {
            return Ok(None);
        };
        let other = named.iter().find(|tenant| !identity.tenants.has(tenant)).cloned();
        match other {
            Some(other) => Err(Refusal::Tenant(other)),
            None => Ok(Some(named)),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    use super::*;
    use crate::server::access::identity::Rights;
    use crate::server::access::options::CertificateRule;

    #[tokio::test]
    async fn the_cookie_of_a_session_that_has_ended_hides_no_certificate() {
        let everybody = CertificateRule {
            name: "*".to_owned(),
            rights: Rights::all(),
            tenants: TenantScope::All,
        };
        let options = AccessOptions {
            certificates: Some(vec![everybody]),
            ..AccessOptions::default()
        };
        let access = Access::new(options, AccessMetrics::default()).unwrap();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/integration/fixtures/tls/cert.pem");
        let certificate = CertificateDer::from_pem_file(path).unwrap();
        let peer = Peer {
            address: ([127, 0, 0, 1], 1).into(),
            is_secure: true,
            certificate: Some(Arc::from(&*certificate)),
        };
        let mut headers = HeaderMap::new();
        headers.insert("cookie", "alluvium_session=gone".parse().unwrap());
        let identity = access.identify(&headers, Some(&peer)).await.unwrap();
        assert_eq!(&*identity.name, "localhost");
        assert_eq!(access.identify(&headers, None).await.err(), Some(Refusal::Missing));
    }
}
