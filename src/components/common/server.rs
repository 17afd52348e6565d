//! Arguments of components that listen: the `http` and `grpc` blocks with their limits and certificates.
//!
//! In: an evaluated body. Out: nothing, or the attribute that is wrong. The names and defaults are Alloy's. Opens nothing.

use crate::components::common::checks;
use crate::lang::schema::{Arguments, Attribute, Block, Kind, Schema, attributes};
use crate::pipeline::component::ArgumentError;

/// Client certificates that a server may ask for, as Go names them.
const CLIENT_AUTH: [&str; 5] = [
    "NoClientCert",
    "RequestClientCert",
    "RequireAnyClientCert",
    "VerifyClientCertIfGiven",
    "RequireAndVerifyClientCert",
];
const TLS_VERSIONS: [&str; 4] = ["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"];

/// `graceful_shutdown_timeout`.
pub const GRACEFUL_SHUTDOWN_TIMEOUT: Attribute = Attribute::with_default(
    "graceful_shutdown_timeout",
    Kind::Duration,
    "\"30s\"",
    "How long requests under way may take to end when the server stops.",
);

/// `grpc { }`.
pub const GRPC: Block = Block::implied("grpc", &GRPC_SCHEMA, "The gRPC server, on a port of its own.");

/// `http { }`, with the defaults that differ from the usual ones.
pub const fn http(defaults: &'static [(&'static str, &'static str)]) -> Block {
    Block {
        defaults,
        ..Block::implied("http", &HTTP_SCHEMA, "The HTTP server.")
    }
}

const HTTP_SCHEMA: Schema = Schema {
    attributes: attributes!(
        LISTEN,
        &[
            Attribute::with_default(
                "listen_port",
                Kind::Int,
                "8080",
                "Port to listen on; 0 is any free one."
            ),
            Attribute::with_default(
                "server_idle_timeout",
                Kind::Duration,
                "\"120s\"",
                "How long a connection without a request stays open.",
            ),
            Attribute::with_default(
                "server_read_timeout",
                Kind::Duration,
                "\"30s\"",
                "Longest time that reading a request may take.",
            ),
            Attribute::with_default(
                "server_write_timeout",
                Kind::Duration,
                "\"30s\"",
                "Longest time that writing an answer may take.",
            ),
        ]
    ),
    blocks: &[HTTP2, TLS],
};

const GRPC_SCHEMA: Schema = Schema {
    attributes: attributes!(
        LISTEN,
        &[
            Attribute::with_default("listen_port", Kind::Int, "0", "Port to listen on; 0 is any free one."),
            Attribute::optional(
                "max_connection_age",
                Kind::Duration,
                "How old a connection may get; not set, there is no limit.",
            ),
            Attribute::optional(
                "max_connection_age_grace",
                Kind::Duration,
                "How long requests of a connection that got too old may go on; not set, there is no limit.",
            ),
            Attribute::optional(
                "max_connection_idle",
                Kind::Duration,
                "How long a connection without a request stays open; not set, there is no limit.",
            ),
            Attribute::with_default(
                "server_max_concurrent_streams",
                Kind::Uint,
                "100",
                "Requests at once on a connection.",
            ),
            Attribute::with_default(
                "server_max_recv_msg_size",
                Kind::Int,
                "4194304",
                "Bytes of the largest request.",
            ),
            Attribute::with_default(
                "server_max_send_msg_size",
                Kind::Int,
                "4194304",
                "Bytes of the largest answer.",
            ),
        ]
    ),
    blocks: &[TLS],
};

const LISTEN: &[Attribute] = &[
    Attribute::with_default("conn_limit", Kind::Int, "0", "Connections at once; 0 is any number."),
    Attribute::with_default(
        "listen_address",
        Kind::String,
        "\"\"",
        "Address to listen on; empty is all addresses.",
    ),
];

const TLS: Block = Block::optional("tls", &TLS_SCHEMA, "Certificates of server and clients.");

const TLS_SCHEMA: Schema = Schema {
    attributes: &[
        Attribute::optional("cert_file", Kind::String, "File with the server's certificate."),
        Attribute::optional("cert_pem", Kind::String, "The server's certificate, as PEM text."),
        Attribute::optional(
            "cipher_suites",
            Kind::String,
            "Comma-separated cipher suites; not set, those that are safe.",
        ),
        Attribute::optional(
            "client_auth_type",
            Kind::String,
            "Which certificate is asked of a client: NoClientCert, RequestClientCert, RequireAnyClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert.",
        ),
        Attribute::optional(
            "client_ca",
            Kind::String,
            "Authorities of client certificates, as PEM text.",
        ),
        Attribute::optional(
            "client_ca_file",
            Kind::String,
            "File with the authorities of client certificates.",
        ),
        Attribute::optional(
            "key_file",
            Kind::String,
            "File with the key of the server's certificate.",
        ),
        Attribute::optional("key_pem", Kind::Secret, "Key of the server's certificate, as PEM text."),
        Attribute::optional(
            "min_version",
            Kind::String,
            "Lowest TLS version: VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13.",
        ),
    ],
    blocks: &[],
};

const HTTP2: Block = Block::implied("http2", &HTTP2_SCHEMA, "HTTP/2 on the HTTP server.");

const HTTP2_SCHEMA: Schema = Schema {
    attributes: &[
        Attribute::with_default("enabled", Kind::Bool, "false", "Whether HTTP/2 is spoken."),
        Attribute::with_default(
            "idle_timeout",
            Kind::Duration,
            "\"0s\"",
            "How long a connection without a request stays open; 0 is for ever.",
        ),
        Attribute::with_default(
            "max_concurrent_streams",
            Kind::Uint,
            "100",
            "Requests at once on a connection.",
        ),
        Attribute::with_default(
            "max_decoder_header_table_size",
            Kind::Uint,
            "4096",
            "Bytes of the table that headers of requests are read with.",
        ),
        Attribute::with_default(
            "max_encoder_header_table_size",
            Kind::Uint,
            "4096",
            "Bytes of the table that headers of answers are written with.",
        ),
        Attribute::with_default(
            "max_handlers",
            Kind::Int,
            "0",
            "Requests at once on all connections; 0 is any number.",
        ),
        Attribute::with_default(
            "max_read_frame_size",
            Kind::Uint,
            "0",
            "Bytes of the largest frame that is read; 0 is the usual size.",
        ),
        Attribute::with_default(
            "max_upload_buffer_per_connection",
            Kind::Int,
            "0",
            "Bytes of flow control for a connection; 0 is the usual size.",
        ),
        Attribute::with_default(
            "max_upload_buffer_per_stream",
            Kind::Int,
            "0",
            "Bytes of flow control for a request; 0 is the usual size.",
        ),
        Attribute::with_default(
            "permit_prohibited_ciphers",
            Kind::Bool,
            "false",
            "Whether ciphers are allowed that HTTP/2 forbids.",
        ),
        Attribute::with_default(
            "ping_timeout",
            Kind::Duration,
            "\"15s\"",
            "How long the answer to a ping may take.",
        ),
        Attribute::with_default(
            "read_idle_timeout",
            Kind::Duration,
            "\"0s\"",
            "Silence after which a ping is sent; 0 is never.",
        ),
        Attribute::with_default(
            "write_byte_timeout",
            Kind::Duration,
            "\"0s\"",
            "How long a connection that takes nothing stays open; 0 is for ever.",
        ),
    ],
    blocks: &[],
};

/// Checks the blocks above where they are given.
pub fn check(arguments: &Arguments) -> Result<(), ArgumentError> {
    for name in ["http", "grpc"] {
        let Some(server) = arguments.block(name) else { continue };
        if !(0..=65535).contains(&server.int("listen_port")) {
            let message = "listen_port must be a port: 0 to 65535";
            return Err(checks::error(format!("{name}.listen_port"), message));
        }
        if let Some(tls) = server.block("tls") {
            check_tls(tls, &format!("{name}.tls."))?;
        }
    }
    Ok(())
}

fn check_tls(tls: &Arguments, path: &str) -> Result<(), ArgumentError> {
    for names in [
        ["cert_pem", "cert_file"],
        ["key_pem", "key_file"],
        ["client_ca", "client_ca_file"],
    ] {
        checks::at_most_one(tls, path, &names)?;
    }
    for (name, choices) in [
        ("client_auth_type", &CLIENT_AUTH[..]),
        ("min_version", &TLS_VERSIONS[..]),
    ] {
        if !tls.string(name).is_empty() {
            checks::choice(tls, path, name, choices)?;
        }
    }
    Ok(())
}
