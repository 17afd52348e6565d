//! Arguments of `otelcol.receiver.otlp`. Names and defaults are the same as in Alloy, except for `limits` and
//! `output.profiles`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::common::arguments::checks;
use crate::common::arguments::endpoint::HostPort;
use crate::common::passing::fanout::Receivers;
use crate::common::serving::listening::{Http2Settings, PortSettings};
use crate::common::serving::server::required_pem;
use alluvium_base::bytes::ByteBudget;
use alluvium_base::pem::Pem;
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{ByteSize, FromValue, Secret, choices, wrong};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;
use alluvium_pipeline::check::settings::http::{ClientAuth, TlsSettings};

/// Time after which an idle connection is closed.
const IDLE: Duration = Duration::from_mins(1);

arguments! {
    /// Arguments of `otelcol.receiver.otlp`.
    pub(crate) struct ReceiverArguments {}
    blocks {
        /// Settings of the gRPC server.
        grpc: Option<GrpcServer>,
        /// Settings of the HTTP server.
        http: Option<HttpServer>,
        /// Limits for requests (not in Alloy).
        limits: Limits,
        /// The receivers of the data.
        output: Output,
    }
    check ReceiverArguments::check;
}

arguments! {
    /// The body of `grpc { }`.
    pub(crate) struct GrpcServer {
        /// Address to listen on. Port 0 means any free port.
        endpoint: HostPort = "0.0.0.0:4317",
        /// Maximum number of concurrent requests on a connection. 0 means 100.
        max_concurrent_streams: u64 = 0,
        /// Maximum size of a message in bytes, before and after decompression.
        max_recv_msg_size: ByteSize = "4MiB",
        /// Transport of the endpoint. Only tcp is supported.
        transport: Transport = "tcp",
    }
    blocks {
        /// TLS settings of the server.
        tls: Option<Tls>,
    }
}

arguments! {
    /// The body of `http { }`.
    pub(crate) struct HttpServer {
        /// Address to listen on. Port 0 means any free port.
        endpoint: HostPort = "0.0.0.0:4318",
        /// Maximum size of a body in bytes, before and after decompression.
        max_request_body_size: ByteSize = "20MiB",
    }
    blocks {
        /// TLS settings of the server.
        tls: Option<Tls>,
    }
}

arguments! {
    /// The body of `tls { }` in `grpc { }` and in `http { }`.
    pub(crate) struct Tls {
        /// File with the server's certificate.
        cert_file: Option<PathBuf>,
        /// The server's certificate, as PEM text.
        cert_pem: Option<Arc<str>>,
        /// Cipher suites of TLS 1.2. If empty, the safe cipher suites are enabled.
        cipher_suites: Vec<Arc<str>> = [],
        /// File with the certificate authorities for client certificates. If set, clients must present a certificate.
        client_ca_file: Option<PathBuf>,
        /// File with the private key of the server's certificate.
        key_file: Option<PathBuf>,
        /// Private key of the server's certificate, as PEM text.
        key_pem: Option<Secret>,
        /// Highest TLS version: 1.2 or 1.3.
        max_version: Option<TlsVersion>,
        /// Lowest TLS version: 1.2 or 1.3.
        min_version: Option<TlsVersion>,
    }
    check Tls::check;
}

arguments! {
    /// The body of `limits { }`.
    pub(crate) struct Limits {
        /// Maximum total size in bytes of all requests being processed, together with the profiles made from them.
        /// Requests beyond this limit are rejected with 503 or UNAVAILABLE.
        max_bytes_in_flight: ByteSize = "256MiB",
    }
}

arguments! {
    /// The body of `output { }`.
    pub(crate) struct Output {
        /// Receivers of the profiles.
        profiles: Receivers,
        /// Logs are not supported. Only an empty list is accepted.
        logs: OtherSignal = [],
        /// Metrics are not supported. Only an empty list is accepted.
        metrics: OtherSignal = [],
        /// Traces are not supported. Only an empty list is accepted.
        traces: OtherSignal = [],
    }
}

choices! {
    /// The transport of an endpoint.
    pub(crate) enum Transport {
        Tcp = "tcp",
    }
}

choices! {
    /// TLS versions that a server supports.
    pub(crate) enum TlsVersion {
        Tls12 = "1.2",
        Tls13 = "1.3",
    }
}

/// The empty list of receivers of an unsupported signal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OtherSignal;

impl FromValue for OtherSignal {
    const KIND: Kind = Kind::List(&Kind::Any);

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        match value {
            Value::Array(items) if items.iter().next().is_some() => Err(wrong(format!(
                "{name} are not supported, only profiles are: leave {name} empty"
            ))),
            _ => Ok(Self),
        }
    }
}

impl ReceiverArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        if self.grpc.is_none() && self.http.is_none() {
            return Err(ArgumentError::new("", "one of the blocks grpc and http must be set"));
        }
        Ok(())
    }
}

impl GrpcServer {
    /// Returns the settings of the gRPC port.
    pub(crate) fn port(&self) -> PortSettings<'_> {
        port("grpc", &self.endpoint, self.tls.as_ref(), self.max_concurrent_streams)
    }
}

impl HttpServer {
    /// Returns the settings of the HTTP port.
    pub(crate) fn port(&self) -> PortSettings<'_> {
        port("http", &self.endpoint, self.tls.as_ref(), 0)
    }
}

fn port<'a>(block: &'static str, endpoint: &'a HostPort, tls: Option<&Tls>, max_streams: u64) -> PortSettings<'a> {
    PortSettings {
        block,
        host: &endpoint.host,
        port: endpoint.port,
        tls: tls.map(Tls::settings),
        max_connections: None,
        max_streams,
        idle: IDLE,
        http2: Http2Settings::default(),
    }
}

impl Limits {
    /// Returns the budget for all requests being processed.
    pub(crate) fn budget(&self) -> ByteBudget {
        ByteBudget::new(usize::try_from(self.max_bytes_in_flight.get()).unwrap_or(usize::MAX))
    }
}

impl Tls {
    fn settings(&self) -> Result<TlsSettings, ArgumentError> {
        let key = self.key_pem.as_ref().map(|key| &key.0);
        let client_ca = self.client_ca_file.clone().map(Pem::File);
        Ok(TlsSettings {
            certificate: required_pem("cert", self.cert_pem.as_ref(), self.cert_file.as_ref())?,
            key: required_pem("key", key, self.key_file.as_ref())?,
            client_auth: match client_ca {
                Some(_) => ClientAuth::RequireAndVerify,
                None => ClientAuth::None,
            },
            client_ca,
            cipher_suites: self.cipher_suites.clone(),
            curves: Vec::new(),
            min_version: self.min_version.map(TlsVersion::number),
            max_version: self.max_version.map(TlsVersion::number),
        })
    }

    fn check(&self) -> Result<(), ArgumentError> {
        checks::at_most_one_of("cert_pem", &self.cert_pem, "cert_file", &self.cert_file)?;
        checks::at_most_one_of("key_pem", &self.key_pem, "key_file", &self.key_file)
    }
}

impl TlsVersion {
    /// Returns the version as the number that listener settings use: 12 or 13.
    fn number(self) -> u8 {
        match self {
            Self::Tls12 => 12,
            Self::Tls13 => 13,
        }
    }
}
