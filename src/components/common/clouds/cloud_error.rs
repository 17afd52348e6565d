//! The errors of requests to clouds, and of the search for credentials.

use std::io;
use std::path::PathBuf;

use http::header::InvalidHeaderValue;

use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::http::api_error::ApiError;
use alluvium_wire::jwt::SignError;

/// The reason why a request to a cloud failed, or why no credentials were found for the request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CloudError {
    /// A request failed, or its response has an unexpected form.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// An action of an AWS service failed.
    #[error("{action}: {source}")]
    Action { action: String, source: Box<CloudError> },
    /// There are no valid credentials.
    #[error("cannot get credentials for {cloud}: {source}")]
    Credentials {
        cloud: &'static str,
        source: Box<CloudError>,
    },
    /// A role of AWS cannot be assumed with the credentials that were found.
    #[error("cannot assume the role {role}: {source}")]
    Role { role: String, source: Box<CloudError> },
    /// A role of AWS cannot be assumed with a web identity token.
    #[error("cannot assume the role {role} by web identity: {source}")]
    WebIdentity { role: String, source: Box<CloudError> },
    /// Neither the configuration nor the machine names a region.
    #[error("no region is configured, and the instance metadata has none: {source}")]
    Region {
        /// Reason why the instance metadata contains no region.
        source: Box<CloudError>,
    },
    /// An environment variable is not set.
    #[error("the environment variable {0} is not set")]
    NoVariable(String),
    /// A profile of AWS does not exist or cannot be used.
    #[error("{0}")]
    Profile(String),
    /// A setting is missing or invalid, or the machine has no role.
    #[error("{0}")]
    Setting(&'static str),
    /// A setting is not a URL.
    #[error("{subject} is not a URL: {source}")]
    Url { subject: String, source: url::ParseError },
    #[error("cannot read {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// A file is not a valid credentials file.
    #[error("{} is not a valid credentials file: {source}", path.display())]
    CredentialsFile { path: PathBuf, source: serde_json::Error },
    /// A credentials file is of an unsupported type.
    #[error("{} is of the type {kind}, which is not supported", path.display())]
    CredentialsType {
        path: PathBuf,
        /// Type of the file, as Google names it.
        kind: &'static str,
    },
    /// The key in a credentials file cannot be used to sign.
    #[error("{}: {source}", path.display())]
    Key { path: PathBuf, source: SignError },
    /// Credentials have an invalid expiration time.
    #[error("invalid expiration time `{text}` of the credentials: {source}")]
    Expiration { text: String, source: chrono::ParseError },
    /// The credentials contain characters that a signed request cannot contain.
    #[error(transparent)]
    Signature(#[from] InvalidHeaderValue),
}

impl CloudError {
    /// Returns this error with the name of the failed action.
    pub(super) fn of_action(self, action: &str) -> Self {
        Self::Action {
            action: action.to_owned(),
            source: Box::new(self),
        }
    }
}

impl From<CloudError> for DiscoveryError {
    fn from(error: CloudError) -> Self {
        match error {
            CloudError::Api(error) => Self::Api(error),
            CloudError::File { path, source } => Self::File { path, source },
            CloudError::Action { action, source } => Self::Operation {
                operation: action,
                source: Box::new(Self::from(*source)),
            },
            CloudError::Region { .. } | CloudError::Url { .. } => Self::Configuration(error.into()),
            _ => Self::Credentials(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn an_error_of_a_cloud_becomes_a_kind_with_its_source_and_the_same_text() {
        let refused = || CloudError::Credentials {
            cloud: "AWS",
            source: Box::new(CloudError::Setting("the machine has no role")),
        };
        let text = "ListTasks: cannot get credentials for AWS: the machine has no role";
        let error = DiscoveryError::from(refused().of_action("ListTasks"));
        assert_eq!(error.to_string(), text);
        let DiscoveryError::Operation { source, .. } = &error else {
            panic!("{error:?}");
        };
        assert!(matches!(**source, DiscoveryError::Credentials(_)), "{source:?}");
        assert_eq!(source.source().unwrap().to_string(), "the machine has no role");
        let servers = DiscoveryError::Servers(vec![refused().into(), DiscoveryError::TooManyNodes(7)]);
        assert_eq!(
            servers.to_string(),
            "cannot get credentials for AWS: the machine has no role; \
             there are more than 7 nodes below the paths in zookeeper"
        );
    }
}
