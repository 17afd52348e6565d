//! Hashes of passwords in a users file: Argon2id (RFC 9106) in the PHC string format, and PBKDF2 (RFC 8018) in files
//! that older versions wrote.
//!
//! In: a password, or the text of a hash. Out: the text of a new hash, or whether a password is correct. A hash is
//! `$argon2id$v=19$m=MEMORY,t=PASSES,p=LANES$SALT$HASH`, or `pbkdf2-sha256$ITERATIONS$SALT$HASH` with salt and hash in
//! URL-safe base64. This module sets a minimum and a maximum for the cost of a check: guessing must stay expensive,
//! and a check must not exhaust the memory of a small server.

use std::num::NonZeroU32;
use std::ops::RangeInclusive;

use argon2::password_hash::{self, phc::Output};
use argon2::{ARGON2ID_IDENT, Argon2, Params, PasswordHash, PasswordHasher as _, PasswordVerifier as _, Version};
use ring::pbkdf2;

use crate::server::access::secret;

/// Range of the memory of Argon2id, in KiB, that the server accepts. The minimum is the least that OWASP's password
/// storage cheat sheet recommends. The maximum is the memory of new hashes. Each concurrent check of a password needs
/// the memory of its hash.
const MEMORY_KIB: RangeInclusive<u32> = 7 * 1024..=Params::DEFAULT_M_COST;
/// Range of the number of passes of Argon2id that the server accepts. A check with the maximum takes about two seconds.
const PASSES: RangeInclusive<u32> = 1..=100;
/// Minimum product of memory and passes. OWASP recommends five passes over the minimum memory.
const LEAST_WORK: u32 = 5 * *MEMORY_KIB.start();
/// Prefix of the hashes of older versions.
const PBKDF2: &str = "pbkdf2-sha256";
/// Range of the number of iterations of PBKDF2 that the server accepts. A check with the maximum takes about five
/// seconds.
const ITERATIONS: RangeInclusive<u32> = 100_000..=10_000_000;
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;

/// Error of a text that is not a password hash that the server accepts.
#[derive(Debug, thiserror::Error)]
pub enum HashError {
    #[error(
        "a hash must be $argon2id$v=19$m=MEMORY,t=PASSES,p=LANES$SALT$HASH or {PBKDF2}$ITERATIONS$SALT$HASH: \
         create it by `alluvium token password`"
    )]
    Form,
    /// With these parameters of Argon2id, a check would cost an attacker too little, or the server too much.
    #[error(
        "the parameters of Argon2id must be m={} to m={}, t={} to t={}, and m times t at least {LEAST_WORK}, \
         not m={memory_kib},t={passes}",
        MEMORY_KIB.start(),
        MEMORY_KIB.end(),
        PASSES.start(),
        PASSES.end()
    )]
    Argon2id { memory_kib: u32, passes: u32 },
    /// With this number of iterations of PBKDF2, a check would cost an attacker too little, or the server too much.
    #[error(
        "the number of iterations must be between {least} and {most}, not {0}",
        least = ITERATIONS.start(),
        most = ITERATIONS.end()
    )]
    Iterations(NonZeroU32),
}

/// A password hash that the server accepts.
#[derive(Clone)]
pub(super) enum Hash {
    Argon2id(Box<PasswordHash>),
    Pbkdf2 {
        iterations: NonZeroU32,
        salt: Vec<u8>,
        hash: Vec<u8>,
    },
}

/// Returns the text of a new hash of a password. It has the default parameters of the crate, which OWASP recommends: 19
/// MiB of memory, two passes and one lane.
pub(super) fn new_hash(password: &str) -> Result<String, password_hash::Error> {
    let salt = rand::random::<[u8; SALT_BYTES]>();
    let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt)?;
    Ok(hash.to_string())
}

impl Hash {
    /// Parses the text of a hash.
    pub(super) fn read(text: &str) -> Result<Self, HashError> {
        if text.starts_with('$') {
            Self::read_argon2id(text)
        } else {
            Self::read_pbkdf2(text)
        }
    }

    /// Returns true if this is the hash of the password. The time of the comparison does not reveal how much of the
    /// hash is equal.
    pub(super) fn is_of(&self, password: &[u8]) -> bool {
        match self {
            Self::Argon2id(hash) => Argon2::default().verify_password(password, &**hash).is_ok(),
            Self::Pbkdf2 { iterations, salt, hash } => {
                pbkdf2::verify(pbkdf2::PBKDF2_HMAC_SHA256, *iterations, salt, password, hash).is_ok()
            }
        }
    }

    /// Returns the function and the parameters of the hash. Checks of hashes with equal costs take the same time.
    pub(super) fn cost(&self) -> String {
        match self {
            Self::Argon2id(hash) => hash.params.to_string(),
            Self::Pbkdf2 { iterations, .. } => iterations.to_string(),
        }
    }

    /// Returns the hash without its salt and parameters.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Argon2id(hash) => hash.hash.as_ref().map(Output::as_bytes).unwrap_or_default(),
            Self::Pbkdf2 { hash, .. } => hash,
        }
    }

    /// Parses the PHC string of a hash by Argon2id.
    fn read_argon2id(text: &str) -> Result<Self, HashError> {
        let hash = PasswordHash::new(text).map_err(|_| HashError::Form)?;
        let has_parts = hash.salt.as_ref().is_some_and(|salt| salt.len() >= SALT_BYTES)
            && hash.hash.as_ref().is_some_and(|hash| hash.len() == HASH_BYTES);
        let is_argon2id = hash.algorithm == ARGON2ID_IDENT && hash.version == Some(Version::V0x13.into());
        let params = Params::try_from(&hash).ok().filter(|_| has_parts && is_argon2id);
        let params = params.ok_or(HashError::Form)?;
        let (memory_kib, passes) = (params.m_cost(), params.t_cost());
        if !MEMORY_KIB.contains(&memory_kib) || !PASSES.contains(&passes) || memory_kib * passes < LEAST_WORK {
            return Err(HashError::Argon2id { memory_kib, passes });
        }
        Ok(Self::Argon2id(Box::new(hash)))
    }

    /// Parses a hash of an older version.
    fn read_pbkdf2(text: &str) -> Result<Self, HashError> {
        let fields: Vec<&str> = text.split('$').collect();
        let [PBKDF2, iterations, salt, hash] = fields.as_slice() else {
            return Err(HashError::Form);
        };
        let iterations: NonZeroU32 = iterations.parse().map_err(|_| HashError::Form)?;
        if !ITERATIONS.contains(&iterations.get()) {
            return Err(HashError::Iterations(iterations));
        }
        let salt = secret::bytes(salt).filter(|salt| (SALT_BYTES..=64).contains(&salt.len()));
        let hash = secret::bytes(hash).filter(|hash| hash.len() == HASH_BYTES);
        let (salt, hash) = salt.zip(hash).ok_or(HashError::Form)?;
        Ok(Self::Pbkdf2 { iterations, salt, hash })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of `correct horse` that `alluvium token password` printed when new hashes were PBKDF2.
    const OLD: &str = "pbkdf2-sha256$600000$yTLC_R0m8qA-jA26R8VuZQ$uU3pggKBS738OEg54NlthQpIbf0L1MNwlX3LnOb_goY";
    /// The hash of `correct horse` by another program: Python's `argon2-cffi` with m=9216, t=4.
    const FOREIGN: &str =
        "$argon2id$v=19$m=9216,t=4,p=1$ECPTjq9fKsgeAs7KYWscrQ$8fuJtg5ppyn0vuYTdR11v6/fabXlSXOswFzn2AEFpNQ";

    #[test]
    fn a_new_hash_has_the_parameters_that_owasp_recommends() {
        let (one, two) = (new_hash("correct horse").unwrap(), new_hash("correct horse").unwrap());
        assert!(one.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{one}");
        assert_ne!(one, two, "the salt is random");
        let hash = Hash::read(&one).unwrap();
        assert!(hash.is_of(b"correct horse") && !hash.is_of(b"wrong horse"));
        assert_eq!(
            (hash.cost().as_str(), hash.bytes().len()),
            ("m=19456,t=2,p=1", HASH_BYTES)
        );
    }

    #[test]
    fn hashes_of_older_versions_and_other_programs_stay_valid() {
        for (text, cost) in [(OLD, "600000"), (FOREIGN, "m=9216,t=4,p=1")] {
            let hash = Hash::read(text).unwrap();
            assert!(hash.is_of(b"correct horse") && !hash.is_of(b"wrong horse"), "{text}");
            assert_eq!((hash.cost().as_str(), hash.bytes().len()), (cost, HASH_BYTES));
        }
    }

    #[test]
    fn a_hash_that_costs_too_little_or_too_much_is_refused() {
        let argon2id = |changed: &str| FOREIGN.replace("m=9216,t=4,p=1", changed);
        let pbkdf2 = |iterations: &str| OLD.replace("600000", iterations);
        for (text, word) in [
            (argon2id("m=7168,t=4,p=1"), "m times t at least 35840"),
            (argon2id("m=1024,t=50,p=1"), "m=7168 to m=19456"),
            (argon2id("m=65536,t=3,p=4"), "not m=65536,t=3"),
            (argon2id("m=19456,t=101,p=1"), "t=1 to t=100"),
            (argon2id("m=19456,t=4294967295,p=1"), "t=1 to t=100"),
            (pbkdf2("99999"), "iterations must be between"),
            (pbkdf2("10000001"), "iterations must be between"),
        ] {
            let error = Hash::read(&text).err().unwrap().to_string();
            assert!(error.contains(word), "{error}");
        }
        assert!(Hash::read(&argon2id("m=7168,t=5,p=1")).is_ok() && Hash::read(&pbkdf2("100000")).is_ok());
    }

    #[test]
    fn another_form_or_function_is_refused() {
        for text in [
            "",
            "$",
            "plain",
            &FOREIGN.replace("argon2id", "argon2i"),
            &FOREIGN.replace("v=19", "v=16"),
            &FOREIGN.replace("$v=19", ""),
            &FOREIGN.replace(",p=1", ",p=1,q=1"),
            &FOREIGN[..FOREIGN.len() - 10],
            FOREIGN.rsplit_once('$').unwrap().0,
            &format!("{FOREIGN}$AA"),
            &OLD.replace("sha256", "sha512"),
            &OLD.replace("600000", "0"),
            &OLD[..OLD.len() - 10],
        ] {
            let error = Hash::read(text).err().unwrap();
            assert!(matches!(error, HashError::Form), "{text}: {error}");
            assert!(error.to_string().starts_with("a hash must be $argon2id$"), "{error}");
        }
    }
}
