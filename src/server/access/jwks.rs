//! Public keys of an issuer (RFC 7517), and checks of signatures by these keys: RS256 and ES256 only.
//!
//! In: the text of a key set, and signed bytes. Out: whether the signature is valid. A key is used only for the
//! algorithm of its key type, regardless of the algorithm that a token names.

use ring::signature::{ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;

use crate::server::access::secret;

const MOST: usize = 64;

pub(super) struct Keys(Vec<Key>);

struct Key {
    id: Option<String>,
    public: Public,
}

enum Public {
    /// Modulus and exponent, big-endian.
    Rsa(Vec<u8>, Vec<u8>),
    /// A point of P-256, uncompressed.
    P256(Vec<u8>),
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Described>,
}

#[derive(Deserialize)]
struct Described {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    n: Option<String>,
    e: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// An algorithm of token signatures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Es256,
}

impl Algorithm {
    /// Returns the algorithm with this name, or `None` for all others, including `none`.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            _ => None,
        }
    }
}

/// The result of a signature check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Signature {
    Right,
    Wrong,
    /// The set has no key for the signature. The issuer may have a new key.
    UnknownKey,
}

impl Keys {
    /// Parses a key set. Ignores keys that are not for signatures with RS256 or ES256.
    pub(super) fn read(text: &[u8]) -> Result<Self, String> {
        let document: Document = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if document.keys.len() > MOST {
            return Err(format!("the key set has more than {MOST} keys"));
        }
        let keys: Vec<Key> = document.keys.into_iter().filter_map(Key::of).collect();
        if keys.is_empty() {
            return Err("the key set has no key for RS256 or ES256".to_owned());
        }
        Ok(Self(keys))
    }

    /// Checks a signature with the key of this id. If `id` is `None`, the set must contain exactly one key for the
    /// algorithm.
    pub(super) fn check(&self, algorithm: Algorithm, id: Option<&str>, signed: &[u8], signature: &[u8]) -> Signature {
        let mut fitting = self.0.iter().filter(|key| key.public.algorithm() == algorithm);
        let key = match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)),
            None => fitting.next().filter(|_| fitting.next().is_none()),
        };
        match key {
            Some(key) if key.public.has_signed(signed, signature) => Signature::Right,
            Some(_) => Signature::Wrong,
            None => Signature::UnknownKey,
        }
    }
}

impl Key {
    fn of(described: Described) -> Option<Self> {
        let bytes = |text: Option<String>| text.as_deref().and_then(secret::bytes);
        let (public, algorithm) = match described.kty.as_str() {
            "RSA" => {
                // Some issuers write a leading zero, which other formats need to mark a number as positive.
                let number = |text| Some(bytes(text)?.into_iter().skip_while(|byte| *byte == 0).collect());
                (Public::Rsa(number(described.n)?, number(described.e)?), "RS256")
            }
            "EC" if described.crv.as_deref() == Some("P-256") => {
                let (x, y) = (bytes(described.x)?, bytes(described.y)?);
                let point = [&[4], x.as_slice(), y.as_slice()].concat();
                (Public::P256(point), "ES256")
            }
            _ => return None,
        };
        let fits = |said: Option<&str>, wanted: &str| said.is_none_or(|said| said == wanted);
        let is_ours = fits(described.alg.as_deref(), algorithm) && fits(described.purpose.as_deref(), "sig");
        is_ours.then_some(Self {
            id: described.kid,
            public,
        })
    }
}

impl Public {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa(..) => Algorithm::Rs256,
            Self::P256(_) => Algorithm::Es256,
        }
    }

    fn has_signed(&self, signed: &[u8], signature: &[u8]) -> bool {
        match self {
            Self::Rsa(n, e) => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
                .is_ok(),
            Self::P256(point) => UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(signed, signature)
                .is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};

    use super::*;

    fn pair() -> EcdsaKeyPair {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap()
    }

    fn described(pair: &EcdsaKeyPair, more: &str) -> String {
        let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
        let (x, y) = (secret::text(x), secret::text(y));
        format!(r#"{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}"{more}}}"#)
    }

    #[test]
    fn a_signature_is_checked_by_the_key_of_its_id() {
        let (one, two) = (pair(), pair());
        let set = format!(
            r#"{{"keys":[{},{},{{"kty":"oct","k":"AAAA"}}]}}"#,
            described(&one, r#","kid":"one","alg":"ES256""#),
            described(&two, r#","kid":"two","use":"sig""#)
        );
        let keys = Keys::read(set.as_bytes()).unwrap();
        let signature = two.sign(&SystemRandom::new(), b"text").unwrap();
        let check = |id, text: &[u8]| keys.check(Algorithm::Es256, id, text, signature.as_ref());
        assert_eq!(check(Some("two"), b"text"), Signature::Right);
        assert_eq!(check(Some("two"), b"other"), Signature::Wrong);
        assert_eq!(check(Some("one"), b"text"), Signature::Wrong);
        assert_eq!(check(Some("three"), b"text"), Signature::UnknownKey);
        // Without an id, it is ambiguous which of the two keys is meant.
        assert_eq!(check(None, b"text"), Signature::UnknownKey);
        let by_rsa = keys.check(Algorithm::Rs256, Some("two"), b"text", signature.as_ref());
        assert_eq!(by_rsa, Signature::UnknownKey);
    }

    #[test]
    fn keys_for_other_purposes_are_left_out() {
        let one = pair();
        for more in [r#","use":"enc""#, r#","alg":"ES384""#] {
            let set = format!(r#"{{"keys":[{}]}}"#, described(&one, more));
            assert!(Keys::read(set.as_bytes()).is_err(), "{more}");
        }
        assert_eq!(Algorithm::named("none"), None);
        assert_eq!(Algorithm::named("HS256"), None);
        let many = format!(r#"{{"keys":[{}]}}"#, vec![described(&one, ""); MOST + 1].join(","));
        assert!(Keys::read(many.as_bytes()).is_err());
    }
}
