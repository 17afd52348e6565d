//! The section `storage` of the server's configuration file, with Pyroscope's keys.
//!
//! A key that we honour is a field with a meaning; a key that Pyroscope has and that means nothing here is taken and named in a warning; any other
//! is an error with its line. What the fields mean together is `cli/storage.rs`.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::store::bucket::Secret;

/// Where the tables lie.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StorageSection {
    /// `filesystem`, `s3`, `gcs` or `azure`.
    pub backend: Option<String>,
    /// Folder inside of the bucket.
    pub prefix: Option<String>,
    /// The same under its name of Pyroscope 1; `prefix` wins.
    pub storage_prefix: Option<String>,
    /// Folder of the backend `filesystem`.
    pub filesystem: FilesystemSection,
    /// Backend `s3`.
    pub s3: S3Section,
    /// Backend `gcs`.
    pub gcs: GcsSection,
    /// Backend `azure`.
    pub azure: AzureSection,
    /// Bytes of the local cache of a bucket, a size. This key is ours.
    pub cache_size: Option<String>,
    /// How often the commits of other servers are looked for, a duration. This key is ours.
    pub sync_interval: Option<String>,
    /// Backends of Pyroscope that are not there.
    pub swift: Option<IgnoredAny>,
    /// The same.
    pub cos: Option<IgnoredAny>,
}

/// The local folder.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilesystemSection {
    /// Folder.
    pub dir: Option<PathBuf>,
}

/// S3 and what speaks its protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct S3Section {
    /// `host:port`, or a URL.
    pub endpoint: Option<String>,
    /// Region.
    pub region: Option<String>,
    /// Bucket.
    pub bucket_name: Option<String>,
    /// Access key.
    pub access_key_id: Option<String>,
    /// Its secret.
    pub secret_access_key: Option<SecretText>,
    /// Token of temporary credentials. This key is ours.
    pub session_token: Option<SecretText>,
    /// HTTP instead of HTTPS.
    pub insecure: Option<bool>,
    /// Credentials are taken from the environment, as without keys.
    pub native_aws_auth_enabled: Option<bool>,
    /// `auto`, `path-style` or `virtual-hosted`.
    pub bucket_lookup_type: Option<String>,
    /// Path style: the older form of `bucket_lookup_type`.
    pub force_path_style: Option<bool>,
    /// Encryption by the server.
    pub sse: SseSection,
    /// Connections.
    pub http: HttpSection,
    /// No meaning here: version 4 always.
    pub signature_version: Option<IgnoredAny>,
    /// No meaning here.
    pub storage_class: Option<IgnoredAny>,
    /// No meaning here.
    pub send_content_md5: Option<IgnoredAny>,
    /// No meaning here.
    pub dualstack_enabled: Option<IgnoredAny>,
    /// No meaning here.
    pub part_size: Option<IgnoredAny>,
    /// No meaning here.
    pub list_objects_version: Option<IgnoredAny>,
    /// No meaning here.
    pub max_retries: Option<IgnoredAny>,
}

/// Encryption by the server.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SseSection {
    /// `SSE-S3` or `SSE-KMS`.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Key of the key management service.
    pub kms_key_id: Option<String>,
    /// No meaning here.
    pub kms_encryption_context: Option<IgnoredAny>,
}

/// Google Cloud Storage.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GcsSection {
    /// Bucket.
    pub bucket_name: Option<String>,
    /// JSON of a service account, as a text of several lines.
    pub service_account: Option<SecretText>,
    /// URL of an emulator, which is then asked without a signature. This key is ours.
    pub endpoint: Option<String>,
    /// Connections.
    pub http: HttpSection,
    /// No meaning here.
    pub max_retries: Option<IgnoredAny>,
}

/// Azure Blob Storage.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AzureSection {
    /// Storage account.
    pub account_name: Option<String>,
    /// Its key.
    pub account_key: Option<SecretText>,
    /// Account, key and address in one text.
    pub connection_string: Option<SecretText>,
    /// Container.
    pub container_name: Option<String>,
    /// The end of the host name, of another cloud.
    pub endpoint_suffix: Option<String>,
    /// URL of the account at an emulator. This key is ours.
    pub endpoint: Option<String>,
    /// Tenant of a service principal.
    pub az_tenant_id: Option<String>,
    /// Client of a service principal.
    pub client_id: Option<String>,
    /// Secret of a service principal.
    pub client_secret: Option<SecretText>,
    /// Client of a managed identity.
    pub user_assigned_id: Option<String>,
    /// Connections.
    pub http: HttpSection,
    /// No meaning here.
    pub max_retries: Option<IgnoredAny>,
    /// No meaning here.
    pub msi_resource: Option<IgnoredAny>,
}

/// Connections to an object store.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpSection {
    /// PEM file of a further certificate authority.
    pub tls_ca_path: Option<PathBuf>,
    /// Certificates are not checked.
    pub insecure_skip_verify: Option<bool>,
    /// No meaning here.
    pub idle_conn_timeout: Option<IgnoredAny>,
    /// No meaning here.
    pub response_header_timeout: Option<IgnoredAny>,
    /// No meaning here.
    pub tls_handshake_timeout: Option<IgnoredAny>,
    /// No meaning here.
    pub expect_continue_timeout: Option<IgnoredAny>,
    /// No meaning here.
    pub max_idle_connections: Option<IgnoredAny>,
    /// No meaning here.
    pub max_idle_connections_per_host: Option<IgnoredAny>,
    /// No meaning here.
    pub max_connections_per_host: Option<IgnoredAny>,
    /// Client certificates are not there: an error when it is not empty.
    pub tls_cert_path: Option<String>,
    /// The same.
    pub tls_key_path: Option<String>,
    /// The name to check is that of the endpoint: an error when it is not empty.
    pub tls_server_name: Option<String>,
}

/// A text of the file that is never shown.
#[derive(Debug, Clone)]
pub struct SecretText(pub Secret);

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self(Secret(String::deserialize(from)?)))
    }
}

impl StorageSection {
    /// Keys that were given and mean nothing here.
    pub fn without_meaning(&self) -> Vec<&'static str> {
        let (s3, gcs, azure) = (&self.s3, &self.gcs, &self.azure);
        let mut found: Vec<&'static str> = [
            (self.swift.is_some(), "storage.swift"),
            (self.cos.is_some(), "storage.cos"),
            (s3.signature_version.is_some(), "storage.s3.signature_version"),
            (s3.storage_class.is_some(), "storage.s3.storage_class"),
            (s3.send_content_md5.is_some(), "storage.s3.send_content_md5"),
            (s3.dualstack_enabled.is_some(), "storage.s3.dualstack_enabled"),
            (s3.part_size.is_some(), "storage.s3.part_size"),
            (s3.list_objects_version.is_some(), "storage.s3.list_objects_version"),
            (s3.max_retries.is_some(), "storage.s3.max_retries"),
            (
                s3.sse.kms_encryption_context.is_some(),
                "storage.s3.sse.kms_encryption_context",
            ),
            (gcs.max_retries.is_some(), "storage.gcs.max_retries"),
            (azure.max_retries.is_some(), "storage.azure.max_retries"),
            (azure.msi_resource.is_some(), "storage.azure.msi_resource"),
        ]
        .into_iter()
        .filter_map(|(given, name)| given.then_some(name))
        .collect();
        if [&s3.http, &gcs.http, &azure.http].iter().any(|http| http.has_tuning()) {
            found.push("storage.*.http (timeouts and numbers of connections)");
        }
        found
    }
}

impl HttpSection {
    fn has_tuning(&self) -> bool {
        [
            &self.idle_conn_timeout,
            &self.response_header_timeout,
            &self.tls_handshake_timeout,
            &self.expect_continue_timeout,
            &self.max_idle_connections,
            &self.max_idle_connections_per_host,
            &self.max_connections_per_host,
        ]
        .iter()
        .any(|given| given.is_some())
    }
}
