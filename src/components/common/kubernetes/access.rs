//! Access to an API server, configured in one of three ways: with the service account of a pod, with a kubeconfig file,
//! or with a URL and the arguments of an HTTP client.
//!
//! In: [`KubernetesClient`]. Out: an [`Api`]. Certificates are read here. Token files are read for every request, since
//! the tokens of service accounts change every hour.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use url::Url;

use crate::common::discovery::meta_labels::host_port;
use crate::common::http::values::{HttpUrl, UrlError, http_url};
use crate::common::kubernetes::api::Api;
use crate::common::kubernetes::arguments::KubernetesClient;
use crate::common::kubernetes::kubeconfig;
use alluvium_pipeline::component::ComponentError;
use alluvium_wire::client::{ClientOptions, Credential, HttpClient, Pem, Secret, TlsOptions};

/// Folder of a pod's service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The reason why the service account of the program's pod cannot be used.
#[derive(Debug, thiserror::Error)]
enum AccountError {
    /// The program does not run in a cluster.
    #[error(
        "this program does not run in a Kubernetes cluster (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT \
         are not set): set api_server or kubeconfig_file"
    )]
    NoCluster,
    /// The pod has no token of a service account.
    #[error("the pod of this program has no service account: cannot read {}: {source}", path.display())]
    NoToken { path: PathBuf, source: io::Error },
    /// The environment variables name an invalid server.
    #[error(transparent)]
    Url(#[from] UrlError),
    #[error("cannot read the program's own namespace from {}: {source}", path.display())]
    Namespace { path: PathBuf, source: io::Error },
    #[error("cannot read the program's own namespace from {}: it is empty", .0.display())]
    EmptyNamespace(PathBuf),
}

/// Returns the API server that the arguments name. Sends no request.
pub(crate) fn api(arguments: &KubernetesClient, user_agent: &Arc<str>) -> Result<Api, ComponentError> {
    let (options, base) = match (&arguments.kubeconfig_file, &arguments.api_server) {
        (Some(path), _) => kubeconfig::read(path, user_agent).map_err(ComponentError::new)?,
        (None, Some(server)) => (arguments.http.options(user_agent), HttpUrl::url(server).clone()),
        (None, None) => {
            let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
            let host = variable("KUBERNETES_SERVICE_HOST");
            let address = host.zip(variable("KUBERNETES_SERVICE_PORT"));
            in_cluster(Path::new(SERVICE_ACCOUNT), address, user_agent).map_err(ComponentError::new)?
        }
    };
    let client = HttpClient::new(&options).map_err(ComponentError::new)?;
    Ok(Api::new(client, base))
}

/// Returns the namespace of the pod that the program runs in.
pub(crate) fn own_namespace() -> Result<Arc<str>, ComponentError> {
    namespace_in(Path::new(SERVICE_ACCOUNT)).map_err(ComponentError::new)
}

fn namespace_in(folder: &Path) -> Result<Arc<str>, AccountError> {
    let path = folder.join("namespace");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(source) => return Err(AccountError::Namespace { path, source }),
    };
    match text.trim() {
        "" => Err(AccountError::EmptyNamespace(path)),
        name => Ok(name.into()),
    }
}

/// Returns the client options and the URL for the API server of the cluster that this process runs in. The options
/// contain the service account of the pod.
fn in_cluster(
    folder: &Path,
    address: Option<(String, String)>,
    user_agent: &Arc<str>,
) -> Result<(ClientOptions, Url), AccountError> {
    let Some((host, port)) = address else {
        return Err(AccountError::NoCluster);
    };
    let token = folder.join("token");
    if let Err(source) = std::fs::metadata(&token) {
        return Err(AccountError::NoToken { path: token, source });
    }
    let options = ClientOptions {
        credential: Credential::Authorization {
            scheme: "Bearer".into(),
            credentials: Secret::File(token),
        },
        tls: TlsOptions {
            ca: Some(Pem::File(folder.join("ca.crt"))),
            ..TlsOptions::default()
        },
        ..ClientOptions::new(user_agent.clone())
    };
    Ok((options, http_url(&format!("https://{}", host_port(&host, port)))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_cluster_the_service_account_is_used_and_its_token_stays_a_file() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "t").unwrap();
        std::fs::write(folder.path().join("namespace"), "shop\n").unwrap();
        let address = Some(("fd00::1".to_owned(), "443".to_owned()));
        let (options, base) = in_cluster(folder.path(), address, &"agent".into()).unwrap();
        assert_eq!(base.as_str(), "https://[fd00::1]/");
        let Credential::Authorization { credentials, .. } = options.credential else {
            panic!("no bearer token");
        };
        assert!(matches!(credentials, Secret::File(path) if path == folder.path().join("token")));
        assert!(matches!(options.tls.ca, Some(Pem::File(path)) if path.ends_with("ca.crt")));
        assert_eq!(&*namespace_in(folder.path()).unwrap(), "shop");
    }

    #[test]
    fn outside_of_a_cluster_the_error_says_what_to_give() {
        let folder = tempfile::tempdir().unwrap();
        let error = in_cluster(folder.path(), None, &"agent".into())
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("set api_server or kubeconfig_file"), "{error}");
        let address = Some(("10.0.0.1".to_owned(), "443".to_owned()));
        let error = in_cluster(folder.path(), address, &"agent".into())
            .unwrap_err()
            .to_string();
        assert!(error.contains("has no service account"), "{error}");
        let error = namespace_in(folder.path()).unwrap_err().to_string();
        assert!(error.contains("own namespace"), "{error}");
    }
}
