//! Arguments of `pyroscope.write`: schema, defaults and checks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use crate::components::common::{checks, http_client};
use crate::components::pyroscope::write::queue::Limits;
use crate::lang::schema::{Arguments, Attribute, Block, Kind, Schema};
use crate::pipeline::component::ArgumentError;
use crate::wire::client::ClientOptions;

/// Smallest queue that is accepted: below it a single profile may not fit.
const MIN_QUEUE_BYTES: u64 = 1 << 20;

/// Arguments of the component.
pub const SCHEMA: Schema = Schema {
    attributes: &[Attribute::with_default(
        "external_labels",
        Kind::Map(&Kind::String),
        "{}",
        "Labels to add to every profile; they replace labels of the same name.",
    )],
    blocks: &[
        Block {
            name: "endpoint",
            labelled: false,
            many: true,
            required: false,
            implied: false,
            schema: &ENDPOINT,
            defaults: &[],
            doc: "Where to send profiles; each endpoint has its own queue and gets every profile.",
        },
        Block {
            name: "tracing",
            labelled: false,
            many: false,
            required: false,
            implied: false,
            schema: &TRACING,
            defaults: &[],
            doc: "Which trace headers go along when a profile comes with a trace context.",
        },
    ],
};

const ENDPOINT: Schema = Schema {
    attributes: &[
        http_client::BEARER_TOKEN,
        http_client::BEARER_TOKEN_FILE,
        Attribute::with_default(
            "debug_info_upload_timeout",
            Kind::Duration,
            "\"2m\"",
            "Longest time that the upload of one debug file may take.",
        ),
        http_client::ENABLE_HTTP2,
        http_client::FOLLOW_REDIRECTS,
        Attribute::with_default(
            "headers",
            Kind::Map(&Kind::String),
            "{}",
            "Headers to send with every request, such as X-Scope-OrgID for the tenant.",
        ),
        http_client::HTTP_HEADERS,
        Attribute::with_default(
            "max_backoff_period",
            Kind::Duration,
            "\"5m\"",
            "Longest wait before a request is sent again.",
        ),
        Attribute::with_default(
            "max_backoff_retries",
            Kind::Int,
            "10",
            "Failed attempts after which a profile that alone fails is given up; 0 means never. An endpoint that fails altogether keeps its profiles in the queue.",
        ),
        Attribute::with_default(
            "min_backoff_period",
            Kind::Duration,
            "\"500ms\"",
            "First wait before a request is sent again; it doubles with every failure.",
        ),
        Attribute::with_default(
            "name",
            Kind::String,
            "\"\"",
            "Name of the endpoint; part of the name of its queue's folder.",
        ),
        http_client::NO_PROXY,
        http_client::PROXY_CONNECT_HEADER,
        http_client::PROXY_FROM_ENVIRONMENT,
        http_client::PROXY_URL,
        Attribute::with_default(
            "remote_timeout",
            Kind::Duration,
            "\"10s\"",
            "Longest time that one request may take.",
        ),
        Attribute::with_default(
            "retry_on_http_429",
            Kind::Bool,
            "true",
            "Whether a request that was refused for its rate (429) is sent again.",
        ),
        Attribute::required(
            "url",
            Kind::String,
            "URL of the server; a path in it is a prefix of the API's paths.",
        ),
    ],
    blocks: &[
        http_client::AUTHORIZATION,
        http_client::BASIC_AUTH,
        http_client::OAUTH2,
        Block {
            name: "queue",
            labelled: false,
            many: false,
            required: false,
            implied: true,
            schema: &QUEUE,
            defaults: &[],
            doc: "Bounds of the endpoint's queue and of its batches (not in Alloy).",
        },
        http_client::TLS_CONFIG,
    ],
};

const QUEUE: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "batch_max_bytes",
            Kind::Any,
            "\"1MiB\"",
            "Bytes of profiles in one request; a larger profile goes alone.",
        ),
        Attribute::with_default("batch_max_profiles", Kind::Int, "256", "Profiles in one request."),
        Attribute::with_default(
            "batch_wait",
            Kind::Duration,
            "\"200ms\"",
            "How long a profile may wait for others to share its request.",
        ),
        Attribute::with_default(
            "max_age",
            Kind::Duration,
            "\"24h\"",
            "Profiles that wait longer are dropped and counted.",
        ),
        Attribute::with_default(
            "max_bytes",
            Kind::Any,
            "\"512MiB\"",
            "Bytes that may wait; beyond them the oldest profiles are dropped and counted. A number or a text such as \"512MiB\".",
        ),
    ],
    blocks: &[],
};

const TRACING: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "jaeger_propagator",
            Kind::Bool,
            "true",
            "Whether uber-trace-id is sent.",
        ),
        Attribute::with_default(
            "trace_context_propagator",
            Kind::Bool,
            "true",
            "Whether traceparent is sent.",
        ),
    ],
    blocks: &[],
};

/// The arguments, typed.
#[derive(Clone, Debug)]
pub struct WriteArguments {
    /// Labels to set on every profile.
    pub external_labels: BTreeMap<Arc<str>, Arc<str>>,
    /// Endpoints, in order.
    pub endpoints: Vec<EndpointArguments>,
}

/// One endpoint.
#[derive(Clone, Debug)]
pub struct EndpointArguments {
    /// Base URL.
    pub url: Url,
    /// The URL as written, for metrics and messages.
    pub url_text: Arc<str>,
    /// Name, may be empty.
    pub name: Arc<str>,
    /// Client.
    pub client: ClientOptions,
    /// Longest request.
    pub remote_timeout: Duration,
    /// Waits between attempts.
    pub backoff: (Duration, Duration),
    /// Attempts after which a profile that alone fails is given up; 0 for never.
    pub max_retries: u64,
    /// Whether 429 is worth another attempt.
    pub retry_on_429: bool,
    /// Bounds of the queue.
    pub limits: Limits,
    /// Bounds of a batch.
    pub batch: BatchLimits,
}

/// Bounds of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchLimits {
    /// Bytes.
    pub max_bytes: u64,
    /// Profiles.
    pub max_profiles: usize,
    /// Longest wait for more.
    pub wait: Duration,
}

impl WriteArguments {
    /// Checks and types the arguments.
    pub fn from_arguments(arguments: &Arguments, user_agent: Arc<str>) -> Result<Self, ArgumentError> {
        let external_labels = arguments.string_map("external_labels");
        if let Some(name) = external_labels.keys().find(|name| !is_label_name(name)) {
            return Err(error(
                "external_labels",
                format!("`{name}` is not a label name: letters, digits, `_` and `.` are allowed"),
            ));
        }
        let endpoints = arguments
            .blocks("endpoint")
            .enumerate()
            .map(|(index, block)| {
                EndpointArguments::from_arguments(&block.body, user_agent.clone(), &format!("endpoint[{index}]."))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            external_labels,
            endpoints,
        })
    }
}

impl EndpointArguments {
    fn from_arguments(body: &Arguments, user_agent: Arc<str>, path: &str) -> Result<Self, ArgumentError> {
        let url_text = body.string("url");
        let url = http_client::http_url(&url_text).map_err(|message| error(format!("{path}url"), message))?;
        let mut client = http_client::options(body, user_agent, path)?;
        for (name, value) in body.string_map("headers") {
            let (name, value) =
                http_client::header(&name, &value).map_err(|message| error(format!("{path}headers"), message))?;
            client.headers.insert(name, value);
        }
        let positive = |name: &str| match body.duration(name) {
            Duration::ZERO => Err(error(format!("{path}{name}"), format!("{name} must be greater than 0"))),
            duration => Ok(duration),
        };
        let backoff = (positive("min_backoff_period")?, positive("max_backoff_period")?);
        if backoff.0 > backoff.1 {
            return Err(error(
                format!("{path}min_backoff_period"),
                "min_backoff_period must not be greater than max_backoff_period",
            ));
        }
        let none = Arguments::default();
        let queue = body.block("queue").unwrap_or(&none);
        let queue_path = format!("{path}queue.");
        let limits = Limits {
            max_bytes: checks::bytes(queue, "max_bytes", 512 << 20, &queue_path)?,
            max_age: queue.duration("max_age"),
        };
        if limits.max_bytes < MIN_QUEUE_BYTES {
            return Err(error(
                format!("{queue_path}max_bytes"),
                "max_bytes must be at least 1MiB",
            ));
        }
        if limits.max_age.is_zero() {
            return Err(error(format!("{queue_path}max_age"), "max_age must be greater than 0"));
        }
        let batch = BatchLimits {
            max_bytes: checks::bytes(queue, "batch_max_bytes", 1 << 20, &queue_path)?,
            max_profiles: usize::try_from(queue.int("batch_max_profiles")).unwrap_or(0),
            wait: queue.duration("batch_wait"),
        };
        if batch.max_profiles == 0 {
            return Err(error(
                format!("{queue_path}batch_max_profiles"),
                "batch_max_profiles must be at least 1",
            ));
        }
        Ok(Self {
            url,
            url_text,
            name: body.string("name"),
            client,
            remote_timeout: positive("remote_timeout")?,
            backoff,
            max_retries: u64::try_from(body.int("max_backoff_retries")).map_err(|_| {
                error(
                    format!("{path}max_backoff_retries"),
                    "max_backoff_retries must not be negative",
                )
            })?,
            retry_on_429: body.bool("retry_on_http_429"),
            limits,
            batch,
        })
    }
}

/// True for a label name that a server takes: letters, digits, underscores and dots.
pub fn is_label_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
}

fn error(path: impl Into<String>, message: impl Into<String>) -> ArgumentError {
    ArgumentError {
        path: path.into(),
        message: message.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::components::common::testing::Body;
    use crate::components::pyroscope::write::DEFINITION;
    use crate::lang::value::{Number, Value};

    fn endpoint(body: Body) -> Result<WriteArguments, String> {
        let arguments = Body::new().block("endpoint", body).arguments(&DEFINITION);
        WriteArguments::from_arguments(&arguments, "agent".into())
            .map_err(|error| format!("{}: {}", error.path, error.message))
    }

    fn valid() -> Body {
        Body::new().text("url", "http://localhost:4040")
    }

    #[test]
    fn defaults_are_alloys() {
        let arguments = endpoint(valid()).unwrap();
        let endpoint = &arguments.endpoints[0];
        assert_eq!(endpoint.remote_timeout, Duration::from_secs(10));
        assert_eq!(endpoint.backoff, (Duration::from_millis(500), Duration::from_secs(300)));
        assert_eq!((endpoint.max_retries, endpoint.retry_on_429), (10, true));
        assert_eq!(endpoint.limits.max_bytes, 512 << 20);
        assert_eq!(endpoint.batch.max_bytes, 1 << 20);
    }

    #[test]
    fn sizes_are_numbers_or_texts() {
        for (text, bytes) in [("1GiB", 1 << 30), ("1.5 MB", 1_500_000), ("2097152", 2 << 20)] {
            assert_eq!(checks::parse_bytes(text), Some(bytes), "{text}");
        }
        for text in ["", "MiB", "1x", "-1"] {
            assert_eq!(checks::parse_bytes(text), None, "{text}");
        }
        let queue = |value: Value| endpoint(valid().block("queue", Body::new().with("max_bytes", value)));
        assert!(queue(Value::Number(Number::Int(4 << 20))).is_ok());
        assert_eq!(
            queue(Value::string("1KiB")).unwrap_err(),
            "endpoint[0].queue.max_bytes: max_bytes must be at least 1MiB"
        );
        assert!(
            queue(Value::string("many"))
                .unwrap_err()
                .contains("must be a number of bytes")
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
