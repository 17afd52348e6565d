//! `remote.s3`: polls an object in a bucket and exports its content.
//!
//! In: a path `s3://BUCKET/KEY`. Out: the export `content`, a string or a secret. If a later request fails, the last
//! content stays.

use std::net::IpAddr;
use std::str::Utf8Error;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::common::clouds::aws::account::Account;
use crate::common::clouds::aws::client::Aws;
use crate::common::clouds::cloud_error::CloudError;
use crate::common::clouds::environment::Environment;
use crate::common::http::values::HttpUrl;
use crate::common::sources::fetch_error::FetchError;
use crate::common::sources::source;
use crate::common::sources::source::{Exports, Fetch};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, Interval, Secret, wrong};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{ComponentError, Context, Definition, Stability, no_metrics};
use alluvium_wire::client::{ClientOptions, TlsOptions};

#[cfg(test)]
mod tests;

/// The argument `poll_frequency` must be longer than this duration.
const SHORTEST_POLL: Duration = Duration::from_secs(30);
/// Region that requests to an S3-compatible service are signed for if no region is configured.
const ANY_REGION: &str = "us-east-1";
/// Characters that are percent-encoded in the path of an object.
const KEY: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

arguments! {
    /// Arguments of `remote.s3`.
    pub(crate) struct S3Arguments {
        /// If true, the content is exported as a secret, which is never shown.
        is_secret: bool = false,
        /// Object to read: `s3://BUCKET/KEY`.
        path: ObjectPath,
        /// Time between two reads of the object. It must be greater than 30s.
        poll_frequency: Interval = "10m",
    }
    blocks {
        /// Connection to the bucket.
        client: S3Client,
    }
    check S3Arguments::check;
}

arguments! {
    /// The body of `client { }`.
    pub(crate) struct S3Client {
        /// If true, the certificate of the server is not verified.
        disable_ssl: bool = false,
        /// URL of an S3-compatible service, which replaces the URL of Amazon's service.
        endpoint: Option<HttpUrl>,
        /// Access key. If it is not set, the component looks for credentials in the same places as Amazon's tools.
        key: Option<Arc<str>>,
        /// Region of the bucket. Defaults to the region of the environment, the profile or the instance metadata.
        region: Option<Arc<str>>,
        /// Secret key that belongs to the access key.
        secret: Option<Secret>,
        /// Region that requests are signed for. Defaults to `region`.
        signing_region: Option<Arc<str>>,
        /// If true, the bucket is part of the URL's path instead of its host name.
        use_path_style: bool = false,
    }
    check S3Client::check;
}

/// The bucket and the key of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectPath {
    bucket: String,
    key: String,
}

impl FromValue for ObjectPath {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let path = Arc::<str>::from_value(name, value)?;
        match path.strip_prefix("s3://").and_then(|rest| rest.split_once('/')) {
            Some((bucket, key)) if !bucket.is_empty() && !key.is_empty() => Ok(Self {
                bucket: bucket.to_owned(),
                key: key.to_owned(),
            }),
            _ => Err(wrong(format!("`{path}` must be s3://BUCKET/KEY"))),
        }
    }
}

impl S3Arguments {
    fn check(&self) -> Result<(), ArgumentError> {
        if self.poll_frequency.get() <= SHORTEST_POLL {
            let message = "poll_frequency must be greater than 30s";
            return Err(ArgumentError::new("poll_frequency", message));
        }
        Ok(())
    }
}

impl S3Client {
    fn check(&self) -> Result<(), ArgumentError> {
        match (&self.key, &self.secret) {
            (Some(_), None) => Err(ArgumentError::new("key", "key needs secret")),
            (None, Some(_)) => Err(ArgumentError::new("secret", "secret needs key")),
            _ => Ok(()),
        }
    }

    fn account(&self, environment: &Environment) -> Account {
        let region = self.signing_region.clone().or_else(|| self.region.clone());
        // The region of an S3-compatible service does not depend on the AWS profile or the instance metadata.
        let default_region = || {
            let variable = ["AWS_REGION", "AWS_DEFAULT_REGION"]
                .into_iter()
                .find_map(|name| environment.get(name));
            Arc::from(variable.unwrap_or_else(|| ANY_REGION.to_owned()))
        };
        Account {
            access_key: self.key.clone(),
            endpoint: None,
            profile: None,
            region: region.or_else(|| self.endpoint.as_ref().map(|_| default_region())),
            role_arn: None,
            secret_key: self.secret.clone(),
        }
    }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<S3Arguments> = Definition {
    name: "remote.s3",
    stability: Stability::GenerallyAvailable,
    exports: &[source::CONTENT_EXPORT],
    metrics: no_metrics,
    build: Some(|context, arguments| {
        source::build(context, &arguments, |context, arguments| {
            Object::new(arguments, context, &Environment::of_process())
        })
    }),
    doc: "`remote.s3` exports the content of an object in a bucket and follows its changes.",
};

struct Object {
    aws: Aws,
    arguments: S3Arguments,
}

impl Object {
    fn new(arguments: &S3Arguments, context: &Context, environment: &Environment) -> Result<Self, ComponentError> {
        let options = ClientOptions {
            tls: TlsOptions {
                insecure_skip_verify: arguments.client.disable_ssl,
                ..TlsOptions::default()
            },
            ..ClientOptions::new(context.user_agent.clone())
        };
        Ok(Self {
            aws: Aws::new(
                &arguments.client.account(environment),
                None,
                &options,
                environment.clone(),
            )?,
            arguments: arguments.clone(),
        })
    }

    async fn read(&self) -> Result<String, ObjectError> {
        let request = reqwest::Request::new(Method::GET, self.url().await?);
        let answer = self.aws.send("s3", request).await?;
        String::from_utf8(answer.body.into()).map_err(|error| ObjectError::Encoding {
            url: answer.url,
            source: error.utf8_error(),
        })
    }

    async fn url(&self) -> Result<Url, ObjectError> {
        let (ObjectPath { bucket, key }, client) = (&self.arguments.path, &self.arguments.client);
        let mut url = match (&client.endpoint, &client.region) {
            (Some(endpoint), _) => endpoint.url().clone(),
            (None, Some(region)) => amazon(region)?,
            (None, None) => amazon(&self.aws.region().await?)?,
        };
        let host = url.host_str().unwrap_or_default().to_owned();
        let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        // A certificate for *.HOST is not valid for a bucket with a dot in its name.
        let is_in_path = client.use_path_style || is_address || bucket.contains('.');
        let base = url.path().trim_end_matches('/').to_owned();
        let key = utf8_percent_encode(key, KEY);
        if is_in_path {
            url.set_path(&format!("{base}/{bucket}/{key}"));
        } else {
            let host = format!("{bucket}.{host}");
            url.set_host(Some(&host))
                .map_err(|source| ObjectError::Host { host, source })?;
            url.set_path(&format!("{base}/{key}"));
        }
        Ok(url)
    }
}

/// The reason why an object cannot be read.
#[derive(Debug, thiserror::Error)]
enum ObjectError {
    #[error(transparent)]
    Cloud(#[from] CloudError),
    /// The content is not text.
    #[error("{url} is not UTF-8 text")]
    Encoding { url: String, source: Utf8Error },
    /// The bucket cannot be part of a host name.
    #[error("`{host}` is not a valid host name: {source}")]
    Host { host: String, source: url::ParseError },
    /// The region cannot be part of a URL.
    #[error("the URL for the region `{region}` is invalid: {source}")]
    Region { region: String, source: url::ParseError },
}

impl Fetch for Object {
    fn fetch(&self) -> Result<Exports, FetchError> {
        let handle = tokio::runtime::Handle::try_current()?;
        let read = handle.block_on(self.read());
        let text = read.map_err(|error| FetchError::Remote(error.into()))?;
        Ok(source::content(text, self.arguments.is_secret.into()))
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.arguments.poll_frequency.get())
    }

    fn is_spread(&self) -> bool {
        true
    }
}

fn amazon(region: &str) -> Result<Url, ObjectError> {
    let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
    let url = format!("https://s3.{region}.amazonaws.com{suffix}/");
    url.parse().map_err(|source| ObjectError::Region {
        region: region.to_owned(),
        source,
    })
}
