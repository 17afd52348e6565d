//! The reason why the options of a bucket cannot be used. No error contains a secret.

use std::io;
use std::path::PathBuf;

/// The reason why the options of a bucket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    #[error("cannot read {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// A file does not contain certificates in the PEM format.
    #[error("cannot use the certificates of {}: {source}", path.display())]
    Certificates { path: PathBuf, source: object_store::Error },
    /// The client library refused the options.
    #[error(transparent)]
    Client(#[from] object_store::Error),
    #[error("storage.s3 needs both access_key_id and secret_access_key, or neither")]
    S3Keys,
    #[error("storage.s3.endpoint: `{0}` is neither `host:port` nor a URL")]
    EndpointForm(String),
    #[error("storage.s3.endpoint: keys belong in access_key_id and secret_access_key")]
    EndpointWithKeys,
    #[error("storage.s3.endpoint: `{0}` is not encrypted; to allow that, set `insecure: true`")]
    Unencrypted(String),
    #[error("storage.s3.endpoint: `{endpoint}` cannot be used: {source}")]
    Endpoint { endpoint: String, source: url::ParseError },
    /// The key of the service account is not JSON. The parser's error is not included, because it may contain a secret.
    #[error("storage.gcs.service_account: the value must be the JSON key of a service account")]
    ServiceAccount,
    #[error("storage.gcs.service_account: the JSON key lacks `{0}`")]
    ServiceAccountKey(&'static str),
    #[error("storage.azure: a service principal needs az_tenant_id, client_id and client_secret")]
    ServicePrincipal,
}
