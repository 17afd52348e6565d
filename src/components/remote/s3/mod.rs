//! `remote.s3`: an object of a bucket, requested again and again.
//!
//! In: a path `s3://BUCKET/KEY`. Out: the export `content`, a string or a secret. When a later request fails, the last
//! content stays.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

use crate::components::common::clouds::aws::account::Account;
use crate::components::common::clouds::aws::client::Aws;
use crate::components::common::clouds::environment::Environment;
use crate::components::common::http::values::HttpUrl;
use crate::components::common::sources::source;
use crate::components::common::sources::source::{Exports, Fetch};
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{FromValue, Interval, Secret, wrong};
use crate::lang::body::arguments;
use crate::lang::schema::Kind;
use crate::lang::value::Value;
use crate::pipeline::component::{ComponentError, Context, Definition, Stability, no_metrics};
use crate::wire::client::{ClientOptions, TlsOptions};

#[cfg(test)]
mod tests;

/// Shortest time from one request to the next.
const SHORTEST_POLL: Duration = Duration::from_secs(30);
/// Region of requests to an S3-compatible service, where none is configured.
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
        /// Whether the content is a secret, which is never shown.
        is_secret: bool = false,
        /// Object to read: `s3://BUCKET/KEY`.
        path: ObjectPath,
        /// Time from one look at the object to the next; more than 30s.
        poll_frequency: Interval = "10m",
    }
    blocks {
        /// How the bucket is reached.
        client: S3Client,
    }
    check S3Arguments::check;
}

arguments! {
    /// `client { }` of `remote.s3`
    pub(crate) struct S3Client {
        /// Whether any certificate of the server is accepted.
        disable_ssl: bool = false,
        /// URL of the service instead of Amazon's.
        endpoint: Option<HttpUrl>,
        /// Access key; not set, the credentials are found as Amazon's tools find them.
        key: Option<Arc<str>>,
        /// Region that the bucket is in; not set, that of the environment, of the profile, or of the machine.
        region: Option<Arc<str>>,
        /// Secret of the access key.
        secret: Option<Secret>,
        /// Region that requests are signed for, where it differs.
        signing_region: Option<Arc<str>>,
        /// Whether the bucket is part of the path and not of the host name.
        use_path_style: bool = false,
    }
    check S3Client::check;
}

/// Bucket and key of an object.
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
        // An S3-compatible service has no regions, so neither the profile nor the machine is consulted.
        let elsewhere = || {
            let variable = ["AWS_REGION", "AWS_DEFAULT_REGION"]
                .into_iter()
                .find_map(|name| environment.get(name));
            Arc::from(variable.unwrap_or_else(|| ANY_REGION.to_owned()))
        };
        Account {
            access_key: self.key.clone(),
            endpoint: None,
            profile: None,
            region: region.or_else(|| self.endpoint.as_ref().map(|_| elsewhere())),
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
    doc: "`remote.s3` reads an object of a bucket and follows its changes.",
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

    async fn read(&self) -> Result<String, String> {
        let request = reqwest::Request::new(Method::GET, self.url().await?);
        let answer = self.aws.send("s3", request).await?;
        String::from_utf8(answer.body.into()).map_err(|_| format!("{} is not UTF-8 text", answer.asked))
    }

    async fn url(&self) -> Result<Url, String> {
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
                .map_err(|error| format!("`{host}` is not a host: {error}"))?;
            url.set_path(&format!("{base}/{key}"));
        }
        Ok(url)
    }
}

impl Fetch for Object {
    fn fetch(&self) -> Result<Exports, String> {
        let handle = tokio::runtime::Handle::try_current().map_err(|error| error.to_string())?;
        let text = handle.block_on(self.read())?;
        Ok(source::content(text, self.arguments.is_secret.into()))
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.arguments.poll_frequency.get())
    }
}

fn amazon(region: &str) -> Result<Url, String> {
    let suffix = if region.starts_with("cn-") { ".cn" } else { "" };
    let url = format!("https://s3.{region}.amazonaws.com{suffix}/");
    url.parse()
        .map_err(|error| format!("the region `{region}` makes no URL: {error}"))
}
