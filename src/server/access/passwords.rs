//! Users with passwords. A file has one line for each user, with the user's name, password hash, roles and tenants.
//!
//! In: lines `NAME:HASH:ROLES:TENANTS`. Out: the identity for a user name and a password, and lines for new users. The
//! module `password_hash` derives and checks the hashes. The server keeps a keyed hash of each correct password in
//! memory. So a client that sends its password with every request causes only one derivation.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher as _;
use std::sync::Arc;

use parking_lot::Mutex;
use ring::hmac;

use crate::server::access::identity::{Identity, Rights, RoleError, TenantScope};
use crate::server::access::password_hash::{Hash, HashError, new_hash};
use alluvium_profile::TenantError;

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
    /// The password cannot be hashed, for example because there is not enough memory.
    #[error("cannot hash the password: {0}")]
    Hash(#[source] argon2::password_hash::Error),
}

/// Error in the text of a users file.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    #[error("line {line}: {source}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        source: LineError,
    },
    #[error("the file has more than {MOST_USERS} users")]
    TooMany,
}

/// Error in a line of a users file.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    #[error("a line must be NAME:HASH:ROLES:TENANTS")]
    Fields,
    #[error(transparent)]
    Name(PasswordError),
    #[error("the user `{0}` is listed twice")]
    Duplicate(String),
    #[error("user `{user}`: {source}")]
    Roles { user: String, source: RoleError },
    #[error("user `{user}`: {source}")]
    Tenants { user: String, source: TenantError },
    #[error("user `{user}`: {source}")]
    Hash { user: String, source: HashError },
}

pub(super) struct Users {
    known: HashMap<String, User>,
    /// HMAC key for the hashes of correct passwords.
    key: hmac::Key,
    /// One hash for each cost (function and parameters) that occurs in the file. The password of an unknown user is
    /// checked against one of these hashes, so that this check takes as long as for a known user.
    decoys: Vec<Hash>,
}

struct User {
    hash: Hash,
    identity: Arc<Identity>,
    /// Keyed hash of the password. `None` until a derivation has proven the password correct.
    proven: Mutex<Option<hmac::Tag>>,
}

/// The result of the cached credential check.
pub(super) enum Quick {
    /// The password was proven correct before.
    Proven(Arc<Identity>),
    /// Only a derivation can prove the password.
    Unknown,
}

impl Users {
    /// Parses the text of a users file.
    pub(super) fn read(text: &str) -> Result<Self, UsersError> {
        let mut known = HashMap::new();
        let lines = text.lines().map(str::trim).enumerate();
        for (index, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let line_error = |source| UsersError::Line {
                line: index + 1,
                source,
            };
            let (name, user) = User::read(line).map_err(line_error)?;
            if known.insert(name.to_owned(), user).is_some() {
                return Err(line_error(LineError::Duplicate(name.to_owned())));
            }
            if known.len() > MOST_USERS {
                return Err(UsersError::TooMany);
            }
        }
        let by_cost = known.values().map(|user| (user.hash.cost(), &user.hash));
        let decoys = by_cost.collect::<BTreeMap<_, _>>().into_values().cloned().collect();
        Ok(Self {
            known,
            key: hmac::Key::new(hmac::HMAC_SHA256, &rand::random::<[u8; 32]>()),
            decoys,
        })
    }

    /// Returns true if the file contains the user.
    pub(super) fn has(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// Returns the identity and the password hash of a user, for sessions. Does not check the password.
    pub(super) fn identity(&self, name: &str) -> Option<(Arc<Identity>, &[u8])> {
        let user = self.known.get(name)?;
        Some((user.identity.clone(), user.hash.bytes()))
    }

    /// Checks whether the password was proven correct before.
    pub(super) fn quick(&self, name: &str, password: &str) -> Quick {
        let identity = self.known.get(name).and_then(|user| {
            let tag = (*user.proven.lock())?;
            let is_right = hmac::verify(&self.key, password.as_bytes(), tag.as_ref()).is_ok();
            is_right.then(|| user.identity.clone())
        });
        identity.map_or(Quick::Unknown, Quick::Proven)
    }

    /// Derives the hash of the password, and returns the identity if the password is correct. The derivation takes tens
    /// of milliseconds of CPU time, or hundreds with a hash of an older version, also for unknown users.
    pub(super) fn derive(&self, name: &str, password: &str) -> Option<Arc<Identity>> {
        let user = self.known.get(name);
        let hash = match user {
            Some(user) => &user.hash,
            None => self.decoy(name)?,
        };
        let password = password.as_bytes();
        if password.len() > LONGEST || !hash.is_of(password) {
            return None;
        }
        let user = user?;
        *user.proven.lock() = Some(hmac::sign(&self.key, password));
        Some(user.identity.clone())
    }

    /// Returns the hash for an unknown user, or `None` if there are no users. A name always has the same decoy:
    /// repeated checks of a known user have the same cost, so a varying cost would reveal an unknown user.
    fn decoy(&self, name: &str) -> Option<&Hash> {
        let number = self.known.hasher().hash_one(name) as usize;
        self.decoys.get(number.checked_rem(self.decoys.len())?)
    }
}

impl User {
    fn read(line: &str) -> Result<(&str, Self), LineError> {
        let mut fields = line.splitn(4, ':');
        let mut next = || fields.next().ok_or(LineError::Fields);
        let (name, hash, roles, tenants) = (next()?, next()?, next()?, next()?);
        if !is_name(name) {
            return Err(LineError::Name(PasswordError::Name(name.to_owned())));
        }
        let user = || name.to_owned();
        let rights = roles.parse::<Rights>();
        let rights = rights.map_err(|source| LineError::Roles { user: user(), source })?;
        let ids = tenants.split(',').filter(|id| !id.is_empty());
        let tenants = TenantScope::of_ids(ids);
        let tenants = tenants.map_err(|source| LineError::Tenants { user: user(), source })?;
        let hash = Hash::read(hash).map_err(|source| LineError::Hash { user: user(), source })?;
        let read = Self {
            hash,
            identity: Identity::proven(name, rights, tenants),
            proven: Mutex::new(None),
        };
        Ok((name, read))
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
    let hash = new_hash(password).map_err(PasswordError::Hash)?;
    Ok(format!("{name}:{hash}:{rights}:{}", tenants.ids().join(",")))
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    (1..=100).contains(&name.len()) && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A line that `alluvium token password` printed when new hashes were PBKDF2.
    const OLD: &str = "old:pbkdf2-sha256$600000$yTLC_R0m8qA-jA26R8VuZQ$uU3pggKBS738OEg54NlthQpIbf0L1MNwlX3LnOb_goY:\
                       read:anonymous";

    fn users() -> Users {
        let hash = new_hash("correct horse").unwrap();
        Users::read(&format!("# people\n\nada:{hash}:read,write:shop,desk\n")).unwrap()
    }

    #[test]
    fn a_password_is_proven_once_and_remembered() {
        let users = users();
        assert!(matches!(users.quick("ada", "correct horse"), Quick::Unknown));
        assert!(users.derive("ada", "wrong horse").is_none());
        let ada = users.derive("ada", "correct horse").unwrap();
        assert_eq!((&*ada.name, ada.rights.to_string().as_str()), ("ada", "read,write"));
        assert!(matches!(users.quick("ada", "correct horse"), Quick::Proven(_)));
        assert!(matches!(users.quick("ada", "wrong horse"), Quick::Unknown));
        assert!(matches!(users.quick("eve", "correct horse"), Quick::Unknown));
        assert!(users.derive("eve", "correct horse").is_none());
    }

    #[test]
    fn a_line_of_an_older_version_stays_valid() {
        let users = Users::read(OLD).unwrap();
        assert!(users.derive("old", "wrong horse").is_none());
        assert_eq!(&*users.derive("old", "correct horse").unwrap().name, "old");
        assert!(matches!(users.quick("old", "correct horse"), Quick::Proven(_)));
    }

    #[test]
    fn an_unknown_user_costs_as_much_as_a_known_one() {
        let made = line("ada", "correct horse", &Rights::all(), &TenantScope::All).unwrap();
        let users = Users::read(&format!("{made}\n{OLD}\n{}", made.replace("ada:", "bob:"))).unwrap();
        let cost = |name: &str| users.decoy(name).unwrap().cost();
        let costs: BTreeSet<String> = (0..200).map(|number| cost(&number.to_string())).collect();
        let expected_costs: BTreeSet<String> = users.known.values().map(|user| user.hash.cost()).collect();
        assert_eq!((costs.len(), &costs), (2, &expected_costs));
        assert!((0..10).all(|_| cost("eve") == cost("eve")));
        assert!(Users::read("").unwrap().derive("eve", "correct horse").is_none());
    }

    #[test]
    fn a_new_line_can_be_read_and_does_not_show_the_password() {
        let scope = TenantScope::All;
        let made = line("ada", "correct horse", &Rights::all(), &scope).unwrap();
        assert!(
            made.starts_with("ada:$argon2id$v=19$m=19456,t=2,p=1$") && made.ends_with(":admin:*"),
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
        let hash = OLD.split(':').nth(1).unwrap();
        let weak = hash.replace("$600000$", "$10$");
        for (text, word) in [
            ("ada".to_owned(), "NAME:HASH:ROLES:TENANTS"),
            ("ada:plain:read:shop".to_owned(), "pbkdf2-sha256$"),
            (format!("ada:{weak}:read:shop"), "iterations must be between"),
            (format!("ada:{hash}:root:shop"), "`root` is not a role"),
            (format!("ada:{hash}:read:a/b"), "user `ada`"),
            (
                format!("ada:{hash}:read:\nada:{hash}:read:"),
                "line 2: the user `ada` is listed twice",
            ),
        ] {
            let error = Users::read(&text).err().unwrap().to_string();
            assert!(error.contains(word) && error.starts_with("line "), "{error}");
        }
    }
}
