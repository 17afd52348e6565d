//! How a component reaches a Kubernetes API server: the attributes `api_server` and `kubeconfig_file` beside the HTTP client arguments.
//!
//! In: a body that holds them all. Out: nothing, or the attribute that is wrong. Opens nothing: the client itself is not here.

use crate::components::common::{checks, http_client};
use crate::lang::schema::{Arguments, Attribute, Kind, Schema, attributes};
use crate::pipeline::component::ArgumentError;

/// `api_server`.
pub const API_SERVER: Attribute = Attribute::optional(
    "api_server",
    Kind::String,
    "URL of the API server; not set, it is the one of the cluster that the program runs in.",
);
/// `kubeconfig_file`.
pub const KUBECONFIG_FILE: Attribute = Attribute::optional(
    "kubeconfig_file",
    Kind::String,
    "Kubeconfig file that names the API server and its credentials.",
);

/// The body of a `client { }` block that holds nothing else.
pub const CLIENT: Schema = Schema {
    attributes: attributes!(&[API_SERVER, KUBECONFIG_FILE], http_client::ATTRIBUTES),
    blocks: http_client::BLOCKS,
};

/// Checks these attributes together; `path` is put before names in errors.
pub fn check(arguments: &Arguments, path: &str) -> Result<(), ArgumentError> {
    let server = arguments.string("api_server");
    let file = arguments.string("kubeconfig_file");
    checks::at_most_one(arguments, path, &["api_server", "kubeconfig_file"])?;
    let plain = http_client::is_default(arguments);
    if !file.is_empty() && !plain {
        let message = "with kubeconfig_file no HTTP client arguments may be given: the file holds the credentials";
        return Err(checks::error(format!("{path}kubeconfig_file"), message));
    }
    if server.is_empty() && !plain {
        let message = "HTTP client arguments are for an api_server, which must be given with them";
        return Err(checks::error(path.trim_end_matches('.'), message));
    }
    if !server.is_empty() {
        checks::http_url(arguments, path, "api_server")?;
    }
    http_client::check(arguments, path)
}
