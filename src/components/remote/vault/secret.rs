//! Reads a secret from a key-value store of Vault, with either version of its API.

use serde_json::{Map, Value};

use crate::remote::vault::arguments::VaultArguments;
use crate::remote::vault::client::{Request, Vault};
use crate::remote::vault::vault_error::VaultError;

/// A secret in plain text. It is never printed.
pub(super) struct Secret {
    /// The values of the secret, by key.
    pub(super) data: Map<String, Value>,
    /// Seconds for which the secret is valid. 0 means that it does not expire.
    pub(super) lease_seconds: u64,
}

/// The API version of a key-value store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Reads the secret that the arguments name.
pub(super) async fn read(arguments: &VaultArguments, vault: &Vault, token: &str) -> Result<Secret, VaultError> {
    let (mount, version) = store(arguments, vault, token).await?;
    let path = arguments.path.trim_matches('/');
    let key = match &arguments.key {
        Some(key) => key.trim_matches('/'),
        None => path.strip_prefix(&mount).unwrap_or(path).trim_matches('/'),
    };
    let path = match version {
        Version::One => format!("{mount}/{key}"),
        Version::Two => format!("{mount}/data/{key}"),
    };
    let request = Request {
        path: &path,
        token,
        body: None,
        namespace: None,
    };
    let answer = vault.send(request).await?;
    let mut data = answer.data.unwrap_or_default();
    if version == Version::Two {
        data = match data.remove("data") {
            Some(Value::Object(inner)) => inner,
            _ => return Err(VaultError::NoSecret(path)),
        };
    }
    Ok(Secret {
        data,
        lease_seconds: answer.lease_duration,
    })
}

/// Returns the mount path and the version of the store. If the server refuses to name them, the version is 2, as in
/// Alloy. The mount path is then the first part of the path, or the whole path if `key` is set.
async fn store(arguments: &VaultArguments, vault: &Vault, token: &str) -> Result<(String, Version), VaultError> {
    let path = arguments.path.trim_matches('/');
    let request = Request {
        path: &format!("sys/internal/ui/mounts/{path}"),
        token,
        body: None,
        namespace: None,
    };
    let first = || path.split('/').next().unwrap_or(path).to_owned();
    Ok(match vault.send(request).await {
        Ok(answer) => {
            let data = answer.data.unwrap_or_default();
            let mount = data
                .get("path")
                .and_then(Value::as_str)
                .map(|path| path.trim_matches('/').to_owned());
            let version = data.get("options").and_then(|options| options.get("version"));
            let version = match version.and_then(Value::as_str) {
                Some("2") => Version::Two,
                _ => Version::One,
            };
            (mount.unwrap_or_else(first), version)
        }
        // The store may have version 1, so the path of the secret is unknown.
        Err(error) if error.is_temporary() => return Err(error),
        Err(_) if arguments.key.is_some() => (path.to_owned(), Version::Two),
        Err(_) => (first(), Version::Two),
    })
}
