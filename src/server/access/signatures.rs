//! Makes the crate `jsonwebtoken` verify signatures with ring. The crate's own backends would add a second
//! implementation of RSA, or a second library of cryptography in C, to the program (docs/adr/0019).
//!
//! In: a key and an algorithm. Out: a verifier for RS256 or ES256. All other algorithms are refused, and so is signing.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::signature::{Error, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};

static RING: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| Ok(Box::new(Public(*algorithm, key.clone()))),
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes `jsonwebtoken` use ring in this process. Without a backend, `jsonwebtoken` panics.
pub(super) fn use_ring() {
    // An error says that a backend is installed already.
    let _ = RING.install_default();
}

/// A public key and the algorithm of its signatures.
struct Public(Algorithm, DecodingKey);

impl JwtVerifier for Public {
    fn algorithm(&self) -> Algorithm {
        self.0
    }
}

impl Verifier<Vec<u8>> for Public {
    fn verify(&self, signed: &[u8], signature: &Vec<u8>) -> Result<(), Error> {
        let verified = match (self.0, self.1.kind()) {
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
            _ => return Err(Error::new()),
        };
        verified.map_err(|_| Error::new())
    }
}
