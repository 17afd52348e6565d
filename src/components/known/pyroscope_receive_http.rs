//! `pyroscope.receive_http`: profiles that programs send.
//!
//! Schema and checks. Listens on nothing here.

use crate::components::common::server;
use crate::lang::schema::{Attribute, Kind, RECEIVERS, Schema};
use crate::pipeline::component::{Definition, Stability};

/// `pyroscope.receive_http`
pub const DEFINITION: Definition = Definition {
    name: "pyroscope.receive_http",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            Attribute::with_default(
                "debug_info_upload_timeout",
                Kind::Duration,
                "\"2m\"",
                "Longest time that passing on the upload of one debug file may take.",
            ),
            Attribute::required("forward_to", RECEIVERS, "Receivers of the profiles."),
            server::GRACEFUL_SHUTDOWN_TIMEOUT,
        ],
        blocks: &[server::GRPC, server::http(&[("conn_limit", "16384")])],
    },
    exports: &[],
    validate: server::check,
    build: None,
    doc: "`pyroscope.receive_http` takes the profiles that programs and other collectors send.",
};
