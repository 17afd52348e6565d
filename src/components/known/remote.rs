//! `remote.s3`, `remote.kubernetes.configmap` and `remote.kubernetes.secret`: values from elsewhere.
//!
//! Schemas and checks. Nothing is asked for here.

use crate::components::common::{checks, kubernetes_client, source};
use crate::lang::schema::{Arguments, Attribute, Block, Kind, Schema};
use crate::pipeline::component::{ArgumentError, Definition, Stability};

/// `remote.s3`
pub const S3: Definition = Definition {
    name: "remote.s3",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            source::IS_SECRET,
            Attribute::required("path", Kind::String, "Object to read: `s3://BUCKET/KEY`."),
            poll_frequency("\"10m\""),
        ],
        blocks: &[Block::implied("client", &S3_CLIENT, "How the bucket is reached.")],
    },
    exports: &[source::CONTENT_EXPORT],
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
