//! Key exchange on the curve P-521, which ring lacks.
//!
//! In: a server's public key. Out: the shared secret. Under TLS 1.2, a server presents a certificate with a P-521 key
//! only to clients that offer the curve for the key exchange as well.

use p521::elliptic_curve::sec1::ToSec1Point as _;
use p521::{PublicKey, SecretKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::crypto::{ActiveKeyExchange, GetRandomFailed, SharedSecret, SupportedKxGroup};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, PeerMisbehaved};

/// The group `secp521r1` for the key exchange.
pub(super) static SECP521R1: &dyn SupportedKxGroup = &Secp521r1;

#[derive(Debug)]
struct Secp521r1;

/// Key exchange that waits for the server's key.
struct Exchange {
    secret: SecretKey,
    /// The public key as an uncompressed point.
    public: Box<[u8]>,
}

impl SupportedKxGroup for Secp521r1 {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let random = SystemRandom::new();
        loop {
            let mut bytes = [0; 66];
            random.fill(&mut bytes).map_err(|_| GetRandomFailed)?;
            // Keeps 521 bits. Almost all such numbers are below the order of the curve, so the loop rarely repeats.
            bytes[0] &= 1;
            if let Ok(secret) = SecretKey::from_slice(&bytes) {
                let public = secret.public_key().to_sec1_point(false).as_bytes().into();
                return Ok(Box::new(Exchange { secret, public }));
            }
        }
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::secp521r1
    }
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        // TLS uses uncompressed points only (RFC 8446, section 4.2.8.2).
        let key = Some(peer).filter(|peer| peer.first() == Some(&4));
        let key = key.and_then(|peer| PublicKey::from_sec1_bytes(peer).ok());
        let key = key.ok_or(PeerMisbehaved::InvalidKeyShare)?;
        let secret = self.secret.diffie_hellman(&key);
        Ok(SharedSecret::from(&secret.raw_secret_bytes()[..]))
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        None
    }

    fn pub_key(&self) -> &[u8] {
        &self.public
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::secp521r1
    }
}
