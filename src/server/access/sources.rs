//! The sources of identities: tokens, users, certificates, and an issuer.
//!
//! In: a credential. Out: its identity, or a refusal. To check a password, a separate thread derives its hash; at most
//! [`DERIVATIONS`] threads do so at the same time. If the name or the address has reached its limit of failed attempts,
//! no hash is derived.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::server::access::attempts::Attempts;
use crate::server::access::certificate::common_name;
use crate::server::access::claims::{Issuer, is_jwt};
use crate::server::access::identity::{Identity, Right, Rights, TenantScope};
use crate::server::access::options::{AccessError, AccessOptions, CertificateRule};
use crate::server::access::passwords::{Quick, Users, UsersError};
use crate::server::access::refusal::Refusal;
use crate::server::access::secret::{Digest, digest};
use crate::server::access::sessions::{LENGTH, Proof};
use crate::server::access::tokens::{EntriesError, PREFIX, Tokens};
use crate::server::access::watched::{FileError, Watched};

/// Maximum number of concurrent password derivations. Each of them needs up to 19 MiB of memory.
const DERIVATIONS: usize = 2;

/// All sources of a server.
pub(super) struct Sources {
    tokens: Option<Watched<Tokens, EntriesError>>,
    users: Option<Watched<Users, UsersError>>,
    certificates: Option<Vec<CertificateRule>>,
    issuer: Option<Arc<Issuer>>,
    /// Tokens that allow deletion and, on a single-tenant server, `/flush`.
    deletion: Vec<(Digest, Arc<Identity>)>,
    pub(super) attempts: Attempts,
    derivations: Arc<Semaphore>,
}

/// An identity and its proof.
pub(super) struct Proven {
    pub identity: Arc<Identity>,
    pub proof: Proof,
    /// Maximum time for which the proof is valid.
    pub length: Duration,
}

impl Sources {
    pub(super) fn none() -> Self {
        Self {
            tokens: None,
            users: None,
            certificates: None,
            issuer: None,
            deletion: Vec::new(),
            attempts: Attempts::new(),
            derivations: Arc::new(Semaphore::new(DERIVATIONS)),
        }
    }

    /// Reads the files. If the users file is absent, this function fails. The tokens file may be absent.
    pub(super) fn open(options: AccessOptions) -> Result<Self, AccessError> {
        let file_error = |path: &Path, source: FileError| AccessError::File {
            path: path.to_owned(),
            source,
        };
        let tokens =
            Watched::open(&options.tokens, Tokens::read).map_err(|error| file_error(&options.tokens, error))?;
        let users = match &options.users {
            None => None,
            Some(path) => {
                let users = Watched::open(path, Users::read).map_err(|error| file_error(path, error))?;
                if users.current().is_none() {
                    return Err(file_error(path, FileError::Missing));
                }
                Some(users)
            }
        };
        let deletion = options.deletion.into_iter().map(|token| {
            let scope = TenantScope::Only(token.tenants);
            (
                token.digest,
                Identity::proven(&token.name, Rights::only(Right::Admin), scope),
            )
        });
        Ok(Self {
            tokens: Some(tokens),
            users,
            certificates: options.certificates,
            issuer: options.oidc.map(Issuer::new).transpose()?.map(Arc::new),
            deletion: deletion.collect(),
            ..Self::none()
        })
    }

    /// Returns true if no source is configured: no tokens or users file, no client certificates, and no issuer.
    pub(super) fn are_none(&self) -> bool {
        let has_tokens = self.tokens.as_ref().is_some_and(Watched::is_there);
        !has_tokens && self.users.is_none() && self.certificates.is_none() && self.issuer.is_none()
    }

    /// Returns the identity of a bearer token.
    pub(super) async fn token(&self, token: &str) -> Result<Proven, Refusal> {
        if let Some(issuer) = self.issuer.as_ref().filter(|_| is_jwt(token)) {
            let (identity, length) = issuer.verify(token).await?;
            return Ok(Proven {
                proof: Proof::Claims(identity.clone()),
                identity,
                length,
            });
        }
        let digest = digest(token);
        let identity = self.of_digest(&digest).ok_or(Refusal::InvalidCredential)?;
        Ok(Proven {
            identity,
            proof: Proof::Token(digest),
            length: LENGTH,
        })
    }

    /// Returns the identity of a user and a password. A client without a field for a token may send the token as the
    /// password, with any user name.
    pub(super) async fn password(
        &self,
        user: &str,
        password: &str,
        address: Option<IpAddr>,
    ) -> Result<Proven, Refusal> {
        let users = self.users.as_ref().and_then(Watched::current);
        let is_user = users.as_ref().is_some_and(|users| users.has(user));
        if !is_user && (password.starts_with(PREFIX) || is_jwt(password)) {
            return self.token(password).await;
        }
        let users = users.ok_or(Refusal::InvalidCredential)?;
        let identity = match users.quick(user, password) {
            Quick::Proven(identity) => identity,
            Quick::Unknown => self.derived(users.clone(), user, password, address).await?,
        };
        let hash = users.identity(user).map(|(_, hash)| hash).unwrap_or_default();
        Ok(Proven {
            proof: Proof::Password(user.into(), hash.into()),
            identity,
            length: LENGTH,
        })
    }

    async fn derived(
        &self,
        users: Arc<Users>,
        user: &str,
        password: &str,
        address: Option<IpAddr>,
    ) -> Result<Arc<Identity>, Refusal> {
        if !self.attempts.has_room(address, user) {
            return Err(Refusal::Attempts);
        }
        // The permit is held until the derivation ends, even if the caller is dropped earlier.
        let permit = self.derivations.clone().acquire_owned().await;
        // Another caller with the same password may have finished the derivation meanwhile.
        if let Quick::Proven(identity) = users.quick(user, password) {
            return Ok(identity);
        }
        let attempt = self.attempts.begin(address, user).ok_or(Refusal::Attempts)?;
        let (user, password) = (user.to_owned(), password.to_owned());
        let derived = tokio::task::spawn_blocking(move || {
            let identity = users.derive(&user, &password);
            drop(permit);
            identity
        });
        let identity = derived.await.ok().flatten().ok_or(Refusal::InvalidCredential)?;
        self.attempts.succeeded(attempt);
        Ok(identity)
    }

    /// Returns the identity of a client certificate that the handshake has verified.
    pub(super) fn certificate(&self, certificate: &[u8]) -> Option<Arc<Identity>> {
        let rules = self.certificates.as_ref()?;
        let name = common_name(certificate)?;
        let find_rule = |rule_name: &str| rules.iter().find(|rule| rule.name == rule_name);
        let rule = find_rule(&name).or_else(|| find_rule("*"))?;
        Some(Identity::proven(&name, rule.rights.clone(), rule.tenants.clone()))
    }

    /// Returns the identity of an earlier proof, if the proof is still valid.
    pub(super) fn current_identity(&self, proof: &Proof) -> Option<Arc<Identity>> {
        match proof {
            Proof::Token(digest) => self.of_digest(digest),
            Proof::Claims(identity) => Some(identity.clone()),
            Proof::Password(user, hash) => {
                let users = self.users.as_ref()?.current()?;
                let (identity, current_hash) = users.identity(user)?;
                (current_hash == &**hash).then_some(identity)
            }
        }
    }

    fn of_digest(&self, digest: &Digest) -> Option<Arc<Identity>> {
        let tokens = self.tokens.as_ref().and_then(Watched::current);
        let token_identity = tokens.and_then(|tokens| tokens.identity(digest));
        let mut others = self.deletion.iter();
        token_identity.or_else(|| {
            others
                .find(|(other, _)| other == digest)
                .map(|(_, identity)| identity.clone())
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::num::NonZeroU32;

    use futures::future::join_all;
    use ring::pbkdf2;

    use super::*;
    use crate::server::access::secret;

    const ADDRESS: Option<IpAddr> = Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    const PASSWORD: &str = "correct horse";

    /// Returns sources with the user `ada`, whose password hash has this number of iterations.
    fn sources(iterations: u32) -> (Sources, tempfile::NamedTempFile) {
        let (salt, mut hash) = ([7; 16], [0; 32]);
        let rounds = NonZeroU32::new(iterations).unwrap();
        pbkdf2::derive(
            pbkdf2::PBKDF2_HMAC_SHA256,
            rounds,
            &salt,
            PASSWORD.as_bytes(),
            &mut hash,
        );
        let (salt, hash) = (secret::text(&salt), secret::text(&hash));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            format!("ada:pbkdf2-sha256${iterations}${salt}${hash}:read:*"),
        )
        .unwrap();
        let options = AccessOptions {
            users: Some(file.path().to_owned()),
            ..AccessOptions::default()
        };
        (Sources::open(options).unwrap(), file)
    }

    #[tokio::test]
    async fn a_crowd_with_the_right_password_comes_in_however_large_it_is() {
        let (sources, _file) = sources(100_000);
        let crowd = (0..50).map(|_| sources.password("ada", PASSWORD, ADDRESS));
        for proven in join_all(crowd).await {
            assert_eq!(
                proven.map(|proven| proven.identity.name.to_string()),
                Ok("ada".to_owned())
            );
        }
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_frees_no_place_before_its_derivation_ends() {
        let (sources, _file) = sources(500_000);
        let calls = join_all((0..DERIVATIONS).map(|_| sources.password("ada", "wrong horse", ADDRESS)));
        assert!(tokio::time::timeout(Duration::ZERO, calls).await.is_err());
        assert_eq!(sources.derivations.available_permits(), 0);
    }
}
