//! Options for the storage of the tables, declared once for the section `storage` of the server's file and for flags.
//!
//! Each field is a key of the file. A field with a `long` name is also a flag, and a field with `env` is also an
//! environment variable. The names are the same as in Pyroscope. A Pyroscope key without an effect here is [`Unused`]:
//! the server accepts the key and logs a warning. Any other key is an error that contains its line.
//! [`bucket`](StorageSection::bucket) validates the options together.

mod bucket;

use std::path::PathBuf;

use clap::Args;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::store::tables::bucket::Secret;

/// Operations on options and sections of options.
trait Options {
    /// Returns these options, with missing values taken from `file`.
    fn or(self, file: Self) -> Self;

    /// Adds to `names` the full names of keys that are set but have no effect here. `name` is the full name of `self`,
    /// such as `storage.s3`.
    fn unused(&self, name: &str, names: &mut Vec<String>);
}

impl<T> Options for Option<T> {
    fn or(self, file: Self) -> Self {
        Option::or(self, file)
    }

    fn unused(&self, _: &str, _: &mut Vec<String>) {}
}

/// A key of Pyroscope that has no effect here. True if the key is set.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unused(bool);

impl Options for Unused {
    fn or(self, file: Self) -> Self {
        Self(self.0 || file.0)
    }

    fn unused(&self, name: &str, names: &mut Vec<String>) {
        if self.0 {
            names.push(name.to_owned());
        }
    }
}

impl<'de> Deserialize<'de> for Unused {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(from).map(|_| Self(true))
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self)
    }
}

/// Declares sections. Each section is a struct with its deserialization and an implementation of [`Options`], which
/// calls the same function of each field.
macro_rules! sections {
    ($($(#[$meta:meta])* struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* })*) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }

        impl Options for $name {
            fn or(self, file: Self) -> Self {
                Self { $($field: Options::or(self.$field, file.$field),)* }
            }

            fn unused(&self, name: &str, names: &mut Vec<String>) {
                $(self.$field.unused(&format!("{name}.{}", stringify!($field)), names);)*
            }
        }
    )* };
}

sections! {
    /// Location of the tables. The names are the same as in Pyroscope.
    #[derive(Args)]
    #[command(next_help_heading = "Storage")]
    struct StorageSection {
        /// Location of the tables: filesystem (in the data folder), s3, gcs or azure.
        #[arg(id = "storage.backend", long = "storage.backend", value_name = "KIND", env = "ALLUVIUM_STORAGE_BACKEND")]
        backend: Option<String>,
        /// Folder inside the bucket for the tables.
        #[arg(id = "storage.prefix", long = "storage.prefix", value_name = "PATH", env = "ALLUVIUM_STORAGE_PREFIX")]
        prefix: Option<String>,
        /// Name of `prefix` in Pyroscope 1. If both are set, `prefix` applies.
        #[arg(skip)]
        storage_prefix: Option<String>,
        /// Size of the local cache of a bucket; 0 for no cache. Defaults to 1GiB. Pyroscope has no such key.
        #[arg(id = "storage.cache-size", long = "storage.cache-size", value_name = "SIZE")]
        cache_size: Option<String>,
        /// Time between two reads of the commits of other servers, a duration. Pyroscope has no such key.
        #[arg(skip)]
        sync_interval: Option<String>,
        #[arg(skip)]
        filesystem: FilesystemSection,
        #[command(flatten)]
        s3: S3Section,
        #[command(flatten)]
        gcs: GcsSection,
        #[command(flatten)]
        azure: AzureSection,
        #[arg(skip)]
        swift: Unused,
        #[arg(skip)]
        cos: Unused,
    }

    struct FilesystemSection {
        dir: Option<PathBuf>,
    }

    /// S3 and object stores with the same protocol.
    #[derive(Args)]
    struct S3Section {
        /// S3: host:port or URL of the endpoint. Defaults to Amazon's endpoint.
        #[arg(id = "storage.s3.endpoint", long = "storage.s3.endpoint", value_name = "ADDR")]
        endpoint: Option<String>,
        /// S3: name of the bucket.
        #[arg(id = "storage.s3.bucket-name", long = "storage.s3.bucket-name", value_name = "NAME")]
        bucket_name: Option<String>,
        /// S3: region of the bucket.
        #[arg(id = "storage.s3.region", long = "storage.s3.region", value_name = "NAME")]
        region: Option<String>,
        /// S3: access key. Without it, AWS_ACCESS_KEY_ID and the other credential sources of Amazon's tools are used.
        #[arg(id = "storage.s3.access-key-id", long = "storage.s3.access-key-id", value_name = "ID")]
        access_key_id: Option<String>,
        /// S3: secret of the access key. Other users of the machine can see a command line, so prefer the file or
        /// AWS_SECRET_ACCESS_KEY.
        #[arg(id = "storage.s3.secret-access-key", long = "storage.s3.secret-access-key", value_name = "SECRET")]
        secret_access_key: Option<Secret>,
        /// Token of temporary credentials. Pyroscope has no such key.
        #[arg(skip)]
        session_token: Option<Secret>,
        /// S3: use HTTP instead of HTTPS.
        #[arg(
            id = "storage.s3.insecure", long = "storage.s3.insecure", value_name = "BOOL",
            num_args = 0..=1, default_missing_value = "true"
        )]
        insecure: Option<bool>,
        /// If true, the credentials come from the environment, and a value of `access_key_id` is an error.
        #[arg(skip)]
        native_aws_auth_enabled: Option<bool>,
        /// Style of bucket URLs: `auto`, `path-style` or `virtual-hosted`.
        #[arg(skip)]
        bucket_lookup_type: Option<String>,
        /// If true, path-style URLs are used. This key is the older form of `bucket_lookup_type`.
        #[arg(skip)]
        force_path_style: Option<bool>,
        #[arg(skip)]
        sse: SseSection,
        #[arg(skip)]
        http: HttpSection,
        /// Unused, because requests are always signed with version 4.
        #[arg(skip)]
        signature_version: Unused,
        #[arg(skip)]
        storage_class: Unused,
        #[arg(skip)]
        send_content_md5: Unused,
        #[arg(skip)]
        dualstack_enabled: Unused,
        #[arg(skip)]
        part_size: Unused,
        #[arg(skip)]
        list_objects_version: Unused,
        #[arg(skip)]
        max_retries: Unused,
    }

    /// Encryption at rest by the object store.
    struct SseSection {
        /// Type of encryption: `SSE-S3` or `SSE-KMS`.
        #[serde(rename = "type")]
        kind: Option<String>,
        /// Id of the key in the key management service.
        kms_key_id: Option<String>,
        kms_encryption_context: Unused,
    }

    #[derive(Args)]
    struct GcsSection {
        /// GCS: name of the bucket.
        #[arg(id = "storage.gcs.bucket-name", long = "storage.gcs.bucket-name", value_name = "NAME")]
        bucket_name: Option<String>,
        /// GCS: file with the JSON key of a service account. Without it, GOOGLE_APPLICATION_CREDENTIALS and the
        /// machine's service account are used.
        #[arg(
            id = "storage.gcs.service-account-file", long = "storage.gcs.service-account-file",
            value_name = "FILE"
        )]
        #[serde(skip)]
        service_account_file: Option<PathBuf>,
        /// JSON key of a service account as multi-line text.
        #[arg(skip)]
        service_account: Option<Secret>,
        /// URL of an emulator; requests to it are not signed. Pyroscope has no such key.
        #[arg(skip)]
        endpoint: Option<String>,
        #[arg(skip)]
        http: HttpSection,
        #[arg(skip)]
        max_retries: Unused,
    }

    #[derive(Args)]
    struct AzureSection {
        /// Azure: name of the storage account.
        #[arg(id = "storage.azure.account-name", long = "storage.azure.account-name", value_name = "NAME")]
        account_name: Option<String>,
        #[arg(skip)]
        account_key: Option<Secret>,
        /// Account, key and endpoint suffix in one string.
        #[arg(skip)]
        connection_string: Option<Secret>,
        /// Azure: name of the container.
        #[arg(id = "storage.azure.container-name", long = "storage.azure.container-name", value_name = "NAME")]
        container_name: Option<String>,
        /// Azure: suffix of the endpoint's host name, for other Azure clouds.
        #[arg(id = "storage.azure.endpoint-suffix", long = "storage.azure.endpoint-suffix", value_name = "HOST")]
        endpoint_suffix: Option<String>,
        /// URL of the account on an emulator. Pyroscope has no such key.
        #[arg(skip)]
        endpoint: Option<String>,
        /// Tenant of a service principal, used with `client_id` and `client_secret`.
        #[arg(skip)]
        az_tenant_id: Option<String>,
        #[arg(skip)]
        client_id: Option<String>,
        #[arg(skip)]
        client_secret: Option<Secret>,
        /// Client id of a managed identity.
        #[arg(skip)]
        user_assigned_id: Option<String>,
        #[arg(skip)]
        http: HttpSection,
        #[arg(skip)]
        max_retries: Unused,
        #[arg(skip)]
        msi_resource: Unused,
    }

    /// Connections to the object store.
    struct HttpSection {
        /// PEM file of an additional certificate authority.
        tls_ca_path: Option<PathBuf>,
        /// If true, the server's certificate is not verified.
        insecure_skip_verify: Option<bool>,
        /// Client certificates are not supported, so any non-empty value is an error.
        tls_cert_path: Option<String>,
        /// Client certificates and their keys are not supported, so any non-empty value is an error.
        tls_key_path: Option<String>,
        /// The server name is always the host of the endpoint, so any non-empty value is an error.
        tls_server_name: Option<String>,
        idle_conn_timeout: Unused,
        response_header_timeout: Unused,
        tls_handshake_timeout: Unused,
        expect_continue_timeout: Unused,
        max_idle_connections: Unused,
        max_idle_connections_per_host: Unused,
        max_connections_per_host: Unused,
    }
}

impl StorageSection {
    /// Returns these flags, with missing values taken from `file`.
    pub fn over(self, file: Self) -> Self {
        self.or(file)
    }

    /// Returns the names of the keys that are set but have no effect here.
    pub(crate) fn without_meaning(&self) -> Vec<String> {
        let mut names = Vec::new();
        self.unused("storage", &mut names);
        names
    }
}
