//! The login methods of Vault: the path and the body of each login request.
//!
//! In: the arguments. Out: a login request, or the configured token. Every login reads its files again. Line breaks at
//! the end of a configured secret are ignored, because the content of a file usually ends with one.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::remote::vault::arguments::{AppRole, UserPassword, VaultArguments};
use crate::remote::vault::client::{Request, Vault};
use crate::remote::vault::clouds::{Clouds, IdentityError};
use crate::remote::vault::vault_error::VaultError;

/// A way to obtain a token. It contains secrets, so it is never printed.
pub(super) enum Way {
    /// The configured token, which the component does not renew.
    Token(String),
    /// A login, which returns a token.
    Login(Login),
}

/// The request of a login.
pub(super) struct Login {
    /// Path of the request, below `/v1/`.
    pub(super) path: String,
    /// The body of the request.
    pub(super) body: Value,
    /// A namespace that replaces the configured namespace.
    pub(super) namespace: Option<String>,
}

/// Returns the configured way to obtain a token. `unwrapped` stores the secret ID of an AppRole, since a wrapping token
/// can be unwrapped only once.
pub(super) async fn way(
    arguments: &VaultArguments,
    vault: &Vault,
    clouds: &Clouds,
    unwrapped: &mut Option<String>,
) -> Result<Way, VaultError> {
    let login = |mount: &str, path: &str, body: Value| {
        let (path, namespace) = (format!("auth/{mount}/{path}"), None);
        Ok(Way::Login(Login { path, body, namespace }))
    };
    if let Some(token_login) = &arguments.token {
        return Ok(Way::Token(token_login.token.without_line_break().to_owned()));
    }
    if let Some(role) = &arguments.approle {
        let secret = secret_id(role, vault, unwrapped).await?;
        let body = json!({ "role_id": &*role.role_id, "secret_id": secret });
        return login(&role.mount_path, "login", body);
    }
    if let Some(role) = &arguments.kubernetes {
        let token = tokio::fs::read_to_string(&*role.service_account_file).await;
        let token = token.map_err(|source| VaultError::ServiceAccount {
            path: role.service_account_file.clone(),
            source,
        })?;
        return login(
            &role.mount_path,
            "login",
            json!({ "role": &*role.role, "jwt": token.trim() }),
        );
    }
    let failed = |block: &'static str| {
        move |error: IdentityError| VaultError::Identity {
            block,
            source: Box::new(error),
        }
    };
    if let Some(aws) = &arguments.aws {
        let body = clouds.aws(aws).await.map_err(failed("auth.aws"))?;
        return login(&aws.mount_path, "login", body);
    }
    if let Some(azure) = &arguments.azure {
        let body = clouds.azure(azure).await.map_err(failed("auth.azure"))?;
        return login(&azure.mount_path, "login", body);
    }
    if let Some(gcp) = &arguments.gcp {
        let server = arguments.server.url();
        let body = clouds.gcp(gcp, server).await.map_err(failed("auth.gcp"))?;
        return login(&gcp.mount_path, "login", body);
    }
    if let Some(user) = arguments.userpass.as_ref().or(arguments.ldap.as_ref()) {
        let UserPassword {
            mount_path,
            password,
            username,
        } = user;
        return login(
            mount_path,
            &format!("login/{username}"),
            json!({ "password": password.without_line_break() }),
        );
    }
    if let Some(custom) = &arguments.custom {
        let data: BTreeMap<&str, &str> = custom.data.iter().map(|(name, value)| (&**name, &*value.0)).collect();
        return Ok(Way::Login(Login {
            path: custom.path.to_string(),
            body: json!(data),
            namespace: custom.namespace.as_deref().map(str::to_owned),
        }));
    }
    Err(VaultError::NoLogin)
}

async fn secret_id(role: &AppRole, vault: &Vault, unwrapped: &mut Option<String>) -> Result<String, VaultError> {
    if !role.wrapping_token {
        return Ok(role.secret.without_line_break().to_owned());
    }
    if let Some(known) = unwrapped {
        return Ok(known.clone());
    }
    let request = Request {
        path: "sys/wrapping/unwrap",
        token: role.secret.without_line_break(),
        body: Some(json!({})),
        namespace: None,
    };
    let data = vault.send(request).await?.data.unwrap_or_default();
    let secret = data.get("secret_id").and_then(Value::as_str);
    let secret = secret.ok_or(VaultError::NoSecretId)?;
    Ok(unwrapped.insert(secret.to_owned()).clone())
}
