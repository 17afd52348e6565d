//! Reads a kubeconfig file: cluster and user of the current context, as the options of a client.
//!
//! In: the path of the file. Out: options and the URL of the server. Relative paths in the file start at the folder of
//! the file. The credential plugin of a user (`exec`) runs when a token is needed. A user with `auth-provider` or `as`
//! is rejected with an error that names the setting.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use serde::Deserialize;
use url::Url;

use crate::common::http::values::{UrlError, http_url, proxy_url};
use crate::common::kubernetes::exec::{Exec, ExecError, Program};
use crate::common::sources::detector::{TextError, read_text};
use alluvium_wire::client::{ClientOptions, Credential, Pem, ProxyOptions, Secret, TlsOptions};

/// The reason why a kubeconfig file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum KubeconfigError {
    /// The file cannot be read.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The file has invalid content.
    #[error("kubeconfig {}: {source}", path.display())]
    Content { path: PathBuf, source: ContentError },
}

/// The reason why the content of a kubeconfig file cannot be used. No variant contains a secret of the file.
#[derive(Debug, thiserror::Error)]
pub(super) enum ContentError {
    /// The file is not YAML of the expected form. The text of the parser's error may contain a secret.
    #[error("there is invalid YAML or an unexpected value at line {line}, column {column}")]
    Syntax { line: u64, column: u64 },
    #[error("it has no current-context")]
    NoContext,
    /// An entry refers to an entry that does not exist.
    #[error("it has no {kind} \"{name}\"")]
    Missing { kind: &'static str, name: String },
    /// The user has a setting that is not supported.
    #[error(
        "user \"{user}\" has `{setting}`, which is not supported: use a token, a tokenFile, an exec or a client \
         certificate"
    )]
    Unsupported { user: String, setting: &'static str },
    /// The credential plugin of the user cannot be used.
    #[error("user \"{user}\": {source}")]
    Exec { user: String, source: ExecError },
    /// A certificate or a key in the file is invalid.
    #[error("{0}-data is not Base64-encoded PEM")]
    Pem(&'static str),
    /// The URL of the server or of the proxy is invalid.
    #[error(transparent)]
    Url(#[from] UrlError),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig {
    #[serde(default)]
    current_context: String,
    #[serde(default)]
    contexts: Vec<Named<Context>>,
    #[serde(default)]
    clusters: Vec<Named<Cluster>>,
    #[serde(default)]
    users: Vec<Named<User>>,
}

/// A named entry of a list.
#[derive(Deserialize)]
struct Named<T> {
    name: String,
    #[serde(alias = "context", alias = "cluster", alias = "user")]
    body: T,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    #[serde(default)]
    user: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: Option<PathBuf>,
    certificate_authority_data: Option<String>,
    #[serde(default)]
    insecure_skip_tls_verify: bool,
    tls_server_name: Option<String>,
    proxy_url: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    username: Option<String>,
    password: Option<String>,
    exec: Option<Exec>,
    auth_provider: Option<serde::de::IgnoredAny>,
    #[serde(rename = "as")]
    impersonated: Option<String>,
}

/// Returns the options of a client for the server of the file's current context, and the server's URL.
pub(super) fn read(path: &Path, user_agent: &Arc<str>) -> Result<(ClientOptions, Url), KubeconfigError> {
    let text = read_text(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    options(&text, folder, user_agent).map_err(|source| KubeconfigError::Content {
        path: path.to_owned(),
        source,
    })
}

fn options(text: &str, folder: &Path, user_agent: &Arc<str>) -> Result<(ClientOptions, Url), ContentError> {
    let Kubeconfig {
        current_context,
        contexts,
        clusters,
        users,
    } = serde_saphyr::from_str(text).map_err(|error| content_error(&error))?;
    if current_context.is_empty() {
        return Err(ContentError::NoContext);
    }
    let context = named("context", &contexts, &current_context)?;
    let cluster = named("cluster", &clusters, &context.cluster)?;
    let anonymous = User::default();
    let user = match context.user.as_str() {
        "" => &anonymous,
        name => named("user", &users, name)?,
    };
    let refused = [
        ("auth-provider", user.auth_provider.is_some()),
        ("as", user.impersonated.is_some()),
    ];
    if let Some((setting, _)) = refused.into_iter().find(|(_, is_given)| *is_given) {
        return Err(ContentError::Unsupported {
            user: context.user.clone(),
            setting,
        });
    }
    let proxy = cluster.proxy_url.as_deref().map(proxy_url).transpose()?;
    let options = ClientOptions {
        credential: credential(user, folder).map_err(|source| ContentError::Exec {
            user: context.user.clone(),
            source,
        })?,
        tls: TlsOptions {
            ca: pem(
                "certificate-authority",
                &cluster.certificate_authority_data,
                &cluster.certificate_authority,
                folder,
            )?,
            certificate: pem(
                "client-certificate",
                &user.client_certificate_data,
                &user.client_certificate,
                folder,
            )?,
            key: pem("client-key", &user.client_key_data, &user.client_key, folder)?,
            server_name: cluster.tls_server_name.as_deref().map(Arc::from),
            insecure_skip_verify: cluster.insecure_skip_tls_verify,
            ..TlsOptions::default()
        },
        // If the file names no proxy, the proxy comes from the environment, as in kubectl.
        proxy: ProxyOptions {
            from_environment: proxy.is_none(),
            url: proxy,
            ..ProxyOptions::default()
        },
        ..ClientOptions::new(user_agent.clone())
    };
    Ok((options, http_url(&cluster.server)?))
}

/// Returns an error with the position of the parser's error in the file.
fn content_error(error: &serde_saphyr::Error) -> ContentError {
    let location = error.location();
    let (line, column) = location.map_or((1, 1), |location| (location.line(), location.column()));
    ContentError::Syntax { line, column }
}

fn named<'a, T>(kind: &'static str, list: &'a [Named<T>], name: &str) -> Result<&'a T, ContentError> {
    let entry = list.iter().find(|entry| entry.name == name);
    entry.map(|entry| &entry.body).ok_or_else(|| ContentError::Missing {
        kind,
        name: name.to_owned(),
    })
}

/// Returns the credential of a user. As in kubectl, a token file takes precedence over a token. The credential
/// plugin (`exec`) has the lowest precedence.
fn credential(user: &User, folder: &Path) -> Result<Credential, ExecError> {
    let bearer = |credentials| Credential::Authorization {
        scheme: "Bearer".into(),
        credentials,
    };
    Ok(match (&user.token_file, &user.token, &user.username) {
        (Some(path), ..) => bearer(Secret::File(folder.join(path))),
        (None, Some(token), _) => bearer(Secret::Text(token.as_str().into())),
        (None, None, Some(name)) => Credential::Basic {
            username: name.as_str().into(),
            password: Secret::Text(user.password.as_deref().unwrap_or_default().into()),
        },
        (None, None, None) => match &user.exec {
            Some(exec) => Credential::Provided(Arc::new(Program::new(exec, folder)?)),
            None => Credential::None,
        },
    })
}

/// Returns PEM text from Base64 in the file, or the path of a PEM file.
fn pem(
    name: &'static str,
    data: &Option<String>,
    path: &Option<PathBuf>,
    folder: &Path,
) -> Result<Option<Pem>, ContentError> {
    let Some(data) = data else {
        return Ok(path.as_ref().map(|path| Pem::File(folder.join(path))));
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(data.trim()).ok();
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or(ContentError::Pem(name))?;
    Ok(Some(Pem::Text(text.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r"
apiVersion: v1
kind: Config
current-context: two
contexts:
- name: one
  context: {cluster: prod, user: missing}
- name: two
  context: {cluster: prod, user: me, namespace: shop}
- name: three
  context: {cluster: prod, user: cloud}
- name: four
  context: {cluster: prod, user: old}
clusters:
- name: prod
  cluster:
    server: https://10.0.0.1:6443
    certificate-authority: ca.crt
    tls-server-name: kubernetes
users:
- name: me
  user: {tokenFile: token, token: unused}
- name: cloud
  user:
    exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: aws, args: [hush], interactiveMode: Never}
- name: old
  user:
    auth-provider: {name: gcp}
";

    fn read(text: &str) -> Result<(ClientOptions, Url), String> {
        options(text, Path::new("/etc/me"), &"agent".into()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_current_context_is_used_and_paths_are_relative_to_the_file() {
        let (options, server) = read(FILE).unwrap();
        assert_eq!(server.as_str(), "https://10.0.0.1:6443/");
        assert_eq!(options.tls.server_name.as_deref(), Some("kubernetes"));
        assert!(matches!(options.tls.ca, Some(Pem::File(path)) if path == Path::new("/etc/me/ca.crt")));
        let Credential::Authorization {
            credentials: Secret::File(path),
            ..
        } = options.credential
        else {
            panic!("the credential is not a token file");
        };
        assert_eq!(path, Path::new("/etc/me/token"));
    }

    #[test]
    fn certificates_may_stand_in_the_file() {
        let user = "{client-certificate-data: YQ==, client-key-data: Yg==}";
        let (options, _) = read(&FILE.replace("{tokenFile: token, token: unused}", user)).unwrap();
        assert!(matches!(options.tls.certificate, Some(Pem::Text(text)) if &*text == "a"));
        assert!(matches!(options.tls.key, Some(Pem::Text(text)) if &*text == "b"));
        assert!(matches!(options.credential, Credential::None));
        let error = read(&FILE.replace("tokenFile: token", "client-key-data: hush!")).unwrap_err();
        assert_eq!(error, "client-key-data is not Base64-encoded PEM");
    }

    #[test]
    fn what_cannot_be_used_is_said_by_name_and_without_secrets() {
        let error = |change: (&str, &str)| read(&FILE.replace(change.0, change.1)).unwrap_err();
        assert_eq!(error(("current-context: two", "")), "it has no current-context");
        assert_eq!(error(("context: two", "context: one")), "it has no user \"missing\"");
        let old = error(("context: two", "context: four"));
        assert!(
            old.starts_with("user \"old\" has `auth-provider`, which is not supported"),
            "{old}"
        );
        let (program, _) = read(&FILE.replace("context: two", "context: three")).unwrap();
        assert_eq!(format!("{:?}", program.credential), "Provided((token of aws))");
        let broken = error(("token: unused", "token: [hush, hush]"));
        assert!(
            broken.starts_with("there is invalid YAML") && !broken.contains("hush"),
            "{broken}"
        );
    }
}
