//! Arguments of components that listen: the `http` and `grpc` blocks with their limits and certificates.
//!
//! Names and defaults are the same as in Alloy. This module opens no ports: `listening` opens them.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::common::arguments::checks;
use crate::common::serving::listening::{Http2Settings, PortSettings};
use alluvium_base::pem::Pem;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, Positive, Secret, choices, wrong};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;
use alluvium_pipeline::check::settings::http::{self as settings, TlsSettings};

/// Time limit for the headers of a request on a gRPC port.
const GRPC_IDLE: Duration = Duration::from_mins(1);
/// Value of `ping_timeout` if it is 0.
const PING_TIMEOUT: Duration = Duration::from_secs(15);
/// Allowed limits for the size of a frame (RFC 9113, section 4.2).
const FRAME_BYTES: RangeInclusive<i64> = 16_384..=16_777_215;
/// Allowed flow-control windows of a connection (RFC 9113, section 6.9). A connection begins with the smallest window.
const CONNECTION_WINDOW: RangeInclusive<i64> = 65_535..=2_147_483_647;
/// Allowed flow-control windows of a request.
const STREAM_WINDOW: RangeInclusive<i64> = 1..=2_147_483_647;

choices! {
    /// Requirement for client certificates. The names are the same as in Go.
    pub(crate) enum ClientAuth {
        None = "NoClientCert",
        Request = "RequestClientCert",
        RequireAny = "RequireAnyClientCert",
        VerifyIfGiven = "VerifyClientCertIfGiven",
        RequireAndVerify = "RequireAndVerifyClientCert",
    }
}

choices! {
    /// A TLS version. The names are the same as in Go.
    pub(crate) enum TlsVersion {
        Tls10 = "VersionTLS10",
        Tls11 = "VersionTLS11",
        Tls12 = "VersionTLS12",
        Tls13 = "VersionTLS13",
    }
}

impl ClientAuth {
    fn setting(self) -> settings::ClientAuth {
        match self {
            Self::None => settings::ClientAuth::None,
            Self::Request => settings::ClientAuth::Request,
            Self::RequireAny => settings::ClientAuth::RequireAny,
            Self::VerifyIfGiven => settings::ClientAuth::VerifyIfGiven,
            Self::RequireAndVerify => settings::ClientAuth::RequireAndVerify,
        }
    }
}

impl TlsVersion {
    /// Returns the version as a number in listener settings: 10 for TLS 1.0 to 13 for TLS 1.3.
    fn number(self) -> u8 {
        match self {
            Self::Tls10 => 10,
            Self::Tls11 => 11,
            Self::Tls12 => 12,
            Self::Tls13 => 13,
        }
    }
}

/// A port of this machine, from 0 to 65535.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port(pub(crate) u16);

impl FromValue for Port {
    const KIND: Kind = Kind::Int;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let number = u16::try_from(i64::from_value(name, value)?);
        number
            .map(Self)
            .map_err(|_| wrong(format!("{name} must be a port: 0 to 65535")))
    }
}

arguments! {
    /// The body of `http { }`.
    pub(crate) struct HttpServer {
        /// Port to listen on. 0 means any free port.
        listen_port: Port = 8080,
        /// Idle timeout of a connection without a request.
        server_idle_timeout: Duration = "120s",
        /// Timeout for reading a request.
        server_read_timeout: Duration = "30s",
        /// Timeout for writing a response.
        server_write_timeout: Duration = "30s",
    }
    blocks {
        /// Settings of HTTP/2 on the HTTP server.
        http2: Http2,
        /// TLS settings of the server.
        tls: Option<ServerTls>,
    }
    shared { listen: Listen }
}

arguments! {
    /// The body of `grpc { }`.
    pub(crate) struct GrpcServer {
        /// Port to listen on. 0 means any free port.
        listen_port: Port = 0,
        /// Maximum age of a connection.
        #[no_effect = "connections have no maximum age"]
        max_connection_age: Option<Duration>,
        /// Maximum time for the requests of a connection to finish after the connection has reached its maximum age.
        #[no_effect = "connections have no maximum age"]
        max_connection_age_grace: Option<Duration>,
        /// Idle timeout of a connection without a request.
        #[no_effect = "idle connections stay open until a ping fails or conn_limit is reached"]
        max_connection_idle: Option<Duration>,
        /// Maximum number of concurrent requests on a connection. 0 means 100.
        server_max_concurrent_streams: u64 = 100,
        /// Maximum size of a request in bytes, before and after decompression.
        server_max_recv_msg_size: Positive = 4194304,
        /// Maximum size of a response in bytes.
        #[no_effect = "no response of the port is larger than a few bytes"]
        server_max_send_msg_size: i64 = 4194304,
    }
    blocks {
        /// TLS settings of the server.
        tls: Option<ServerTls>,
    }
    shared { listen: Listen }
}

arguments! {
    /// Address and connection limit of a server.
    pub(crate) struct Listen {
        /// Maximum number of concurrent connections. 0 means 65536.
        conn_limit: i64 = 0,
        /// Address to listen on. An empty text means all addresses.
        listen_address: Arc<str> = "",
    }
}

arguments! {
    /// The body of `tls { }` of a server.
    pub(crate) struct ServerTls {
        /// File with the server's certificate.
        cert_file: Option<PathBuf>,
        /// The server's certificate, as PEM text.
        cert_pem: Option<Arc<str>>,
        /// Comma-separated cipher suites. Defaults to all supported suites.
        cipher_suites: Option<Arc<str>>,
        /// Requirement for client certificates: NoClientCert, RequestClientCert, RequireAnyClientCert,
        /// VerifyClientCertIfGiven or RequireAndVerifyClientCert.
        client_auth_type: Option<ClientAuth>,
        /// Certificate authorities for client certificates, as PEM text.
        client_ca: Option<Arc<str>>,
        /// File with the certificate authorities for client certificates.
        client_ca_file: Option<PathBuf>,
        /// File with the private key of the server's certificate.
        key_file: Option<PathBuf>,
        /// Private key of the server's certificate, as PEM text.
        key_pem: Option<Secret>,
        /// Lowest TLS version: VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13. VersionTLS10 and VersionTLS11
        /// are treated as VersionTLS12, the lowest supported version.
        min_version: Option<TlsVersion>,
    }
    check ServerTls::check;
}

arguments! {
    /// The body of `http > http2 { }`.
    pub(crate) struct Http2 {
        /// If true, HTTP/2 is enabled.
        #[no_effect = "HTTP/2 is always enabled"]
        enabled: bool = false,
        /// Idle timeout of a connection without a request.
        #[no_effect = "idle connections stay open until a ping fails or conn_limit is reached"]
        idle_timeout: Duration = "0s",
        /// Maximum number of concurrent requests on a connection. 0 means 100.
        max_concurrent_streams: u64 = 100,
        /// Size in bytes of the table for decoding headers of requests.
        #[no_effect = "the size of the table is fixed"]
        max_decoder_header_table_size: u64 = 4096,
        /// Size in bytes of the table for encoding headers of responses.
        #[no_effect = "the size of the table is fixed"]
        max_encoder_header_table_size: u64 = 4096,
        /// Maximum number of concurrent requests on all connections.
        #[no_effect = "the bytes of requests are limited, not their number"]
        max_handlers: i64 = 0,
        /// Maximum size of a received frame in bytes, from 16384 to 16777215. 0 means 16384.
        max_read_frame_size: u64 = 0,
        /// Size in bytes of the flow-control window of a connection, from 65535 to 2147483647. 0 means 131072.
        max_upload_buffer_per_connection: i64 = 0,
        /// Size in bytes of the flow-control window of a request, up to 2147483647. 0 means 131072.
        max_upload_buffer_per_stream: i64 = 0,
        /// If true, ciphers that HTTP/2 forbids are allowed.
        #[no_effect = "the server supports none of these ciphers"]
        permit_prohibited_ciphers: bool = false,
        /// Timeout for the response to a ping. Without a response, the connection is closed. 0 means 15s.
        ping_timeout: Duration = "15s",
        /// Interval of pings on an idle connection. 0 means 30s.
        read_idle_timeout: Duration = "0s",
        /// Time after which a connection that accepts no data is closed.
        #[no_effect = "a connection that accepts no data is closed when it does not respond to pings"]
        write_byte_timeout: Duration = "0s",
    }
    check Http2::check;
}

impl HttpServer {
    /// Returns the port to listen on. `block` is the name of this block, for errors.
    pub(crate) fn port(&self, block: &'static str) -> PortSettings<'_> {
        PortSettings {
            block,
            host: &self.listen.listen_address,
            port: self.listen_port.0,
            tls: self.tls.as_ref().map(ServerTls::settings),
            max_connections: usize::try_from(self.listen.conn_limit).ok(),
            max_streams: self.http2.max_concurrent_streams,
            idle: self.server_idle_timeout,
            http2: self.http2.settings(),
        }
    }
}

impl GrpcServer {
    /// Returns the port to listen on. `block` is the name of this block, for errors.
    pub(crate) fn port(&self, block: &'static str) -> PortSettings<'_> {
        PortSettings {
            block,
            host: &self.listen.listen_address,
            port: self.listen_port.0,
            tls: self.tls.as_ref().map(ServerTls::settings),
            max_connections: usize::try_from(self.listen.conn_limit).ok(),
            max_streams: self.server_max_concurrent_streams,
            idle: GRPC_IDLE,
            http2: Http2Settings::default(),
        }
    }
}

impl Http2 {
    /// Returns the settings of the listener. 0 stands for a default.
    fn settings(&self) -> Http2Settings {
        let size = |size: i64| u32::try_from(size).ok().filter(|size| *size > 0);
        Http2Settings {
            connection_window: size(self.max_upload_buffer_per_connection),
            stream_window: size(self.max_upload_buffer_per_stream),
            max_frame: size(signed(self.max_read_frame_size)),
            ping_interval: Some(self.read_idle_timeout).filter(|interval| !interval.is_zero()),
            ping_timeout: match self.ping_timeout {
                Duration::ZERO => Some(PING_TIMEOUT),
                timeout => Some(timeout),
            },
        }
    }

    fn check(&self) -> Result<(), ArgumentError> {
        let frame = signed(self.max_read_frame_size);
        let (connection, stream) = (self.max_upload_buffer_per_connection, self.max_upload_buffer_per_stream);
        for (name, size, allowed) in [
            ("max_read_frame_size", frame, FRAME_BYTES),
            ("max_upload_buffer_per_connection", connection, CONNECTION_WINDOW),
            ("max_upload_buffer_per_stream", stream, STREAM_WINDOW),
        ] {
            if size != 0 && !allowed.contains(&size) {
                let message = format!("{name} must be 0, or from {} to {}", allowed.start(), allowed.end());
                return Err(ArgumentError::new(name, message));
            }
        }
        Ok(())
    }
}

fn signed(size: u64) -> i64 {
    i64::try_from(size).unwrap_or(i64::MAX)
}

impl ServerTls {
    /// Returns the TLS settings of a listener. Fails if the certificate or the key is missing.
    pub(crate) fn settings(&self) -> Result<TlsSettings, ArgumentError> {
        let key = self.key_pem.as_ref().map(|key| &key.0);
        let suites = self.cipher_suites.as_deref().unwrap_or_default().split(',');
        Ok(TlsSettings {
            certificate: required_pem("cert", self.cert_pem.as_ref(), self.cert_file.as_ref())?,
            key: required_pem("key", key, self.key_file.as_ref())?,
            client_ca: Pem::of(self.client_ca.as_ref(), self.client_ca_file.as_ref()),
            client_auth: self
                .client_auth_type
                .map_or(settings::ClientAuth::None, ClientAuth::setting),
            cipher_suites: suites
                .map(str::trim)
                .filter(|suite| !suite.is_empty())
                .map(Arc::from)
                .collect(),
            curves: Vec::new(),
            min_version: self.min_version.map(TlsVersion::number),
            max_version: None,
        })
    }

    fn check(&self) -> Result<(), ArgumentError> {
        let alternatives = [
            [
                ("cert_pem", self.cert_pem.is_some()),
                ("cert_file", self.cert_file.is_some()),
            ],
            [
                ("key_pem", self.key_pem.is_some()),
                ("key_file", self.key_file.is_some()),
            ],
            [
                ("client_ca", self.client_ca.is_some()),
                ("client_ca_file", self.client_ca_file.is_some()),
            ],
        ];
        alternatives.iter().try_for_each(|pair| checks::at_most_one(pair))
    }
}

/// Returns the certificate or the key of a listener. Fails if neither the text nor the file is given.
pub(crate) fn required_pem(name: &str, text: Option<&Arc<str>>, file: Option<&PathBuf>) -> Result<Pem, ArgumentError> {
    Pem::of(text, file)
        .ok_or_else(|| ArgumentError::new("tls", format!("one of {name}_pem and {name}_file must be given")))
}
