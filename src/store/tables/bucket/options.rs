//! Configuration of a bucket, with Pyroscope's option names, and the creation of its client.
//!
//! In: [`BucketOptions`]. Out: an `object_store` client that retries with backoff. Unset options come from the
//! environment variables that the providers' own tools read (`AWS_*`, `GOOGLE_*`, `AZURE_*`). Secrets are never
//! printed.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::SpawnedReqwestConnector;
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use object_store::{BackoffConfig, Certificate, ClientOptions, ObjectStore, RetryConfig, StaticCredentialProvider};
use tokio::runtime::Handle;

use crate::store::tables::bucket::options_error::OptionsError;

/// Timeout of one request, which transfers at most one file.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout for a connection to the server of the bucket.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time for the retries of one operation. The flush and maintenance retry later on their own.
const RETRY_TIMEOUT: Duration = Duration::from_secs(15);

/// Options of the bucket that holds the tables.
#[derive(Debug, Clone)]
pub struct BucketOptions {
    pub provider: Provider,
    /// Folder inside of the bucket, or empty for its root.
    pub prefix: String,
    /// Size of the local disk cache in bytes. Defaults to 1 GiB. 0 disables the cache.
    pub cache_bytes: u64,
    /// Interval between polls for the commits of other servers. Defaults to 15 seconds.
    pub sync_interval: Duration,
    pub http: HttpOptions,
}

/// The kind of object store.
#[derive(Debug, Clone)]
pub enum Provider {
    /// Amazon S3 and compatible stores.
    S3(S3Options),
    Gcs(GcsOptions),
    Azure(AzureOptions),
    /// A store that the caller creates, for tests.
    Custom(CustomStore),
}

/// An object store that needs no configuration.
#[derive(Debug, Clone)]
pub struct CustomStore {
    pub name: String,
    pub store: Arc<dyn ObjectStore>,
}

#[derive(Debug, Clone, Default)]
pub struct S3Options {
    pub bucket: String,
    /// `host[:port]` or URL. If unset, Amazon's endpoint of the region is used.
    pub endpoint: Option<String>,
    pub region: Option<String>,
    pub access_key_id: Option<String>,
    pub secret_access_key: Option<Secret>,
    /// Session token of temporary credentials.
    pub session_token: Option<Secret>,
    pub insecure: bool,
    /// True if the bucket is part of the host name instead of the path.
    pub virtual_hosted: bool,
    /// Server-side encryption.
    pub encryption: Option<S3Encryption>,
}

/// Server-side encryption of S3.
#[derive(Debug, Clone)]
pub enum S3Encryption {
    S3,
    /// Encryption with a key of the key management service.
    Kms(String),
}

#[derive(Debug, Clone, Default)]
pub struct GcsOptions {
    pub bucket: String,
    /// JSON key of a service account.
    pub service_account: Option<Secret>,
    /// URL of a compatible server, such as an emulator.
    pub endpoint: Option<String>,
    /// True if requests are not signed, for an emulator.
    pub anonymous: bool,
}

#[derive(Debug, Clone, Default)]
pub struct AzureOptions {
    pub account: String,
    pub key: Option<Secret>,
    pub container: String,
    /// Domain of the endpoint, for clouds that do not use `blob.core.windows.net`.
    pub endpoint_suffix: Option<String>,
    /// URL of the account on a compatible server, such as an emulator.
    pub endpoint: Option<String>,
    /// Tenant of a service principal.
    pub tenant_id: Option<String>,
    /// Client of a service principal or of a managed identity.
    pub client_id: Option<String>,
    /// Secret of a service principal.
    pub client_secret: Option<Secret>,
}

#[derive(Debug, Clone, Default)]
pub struct HttpOptions {
    /// PEM file of an additional certificate authority.
    pub ca_file: Option<PathBuf>,
    /// True if TLS certificates are not verified.
    pub skip_verify: bool,
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("(secret)")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl BucketOptions {
    /// Returns the default options for a provider.
    pub fn new(provider: Provider) -> Self {
        Self {
            provider,
            prefix: String::new(),
            cache_bytes: 1 << 30,
            sync_interval: Duration::from_secs(15),
            http: HttpOptions::default(),
        }
    }

    /// Returns an address such as `s3://bucket/prefix/`, for messages and as the base URL of the tables.
    pub fn address(&self) -> String {
        let (scheme, bucket) = match &self.provider {
            Provider::S3(options) => ("s3", &options.bucket),
            Provider::Gcs(options) => ("gs", &options.bucket),
            Provider::Azure(options) => ("az", &options.container),
            Provider::Custom(custom_store) => ("given", &custom_store.name),
        };
        match self.prefix.trim_matches('/') {
            "" => format!("{scheme}://{bucket}/"),
            prefix => format!("{scheme}://{bucket}/{prefix}/"),
        }
    }

    /// Creates the client. Its connections use the runtime of `handle`. Fails on invalid options, without a request.
    pub fn client(&self, handle: &Handle) -> Result<Arc<dyn ObjectStore>, OptionsError> {
        let connector = SpawnedReqwestConnector::new(handle.clone());
        let retry = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(100),
                max_backoff: Duration::from_secs(4),
                base: 2.0,
            },
            // Only the timeout limits the retries. Waits are random, so a maximum number of retries could be reached
            // after a second or two.
            max_retries: usize::MAX,
            retry_timeout: RETRY_TIMEOUT,
        };
        let mut client = ClientOptions::new()
            .with_timeout(REQUEST_TIMEOUT)
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_allow_invalid_certificates(self.http.skip_verify);
        if let Some(path) = &self.http.ca_file {
            let pem = std::fs::read(path).map_err(|source| OptionsError::File {
                path: path.clone(),
                source,
            })?;
            let certificates = Certificate::from_pem_bundle(&pem).map_err(|source| OptionsError::Certificates {
                path: path.clone(),
                source,
            })?;
            for certificate in certificates {
                client = client.with_root_certificate(certificate);
            }
        }
        Ok(match &self.provider {
            Provider::S3(options) => Arc::new(
                options
                    .builder(client)?
                    .with_retry(retry)
                    .with_http_connector(connector)
                    .build()?,
            ),
            Provider::Gcs(options) => Arc::new(
                options
                    .builder(client)?
                    .with_retry(retry)
                    .with_http_connector(connector)
                    .build()?,
            ),
            Provider::Azure(options) => Arc::new(
                options
                    .builder(client)?
                    .with_retry(retry)
                    .with_http_connector(connector)
                    .build()?,
            ),
            Provider::Custom(custom_store) => custom_store.store.clone(),
        })
    }
}

impl S3Options {
    fn builder(&self, client: ClientOptions) -> Result<AmazonS3Builder, OptionsError> {
        // Commits rely on conditional puts (`If-None-Match: *`), the builder's default.
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&self.bucket)
            .with_virtual_hosted_style_request(self.virtual_hosted);
        // `client` replaces the client options from the environment, because `client` contains the timeouts.
        let mut client = client;
        if let Some(url) = self.endpoint_url()? {
            client = client.with_allow_http(url.starts_with("http://"));
            let url = if self.virtual_hosted {
                host_of_bucket(&url, &self.bucket)
            } else {
                url
            };
            builder = builder.with_endpoint(url);
        } else {
            client = client.with_allow_http(self.insecure);
        }
        builder = builder.with_client_options(client);
        if let Some(region) = &self.region {
            builder = builder.with_region(region);
        }
        match (&self.access_key_id, &self.secret_access_key) {
            (Some(id), Some(secret)) => {
                builder = builder.with_access_key_id(id).with_secret_access_key(&secret.0);
                if let Some(token) = &self.session_token {
                    builder = builder.with_token(&token.0);
                }
            }
            (None, None) => {}
            _ => return Err(OptionsError::S3Keys),
        }
        Ok(match &self.encryption {
            None => builder,
            Some(S3Encryption::S3) => {
                let key: AmazonS3ConfigKey = "aws_server_side_encryption".parse()?;
                builder.with_config(key, "AES256")
            }
            Some(S3Encryption::Kms(key)) => builder.with_sse_kms_encryption(key),
        })
    }

    /// Returns the endpoint as a URL. Pyroscope's endpoints are `host:port`, but URLs are accepted too.
    fn endpoint_url(&self) -> Result<Option<String>, OptionsError> {
        let Some(endpoint) = &self.endpoint else {
            return Ok(None);
        };
        let endpoint = endpoint.trim().trim_end_matches('/');
        let url = if endpoint.contains("://") {
            endpoint.to_owned()
        } else if self.insecure {
            format!("http://{endpoint}")
        } else {
            format!("https://{endpoint}")
        };
        match url::Url::parse(&url) {
            Ok(parsed) if parsed.host().is_none() || !matches!(parsed.scheme(), "http" | "https") => {
                Err(OptionsError::EndpointForm(endpoint.to_owned()))
            }
            Ok(parsed) if !parsed.username().is_empty() || parsed.password().is_some() => {
                Err(OptionsError::EndpointWithKeys)
            }
            Ok(parsed) if parsed.scheme() == "http" && !self.insecure => {
                Err(OptionsError::Unencrypted(endpoint.to_owned()))
            }
            Ok(_) => Ok(Some(url)),
            Err(source) => Err(OptionsError::Endpoint {
                endpoint: endpoint.to_owned(),
                source,
            }),
        }
    }
}

/// Inserts the bucket before the host: `https://bucket.host`.
fn host_of_bucket(url: &str, bucket: &str) -> String {
    match url.split_once("://") {
        Some((scheme, host)) if !host.starts_with(&format!("{bucket}.")) => format!("{scheme}://{bucket}.{host}"),
        _ => url.to_owned(),
    }
}

impl GcsOptions {
    fn builder(&self, client: ClientOptions) -> Result<GoogleCloudStorageBuilder, OptionsError> {
        let mut builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(&self.bucket);
        let mut client = client;
        if let Some(account) = &self.service_account {
            // The error of the builder itself would quote the secret text.
            let parsed: Result<serde_json::Value, _> = serde_json::from_str(&account.0);
            let parsed = parsed.map_err(|_| OptionsError::ServiceAccount)?;
            for key in ["client_email", "private_key"] {
                if parsed.get(key).and_then(serde_json::Value::as_str).is_none() {
                    return Err(OptionsError::ServiceAccountKey(key));
                }
            }
            builder = builder.with_service_account_key(&account.0);
        }
        if let Some(endpoint) = &self.endpoint {
            client = client.with_allow_http(endpoint.starts_with("http://"));
            builder = builder.with_base_url(endpoint.trim_end_matches('/'));
        }
        if self.anonymous {
            // Even without signing, the client needs a token for puts, and would request a token from the machine's
            // metadata server.
            let bearer = String::new();
            builder = builder
                .with_skip_signature(true)
                .with_credentials(Arc::new(StaticCredentialProvider::new(GcpCredential { bearer })));
        }
        Ok(builder.with_client_options(client))
    }
}

impl AzureOptions {
    fn builder(&self, client: ClientOptions) -> Result<MicrosoftAzureBuilder, OptionsError> {
        let mut builder = MicrosoftAzureBuilder::from_env()
            .with_account(&self.account)
            .with_container_name(&self.container);
        let mut client = client;
        let endpoint = match (&self.endpoint, &self.endpoint_suffix) {
            (Some(endpoint), _) => Some(endpoint.trim_end_matches('/').to_owned()),
            (None, Some(suffix)) => Some(format!("https://{}.{suffix}", self.account)),
            (None, None) => None,
        };
        if let Some(endpoint) = endpoint {
            client = client.with_allow_http(endpoint.starts_with("http://"));
            builder = builder.with_endpoint(endpoint);
        }
        if let Some(key) = &self.key {
            builder = builder.with_access_key(&key.0);
        }
        match (&self.tenant_id, &self.client_id, &self.client_secret) {
            (Some(tenant), Some(id), Some(secret)) => {
                builder = builder.with_client_secret_authorization(id, &secret.0, tenant);
            }
            (_, Some(id), None) => builder = builder.with_client_id(id),
            (None, None, None) => {}
            _ => return Err(OptionsError::ServicePrincipal),
        }
        Ok(builder.with_client_options(client))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_host_and_port_or_a_url() {
        let with_endpoint = |endpoint: &str| S3Options {
            endpoint: Some(endpoint.to_owned()),
            ..S3Options::default()
        };
        let url = |endpoint: &str| with_endpoint(endpoint).endpoint_url().map(Option::unwrap);
        let insecure = S3Options {
            insecure: true,
            ..with_endpoint("minio:9000")
        };
        assert_eq!(insecure.endpoint_url().unwrap().unwrap(), "http://minio:9000");
        assert_eq!(url("s3.example.com").unwrap(), "https://s3.example.com");
        assert_eq!(url("https://x/").unwrap(), "https://x");
        assert!(url("http://x").unwrap_err().to_string().contains("insecure"));
        assert!(
            url("https://key:secret@x")
                .unwrap_err()
                .to_string()
                .contains("access_key_id")
        );
        assert!(url("ftp://x").is_err());
    }

    #[test]
    fn a_secret_is_never_shown() {
        let options = BucketOptions::new(Provider::S3(S3Options {
            bucket: "b".to_owned(),
            access_key_id: Some("id".to_owned()),
            secret_access_key: Some(Secret("hush".to_owned())),
            ..S3Options::default()
        }));
        assert!(!format!("{options:?}").contains("hush"));
        assert_eq!(options.address(), "s3://b/");
    }

    #[test]
    fn half_of_a_credential_is_refused() {
        let options = S3Options {
            bucket: "b".to_owned(),
            access_key_id: Some("id".to_owned()),
            ..S3Options::default()
        };
        assert!(
            options
                .builder(ClientOptions::new())
                .unwrap_err()
                .to_string()
                .contains("both")
        );
        let account = GcsOptions {
            bucket: "b".to_owned(),
            service_account: Some(Secret("{\"private_key\": \"hush\"}".to_owned())),
            ..GcsOptions::default()
        };
        let error = account.builder(ClientOptions::new()).unwrap_err().to_string();
        assert!(error.contains("client_email") && !error.contains("hush"), "{error}");
    }

    #[test]
    fn an_emulator_of_gcs_is_asked_without_asking_anybody_for_a_token() {
        use std::io::{Read as _, Write as _};
        // The provider can only be installed once, by the first test.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"hello") {
                let mut part = [0; 1024];
                let length = stream.read(&mut part).unwrap();
                assert!(length > 0, "{}", String::from_utf8_lossy(&request));
                request.extend_from_slice(&part[..length]);
            }
            stream
                .write_all(b"HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .unwrap();
            String::from_utf8(request).unwrap()
        });
        let options = BucketOptions::new(Provider::Gcs(GcsOptions {
            bucket: "b".to_owned(),
            endpoint: Some(endpoint),
            anonymous: true,
            ..GcsOptions::default()
        }));
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let client = options.client(runtime.handle()).unwrap();
        let location = "x".into();
        let upload = client.put_opts(&location, "hello".into(), Default::default());
        runtime.block_on(upload).unwrap();
        let request = server.join().unwrap().to_lowercase();
        assert!(request.starts_with("put /b/x"), "{request}");
        let token = request
            .lines()
            .find_map(|line| line.strip_prefix("authorization: bearer"));
        assert_eq!(token.unwrap_or_default().trim(), "");
    }
}
