//! Arguments of `pyroscope.write`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::common::http::client::HttpClientArguments;
use crate::common::http::values::{HttpUrl, PlainHeaders};
use crate::common::sending::outbox::{QueueArguments, Settings};
use crate::pyroscope::write::labels::is_label_name;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, Interval, Natural, wrong};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;
use alluvium_wire::client::ClientOptions;

arguments! {
    /// Arguments of `pyroscope.write`.
    pub(crate) struct WriteArguments {
        /// Labels to add to every profile. They replace labels of the same name.
        external_labels: ExternalLabels = {},
    }
    blocks {
        /// Server that profiles are sent to. Each endpoint receives every profile and has its own queue.
        endpoint: Vec<EndpointArguments>,
        /// Headers with the trace context to send with each request.
        #[no_effect = "profiles carry no trace context"]
        tracing: Option<TracingArguments>,
    }
}

arguments! {
    /// The body of `endpoint { }`.
    pub(crate) struct EndpointArguments {
        /// Timeout for the upload of one debug file.
        #[no_effect = "no component uploads debug files"]
        debug_info_upload_timeout: Duration = "2m",
        /// Headers to send with every request, for example X-Scope-OrgID for the tenant.
        headers: PlainHeaders = {},
        /// Longest wait before a retry.
        max_backoff_period: Interval = "5m",
        /// Number of failed attempts after which a profile is dropped, if other profiles succeed. 0 means never. While
        /// an endpoint rejects all profiles, they stay in the queue.
        max_backoff_retries: Natural = 10,
        /// Wait before the first retry. The wait doubles with every failure.
        min_backoff_period: Interval = "500ms",
        /// Name of the endpoint. The folder name of its queue contains this name.
        name: Arc<str> = "",
        /// Timeout for one request.
        remote_timeout: Interval = "10s",
        /// If true, a request that the server rejects with HTTP status 429 is retried.
        retry_on_http_429: bool = true,
        /// Label whose value is sent as the header X-Scope-OrgID (not in Alloy). A profile without this label is sent
        /// with the X-Scope-OrgID from the argument `headers`, if `headers` contains one.
        tenant_label: Option<LabelName>,
        /// URL of the server. The paths of the API are appended to the path of this URL.
        url: HttpUrl,
    }
    blocks {
        /// Limits of the endpoint's queue and of its batches (not in Alloy).
        queue: QueueArguments,
    }
    shared { client: HttpClientArguments }
    check EndpointArguments::check;
}

arguments! {
    /// The body of `tracing { }`.
    pub(crate) struct TracingArguments {
        /// If true, the header uber-trace-id is sent.
        jaeger_propagator: bool = true,
        /// If true, the header traceparent is sent.
        trace_context_propagator: bool = true,
    }
}

/// Labels that are set on every profile. All names are valid for a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ExternalLabels(pub(crate) BTreeMap<Arc<str>, Arc<str>>);

impl FromValue for ExternalLabels {
    const KIND: Kind = Kind::Map(&Kind::String);

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let labels = BTreeMap::from_value(name, value)?;
        labels.keys().try_for_each(|name| check_label_name(name))?;
        Ok(Self(labels))
    }
}

/// A label name that a server accepts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LabelName(pub(crate) Arc<str>);

impl FromValue for LabelName {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let label = Arc::<str>::from_value(name, value)?;
        check_label_name(&label)?;
        Ok(Self(label))
    }
}

fn check_label_name(name: &str) -> Result<(), ArgumentError> {
    if is_label_name(name) {
        return Ok(());
    }
    Err(wrong(format!(
        "`{name}` is not a label name: letters, digits, `_` and `.` are allowed"
    )))
}

impl WriteArguments {
    /// Returns the `tenant_label` of each endpoint that has one.
    pub(crate) fn tenant_labels(&self) -> impl Iterator<Item = Arc<str>> {
        let labels = self
            .endpoint
            .iter()
            .filter_map(|endpoint| endpoint.tenant_label.as_ref());
        labels.map(|label| label.0.clone())
    }
}

impl EndpointArguments {
    /// Returns the options of the endpoint's HTTP client.
    pub(crate) fn client_options(&self, user_agent: &Arc<str>) -> ClientOptions {
        let mut options = self.client.options(user_agent);
        for (name, value) in self.headers.map() {
            options.headers.insert(name, value.clone());
        }
        options
    }

    /// Returns the endpoint's timeouts, backoff and limits.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            endpoint: self.url.written().clone(),
            timeout: self.remote_timeout.get(),
            min_backoff: self.min_backoff_period.get(),
            max_backoff: self.max_backoff_period.get(),
            max_retries: self.max_backoff_retries.get(),
            retries_429: self.retry_on_http_429,
            queue: self.queue.clone(),
        }
    }

    fn check(&self) -> Result<(), ArgumentError> {
        if self.min_backoff_period > self.max_backoff_period {
            let message = "min_backoff_period must not be greater than max_backoff_period";
            return Err(ArgumentError::new("min_backoff_period", message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::Body;
    use crate::pyroscope::write::DEFINITION;

    fn endpoint(body: Body) -> Result<Arc<WriteArguments>, String> {
        Body::new().block("endpoint", body).read(&DEFINITION)
    }

    fn valid() -> Body {
        Body::new().text("url", "http://localhost:4040")
    }

    #[test]
    fn defaults_are_alloys() {
        let arguments = endpoint(valid()).unwrap();
        let endpoint = &arguments.endpoint[0];
        assert_eq!(endpoint.remote_timeout.get(), Duration::from_secs(10));
        assert_eq!(endpoint.min_backoff_period.get(), Duration::from_millis(500));
        assert_eq!(endpoint.max_backoff_period.get(), Duration::from_mins(5));
        assert_eq!(
            (endpoint.max_backoff_retries.get(), endpoint.retry_on_http_429),
            (10, true)
        );
        assert_eq!(endpoint.queue.limits().max_bytes, 512 << 20);
        assert_eq!(endpoint.queue.batch_bytes(), 1 << 20);
    }

    #[test]
    fn a_queue_has_room_for_a_profile() {
        let queue = |size: &str| endpoint(valid().block("queue", Body::new().text("max_bytes", size)));
        assert!(queue("4MiB").is_ok());
        assert_eq!(
            queue("1KiB").unwrap_err(),
            "endpoint[0].queue.max_bytes: max_bytes must be at least 1MiB"
        );
    }

    #[test]
    fn wrong_endpoints_are_refused_at_their_attribute() {
        for (body, start) in [
            (valid().text("url", "localhost:4040"), "endpoint[0].url: "),
            (valid().text("remote_timeout", "0s"), "endpoint[0].remote_timeout: "),
            (
                valid().text("min_backoff_period", "1h"),
                "endpoint[0].min_backoff_period: ",
            ),
            (
                valid().with("headers", Value::object([("a b", Value::string("c"))])),
                "endpoint[0].headers: ",
            ),
        ] {
            let message = endpoint(body).unwrap_err();
            assert!(message.starts_with(start), "{message}");
        }
    }
}
