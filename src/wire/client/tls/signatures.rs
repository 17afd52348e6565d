//! Signatures that the client can verify: those of ring, RSA with short keys, and ECDSA on P-521.
//!
//! In: a key, a message and a signature. Out: whether the signature is valid (docs/adr/0017). Two of Go's algorithms
//! are missing: ECDSA on P-224, and ECDSA on P-256 and P-384 with SHA-512. All values are public, so the running time
//! may depend on them.

use num_bigint::BigUint;
use p521::ecdsa::signature::hazmat::PrehashVerifier as _;
use ring::digest;
use rustls::SignatureScheme;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{AlgorithmIdentifier, InvalidSignature, SignatureVerificationAlgorithm, alg_id};
use webpki::ring as ring_algorithms;

use crate::client::tls::certificate::rsa_key;

/// Length in bits of the shortest RSA key that is accepted, as in Go.
pub(super) const SHORTEST_RSA: u64 = 1024;
/// Length in bits of the shortest RSA key whose signatures ring verifies.
const SHORTEST_RSA_OF_RING: u64 = 2048;

/// Length in bytes of a number on the curve P-521.
const P521_BYTES: usize = 66;

/// The algorithms for certificates and handshakes.
pub(super) static ALGORITHMS: WebPkiSupportedAlgorithms = WebPkiSupportedAlgorithms {
    all: &[
        ring_algorithms::ECDSA_P256_SHA256,
        ring_algorithms::ECDSA_P256_SHA384,
        ring_algorithms::ECDSA_P384_SHA256,
        ring_algorithms::ECDSA_P384_SHA384,
        ring_algorithms::ED25519,
        &P521_SHA256,
        &P521_SHA384,
        &P521_SHA512,
        &PSS_SHA256,
        &PSS_SHA384,
        &PSS_SHA512,
        &PKCS1_SHA256,
        &PKCS1_SHA384,
        &PKCS1_SHA512,
        ring_algorithms::RSA_PKCS1_2048_8192_SHA256_ABSENT_PARAMS,
        ring_algorithms::RSA_PKCS1_2048_8192_SHA384_ABSENT_PARAMS,
        ring_algorithms::RSA_PKCS1_2048_8192_SHA512_ABSENT_PARAMS,
    ],
    // The client offers the schemes to servers in this order. TLS 1.3 uses only the first algorithm of a scheme; TLS
    // 1.2 uses the algorithm that fits the key. P-521 is last: a server with a key on another curve must not choose
    // SHA-512, which ring supports for none of the other curves.
    mapping: &[
        (
            SignatureScheme::ECDSA_NISTP384_SHA384,
            &[
                ring_algorithms::ECDSA_P384_SHA384,
                ring_algorithms::ECDSA_P256_SHA384,
                &P521_SHA384,
            ],
        ),
        (
            SignatureScheme::ECDSA_NISTP256_SHA256,
            &[
                ring_algorithms::ECDSA_P256_SHA256,
                ring_algorithms::ECDSA_P384_SHA256,
                &P521_SHA256,
            ],
        ),
        (SignatureScheme::ED25519, &[ring_algorithms::ED25519]),
        (SignatureScheme::RSA_PSS_SHA512, &[&PSS_SHA512]),
        (SignatureScheme::RSA_PSS_SHA384, &[&PSS_SHA384]),
        (SignatureScheme::RSA_PSS_SHA256, &[&PSS_SHA256]),
        (SignatureScheme::RSA_PKCS1_SHA512, &[&PKCS1_SHA512]),
        (SignatureScheme::RSA_PKCS1_SHA384, &[&PKCS1_SHA384]),
        (SignatureScheme::RSA_PKCS1_SHA256, &[&PKCS1_SHA256]),
        (SignatureScheme::ECDSA_NISTP521_SHA512, &[&P521_SHA512]),
    ],
};

static P521_SHA256: P521 = P521(&digest::SHA256, alg_id::ECDSA_SHA256);
static P521_SHA384: P521 = P521(&digest::SHA384, alg_id::ECDSA_SHA384);
static P521_SHA512: P521 = P521(&digest::SHA512, alg_id::ECDSA_SHA512);

static PSS_SHA256: Rsa = Rsa {
    ring: ring_algorithms::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
    padding: Padding::Pss,
    digest: &digest::SHA256,
};
static PSS_SHA384: Rsa = Rsa {
    ring: ring_algorithms::RSA_PSS_2048_8192_SHA384_LEGACY_KEY,
    padding: Padding::Pss,
    digest: &digest::SHA384,
};
static PSS_SHA512: Rsa = Rsa {
    ring: ring_algorithms::RSA_PSS_2048_8192_SHA512_LEGACY_KEY,
    padding: Padding::Pss,
    digest: &digest::SHA512,
};
static PKCS1_SHA256: Rsa = Rsa {
    ring: ring_algorithms::RSA_PKCS1_2048_8192_SHA256,
    padding: Padding::Pkcs1(&[
        0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04,
        0x20,
    ]),
    digest: &digest::SHA256,
};
static PKCS1_SHA384: Rsa = Rsa {
    ring: ring_algorithms::RSA_PKCS1_2048_8192_SHA384,
    padding: Padding::Pkcs1(&[
        0x30, 0x41, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x02, 0x05, 0x00, 0x04,
        0x30,
    ]),
    digest: &digest::SHA384,
};
static PKCS1_SHA512: Rsa = Rsa {
    ring: ring_algorithms::RSA_PKCS1_2048_8192_SHA512,
    padding: Padding::Pkcs1(&[
        0x30, 0x51, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x03, 0x05, 0x00, 0x04,
        0x40,
    ]),
    digest: &digest::SHA512,
};

/// ECDSA on P-521 with a digest, and the identifier of this combination.
#[derive(Debug)]
struct P521(&'static digest::Algorithm, AlgorithmIdentifier);

impl SignatureVerificationAlgorithm for P521 {
    fn verify_signature(&self, key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), InvalidSignature> {
        // Certificates contain only uncompressed points (RFC 5480, section 2.2).
        if key.first() != Some(&4) {
            return Err(InvalidSignature);
        }
        let key = p521::ecdsa::VerifyingKey::from_sec1_bytes(key).map_err(|_| InvalidSignature)?;
        let signature = p521::ecdsa::Signature::from_der(signature).map_err(|_| InvalidSignature)?;
        // A digest is shorter than a number on this curve. The crate rejects SHA-256 unless it is padded with zeros.
        let hash = digest::digest(self.0, message);
        let mut number = [0; P521_BYTES];
        number[P521_BYTES - hash.as_ref().len()..].copy_from_slice(hash.as_ref());
        key.verify_prehash(&number, &signature).map_err(|_| InvalidSignature)
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        alg_id::ECDSA_P521
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.1
    }
}

/// RSA with a padding and a digest. ring verifies signatures of keys with 2048 bits or more; this type verifies the
/// signatures of shorter keys.
#[derive(Debug)]
struct Rsa {
    ring: &'static dyn SignatureVerificationAlgorithm,
    padding: Padding,
    digest: &'static digest::Algorithm,
}

/// Padding of an RSA signature (RFC 8017, section 9).
#[derive(Clone, Copy, Debug)]
enum Padding {
    /// PSS with a salt as long as the digest.
    Pss,
    /// PKCS #1 v1.5 with the beginning of `DigestInfo`.
    Pkcs1(&'static [u8]),
}

impl SignatureVerificationAlgorithm for Rsa {
    fn verify_signature(&self, key: &[u8], message: &[u8], signature: &[u8]) -> Result<(), InvalidSignature> {
        let (modulus, exponent) = rsa_key(key).ok_or(InvalidSignature)?;
        let (n, e) = (BigUint::from_bytes_be(modulus), BigUint::from_bytes_be(exponent));
        if n.bits() >= SHORTEST_RSA_OF_RING {
            return self.ring.verify_signature(key, message, signature);
        }
        let s = BigUint::from_bytes_be(signature);
        // Go's limits for the numbers of a key.
        let is_key = n.bits() >= SHORTEST_RSA && n.bit(0) && e.bit(0) && e.bits() >= 2 && e.bits() <= 31;
        if !is_key || signature.len() != modulus.len() || s >= n {
            return Err(InvalidSignature);
        }
        let decrypted = s.modpow(&e, &n).to_bytes_be();
        let hash = digest::digest(self.digest, message);
        let is_valid = match self.padding {
            Padding::Pss => is_pss(&decrypted, n.bits() as usize - 1, self.digest, hash.as_ref()),
            Padding::Pkcs1(prefix) => decrypted == pkcs1(modulus.len(), prefix, hash.as_ref()),
        };
        if is_valid { Ok(()) } else { Err(InvalidSignature) }
    }

    fn public_key_alg_id(&self) -> AlgorithmIdentifier {
        self.ring.public_key_alg_id()
    }

    fn signature_alg_id(&self) -> AlgorithmIdentifier {
        self.ring.signature_alg_id()
    }
}

/// Returns the expected decrypted signature, without its leading zero (RFC 8017, section 9.2).
fn pkcs1(length: usize, prefix: &[u8], hash: &[u8]) -> Vec<u8> {
    let padding = length.saturating_sub(3 + prefix.len() + hash.len());
    let mut encoded = vec![1];
    encoded.resize(1 + padding, 0xff);
    encoded.push(0);
    encoded.extend_from_slice(prefix);
    encoded.extend_from_slice(hash);
    encoded
}

/// Checks a decrypted signature of at most `bits` bits, without leading zeros, against a hash (RFC 8017, section
/// 9.1.2).
fn is_pss(number: &[u8], bits: usize, algorithm: &'static digest::Algorithm, hash: &[u8]) -> bool {
    let length = bits.div_ceil(8);
    let salt_length = hash.len();
    let Some(padding) = length.checked_sub(hash.len() + salt_length + 2) else {
        return false;
    };
    let Some(zeros) = length.checked_sub(number.len()) else {
        return false;
    };
    let encoded = [&vec![0; zeros], number].concat();
    let (masked, rest) = encoded.split_at(padding + 1 + salt_length);
    let (seed, trailer) = rest.split_at(hash.len());
    let unused = 8 * length - bits;
    if trailer != [0xbc] || u16::from(masked[0]) >> (8 - unused) != 0 {
        return false;
    }
    let mask = mask(algorithm, seed, masked.len());
    let mut block: Vec<u8> = masked.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
    block[0] &= 0xff >> unused;
    let (start, salt) = block.split_at(padding + 1);
    let is_padded = start[..padding].iter().all(|byte| *byte == 0) && start[padding] == 1;
    let digest = digest::digest(algorithm, &[&[0; 8], hash, salt].concat());
    is_padded && digest.as_ref() == seed
}

/// The mask generation function MGF1 (RFC 8017, appendix B.2.1).
fn mask(algorithm: &'static digest::Algorithm, seed: &[u8], length: usize) -> Vec<u8> {
    let mut mask = Vec::new();
    for counter in 0_u32.. {
        if mask.len() >= length {
            break;
        }
        let block = digest::digest(algorithm, &[seed, &counter.to_be_bytes()].concat());
        mask.extend_from_slice(block.as_ref());
    }
    mask.truncate(length);
    mask
}
