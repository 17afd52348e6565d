//! The public keys of an issuer (RFC 7517), and the check of a token's signature with these keys. Only RS256 and ES256
//! are supported.
//!
//! In: the text of a key set, and a token. Out: the claims of the token, if its signature is valid. A key is used only
//! for the algorithm of its key type, regardless of the algorithm that a token names.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode};
use serde_json::{Map, Value};

use crate::server::access::secret;
use crate::server::access::signatures::use_ring;

const MOST: usize = 64;

pub(super) struct Keys(Vec<Key>);

struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    public: DecodingKey,
}

/// Error of a text that is not a usable key set.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeysError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("the key set has more than {MOST} keys")]
    TooMany,
    #[error("the key set has no key for RS256 or ES256")]
    Unusable,
}

/// The result of a signature check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Signature {
    /// The signature is valid. The claims are not checked.
    Valid(Map<String, Value>),
    Invalid,
    /// The set has no key for the signature. The issuer may have a new key.
    UnknownKey,
}

impl Keys {
    /// Parses a key set. Ignores keys that are not for signatures with RS256 or ES256.
    pub(super) fn read(text: &[u8]) -> Result<Self, KeysError> {
        use_ring();
        let set: JwkSet = serde_json::from_slice(text)?;
        if set.keys.len() > MOST {
            return Err(KeysError::TooMany);
        }
        let keys: Vec<Key> = set.keys.into_iter().filter_map(Key::of).collect();
        if keys.is_empty() {
            return Err(KeysError::Unusable);
        }
        Ok(Self(keys))
    }

    /// Checks the signature of a token with the key that its header names. If the header names no key, the set must
    /// contain exactly one key for the algorithm.
    pub(super) fn check(&self, header: &Header, token: &str) -> Signature {
        let mut fitting = self.0.iter().filter(|key| key.algorithm == header.alg);
        let key = match &header.kid {
            Some(id) => fitting.find(|key| key.id.as_ref() == Some(id)),
            None => fitting.next().filter(|_| fitting.next().is_none()),
        };
        let Some(key) = key else {
            return Signature::UnknownKey;
        };
        let mut only_signature = Validation::new(key.algorithm);
        only_signature.required_spec_claims.clear();
        only_signature.validate_exp = false;
        only_signature.validate_aud = false;
        let token = decode(token, &key.public, &only_signature);
        token.map_or(Signature::Invalid, |token| Signature::Valid(token.claims))
    }
}

impl Key {
    fn of(described: Jwk) -> Option<Self> {
        let (algorithm, public) = match &described.algorithm {
            AlgorithmParameters::RSA(key) => {
                // Some issuers write a leading zero, which other formats need to mark a number as positive.
                let number = |text| {
                    let bytes = secret::bytes(text)?.into_iter();
                    Some(bytes.skip_while(|byte| *byte == 0).collect::<Vec<u8>>())
                };
                let public = DecodingKey::from_rsa_raw_components(&number(&key.n)?, &number(&key.e)?);
                (Algorithm::RS256, public)
            }
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                (Algorithm::ES256, DecodingKey::from_ec_components(&key.x, &key.y).ok()?)
            }
            _ => return None,
        };
        let common = described.common;
        let is_ours = common
            .key_algorithm
            .is_none_or(|key_algorithm| key_algorithm == KeyAlgorithm::from(algorithm))
            && common
                .public_key_use
                .is_none_or(|key_use| key_use == PublicKeyUse::Signature);
        is_ours.then_some(Self {
            id: common.key_id,
            algorithm,
            public,
        })
    }
}

#[cfg(test)]
mod tests {
    use alluvium_wire::jwt::sign_rs256;
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, RsaKeyPair, RsaPublicKeyComponents,
    };
    use rustls::pki_types::PrivatePkcs8KeyDer;
    use rustls::pki_types::pem::PemObject as _;
    use serde_json::json;

    use super::*;

    fn pair() -> EcdsaKeyPair {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap()
    }

    fn described(pair: &EcdsaKeyPair, members: &str) -> String {
        let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
        let (x, y) = (secret::text(x), secret::text(y));
        format!(r#"{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}"{members}}}"#)
    }

    /// Returns a token that claims to have this algorithm, signed with ES256.
    fn token(pair: &EcdsaKeyPair, algorithm: &str, claims: &Value) -> String {
        let part = |value: &Value| secret::text(value.to_string().as_bytes());
        let text = format!("{}.{}", part(&json!({ "alg": algorithm })), part(claims));
        let signature = pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", secret::text(signature.as_ref()))
    }

    fn header(algorithm: Algorithm, id: Option<&str>) -> Header {
        Header {
            kid: id.map(str::to_owned),
            ..Header::new(algorithm)
        }
    }

    fn right(claims: &Value) -> Signature {
        Signature::Valid(claims.as_object().unwrap().clone())
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
        let text = token(&two, "ES256", &json!({"sub": "text"}));
        let signature = text.rsplit_once('.').unwrap().1;
        let other = token(&two, "ES256", &json!({"sub": "other"}));
        let other = format!("{}.{signature}", other.rsplit_once('.').unwrap().0);
        let check = |id, token: &str| keys.check(&header(Algorithm::ES256, id), token);
        assert_eq!(check(Some("two"), &text), right(&json!({"sub": "text"})));
        assert_eq!(check(Some("two"), &other), Signature::Invalid);
        assert_eq!(check(Some("one"), &text), Signature::Invalid);
        assert_eq!(check(Some("three"), &text), Signature::UnknownKey);
        // Without an id, it is ambiguous which of the two keys is meant.
        assert_eq!(check(None, &text), Signature::UnknownKey);
        let by_rsa = keys.check(&header(Algorithm::RS256, Some("two")), &text);
        assert_eq!(by_rsa, Signature::UnknownKey);
        for algorithm in ["RS256", "HS256", "ES384", "none"] {
            let token = token(&two, algorithm, &json!({}));
            assert_eq!(check(Some("two"), &token), Signature::Invalid, "{algorithm}");
        }
    }

    #[test]
    fn an_rsa_key_may_have_leading_zeros() {
        let pem = include_str!("../../wire/testdata/service_account.pem");
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).unwrap();
        let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
        let RsaPublicKeyComponents { n, e } = RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
        let (n, e) = (secret::text(&[&[0], &*n].concat()), secret::text(&e));
        let set = json!({"keys": [{"kty": "RSA", "n": n, "e": e}]}).to_string();
        let keys = Keys::read(set.as_bytes()).unwrap();
        let token = sign_rs256(pem, None, &json!({"sub": "text"})).unwrap();
        let header = header(Algorithm::RS256, None);
        assert_eq!(keys.check(&header, &token), right(&json!({"sub": "text"})));
        assert_eq!(keys.check(&header, &token[..token.len() - 4]), Signature::Invalid);
    }

    #[test]
    fn keys_for_other_purposes_are_left_out() {
        let one = pair();
        for member in [r#","use":"enc""#, r#","alg":"ES384""#] {
            let set = format!(r#"{{"keys":[{}]}}"#, described(&one, member));
            assert!(Keys::read(set.as_bytes()).is_err(), "{member}");
        }
        let large_set = format!(r#"{{"keys":[{}]}}"#, vec![described(&one, ""); MOST + 1].join(","));
        assert!(Keys::read(large_set.as_bytes()).is_err());
        // A key set is usable even if it also contains keys of kinds that this server does not support.
        let set = format!(
            r#"{{"keys":[{{"kty":"EC","crv":"secp256k1","x":"AA","y":"AA"}},{{"kty":"OKP","crv":"X448","x":"AA"}},
                {{"kty":"AKP","alg":"ML-DSA-44","pub":"AA","key_ops":["verify"]}},{}]}}"#,
            described(&one, r#","x5c":["AA=="],"alg":"ES256""#)
        );
        assert_eq!(Keys::read(set.as_bytes()).unwrap().0.len(), 1);
    }
}
