//! Flags and file keys of the storage backend, and what they mean together.
//!
//! In: the section `storage` of a configuration file, and the flags that win over it. Out: the bucket, or nothing for local files. Every error names the
//! key; a secret is in none.

use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use clap::Args;

use crate::app::config;
use crate::app::storage::{AzureSection, GcsSection, HttpSection, S3Section, SecretText, StorageSection};
use crate::base::duration;
use crate::cli::size::bytes;
use crate::store::bucket::options::{AzureOptions, GcsOptions, HttpOptions, S3Encryption, S3Options};
use crate::store::bucket::{BucketOptions, Provider, Secret};

/// Where the tables lie. Names are Pyroscope's.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Storage")]
pub struct StorageArgs {
    /// Where the tables lie: filesystem (in the data folder), s3, gcs or azure.
    #[arg(
        id = "storage.backend",
        long = "storage.backend",
        value_name = "KIND",
        env = "ALLUVIUM_STORAGE_BACKEND"
    )]
    pub backend: Option<String>,
    /// Folder inside of the bucket.
    #[arg(
        id = "storage.prefix",
        long = "storage.prefix",
        value_name = "PATH",
        env = "ALLUVIUM_STORAGE_PREFIX"
    )]
    pub prefix: Option<String>,
    /// Size of the local cache of a bucket, 1GiB unless told otherwise; 0 for none.
    #[arg(id = "storage.cache-size", long = "storage.cache-size", value_name = "SIZE")]
    pub cache_size: Option<String>,
    /// S3: host:port or URL; Amazon's without it.
    #[arg(id = "storage.s3.endpoint", long = "storage.s3.endpoint", value_name = "ADDR")]
    pub s3_endpoint: Option<String>,
    /// S3: bucket.
    #[arg(id = "storage.s3.bucket-name", long = "storage.s3.bucket-name", value_name = "NAME")]
    pub s3_bucket_name: Option<String>,
    /// S3: region.
    #[arg(id = "storage.s3.region", long = "storage.s3.region", value_name = "NAME")]
    pub s3_region: Option<String>,
    /// S3: access key; without it AWS_ACCESS_KEY_ID and the other sources of Amazon's tools.
    #[arg(
        id = "storage.s3.access-key-id",
        long = "storage.s3.access-key-id",
        value_name = "ID"
    )]
    pub s3_access_key_id: Option<String>,
    /// S3: secret of the access key; others on the machine can see a command line, so prefer the file or AWS_SECRET_ACCESS_KEY.
    #[arg(
        id = "storage.s3.secret-access-key",
        long = "storage.s3.secret-access-key",
        value_name = "SECRET"
    )]
    pub s3_secret_access_key: Option<Secret>,
    /// S3: HTTP instead of HTTPS.
    #[arg(id = "storage.s3.insecure", long = "storage.s3.insecure", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub s3_insecure: Option<bool>,
    /// GCS: bucket.
    #[arg(
        id = "storage.gcs.bucket-name",
        long = "storage.gcs.bucket-name",
        value_name = "NAME"
    )]
    pub gcs_bucket_name: Option<String>,
    /// GCS: file with the JSON of a service account; without it GOOGLE_APPLICATION_CREDENTIALS and the machine's own.
    #[arg(
        id = "storage.gcs.service-account-file",
        long = "storage.gcs.service-account-file",
        value_name = "FILE"
    )]
    pub gcs_service_account_file: Option<PathBuf>,
    /// Azure: storage account.
    #[arg(
        id = "storage.azure.account-name",
        long = "storage.azure.account-name",
        value_name = "NAME"
    )]
    pub azure_account_name: Option<String>,
    /// Azure: container.
    #[arg(
        id = "storage.azure.container-name",
        long = "storage.azure.container-name",
        value_name = "NAME"
    )]
    pub azure_container_name: Option<String>,
    /// Azure: end of the host name of another cloud.
    #[arg(
        id = "storage.azure.endpoint-suffix",
        long = "storage.azure.endpoint-suffix",
        value_name = "HOST"
    )]
    pub azure_endpoint_suffix: Option<String>,
}

/// The same for commands that read a server's configuration only for its storage.
#[derive(Debug, Clone, Default, Args)]
pub struct StorageSource {
    /// The server's configuration file, of which `storage` is used.
    #[arg(long, visible_alias = "config.file", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Flags.
    #[command(flatten)]
    pub flags: StorageArgs,
}

impl StorageSource {
    /// Whether a bucket was asked for.
    pub fn is_given(&self) -> bool {
        self.config.is_some() || self.flags.backend.is_some()
    }

    /// The bucket, if there is one.
    pub fn bucket(&self) -> anyhow::Result<Option<BucketOptions>> {
        let file = self.config.as_deref().map(config::read).transpose()?;
        bucket(file.unwrap_or_default().storage, &self.flags)
    }
}

/// The bucket that file and flags name; `None` for local files.
pub fn bucket(file: StorageSection, flags: &StorageArgs) -> anyhow::Result<Option<BucketOptions>> {
    let backend = flags.backend.as_deref().or(file.backend.as_deref());
    let (provider, http) = match backend.unwrap_or_default() {
        "" | "filesystem" => return Ok(None),
        "s3" => {
            let http = file.s3.http.options("storage.s3.http")?;
            (Provider::S3(s3(file.s3, flags)?), http)
        }
        "gcs" => {
            let http = file.gcs.http.options("storage.gcs.http")?;
            (Provider::Gcs(gcs(file.gcs, flags)?), http)
        }
        "azure" => {
            let http = file.azure.http.options("storage.azure.http")?;
            (Provider::Azure(azure(file.azure, flags)?), http)
        }
        backend @ ("swift" | "cos") => {
            bail!("storage.backend: `{backend}` is not there; use filesystem, s3, gcs or azure")
        }
        backend => bail!("storage.backend: unknown backend `{backend}`; use filesystem, s3, gcs or azure"),
    };
    let mut options = BucketOptions::new(provider);
    options.http = http;
    let prefix = flags.prefix.clone().or(file.prefix).or(file.storage_prefix);
    options.prefix = prefix.unwrap_or_default().trim_matches('/').to_owned();
    ensure!(
        options
            .prefix
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"/!-_.*'()".contains(&byte)),
        "storage.prefix: `{}` has characters other than letters, digits and /!-_.*'()",
        options.prefix
    );
    if let Some(size) = flags.cache_size.as_ref().or(file.cache_size.as_ref()) {
        options.cache_bytes = bytes("storage.cache_size", size)? as u64;
    }
    if let Some(interval) = &file.sync_interval {
        options.sync_interval = duration::parse(interval).context("storage.sync_interval")?;
        ensure!(
            !options.sync_interval.is_zero(),
            "storage.sync_interval: it must be more than 0"
        );
    }
    Ok(Some(options))
}

fn s3(file: S3Section, flags: &StorageArgs) -> anyhow::Result<S3Options> {
    let given = |text: Option<String>| text.filter(|text| !text.is_empty());
    let options = S3Options {
        bucket: required(
            "storage.s3.bucket_name",
            flags.s3_bucket_name.clone().or(file.bucket_name),
        )?,
        endpoint: given(flags.s3_endpoint.clone().or(file.endpoint)),
        region: given(flags.s3_region.clone().or(file.region)),
        access_key_id: given(flags.s3_access_key_id.clone().or(file.access_key_id)),
        secret_access_key: flags.s3_secret_access_key.clone().or(secret(file.secret_access_key)),
        session_token: secret(file.session_token),
        insecure: flags.s3_insecure.or(file.insecure).unwrap_or(false),
        virtual_hosted: match file.bucket_lookup_type.as_deref() {
            None | Some("" | "auto") => false,
            Some("path-style" | "path") => false,
            Some("virtual-hosted" | "virtual") if file.force_path_style == Some(true) => {
                bail!("storage.s3: bucket_lookup_type and force_path_style contradict each other")
            }
            Some("virtual-hosted" | "virtual") => true,
            Some(other) => {
                bail!("storage.s3.bucket_lookup_type: `{other}` is not known, use auto, path-style or virtual-hosted")
            }
        },
        encryption: match (file.sse.kind.as_deref(), file.sse.kms_key_id) {
            (None | Some(""), None) => None,
            (Some("SSE-S3"), None) => Some(S3Encryption::S3),
            (Some("SSE-KMS"), Some(key)) => Some(S3Encryption::Kms(key)),
            (Some("SSE-KMS"), None) => bail!("storage.s3.sse: SSE-KMS needs kms_key_id"),
            (None | Some("" | "SSE-S3"), Some(_)) => bail!("storage.s3.sse: kms_key_id needs the type SSE-KMS"),
            (Some(other), _) => bail!("storage.s3.sse.type: `{other}` is not known, use SSE-S3 or SSE-KMS"),
        },
    };
    ensure!(
        file.native_aws_auth_enabled != Some(true) || options.access_key_id.is_none(),
        "storage.s3: native_aws_auth_enabled and access_key_id contradict each other"
    );
    ensure!(
        options.access_key_id.is_some() == options.secret_access_key.is_some(),
        "storage.s3 needs both access_key_id and secret_access_key, or neither"
    );
    Ok(options)
}

fn gcs(file: GcsSection, flags: &StorageArgs) -> anyhow::Result<GcsOptions> {
    let service_account = match &flags.gcs_service_account_file {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read --storage.gcs.service-account-file {}", path.display()))?;
            Some(Secret(text))
        }
        None => secret(file.service_account),
    };
    Ok(GcsOptions {
        bucket: required(
            "storage.gcs.bucket_name",
            flags.gcs_bucket_name.clone().or(file.bucket_name),
        )?,
        anonymous: file.endpoint.is_some() && service_account.is_none(),
        service_account,
        endpoint: file.endpoint,
    })
}

fn azure(file: AzureSection, flags: &StorageArgs) -> anyhow::Result<AzureOptions> {
    let mut options = AzureOptions {
        account: flags
            .azure_account_name
            .clone()
            .or(file.account_name)
            .unwrap_or_default(),
        key: secret(file.account_key),
        container: required(
            "storage.azure.container_name",
            flags.azure_container_name.clone().or(file.container_name),
        )?,
        endpoint_suffix: flags
            .azure_endpoint_suffix
            .clone()
            .or(file.endpoint_suffix)
            .filter(|suffix| !suffix.is_empty()),
        endpoint: file.endpoint,
        tenant_id: file.az_tenant_id,
        client_id: file.client_id.or(file.user_assigned_id),
        client_secret: secret(file.client_secret),
    };
    if let Some(text) = secret(file.connection_string) {
        connection_string(&text.0, &mut options)?;
    }
    if options.account.is_empty() {
        bail!("storage.azure.account_name is missing");
    }
    Ok(options)
}

/// `AccountName=...;AccountKey=...;EndpointSuffix=...`, as Azure's portal shows it.
fn connection_string(text: &str, options: &mut AzureOptions) -> anyhow::Result<()> {
    let mut protocol = "https";
    for part in text.split(';').filter(|part| !part.trim().is_empty()) {
        let (name, value) = part
            .split_once('=')
            .context("storage.azure.connection_string: a part is not `name=value`")?;
        let value = value.trim();
        match name.trim() {
            "AccountName" => value.clone_into(&mut options.account),
            "AccountKey" => options.key = Some(Secret(value.to_owned())),
            "EndpointSuffix" => options.endpoint_suffix = Some(value.to_owned()),
            "BlobEndpoint" => options.endpoint = Some(value.to_owned()),
            "DefaultEndpointsProtocol" => protocol = value,
            other => bail!("storage.azure.connection_string: `{other}` is not known"),
        }
    }
    ensure!(
        protocol == "https" || options.endpoint.is_some(),
        "storage.azure.connection_string: http needs a BlobEndpoint"
    );
    Ok(())
}

fn required(name: &str, value: Option<String>) -> anyhow::Result<String> {
    value
        .filter(|value| !value.is_empty())
        .with_context(|| format!("{name} is missing"))
}

fn secret(text: Option<SecretText>) -> Option<Secret> {
    text.map(|text| text.0).filter(|secret| !secret.0.is_empty())
}

impl HttpSection {
    fn options(&self, name: &str) -> anyhow::Result<HttpOptions> {
        for (key, value) in [
            ("tls_cert_path", &self.tls_cert_path),
            ("tls_key_path", &self.tls_key_path),
            ("tls_server_name", &self.tls_server_name),
        ] {
            ensure!(
                value.as_ref().is_none_or(String::is_empty),
                "{name}.{key} is not there: client certificates and other server names cannot be used"
            );
        }
        Ok(HttpOptions {
            ca_file: self.tls_ca_path.clone().filter(|path| !path.as_os_str().is_empty()),
            skip_verify: self.insecure_skip_verify.unwrap_or(false),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Option<BucketOptions>> {
        bucket(config::parse(text)?.storage, &StorageArgs::default())
    }

    fn error(text: &str) -> String {
        format!("{:#}", read(text).unwrap_err())
    }

    #[test]
    fn the_keys_of_pyroscope_make_a_bucket_of_each_kind() {
        let s3 = "storage:\n  backend: s3\n  prefix: /profiles/\n  s3:\n    endpoint: minio:9000\n    bucket_name: b\n    region: eu-1\n    access_key_id: id\n    secret_access_key: hush\n    insecure: true\n";
        let options = read(s3).unwrap().unwrap();
        assert_eq!(options.address(), "s3://b/profiles/");
        assert!(!format!("{options:?}").contains("hush"));
        let gcs = "storage:\n  backend: gcs\n  gcs:\n    bucket_name: b\n    service_account: |\n      {\n        \"type\": \"service_account\",\n        \"client_email\": \"a@b\",\n        \"private_key\": \"hush\"\n      }\n";
        let options = read(gcs).unwrap().unwrap();
        assert_eq!(options.address(), "gs://b/");
        let Provider::Gcs(options) = options.provider else {
            panic!("not gcs")
        };
        assert!(
            options
                .service_account
                .unwrap()
                .0
                .contains("\"type\": \"service_account\"")
        );
        let azure = "storage:\n  backend: azure\n  azure:\n    container_name: c\n    connection_string: DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=aHVzaA==;EndpointSuffix=core.windows.net\n";
        let options = read(azure).unwrap().unwrap();
        let Provider::Azure(options) = options.provider else {
            panic!("not azure")
        };
        assert_eq!((options.account.as_str(), options.container.as_str()), ("acc", "c"));
        assert_eq!(options.key, Some(Secret("aHVzaA==".to_owned())));
    }

    #[test]
    fn local_files_are_the_default() {
        assert!(read("storage:\n  backend: filesystem\n").unwrap().is_none());
        assert!(read("target: all\n").unwrap().is_none());
    }

    #[test]
    fn a_mistake_names_its_key_and_never_a_secret() {
        assert!(error("storage:\n  backend: s3\n").contains("storage.s3.bucket_name is missing"));
        assert!(error("storage:\n  backend: tape\n").contains("tape"));
        let unknown = error("storage:\n  backend: s3\n  s3:\n    bucket: b\n");
        assert!(unknown.contains("bucket") && unknown.contains('4'), "{unknown}");
        let half = error("storage:\n  backend: s3\n  s3:\n    bucket_name: b\n    secret_access_key: hush\n");
        assert!(half.contains("both") && !half.contains("hush"));
        assert!(error("storage:\n  backend: azure\n  azure:\n    container_name: c\n").contains("account_name"));
        let text = error("storage:\n  backend: azure\n  azure:\n    container_name: c\n    connection_string: hush\n");
        assert!(!text.contains("hush"), "{text}");
        assert!(error("storage:\n  prefix: \"a b\"\n  backend: s3\n  s3:\n    bucket_name: b\n").contains("a b"));
        // A section where a text belongs: the error must not print the secret of its neighbour.
        let wrong = error("storage:\n  s3:\n    secret_access_key: [hush]\n");
        assert!(wrong.contains("secret_access_key") || wrong.contains('3'), "{wrong}");
    }

    #[test]
    fn flags_win_over_the_file() {
        let file = config::parse("storage:\n  backend: s3\n  prefix: one\n  s3:\n    bucket_name: b\n").unwrap();
        let flags = StorageArgs {
            prefix: Some("two".to_owned()),
            s3_bucket_name: Some("c".to_owned()),
            cache_size: Some("64MiB".to_owned()),
            ..StorageArgs::default()
        };
        let options = bucket(file.storage, &flags).unwrap().unwrap();
        assert_eq!(options.address(), "s3://c/two/");
        assert_eq!(options.cache_bytes, 64 << 20);
    }
}
