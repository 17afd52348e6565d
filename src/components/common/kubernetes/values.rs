//! Exports the values of one object and polls it, for `remote.kubernetes.secret` and `remote.kubernetes.configmap`.
//!
//! In: name and namespace of the object. Out: the export `data`, a map. If the object cannot be read, the last values
//! stay.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use url::Url;

use crate::common::kubernetes::access;
use crate::common::kubernetes::api::{Api, ApiError, read_json};
use crate::common::kubernetes::arguments::KubernetesClient;
use crate::common::kubernetes::objects::Resource;
use crate::common::sources::fetch_error::FetchError;
use crate::common::sources::source;
use crate::common::sources::source::{Exports, Fetch};
use alluvium_lang::attribute::{Interval, NotEmpty};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::{Attribute, Kind};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{ComponentError, Context, Definition, Stability, no_metrics};

arguments! {
    /// Arguments of a component that exports the values of an object.
    pub(crate) struct ValuesArguments {
        /// Name of the Kubernetes object.
        name: NotEmpty<Arc<str>>,
        /// Namespace of the object.
        namespace: NotEmpty<Arc<str>>,
        /// Time between two requests for the object.
        poll_frequency: Interval = "1m",
        /// Timeout for one request.
        poll_timeout: Interval = "15s",
    }
    blocks {
        /// Connection to the API server.
        client: KubernetesClient,
    }
}

/// A kind of objects that contain values.
pub(crate) trait Values: Resource + Sync {
    /// Returns the values by key, and the keys of values that are not text.
    fn values(self) -> (Vec<(String, Value)>, Vec<String>);
}

/// Returns the definition of a component that exports the values of an object of this kind.
pub(crate) const fn definition<T: Values>(name: &'static str, doc: &'static str) -> Definition<ValuesArguments> {
    Definition {
        name,
        stability: Stability::GenerallyAvailable,
        exports: &[DATA],
        metrics: no_metrics,
        build: Some(|context, arguments| source::build(context, &*arguments, Object::<T>::new)),
        doc,
    }
}

const DATA: Attribute = Attribute::required(
    "data",
    Kind::Map(&Kind::OptionalSecret),
    "The values by key. Values of a Secret are secrets.",
);

struct Object<T> {
    id: Arc<str>,
    api: Api,
    url: Url,
    interval: Duration,
    timeout: Duration,
    /// Keys of the values that the last fetch skipped. The log names each of them once.
    skipped: Mutex<Vec<String>>,
    kind: PhantomData<fn() -> T>,
}

/// The reason why an object cannot be read.
#[derive(Debug, thiserror::Error)]
enum ObjectError {
    #[error("cannot get {path}: no response within the timeout")]
    Timeout { path: String },
    #[error("cannot get {path}: {source}")]
    Request { path: String, source: ApiError },
}

impl<T: Values> Object<T> {
    fn new(context: &Context, arguments: &ValuesArguments) -> Result<Self, ComponentError> {
        let api = access::api(&arguments.client, &context.user_agent)?;
        Ok(Self {
            id: context.id.clone(),
            url: api.object_url::<T>(&arguments.namespace.0, &arguments.name.0),
            api,
            interval: arguments.poll_frequency.get(),
            timeout: arguments.poll_timeout.get(),
            skipped: Mutex::default(),
            kind: PhantomData,
        })
    }

    async fn object(&self) -> Result<T, ApiError> {
        read_json(self.api.get(self.url.clone()).await?).await
    }

    /// Returns the object, or an error if there is no response within the timeout.
    async fn object_in_time(&self) -> Result<T, ObjectError> {
        let path = || self.url.path().to_owned();
        let response = tokio::time::timeout(self.timeout, self.object()).await;
        let object = response.map_err(|_| ObjectError::Timeout { path: path() })?;
        object.map_err(|source| ObjectError::Request { path: path(), source })
    }
}

impl<T: Values> Fetch for Object<T> {
    fn fetch(&self) -> Result<Exports, FetchError> {
        let handle = tokio::runtime::Handle::try_current()?;
        let object = handle.block_on(self.object_in_time());
        let (values, others) = object.map_err(|error| FetchError::Remote(error.into()))?.values();
        let mut skipped = self.skipped.lock();
        for key in others.iter().filter(|key| !skipped.contains(key)) {
            tracing::warn!(component = %self.id, key, "ignoring a value that is not UTF-8 text");
        }
        *skipped = others;
        Ok(Exports::from([(DATA.name.into(), Value::object(values))]))
    }

    fn interval(&self) -> Option<Duration> {
        Some(self.interval)
    }
}
