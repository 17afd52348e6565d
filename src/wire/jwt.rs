//! Signs JSON Web Tokens (RFC 7519), with which a service account authenticates.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::error::KeyRejected;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::{self, PemObject as _};
use serde_json::{Value, json};

/// Error of a private key that cannot sign claims. It does not contain the key.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The text of the key is not PEM, or contains no key in PKCS #8.
    #[error("the private key is not PEM: {0}")]
    Pem(#[source] pem::Error),
    /// The key is not an RSA key of an accepted length.
    #[error("the private key is not an RSA key: {0}")]
    Key(#[source] KeyRejected),
    /// The system has no random numbers for the signature.
    #[error("the claims cannot be signed")]
    Sign,
}

/// Signs claims by RS256 with an RSA key in PEM (PKCS #8).
pub fn sign_rs256(key: &str, key_id: Option<&str>, claims: &Value) -> Result<String, SignError> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(key.as_bytes()).map_err(SignError::Pem)?;
    let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(SignError::Key)?;
    let mut header = json!({ "alg": "RS256", "typ": "JWT" });
    if let Some(id) = key_id {
        header["kid"] = json!(id);
    }
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let text = format!(
        "{}.{}",
        encode(header.to_string().as_bytes()),
        encode(claims.to_string().as_bytes())
    );
    let mut signature = vec![0; pair.public().modulus_len()];
    let signed = pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature);
    signed.map_err(|_| SignError::Sign)?;
    Ok(format!("{text}.{}", encode(&signature)))
}

#[cfg(test)]
mod tests {
    use ring::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};

    use super::*;

    /// Made for this test with `openssl genpkey -algorithm RSA`.
    const KEY: &str = include_str!("testdata/service_account.pem");

    #[test]
    fn the_signature_is_that_of_the_key() {
        let token = sign_rs256(KEY, Some("k1"), &json!({ "iss": "me" })).unwrap();
        let (text, signature) = token.rsplit_once('.').unwrap();
        let decode = |text: &str| String::from_utf8(URL_SAFE_NO_PAD.decode(text).unwrap()).unwrap();
        let (header, claims) = text.split_once('.').unwrap();
        assert_eq!(decode(header), r#"{"alg":"RS256","kid":"k1","typ":"JWT"}"#);
        assert_eq!(decode(claims), r#"{"iss":"me"}"#);
        let der = PrivatePkcs8KeyDer::from_pem_slice(KEY.as_bytes()).unwrap();
        let pair = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
        let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public_key().as_ref());
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        public.verify(text.as_bytes(), &signature).unwrap();
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_shown() {
        let error = sign_rs256("hush", None, &json!({})).unwrap_err().to_string();
        assert!(
            error.starts_with("the private key is not PEM") && !error.contains("hush"),
            "{error}"
        );
    }
}
