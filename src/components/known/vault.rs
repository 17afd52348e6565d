//! `remote.vault`: secrets of a HashiCorp Vault.
//!
//! Schema and checks. Nothing is asked for here.

use crate::components::common::checks;
use crate::lang::schema::{Arguments, Attribute, Block, Kind, Schema};
use crate::pipeline::component::{ArgumentError, Definition, Stability};

/// `remote.vault`
pub const DEFINITION: Definition = Definition {
    name: "remote.vault",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            Attribute::optional(
                "key",
                Kind::String,
                "Key of the secret, where it is not part of the path.",
            ),
            Attribute::optional("namespace", Kind::String, "Namespace (Vault Enterprise)."),
            Attribute::required("path", Kind::String, "Path of the secret."),
            Attribute::with_default(
                "reread_frequency",
                Kind::Duration,
                "\"0s\"",
                "Time after which a secret without a lease is read again; 0 is never.",
            ),
            Attribute::required("server", Kind::String, "URL of the server."),
        ],
        blocks: &[
            Block::optional("auth.approle", &APP_ROLE, "Credentials: a role and its secret."),
            Block::optional(
                "auth.aws",
                &AWS,
                "Credentials: the machine's identity in Amazon Web Services.",
            ),
            Block::optional("auth.azure", &AZURE, "Credentials: the machine's identity in Azure."),
            Block::optional("auth.custom", &CUSTOM, "Credentials: data for any method of login."),
            Block::optional("auth.gcp", &GCP, "Credentials: the machine's identity in Google Cloud."),
            Block::optional(
                "auth.kubernetes",
                &KUBERNETES,
                "Credentials: a service account of Kubernetes.",
            ),
            Block::optional("auth.ldap", &LDAP, "Credentials: user and password of a directory."),
            Block::optional("auth.token", &TOKEN, "Credentials: a token."),
            Block::optional("auth.userpass", &USER_PASS, "Credentials: user and password."),
            Block::implied("client_options", &CLIENT_OPTIONS, "How the server is asked."),
        ],
    },
    exports: &[Attribute::required(
        "data",
        Kind::Map(&Kind::Secret),
        "The values of the secret by key.",
    )],
    validate: check,
    build: None,
    doc: "`remote.vault` reads a secret from a Vault server and keeps it fresh.",
};

const METHODS: [&str; 9] = [
    "auth.token",
    "auth.approle",
    "auth.aws",
    "auth.azure",
    "auth.gcp",
    "auth.kubernetes",
    "auth.ldap",
    "auth.userpass",
    "auth.custom",
];

const fn mount_path(default: &'static str) -> Attribute {
    Attribute::with_default(
        "mount_path",
        Kind::String,
        default,
        "Path that the method is mounted at.",
    )
}

const TOKEN: Schema = Schema {
    attributes: &[Attribute::required("token", Kind::Secret, "The token.")],
    blocks: &[],
};

const APP_ROLE: Schema = Schema {
    attributes: &[
        mount_path("\"approle\""),
        Attribute::required("role_id", Kind::String, "Id of the role."),
        Attribute::required("secret", Kind::Secret, "Secret of the role."),
        Attribute::with_default(
            "wrapping_token",
            Kind::Bool,
            "false",
            "Whether the secret is a token to unwrap.",
        ),
    ],
    blocks: &[],
};

const AWS: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "ec2_signature_type",
            Kind::String,
            "\"pkcs7\"",
            "Signature of the instance's identity: pkcs7 or identity.",
        ),
        Attribute::optional(
            "iam_server_id_header",
            Kind::String,
            "Value of the header with the server's id.",
        ),
        mount_path("\"aws\""),
        Attribute::with_default("region", Kind::String, "\"us-east-1\"", "Region to ask."),
        Attribute::optional("role", Kind::String, "Role to log in with."),
        Attribute::required("type", Kind::String, "Which identity: iam or ec2."),
    ],
    blocks: &[],
};

const AZURE: Schema = Schema {
    attributes: &[
        mount_path("\"azure\""),
        Attribute::with_default(
            "resource_url",
            Kind::String,
            "\"https://management.azure.com/\"",
            "Resource that the machine's token is for.",
        ),
        Attribute::required("role", Kind::String, "Role to log in with."),
    ],
    blocks: &[],
};

const GCP: Schema = Schema {
    attributes: &[
        Attribute::optional(
            "iam_service_account",
            Kind::String,
            "Service account, for the type iam.",
        ),
        mount_path("\"gcp\""),
        Attribute::required("role", Kind::String, "Role to log in with."),
        Attribute::required("type", Kind::String, "Which identity: gce or iam."),
    ],
    blocks: &[],
};

const KUBERNETES: Schema = Schema {
    attributes: &[
        mount_path("\"kubernetes\""),
        Attribute::required("role", Kind::String, "Role to log in with."),
        Attribute::with_default(
            "service_account_file",
            Kind::String,
            "\"/var/run/secrets/kubernetes.io/serviceaccount/token\"",
            "File with the token of the service account.",
        ),
    ],
    blocks: &[],
};

const LDAP: Schema = Schema {
    attributes: &[
        mount_path("\"ldap\""),
        Attribute::required("password", Kind::Secret, "Password."),
        Attribute::required("username", Kind::String, "User."),
    ],
    blocks: &[],
};

const USER_PASS: Schema = Schema {
    attributes: &[
        mount_path("\"userpass\""),
        Attribute::required("password", Kind::Secret, "Password."),
        Attribute::required("username", Kind::String, "User."),
    ],
    blocks: &[],
};

const CUSTOM: Schema = Schema {
    attributes: &[
        Attribute::required("data", Kind::Map(&Kind::Secret), "Data to log in with."),
        Attribute::optional("namespace", Kind::String, "Namespace to log in to."),
        Attribute::required("path", Kind::String, "Path to log in at."),
    ],
    blocks: &[],
};

const CLIENT_OPTIONS: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "max_retries",
            Kind::Int,
            "2",
            "How often a failed request is sent again.",
        ),
        Attribute::with_default(
            "max_retry_wait",
            Kind::Duration,
            "\"1500ms\"",
            "Longest wait before that.",
        ),
        Attribute::with_default("min_retry_wait", Kind::Duration, "\"1s\"", "Shortest wait before that."),
        Attribute::with_default(
            "timeout",
            Kind::Duration,
            "\"60s\"",
            "Longest time that a request may take.",
        ),
    ],
    blocks: &[],
};

fn check(arguments: &Arguments) -> Result<(), ArgumentError> {
    checks::exactly_one(arguments, "", &METHODS)?;
    if let Some(aws) = arguments.block("auth.aws") {
        checks::choice(aws, "auth.aws.", "type", &["iam", "ec2"])?;
        checks::choice(aws, "auth.aws.", "ec2_signature_type", &["pkcs7", "identity"])?;
    }
    if let Some(gcp) = arguments.block("auth.gcp") {
        checks::choice(gcp, "auth.gcp.", "type", &["gce", "iam"])?;
        if &*gcp.string("type") == "iam" {
            checks::not_empty(gcp, "auth.gcp.", "iam_service_account")?;
        }
    }
    arguments.block("client_options").map_or(Ok(()), |options| {
        checks::positive(options, "client_options.", "timeout")
    })
}
