//! Converts the storage options in the configuration to the options of the bucket that holds the tables.
//!
//! Every error names the configuration key, and no error contains a secret.

use anyhow::{Context as _, bail, ensure};

use super::{AzureSection, GcsSection, HttpSection, S3Section, StorageSection};
use crate::app::size;
use crate::store::tables::bucket::options::{AzureOptions, GcsOptions, HttpOptions, S3Encryption, S3Options};
use crate::store::tables::bucket::{BucketOptions, Provider, Secret};
use alluvium_base::duration;

impl StorageSection {
    /// Returns the bucket that the options name, or `None` for local files.
    pub fn bucket(self) -> anyhow::Result<Option<BucketOptions>> {
        let (provider, http) = match self.backend.as_deref().unwrap_or_default() {
            "" | "filesystem" => return Ok(None),
            "s3" => {
                let http = self.s3.http.options("storage.s3.http")?;
                (Provider::S3(self.s3.options()?), http)
            }
            "gcs" => {
                let http = self.gcs.http.options("storage.gcs.http")?;
                (Provider::Gcs(self.gcs.options()?), http)
            }
            "azure" => {
                let http = self.azure.http.options("storage.azure.http")?;
                (Provider::Azure(self.azure.options()?), http)
            }
            backend @ ("swift" | "cos") => {
                bail!("storage.backend: `{backend}` is not supported; use filesystem, s3, gcs or azure")
            }
            backend => bail!("storage.backend: unknown backend `{backend}`; use filesystem, s3, gcs or azure"),
        };
        let mut options = BucketOptions::new(provider);
        options.http = http;
        let prefix = self.prefix.or(self.storage_prefix);
        prefix
            .unwrap_or_default()
            .trim_matches('/')
            .clone_into(&mut options.prefix);
        ensure!(
            options
                .prefix
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"/!-_.*'()".contains(&byte)),
            "storage.prefix: `{}` has characters other than letters, digits and /!-_.*'()",
            options.prefix
        );
        if let Some(size) = &self.cache_size {
            options.cache_bytes = size::bytes("storage.cache_size", size)? as u64;
        }
        if let Some(interval) = &self.sync_interval {
            options.sync_interval = duration::parse(interval).context("storage.sync_interval")?;
            ensure!(
                !options.sync_interval.is_zero(),
                "storage.sync_interval: must be more than 0"
            );
        }
        Ok(Some(options))
    }
}

impl S3Section {
    fn options(self) -> anyhow::Result<S3Options> {
        let options = S3Options {
            bucket: required("storage.s3.bucket_name", self.bucket_name)?,
            endpoint: non_empty(self.endpoint),
            region: non_empty(self.region),
            access_key_id: non_empty(self.access_key_id),
            secret_access_key: secret(self.secret_access_key),
            session_token: secret(self.session_token),
            insecure: self.insecure.unwrap_or(false),
            virtual_hosted: match self.bucket_lookup_type.as_deref() {
                None | Some("" | "auto") => false,
                Some("path-style" | "path") => false,
                Some("virtual-hosted" | "virtual") if self.force_path_style == Some(true) => {
                    bail!("storage.s3: bucket_lookup_type and force_path_style contradict each other")
                }
                Some("virtual-hosted" | "virtual") => true,
                Some(other) => {
                    bail!("storage.s3.bucket_lookup_type: `{other}` is unknown; use auto, path-style or virtual-hosted")
                }
            },
            encryption: match (self.sse.kind.as_deref(), self.sse.kms_key_id) {
                (None | Some(""), None) => None,
                (Some("SSE-S3"), None) => Some(S3Encryption::S3),
                (Some("SSE-KMS"), Some(key)) => Some(S3Encryption::Kms(key)),
                (Some("SSE-KMS"), None) => bail!("storage.s3.sse: SSE-KMS needs kms_key_id"),
                (None | Some("" | "SSE-S3"), Some(_)) => bail!("storage.s3.sse: kms_key_id needs the type SSE-KMS"),
                (Some(other), _) => bail!("storage.s3.sse.type: `{other}` is unknown; use SSE-S3 or SSE-KMS"),
            },
        };
        ensure!(
            self.native_aws_auth_enabled != Some(true) || options.access_key_id.is_none(),
            "storage.s3: native_aws_auth_enabled and access_key_id contradict each other"
        );
        ensure!(
            options.access_key_id.is_some() == options.secret_access_key.is_some(),
            "storage.s3 needs both access_key_id and secret_access_key, or neither"
        );
        Ok(options)
    }
}

impl GcsSection {
    fn options(self) -> anyhow::Result<GcsOptions> {
        let service_account = match &self.service_account_file {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read --storage.gcs.service-account-file {}", path.display()))?;
                Some(Secret(text))
            }
            None => secret(self.service_account),
        };
        Ok(GcsOptions {
            bucket: required("storage.gcs.bucket_name", self.bucket_name)?,
            anonymous: self.endpoint.is_some() && service_account.is_none(),
            service_account,
            endpoint: self.endpoint,
        })
    }
}

impl AzureSection {
    fn options(self) -> anyhow::Result<AzureOptions> {
        let mut options = AzureOptions {
            account: self.account_name.unwrap_or_default(),
            key: secret(self.account_key),
            container: required("storage.azure.container_name", self.container_name)?,
            endpoint_suffix: non_empty(self.endpoint_suffix),
            endpoint: self.endpoint,
            tenant_id: self.az_tenant_id,
            client_id: self.client_id.or(self.user_assigned_id),
            client_secret: secret(self.client_secret),
        };
        if let Some(text) = secret(self.connection_string) {
            connection_string(&text.0, &mut options)?;
        }
        if options.account.is_empty() {
            bail!("storage.azure.account_name is missing");
        }
        Ok(options)
    }
}

/// Parses `AccountName=...;AccountKey=...;EndpointSuffix=...`, as Azure's portal shows it.
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
            other => bail!("storage.azure.connection_string: unknown name `{other}`"),
        }
    }
    ensure!(
        protocol == "https" || options.endpoint.is_some(),
        "storage.azure.connection_string: http needs a BlobEndpoint"
    );
    Ok(())
}

fn required(name: &str, value: Option<String>) -> anyhow::Result<String> {
    non_empty(value).with_context(|| format!("{name} is missing"))
}

fn non_empty(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

fn secret(text: Option<Secret>) -> Option<Secret> {
    text.filter(|secret| !secret.0.is_empty())
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
                "{name}.{key} is not supported: the client sends no certificate and verifies the name in the URL"
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
    use crate::app::config;

    fn read(text: &str) -> anyhow::Result<Option<BucketOptions>> {
        config::parse(text)?.storage.bucket()
    }

    fn error(text: &str) -> String {
        format!("{:#}", read(text).unwrap_err())
    }

    #[test]
    fn the_keys_of_pyroscope_make_a_bucket_of_each_kind() {
        let s3 = "storage:\n  backend: s3\n  prefix: /profiles/\n  s3:\n    endpoint: minio:9000\n    bucket_name: b\
            \n    region: eu-1\n    access_key_id: id\n    secret_access_key: hush\n    insecure: true\n";
        let options = read(s3).unwrap().unwrap();
        assert_eq!(options.address(), "s3://b/profiles/");
        assert!(!format!("{options:?}").contains("hush"));
        let gcs = "storage:\n  backend: gcs\n  gcs:\n    bucket_name: b\n    service_account: |\n      {\
            \n        \"type\": \"service_account\",\n        \"client_email\": \"a@b\",\
            \n        \"private_key\": \"hush\"\n      }\n";
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
        let azure = "storage:\n  backend: azure\n  azure:\n    container_name: c\
            \n    connection_string: \
            DefaultEndpointsProtocol=https;AccountName=acc;AccountKey=aHVzaA==;EndpointSuffix=core.windows.net\n";
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
        // The key has a list instead of a string. The error must not print the secret in the list.
        let message = error("storage:\n  s3:\n    secret_access_key: [hush]\n");
        assert!(
            message.contains("secret_access_key") || message.contains('3'),
            "{message}"
        );
    }

    #[test]
    fn flags_win_over_the_file() {
        let file = config::parse("storage:\n  backend: s3\n  prefix: one\n  s3:\n    bucket_name: b\n").unwrap();
        let mut flags = StorageSection {
            prefix: Some("two".to_owned()),
            cache_size: Some("64MiB".to_owned()),
            ..StorageSection::default()
        };
        flags.s3.bucket_name = Some("c".to_owned());
        let options = flags.over(file.storage).bucket().unwrap().unwrap();
        assert_eq!(options.address(), "s3://c/two/");
        assert_eq!(options.cache_bytes, 64 << 20);
    }

    #[test]
    fn keys_without_meaning_are_named_in_full() {
        let text = "storage:\n  swift: {}\n  s3:\n    part_size: 1\n    http:\n      idle_conn_timeout: 1s\n";
        let section = config::parse(text).unwrap().storage;
        let expected = [
            "storage.s3.http.idle_conn_timeout",
            "storage.s3.part_size",
            "storage.swift",
        ];
        assert_eq!(section.without_meaning(), expected);
    }
}
