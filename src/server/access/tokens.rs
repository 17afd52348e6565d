//! Bearer tokens: a file with the name, the hash, the roles and the tenants of each token.
//!
//! In: the text of the file, and the names of new and revoked tokens. Out: the identity of a token. The tokens
//! themselves are stored nowhere. `alluvium token new` shows a new token once.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::server::access::identity::{Identity, Rights, RoleError, TenantScope};
use crate::server::access::secret::{self, Digest, digest};
use alluvium_base::file::replace;
use alluvium_profile::TenantError;

/// Prefix of every token. People and secret scanners recognize a token by this prefix.
pub(crate) const PREFIX: &str = "allu_";

const MOST: usize = 10_000;

/// Maximum length of a token's name in bytes.
const LONGEST_NAME: usize = 100;

/// Error of a command that reads or changes the tokens file.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("cannot use the tokens file `{}`: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// The text of the file is not valid.
    #[error("cannot use the tokens file `{}`: {source}", path.display())]
    Entries { path: PathBuf, source: EntriesError },
    /// Another token already has the name.
    #[error("the token `{0}` exists already: revoke it first, or choose another name")]
    Duplicate(String),
    #[error("there is no token `{0}`")]
    Unknown(String),
    /// The name is not a valid name of a token.
    #[error("`{0}` is not a valid token name: use 1 to {most} letters, digits and . _ - @", most = LONGEST_NAME)]
    Name(String),
    #[error("the file has the maximum of {most} tokens: revoke some of them", most = MOST)]
    Full,
}

/// Error in the text of a tokens file.
#[derive(Debug, thiserror::Error)]
pub enum EntriesError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("the file has more than {MOST} tokens")]
    TooMany,
    #[error("the sha256 of token `{0}` is not 32 bytes in base64")]
    Digest(String),
    #[error("token `{token}`: {source}")]
    Roles { token: String, source: RoleError },
    #[error("token `{token}`: {source}")]
    Tenants { token: String, source: TenantError },
}

/// The content of the tokens file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    tokens: Vec<Entry>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name of the token in lists and logs, and for its revocation.
    pub name: String,
    /// SHA-256 of the token as URL-safe base64.
    sha256: String,
    /// Any of the roles `read`, `write` and `admin`.
    pub roles: Vec<String>,
    /// Ids of tenants, or `*` for all.
    pub tenants: Vec<String>,
    /// Time of the creation, in RFC 3339.
    pub created: String,
}

/// The identities of the tokens of a file, by digest.
pub(super) struct Tokens(HashMap<Digest, Arc<Identity>>);

impl Tokens {
    /// Parses the text of a tokens file.
    pub(super) fn read(text: &str) -> Result<Self, EntriesError> {
        let mut tokens = HashMap::new();
        for entry in parse(text)?.tokens {
            let identity = entry.identity()?;
            tokens.insert(entry.digest()?, identity);
        }
        Ok(Self(tokens))
    }

    pub(super) fn identity(&self, digest: &Digest) -> Option<Arc<Identity>> {
        self.0.get(digest).cloned()
    }
}

impl Entry {
    fn digest(&self) -> Result<Digest, EntriesError> {
        let bytes = secret::bytes(&self.sha256).and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or_else(|| EntriesError::Digest(self.name.clone()))
    }

    fn identity(&self) -> Result<Arc<Identity>, EntriesError> {
        let token = || self.name.clone();
        let rights = Rights::of_roles(self.roles.iter().map(String::as_str));
        let rights = rights.map_err(|source| EntriesError::Roles { token: token(), source })?;
        let tenants = TenantScope::of_ids(self.tenants.iter().map(String::as_str));
        let tenants = tenants.map_err(|source| EntriesError::Tenants { token: token(), source })?;
        Ok(Identity::proven(&self.name, rights, tenants))
    }
}

/// Adds a token to the file, and creates the file if it does not exist. The returned token is stored nowhere.
pub fn add(path: &Path, name: &str, rights: &Rights, tenants: &TenantScope) -> Result<String, TokenError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(is_plain) {
        return Err(TokenError::Name(name.to_owned()));
    }
    let _lock = lock_folder(path)?;
    let mut contents = contents(path)?;
    if contents.tokens.iter().any(|entry| entry.name == name) {
        return Err(TokenError::Duplicate(name.to_owned()));
    }
    if contents.tokens.len() >= MOST {
        return Err(TokenError::Full);
    }
    let token = format!("{PREFIX}{}", secret::random());
    contents.tokens.push(Entry {
        name: name.to_owned(),
        sha256: secret::text(&digest(&token)),
        roles: rights.roles().into_iter().map(str::to_owned).collect(),
        tenants: tenants.ids(),
        created: chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
    });
    write(path, &contents)?;
    Ok(token)
}

/// Returns the tokens of the file in the order of their creation. If there is no file, the list is empty.
pub fn list(path: &Path) -> Result<Vec<Entry>, TokenError> {
    Ok(contents(path)?.tokens)
}

/// Removes a token from the file. A file without tokens is kept, so that the server still requires authentication.
pub fn revoke(path: &Path, name: &str) -> Result<(), TokenError> {
    let _lock = lock_folder(path)?;
    let mut contents = contents(path)?;
    let before = contents.tokens.len();
    contents.tokens.retain(|entry| entry.name != name);
    if contents.tokens.len() == before {
        return Err(TokenError::Unknown(name.to_owned()));
    }
    write(path, &contents)
}

/// Locks the folder of the file until the value is dropped, so that concurrent commands do not overwrite each other's
/// changes. On a file system without locks, this function does nothing.
fn lock_folder(path: &Path) -> Result<File, TokenError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new("."))).map_err(|error| file_error(path, error))?;
    let _ = folder.lock();
    Ok(folder)
}

fn contents(path: &Path) -> Result<Contents, TokenError> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text).map_err(|source| invalid(path, source)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Contents::default()),
        Err(error) => Err(file_error(path, error)),
    }
}

fn write(path: &Path, contents: &Contents) -> Result<(), TokenError> {
    let text = serde_json::to_string_pretty(contents).map_err(|error| invalid(path, error.into()))?;
    replace(path, text.as_bytes()).map_err(|error| file_error(path, error))
}

fn file_error(path: &Path, source: io::Error) -> TokenError {
    let path = path.to_owned();
    TokenError::File { path, source }
}

fn invalid(path: &Path, source: EntriesError) -> TokenError {
    let path = path.to_owned();
    TokenError::Entries { path, source }
}

fn parse(text: &str) -> Result<Contents, EntriesError> {
    let contents: Contents = serde_json::from_str(text)?;
    if contents.tokens.len() > MOST {
        return Err(EntriesError::TooMany);
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::server::access::identity::Right;

    #[test]
    fn a_token_is_shown_once_and_only_its_hash_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        let rights: Rights = "write".parse().unwrap();
        let token = add(&path, "shop", &rights, &TenantScope::anonymous()).unwrap();
        assert!(token.starts_with(PREFIX) && token.len() == PREFIX.len() + 43, "{token}");
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains(&token[PREFIX.len()..]), "{text}");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let identity = Tokens::read(&text).unwrap().identity(&digest(&token)).unwrap();
        assert_eq!(&*identity.name, "shop");
        assert!(identity.rights.has(Right::Write) && !identity.rights.has(Right::Read));
        assert!(Tokens::read(&text).unwrap().identity(&digest("allu_other")).is_none());
    }

    #[test]
    fn a_revoked_token_is_gone_and_the_file_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        assert!(list(&path).unwrap().is_empty());
        let rights = Rights::all();
        let token = add(&path, "desk", &rights, &TenantScope::All).unwrap();
        assert!(matches!(
            add(&path, "desk", &rights, &TenantScope::All),
            Err(TokenError::Duplicate(_))
        ));
        assert!(matches!(
            add(&path, "a b", &rights, &TenantScope::All),
            Err(TokenError::Name(_))
        ));
        assert!(matches!(revoke(&path, "shop"), Err(TokenError::Unknown(_))));
        assert_eq!(list(&path).unwrap()[0].roles, ["admin"]);
        revoke(&path, "desk").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(Tokens::read(&text).unwrap().identity(&digest(&token)).is_none());
    }

    #[test]
    fn commands_at_one_time_undo_nothing_of_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        let add_and_revoke = |name: String| {
            add(&path, &format!("{name}-old"), &Rights::all(), &TenantScope::All).unwrap();
            add(&path, &name, &Rights::all(), &TenantScope::All).unwrap();
            revoke(&path, &format!("{name}-old")).unwrap();
        };
        std::thread::scope(|scope| {
            for name in ["a", "b", "c", "d"] {
                scope.spawn(move || (0..5).for_each(|number| add_and_revoke(format!("{name}{number}"))));
            }
        });
        let names: Vec<String> = list(&path).unwrap().into_iter().map(|entry| entry.name).collect();
        assert!(
            names.len() == 20 && names.iter().all(|name| !name.ends_with("old")),
            "{names:?}"
        );
    }

    #[test]
    fn a_file_that_is_wrong_is_refused_as_a_whole() {
        for text in [
            "",
            "{}",
            r#"{"tokens": [{"name": "a", "sha256": "short", "roles": ["read"], "tenants": [], "created": ""}]}"#,
            r#"{"tokens": [], "other": 1}"#,
        ] {
            assert!(Tokens::read(text).is_err(), "{text}");
        }
    }
}
