//! Arguments of `otelcol.receiver.otlp`. Names and defaults are Alloy's, but for the profiles of `output` and `limits`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::base::bytes::ByteBudget;
use crate::components::common::arguments::checks;
use crate::components::common::arguments::endpoint::HostPort;
use crate::components::common::passing::fanout::Receivers;
use crate::components::common::serving::listening::PortSettings;
use crate::lang::argument_error::ArgumentError;
use crate::lang::attribute::{ByteSize, FromValue, Secret, choices, wrong};
use crate::lang::body::arguments;
use crate::lang::schema::Kind;
use crate::lang::value::Value;
use crate::pipeline::check::settings::http::{ClientAuth, PemText, TlsSettings};

/// How long a connection without a request stays open.
const IDLE: Duration = Duration::from_mins(1);

/// Requests at once on a connection when the configuration sets no limit.
const MAX_STREAMS: u64 = 100;

arguments! {
    /// Arguments of `otelcol.receiver.otlp`.
    pub(crate) struct ReceiverArguments {}
    blocks {
        /// The server for requests by gRPC.
        grpc: Option<GrpcServer>,
        /// The server for requests by HTTP.
        http: Option<HttpServer>,
        /// Bounds of what requests may bring (not in Alloy).
        limits: Limits,
        /// The receivers that profiles go to.
        output: Output,
    }
    check ReceiverArguments::check;
}

arguments! {
    /// The body of `grpc { }`.
    pub(crate) struct GrpcServer {
        /// Address to listen on; port 0 is any free one.
        endpoint: HostPort = "0.0.0.0:4317",
        /// Requests at once on a connection; 0 is the usual number.
        max_concurrent_streams: u64 = 0,
        /// Largest message, also when it is unpacked.
        max_recv_msg_size: ByteSize = "4MiB",
        /// How the endpoint is reached: tcp.
        transport: Transport = "tcp",
    }
    blocks {
        /// Certificates of server and clients.
        tls: Option<Tls>,
    }
}

arguments! {
    /// The body of `http { }`.
    pub(crate) struct HttpServer {
        /// Address to listen on; port 0 is any free one.
        endpoint: HostPort = "0.0.0.0:4318",
        /// Largest body, also when it is unpacked.
        max_request_body_size: ByteSize = "20MiB",
    }
    blocks {
        /// Certificates of server and clients.
        tls: Option<Tls>,
    }
}

arguments! {
    /// The body of `tls { }` of either server.
    pub(crate) struct Tls {
        /// File with the server's certificate.
        cert_file: Option<PathBuf>,
        /// The server's certificate, as PEM text.
        cert_pem: Option<Arc<str>>,
        /// Cipher suites of TLS 1.2; empty is those that are safe.
        cipher_suites: Vec<Arc<str>> = [],
        /// File with the authorities of client certificates; when it is given, clients must show one.
        client_ca_file: Option<PathBuf>,
        /// File with the key of the server's certificate.
        key_file: Option<PathBuf>,
        /// Key of the server's certificate, as PEM text.
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
        /// Bytes of all requests that are in work, with what is made of them; what comes on top is answered with 503 or
        /// UNAVAILABLE.
        max_bytes_in_flight: ByteSize = "256MiB",
    }
}

arguments! {
    /// The body of `output { }`.
    pub(crate) struct Output {
        /// Receivers of the profiles.
        profiles: Receivers,
        /// Logs are not carried: anything else than an empty list is refused.
        logs: OtherSignal = [],
        /// Metrics are not carried: anything else than an empty list is refused.
        metrics: OtherSignal = [],
        /// Traces are not carried: anything else than an empty list is refused.
        traces: OtherSignal = [],
    }
}

choices! {
    /// How an endpoint is reached.
    pub(crate) enum Transport {
        Tcp = "tcp",
    }
}

choices! {
    /// Versions of TLS that a server speaks.
    pub(crate) enum TlsVersion {
        Tls12 = "1.2",
        Tls13 = "1.3",
    }
}

/// Consumers of a signal that this program does not carry: none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OtherSignal;

impl FromValue for OtherSignal {
    const KIND: Kind = Kind::List(&Kind::Any);

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        match value {
            Value::Array(items) if items.iter().next().is_some() => Err(wrong(format!(
                "{name} are not carried here, only profiles: leave them out"
            ))),
            _ => Ok(Self),
        }
    }
}

impl ReceiverArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        if self.grpc.is_none() && self.http.is_none() {
            return Err(ArgumentError::new("", "one of the blocks grpc and http must be given"));
        }
        Ok(())
    }
}

impl GrpcServer {
    /// Where and how gRPC is served.
    pub(crate) fn port(&self) -> PortSettings<'_> {
        let streams = match self.max_concurrent_streams {
            0 => MAX_STREAMS,
            streams => streams,
        };
        port("grpc", &self.endpoint, self.tls.as_ref(), streams)
    }
}

impl HttpServer {
    /// Where and how HTTP is served.
    pub(crate) fn port(&self) -> PortSettings<'_> {
        port("http", &self.endpoint, self.tls.as_ref(), MAX_STREAMS)
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
    }
}

impl Limits {
    /// The budget of all requests in work.
    pub(crate) fn budget(&self) -> ByteBudget {
        ByteBudget::new(usize::try_from(self.max_bytes_in_flight.get()).unwrap_or(usize::MAX))
    }
}

impl Tls {
    fn settings(&self) -> Result<TlsSettings, ArgumentError> {
        let pem = |text: Option<&Arc<str>>, file: &Option<PathBuf>, what: &str| {
            let given = text.cloned().map(PemText::Text);
            given.or(file.clone().map(PemText::File)).ok_or_else(|| {
                let message = format!("one of {what}_pem and {what}_file must be given");
                ArgumentError::new("tls", message)
            })
        };
        let client_ca = self.client_ca_file.clone().map(PemText::File);
        Ok(TlsSettings {
            certificate: pem(self.cert_pem.as_ref(), &self.cert_file, "cert")?,
            key: pem(self.key_pem.as_ref().map(|key| &key.0), &self.key_file, "key")?,
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
    /// The version as a number in listener settings.
    fn number(self) -> u8 {
        match self {
            Self::Tls12 => 12,
            Self::Tls13 => 13,
        }
    }
}
