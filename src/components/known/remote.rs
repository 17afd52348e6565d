//! `remote.s3`, `remote.kubernetes.configmap` and `remote.kubernetes.secret`: values from elsewhere.
//!
//! Nothing is asked for here.

use std::sync::Arc;
use std::time::Duration;

use crate::components::common::kubernetes_client::KubernetesClient;
use crate::components::common::source;
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{FromValue, Interval, Secret, wrong};
use crate::lang::body::arguments;
use crate::lang::schema::{Attribute, Kind};
use crate::lang::value::Value;
use crate::pipeline::component::{Definition, Stability, no_metrics};

/// Shortest time from one look at an object of S3 to the next.
const SHORTEST_POLL: Duration = Duration::from_secs(30);

arguments! {
    /// Arguments of `remote.s3`.
    pub(crate) struct S3Arguments {
        /// Whether the content is a secret, which is never shown.
        is_secret: bool = false,
        /// Object to read: `s3://BUCKET/KEY`.
        path: ObjectPath,
        /// Time from one look at the value to the next.
        poll_frequency: Duration = "10m",
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
        /// Whether TLS is left out.
        disable_ssl: bool = false,
        /// URL of the service instead of Amazon's.
        endpoint: Option<Arc<str>>,
        /// Access key of the account.
        key: Option<Arc<str>>,
        /// Region that the bucket is in.
        region: Option<Arc<str>>,
        /// Secret of the access key.
        secret: Option<Secret>,
        /// Region that requests are signed for, where it differs.
        signing_region: Option<Arc<str>>,
        /// Whether the bucket is part of the path and not of the host name.
        use_path_style: bool = false,
    }
}

arguments! {
    /// Arguments of `remote.kubernetes.configmap` and `remote.kubernetes.secret`.
    pub(crate) struct KubernetesArguments {
        /// Name of the Kubernetes object.
        name: Arc<str>,
        /// Namespace of the object.
        namespace: Arc<str>,
        /// Time from one look at the value to the next.
        poll_frequency: Interval = "1m",
        /// Longest time that a look may take.
        poll_timeout: Interval = "15s",
    }
    blocks {
        /// How the API server is reached.
        client: KubernetesClient,
    }
}

/// Bucket and key of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectPath(Arc<str>);

impl FromValue for ObjectPath {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let path = Arc::<str>::from_value(name, value)?;
        let object = path.strip_prefix("s3://").and_then(|rest| rest.split_once('/'));
        if !object.is_some_and(|(bucket, key)| !bucket.is_empty() && !key.is_empty()) {
            return Err(wrong(format!("`{path}` must be s3://BUCKET/KEY")));
        }
        Ok(Self(path))
    }
}

impl S3Arguments {
    fn check(&self) -> Result<(), ArgumentError> {
        if self.poll_frequency <= SHORTEST_POLL {
            let message = "poll_frequency must be greater than 30s";
            return Err(ArgumentError::new("poll_frequency", message));
        }
        Ok(())
    }
}

/// The definition of `remote.s3`.
pub(crate) const S3: Definition<S3Arguments> = Definition {
    name: "remote.s3",
    stability: Stability::GenerallyAvailable,
    exports: &[source::CONTENT_EXPORT],
    metrics: no_metrics,
    build: None,
    doc: "`remote.s3` reads an object of a bucket and follows its changes.",
};

/// The definition of `remote.kubernetes.configmap`.
pub(crate) const CONFIG_MAP: Definition<KubernetesArguments> = Definition {
    name: "remote.kubernetes.configmap",
    stability: Stability::GenerallyAvailable,
    exports: &[DATA],
    metrics: no_metrics,
    build: None,
    doc: "`remote.kubernetes.configmap` reads a ConfigMap and follows its changes.",
};

/// The definition of `remote.kubernetes.secret`.
pub(crate) const SECRET: Definition<KubernetesArguments> = Definition {
    name: "remote.kubernetes.secret",
    stability: Stability::GenerallyAvailable,
    exports: &[DATA],
    metrics: no_metrics,
    build: None,
    doc: "`remote.kubernetes.secret` reads a Secret and follows its changes.",
};

const DATA: Attribute = Attribute::required(
    "data",
    Kind::Map(&Kind::OptionalSecret),
    "The values by key; those of a Secret are secrets.",
);
