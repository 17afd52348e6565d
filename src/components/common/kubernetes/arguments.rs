//! Arguments for the connection to a Kubernetes API server: `api_server`, `kubeconfig_file` and the HTTP client
//! arguments. This module only defines and checks the arguments.

use std::path::PathBuf;

use crate::common::arguments::checks;
use crate::common::http::client::HttpClientArguments;
use crate::common::http::values::HttpUrl;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::body::arguments;

arguments! {
    /// The connection arguments. They are part of a component's own arguments, or the body of its `client { }` block.
    pub(crate) struct KubernetesClient {
        /// URL of the API server. Defaults to the API server of the cluster in which the program runs.
        api_server: Option<HttpUrl>,
        /// Kubeconfig file with the API server and its credentials.
        kubeconfig_file: Option<PathBuf>,
    }
    shared { http: HttpClientArguments }
    check KubernetesClient::check;
}

impl KubernetesClient {
    fn check(&self) -> Result<(), ArgumentError> {
        let (has_server, has_file) = (self.api_server.is_some(), self.kubeconfig_file.is_some());
        checks::at_most_one(&[("api_server", has_server), ("kubeconfig_file", has_file)])?;
        let is_plain = self.http.is_default();
        if has_file && !is_plain {
            let message = "kubeconfig_file excludes HTTP client arguments, because the file contains the credentials";
            return Err(ArgumentError::new("kubeconfig_file", message));
        }
        if !has_server && !is_plain {
            let message = "HTTP client arguments need an api_server";
            return Err(ArgumentError::new("", message));
        }
        Ok(())
    }
}
