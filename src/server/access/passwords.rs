//! Users with passwords. A file has one line for each user, with the user's name, password hash, roles and tenants.
//!
//! In: lines `NAME:HASH:ROLES:TENANTS`. Out: the identity of a user and password, and lines for new users. A hash is
//! `pbkdf2-sha256$ITERATIONS$SALT$HASH` (RFC 8018), with salt and hash in URL-safe base64. The server keeps a keyed
//! hash of each correct password in memory. So a client that sends its password with every request causes only one
//! derivation.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use parking_lot::Mutex;
use ring::{hmac, pbkdf2};

use crate::server::access::identity::{Identity, Rights, TenantScope};
use crate::server::access::secret;

const ALGORITHM: &str = "pbkdf2-sha256";
/// Iterations of new hashes: the number that OWASP's password storage cheat sheet recommends for SHA-256.
const ITERATIONS: u32 = 600_000;
/// Minimum number of iterations that the server accepts.
const FEWEST: u32 = 100_000;
/// Maximum number of iterations that the server accepts. A derivation with this number takes about five seconds.
const MOST: u32 = 10_000_000;
const SALT_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
/// Minimum length of the password of a new user, in characters.
const SHORTEST: usize = 12;
/// Maximum length of a password in bytes. The server refuses a longer password.
const LONGEST: usize = 1024;
const MOST_USERS: usize = 10_000;

/// Error of a user line that cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum PasswordError {
    /// The name is not a valid user name.
    #[error("`{0}` is not a user name: use 1 to 100 letters, digits and . _ - @")]
    Name(String),
    /// The password is too short or too long.
    #[error(
        "the password must have at least {least} characters and at most {most} bytes",
        least = SHORTEST,
        most = LONGEST
    )]
    Length,
}

pub(super) struct Users {
    known: HashMap<String, User>,
    /// HMAC key for the hashes of correct passwords.
    key: hmac::Key,
    /// Random hash against which passwords of unknown users are checked, so that this check takes as long as for known
    /// users.
    nobody: Hash,
}

struct User {
    hash: Hash,
    identity: Arc<Identity>,
    /// Keyed hash of the password. `None` until a derivation has proven the password correct.
    proven: Mutex<Option<hmac::Tag>>,
}

#[derive(Clone)]
struct Hash {
    iterations: NonZeroU32,
    salt: Vec<u8>,
    hash: Vec<u8>,
}

/// The result of the cached credential check.
pub(super) enum Quick {
    /// The password was proven correct before.
    Right(Arc<Identity>),
    /// Only a derivation can prove the password.
    Unknown,
}

impl Users {
    /// Parses the text of a users file.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut known = HashMap::new();
        let lines = text.lines().map(str::trim).enumerate();
        for (at, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let (name, user) = User::read(line).map_err(|error| format!("line {}: {error}", at + 1))?;
            if known.insert(name.to_owned(), user).is_some() {
                return Err(format!("line {}: the user `{name}` is listed twice", at + 1));
            }
            if known.len() > MOST_USERS {
                return Err(format!("the file has more than {MOST_USERS} users"));
            }
        }
        let iterations = known.values().map(|user| user.hash.iterations).max();
        Ok(Self {
            known,
            key: hmac::Key::new(hmac::HMAC_SHA256, &rand::random::<[u8; 32]>()),
            nobody: Hash {
                iterations: iterations.unwrap_or(NonZeroU32::MIN),
                salt: rand::random::<[u8; SALT_BYTES]>().to_vec(),
                hash: rand::random::<[u8; HASH_BYTES]>().to_vec(),
            },
        })
    }

    /// Returns true if the file contains the user.
    pub(super) fn has(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// Returns the identity and the password hash of a user, for sessions. Does not check the password.
    pub(super) fn identity(&self, name: &str) -> Option<(Arc<Identity>, &[u8])> {
        let user = self.known.get(name)?;
        Some((user.identity.clone(), &user.hash.hash))
    }

    /// Checks whether the password was proven correct before.
    pub(super) fn quick(&self, name: &str, password: &str) -> Quick {
        let found = self.known.get(name).and_then(|user| {
            let tag = (*user.proven.lock())?;
            let is_right = hmac::verify(&self.key, password.as_bytes(), tag.as_ref()).is_ok();
            is_right.then(|| user.identity.clone())
        });
        found.map_or(Quick::Unknown, Quick::Right)
    }

    /// Derives the hash of the password, and returns the identity if the password is correct. The derivation takes some
    /// hundred milliseconds of CPU time, also for unknown users.
    pub(super) fn derive(&self, name: &str, password: &str) -> Option<Arc<Identity>> {
        let user = self.known.get(name);
        let hash = user.map_or(&self.nobody, |user| &user.hash);
        let password = password.as_bytes();
        if password.len() > LONGEST || !hash.is_of(password) {
            return None;
        }
        let user = user?;
        *user.proven.lock() = Some(hmac::sign(&self.key, password));
        Some(user.identity.clone())
    }
}

impl User {
    fn read(line: &str) -> Result<(&str, Self), String> {
        let mut fields = line.splitn(4, ':');
        let mut next = || fields.next().ok_or("a line must be NAME:HASH:ROLES:TENANTS");
        let (name, hash, roles, tenants) = (next()?, next()?, next()?, next()?);
        if !is_name(name) {
            return Err(PasswordError::Name(name.to_owned()).to_string());
        }
        let rights = roles
            .parse::<Rights>()
            .map_err(|error| format!("user `{name}`: {error}"))?;
        let ids = tenants.split(',').filter(|id| !id.is_empty());
        let tenants = TenantScope::of_ids(ids).map_err(|error| format!("user `{name}`: {error}"))?;
        let user = Self {
            hash: Hash::read(hash).map_err(|error| format!("user `{name}`: {error}"))?,
            identity: Identity::proven(name, rights, tenants),
            proven: Mutex::new(None),
        };
        Ok((name, user))
    }
}

impl Hash {
    fn read(text: &str) -> Result<Self, String> {
        let shape =
            || format!("a hash must be {ALGORITHM}$ITERATIONS$SALT$HASH: create it by `alluvium token password`");
        let fields: Vec<&str> = text.split('$').collect();
        let [ALGORITHM, iterations, salt, hash] = fields.as_slice() else {
            return Err(shape());
        };
        let iterations: u32 = iterations.parse().map_err(|_| shape())?;
        if !(FEWEST..=MOST).contains(&iterations) {
            return Err(format!(
                "the number of iterations must be between {FEWEST} and {MOST}, not {iterations}"
            ));
        }
        let salt = secret::bytes(salt).filter(|salt| (SALT_BYTES..=64).contains(&salt.len()));
        let hash = secret::bytes(hash).filter(|hash| hash.len() == HASH_BYTES);
        Ok(Self {
            iterations: NonZeroU32::new(iterations).ok_or_else(shape)?,
            salt: salt.ok_or_else(shape)?,
            hash: hash.ok_or_else(shape)?,
        })
    }

    fn of(password: &[u8], iterations: NonZeroU32) -> Self {
        let salt = rand::random::<[u8; SALT_BYTES]>().to_vec();
        let mut hash = vec![0; HASH_BYTES];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, &salt, password, &mut hash);
        Self { iterations, salt, hash }
    }

    /// Returns true if this is the hash of the password. The time of the comparison does not reveal how much of the
    /// hash is equal.
    fn is_of(&self, password: &[u8]) -> bool {
        pbkdf2::verify(
            pbkdf2::PBKDF2_HMAC_SHA256,
            self.iterations,
            &self.salt,
            password,
            &self.hash,
        )
        .is_ok()
    }
}

impl std::fmt::Display for Hash {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (salt, hash) = (secret::text(&self.salt), secret::text(&self.hash));
        write!(out, "{ALGORITHM}${}${salt}${hash}", self.iterations)
    }
}

/// Returns the line of a new user for the users file.
pub fn line(name: &str, password: &str, rights: &Rights, tenants: &TenantScope) -> Result<String, PasswordError> {
    if !is_name(name) {
        return Err(PasswordError::Name(name.to_owned()));
    }
    if password.chars().count() < SHORTEST || password.len() > LONGEST {
        return Err(PasswordError::Length);
    }
    let iterations = NonZeroU32::new(ITERATIONS).unwrap_or(NonZeroU32::MIN);
    let hash = Hash::of(password.as_bytes(), iterations);
    Ok(format!("{name}:{hash}:{rights}:{}", tenants.ids().join(",")))
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    (1..=100).contains(&name.len()) && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: NonZeroU32 = NonZeroU32::new(FEWEST).unwrap();

    fn users() -> Users {
        let hash = Hash::of(b"correct horse", FEW);
        Users::read(&format!("# people\n\nada:{hash}:read,write:shop,desk\n")).unwrap()
    }

    #[test]
    fn a_password_is_proven_once_and_remembered() {
        let users = users();
        assert!(matches!(users.quick("ada", "correct horse"), Quick::Unknown));
        assert!(users.derive("ada", "wrong horse").is_none());
        let ada = users.derive("ada", "correct horse").unwrap();
        assert_eq!((&*ada.name, ada.rights.to_string().as_str()), ("ada", "read,write"));
        assert!(matches!(users.quick("ada", "correct horse"), Quick::Right(_)));
        assert!(matches!(users.quick("ada", "wrong horse"), Quick::Unknown));
        assert!(matches!(users.quick("eve", "correct horse"), Quick::Unknown));
        assert!(users.derive("eve", "correct horse").is_none());
    }

    #[test]
    fn a_new_line_can_be_read_and_does_not_show_the_password() {
        let scope = TenantScope::All;
        let made = line("ada", "correct horse", &Rights::all(), &scope).unwrap();
        assert!(
            made.starts_with("ada:pbkdf2-sha256$600000$") && made.ends_with(":admin:*"),
            "{made}"
        );
        assert!(!made.contains("correct"));
        assert!(Users::read(&made).unwrap().has("ada"));
        assert!(matches!(
            line("a:b", "correct horse", &Rights::all(), &scope),
            Err(PasswordError::Name(_))
        ));
        assert!(matches!(
            line("ada", "short", &Rights::all(), &scope),
            Err(PasswordError::Length)
        ));
    }

    #[test]
    fn a_wrong_line_is_named_by_its_number() {
        let good = Hash::of(b"correct horse", FEW).to_string();
        let weak = good.replace(&format!("${FEWEST}$"), "$10$");
        for (text, word) in [
            ("ada".to_owned(), "NAME:HASH:ROLES:TENANTS"),
            ("ada:plain:read:shop".to_owned(), "pbkdf2-sha256$"),
            (format!("ada:{weak}:read:shop"), "iterations must be between"),
            (format!("ada:{good}:root:shop"), "`root` is not a role"),
            (format!("ada:{good}:read:a/b"), "user `ada`"),
            (
                format!("ada:{good}:read:\nada:{good}:read:"),
                "line 2: the user `ada` is listed twice",
            ),
        ] {
            let error = Users::read(&text).err().unwrap();
            assert!(error.contains(word) && error.starts_with("line "), "{error}");
        }
    }
}
