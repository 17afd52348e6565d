//! Arguments of components that listen: the `http` and `grpc` blocks with their limits and certificates.
//!
//! The names and defaults are Alloy's. Nothing is opened here: `listening` opens the ports.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::components::common::arguments::checks;
use crate::components::common::serving::listening::PortSettings;
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{FromValue, Secret, choices, wrong};
use crate::lang::body::arguments;
use crate::lang::schema::Kind;
use crate::lang::value::Value;
use crate::pipeline::check::settings::http::{self as settings, PemText, TlsSettings};

choices! {
    /// Which certificate a server asks of its clients, by the names of Go.
    pub(crate) enum ClientAuth {
        None = "NoClientCert",
        Request = "RequestClientCert",
        RequireAny = "RequireAnyClientCert",
        VerifyIfGiven = "VerifyClientCertIfGiven",
        RequireAndVerify = "RequireAndVerifyClientCert",
    }
}

choices! {
    /// A version of TLS, by the names of Go.
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
    /// The version as a number in listener settings: 10 for TLS 1.0 to 13 for TLS 1.3.
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
        /// Port to listen on; 0 is any free one.
        listen_port: Port = 8080,
        /// How long a connection without a request stays open.
        server_idle_timeout: Duration = "120s",
        /// Longest time that reading a request may take.
        server_read_timeout: Duration = "30s",
        /// Longest time that writing an answer may take.
        server_write_timeout: Duration = "30s",
    }
    blocks {
        /// HTTP/2 on the HTTP server.
        http2: Http2,
        /// Certificates of server and clients.
        tls: Option<ServerTls>,
    }
    shared { listen: Listen }
}

arguments! {
    /// The body of `grpc { }`.
    pub(crate) struct GrpcServer {
        /// Port to listen on; 0 is any free one.
        listen_port: Port = 0,
        /// How old a connection may get; not set, there is no limit.
        max_connection_age: Option<Duration>,
        /// How long requests of a connection that got too old may go on; not set, there is no limit.
        max_connection_age_grace: Option<Duration>,
        /// How long a connection without a request stays open; not set, there is no limit.
        max_connection_idle: Option<Duration>,
        /// Requests at once on a connection.
        server_max_concurrent_streams: u64 = 100,
        /// Bytes of the largest request.
        server_max_recv_msg_size: i64 = 4194304,
        /// Bytes of the largest answer.
        server_max_send_msg_size: i64 = 4194304,
    }
    blocks {
        /// Certificates of server and clients.
        tls: Option<ServerTls>,
    }
    shared { listen: Listen }
}

arguments! {
    /// Where a server listens.
    pub(crate) struct Listen {
        /// Connections at once; 0 is any number.
        conn_limit: i64 = 0,
        /// Address to listen on; empty is all addresses.
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
        /// Comma-separated cipher suites; not set, those that are safe.
        cipher_suites: Option<Arc<str>>,
        /// Which certificate is asked of a client: NoClientCert, RequestClientCert, RequireAnyClientCert,
        /// VerifyClientCertIfGiven or RequireAndVerifyClientCert.
        client_auth_type: Option<ClientAuth>,
        /// Authorities of client certificates, as PEM text.
        client_ca: Option<Arc<str>>,
        /// File with the authorities of client certificates.
        client_ca_file: Option<PathBuf>,
        /// File with the key of the server's certificate.
        key_file: Option<PathBuf>,
        /// Key of the server's certificate, as PEM text.
        key_pem: Option<Secret>,
        /// Lowest TLS version: VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13.
        min_version: Option<TlsVersion>,
    }
    check ServerTls::check;
}

arguments! {
    /// The body of `http > http2 { }`.
    pub(crate) struct Http2 {
        /// Whether HTTP/2 is spoken.
        enabled: bool = false,
        /// How long a connection without a request stays open; 0 is for ever.
        idle_timeout: Duration = "0s",
        /// Requests at once on a connection.
        max_concurrent_streams: u64 = 100,
        /// Bytes of the table that headers of requests are read with.
        max_decoder_header_table_size: u64 = 4096,
        /// Bytes of the table that headers of answers are written with.
        max_encoder_header_table_size: u64 = 4096,
        /// Requests at once on all connections; 0 is any number.
        max_handlers: i64 = 0,
        /// Bytes of the largest frame that is read; 0 is the usual size.
        max_read_frame_size: u64 = 0,
        /// Bytes of flow control for a connection; 0 is the usual size.
        max_upload_buffer_per_connection: i64 = 0,
        /// Bytes of flow control for a request; 0 is the usual size.
        max_upload_buffer_per_stream: i64 = 0,
        /// Whether ciphers are allowed that HTTP/2 forbids.
        permit_prohibited_ciphers: bool = false,
        /// How long the answer to a ping may take.
        ping_timeout: Duration = "15s",
        /// Silence after which a ping is sent; 0 is never.
        read_idle_timeout: Duration = "0s",
        /// How long a connection that takes nothing stays open; 0 is for ever.
        write_byte_timeout: Duration = "0s",
    }
}

impl HttpServer {
    /// The port to listen on; `block` is the name of this block, for errors.
    pub(crate) fn port(&self, block: &'static str) -> PortSettings<'_> {
        PortSettings {
            block,
            host: &self.listen.listen_address,
            port: self.listen_port.0,
            tls: self.tls.as_ref().map(ServerTls::settings),
            max_connections: usize::try_from(self.listen.conn_limit).ok(),
            max_streams: self.http2.max_concurrent_streams,
            idle: self.server_idle_timeout,
        }
    }
}

impl ServerTls {
    /// Converts to settings of a listener. Fails when certificate or key is missing.
    pub(crate) fn settings(&self) -> Result<TlsSettings, ArgumentError> {
        let pem = |text: Option<&Arc<str>>, file: &Option<PathBuf>| match text {
            Some(text) => Some(PemText::Text(text.clone())),
            None => file.clone().map(PemText::File),
        };
        let needed = |pem: Option<PemText>, what: &str| {
            pem.ok_or_else(|| ArgumentError::new("tls", format!("one of {what}_pem and {what}_file must be given")))
        };
        let suites = self.cipher_suites.as_deref().unwrap_or_default().split(',');
        Ok(TlsSettings {
            certificate: needed(pem(self.cert_pem.as_ref(), &self.cert_file), "cert")?,
            key: needed(pem(self.key_pem.as_ref().map(|key| &key.0), &self.key_file), "key")?,
            client_ca: pem(self.client_ca.as_ref(), &self.client_ca_file),
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
        let given = [
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
        given.iter().try_for_each(|pair| checks::at_most_one(pair))
    }
}
