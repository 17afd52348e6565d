//! `remote.http`, `remote.s3`, `remote.kubernetes.configmap` and `remote.kubernetes.secret`: values from elsewhere.
//!
//! Schemas and checks. Nothing is asked for here.

use crate::components::common::{checks, http_client, kubernetes_client};
use crate::lang::schema::{Arguments, Attribute, Block, Kind, Schema};
use crate::pipeline::component::{ArgumentError, Definition, Stability};

/// `remote.http`
pub const HTTP: Definition = Definition {
    name: "remote.http",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            Attribute::with_default("body", Kind::String, "\"\"", "Body of the request."),
            Attribute::with_default("headers", Kind::Map(&Kind::String), "{}", "Headers of the request."),
            IS_SECRET,
            Attribute::with_default("method", Kind::String, "\"GET\"", "Method of the request."),
            poll_frequency("\"1m\""),
            poll_timeout("\"10s\""),
            Attribute::required("url", Kind::String, "URL whose answer is the value."),
        ],
        blocks: &[Block::implied(
            "client",
            &Schema {
                attributes: http_client::ATTRIBUTES,
                blocks: http_client::BLOCKS,
            },
            "How the server is reached.",
        )],
    },
    exports: &[CONTENT],
    validate: check_http,
    build: None,
    doc: "`remote.http` asks a URL for a value and follows its changes.",
};

/// `remote.s3`
pub const S3: Definition = Definition {
    name: "remote.s3",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            IS_SECRET,
            Attribute::required("path", Kind::String, "Object to read: `s3://BUCKET/KEY`."),
            poll_frequency("\"10m\""),
        ],
        blocks: &[Block::implied("client", &S3_CLIENT, "How the bucket is reached.")],
    },
    exports: &[CONTENT],
    validate: check_s3,
    build: None,
    doc: "`remote.s3` reads an object of a bucket and follows its changes.",
};

/// `remote.kubernetes.configmap`
pub const CONFIG_MAP: Definition = Definition {
    name: "remote.kubernetes.configmap",
    stability: Stability::GenerallyAvailable,
    arguments: &KUBERNETES,
    exports: &[DATA],
    validate: check_kubernetes,
    build: None,
    doc: "`remote.kubernetes.configmap` reads a ConfigMap and follows its changes.",
};

/// `remote.kubernetes.secret`
pub const SECRET: Definition = Definition {
    name: "remote.kubernetes.secret",
    stability: Stability::GenerallyAvailable,
    arguments: &KUBERNETES,
    exports: &[DATA],
    validate: check_kubernetes,
    build: None,
    doc: "`remote.kubernetes.secret` reads a Secret and follows its changes.",
};

const IS_SECRET: Attribute = Attribute::with_default(
    "is_secret",
    Kind::Bool,
    "false",
    "Whether the content is a secret, which is never shown.",
);
const CONTENT: Attribute = Attribute::required("content", Kind::OptionalSecret, "The value.");
const DATA: Attribute = Attribute::required(
    "data",
    Kind::Map(&Kind::OptionalSecret),
    "The values by key; those of a Secret are secrets.",
);

const S3_CLIENT: Schema = Schema {
    attributes: &[
        Attribute::with_default("disable_ssl", Kind::Bool, "false", "Whether TLS is left out."),
        Attribute::optional("endpoint", Kind::String, "URL of the service instead of Amazon's."),
        Attribute::optional("key", Kind::String, "Access key."),
        Attribute::optional("region", Kind::String, "Region of the bucket."),
        Attribute::optional("secret", Kind::Secret, "Secret of the access key."),
        Attribute::optional(
            "signing_region",
            Kind::String,
            "Region that requests are signed for, where it differs.",
        ),
        Attribute::with_default(
            "use_path_style",
            Kind::Bool,
            "false",
            "Whether the bucket is part of the path and not of the host name.",
        ),
    ],
    blocks: &[],
};

const KUBERNETES: Schema = Schema {
    attributes: &[
        Attribute::required("name", Kind::String, "Name of the object."),
        Attribute::required("namespace", Kind::String, "Namespace of the object."),
        poll_frequency("\"1m\""),
        poll_timeout("\"15s\""),
    ],
    blocks: &[Block::implied(
        "client",
        &kubernetes_client::CLIENT,
        "How the API server is reached.",
    )],
};

const fn poll_frequency(default: &'static str) -> Attribute {
    Attribute::with_default(
        "poll_frequency",
        Kind::Duration,
        default,
        "Time from one look at the value to the next.",
    )
}

const fn poll_timeout(default: &'static str) -> Attribute {
    Attribute::with_default(
        "poll_timeout",
        Kind::Duration,
        default,
        "Longest time that a look may take.",
    )
}

fn check_http(arguments: &Arguments) -> Result<(), ArgumentError> {
    checks::positive(arguments, "", "poll_frequency")?;
    checks::positive(arguments, "", "poll_timeout")?;
    if arguments.duration("poll_timeout") >= arguments.duration("poll_frequency") {
        return Err(checks::error(
            "poll_timeout",
            "poll_timeout must be less than poll_frequency",
        ));
    }
    let method = arguments.string("method");
    if http::Method::from_bytes(method.as_bytes()).is_err() {
        return Err(checks::error("method", format!("`{method}` is not a method")));
    }
    checks::http_url(arguments, "", "url")?;
    for (name, value) in arguments.string_map("headers") {
        http_client::header(&name, &value).map_err(|message| checks::error("headers", message))?;
    }
    arguments
        .block("client")
        .map_or(Ok(()), |client| http_client::check(client, "client."))
}

fn check_s3(arguments: &Arguments) -> Result<(), ArgumentError> {
    if arguments.duration("poll_frequency").as_secs_f64() <= 30.0 {
        return Err(checks::error(
            "poll_frequency",
            "poll_frequency must be greater than 30s",
        ));
    }
    let path = arguments.string("path");
    let object = path.strip_prefix("s3://").and_then(|rest| rest.split_once('/'));
    if !object.is_some_and(|(bucket, key)| !bucket.is_empty() && !key.is_empty()) {
        return Err(checks::error("path", format!("`{path}` must be s3://BUCKET/KEY")));
    }
    Ok(())
}

fn check_kubernetes(arguments: &Arguments) -> Result<(), ArgumentError> {
    checks::positive(arguments, "", "poll_frequency")?;
    checks::positive(arguments, "", "poll_timeout")?;
    arguments
        .block("client")
        .map_or(Ok(()), |client| kubernetes_client::check(client, "client."))
}
