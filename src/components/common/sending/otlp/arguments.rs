//! Arguments of both OTLP exporters. Names and defaults are the same as in Alloy.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::common::arguments::checks::at_most_one_of;
use crate::common::sending::outbox::{QueueArguments, Settings};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{Interval, Secret, choices};
use alluvium_lang::body::arguments;
use alluvium_wire::client::{Pem, TlsOptions};
use alluvium_wire::otlp::client;

/// Number of failed attempts after which a profile is dropped, if the endpoint accepts other profiles of its batch.
const MAX_RETRIES: u64 = 10;

arguments! {
    /// The body of `retry_on_failure { }`.
    pub(crate) struct RetryOnFailure {
        /// Wait before the first retry. The wait doubles with every failure.
        initial_interval: Interval = "5s",
        /// Longest wait before a retry.
        max_interval: Interval = "30s",
    }
    check RetryOnFailure::check;
}

arguments! {
    /// The body of `tls { }` of a gRPC client.
    pub(crate) struct GrpcTls {
        /// If true, the connection is not encrypted.
        insecure: bool = false,
    }
    shared { client: ClientTls }
}

arguments! {
    /// The body of `tls { }` of an HTTP client.
    pub(crate) struct HttpTls {
        /// If true, the connection is not encrypted.
        #[no_effect = "the scheme of the URL decides whether the connection is encrypted"]
        insecure: bool = false,
    }
    shared { client: ClientTls }
}

arguments! {
    /// TLS settings that gRPC and HTTP clients share.
    pub(crate) struct ClientTls {
        /// File with the certificate authorities to trust, instead of the system's.
        ca_file: Option<PathBuf>,
        /// Certificate authorities to trust, instead of the system's, as PEM text.
        ca_pem: Option<Arc<str>>,
        /// File with the client certificate.
        cert_file: Option<PathBuf>,
        /// Client certificate, as PEM text.
        cert_pem: Option<Arc<str>>,
        /// If true, the server's certificate is not verified.
        insecure_skip_verify: bool = false,
        /// File with the private key of the client certificate.
        key_file: Option<PathBuf>,
        /// Private key of the client certificate, as PEM text.
        key_pem: Option<Secret>,
        /// Name to verify in the server's certificate, instead of the host name.
        server_name: Option<Arc<str>>,
    }
    check ClientTls::check;
}

choices! {
    /// Compression of requests.
    pub(crate) enum Compression {
        Gzip = "gzip",
        None = "none",
    }
}

impl Compression {
    /// Returns the compression as a setting of the client.
    pub(crate) fn of_client(self) -> client::Packing {
        match self {
            Self::Gzip => client::Packing::Gzip,
            Self::None => client::Packing::None,
        }
    }
}

impl RetryOnFailure {
    /// Returns the settings for sending the queue of an endpoint.
    pub(crate) fn settings(&self, endpoint: Arc<str>, timeout: Duration, queue: &QueueArguments) -> Settings {
        Settings {
            endpoint,
            timeout,
            min_backoff: self.initial_interval.get(),
            max_backoff: self.max_interval.get(),
            max_retries: MAX_RETRIES,
            retries_429: true,
            queue: queue.clone(),
        }
    }

    fn check(&self) -> Result<(), ArgumentError> {
        if self.initial_interval > self.max_interval {
            let message = "initial_interval must not be greater than max_interval";
            return Err(ArgumentError::new("initial_interval", message));
        }
        Ok(())
    }
}

impl ClientTls {
    /// Returns the TLS options of a client.
    pub(crate) fn options(&self) -> TlsOptions {
        TlsOptions {
            ca: Pem::of(self.ca_pem.as_ref(), self.ca_file.as_ref()),
            certificate: Pem::of(self.cert_pem.as_ref(), self.cert_file.as_ref()),
            key: Pem::of(self.key_pem.as_ref().map(|key| &key.0), self.key_file.as_ref()),
            server_name: self.server_name.clone(),
            insecure_skip_verify: self.insecure_skip_verify,
            ..TlsOptions::default()
        }
    }

    fn check(&self) -> Result<(), ArgumentError> {
        at_most_one_of("ca_pem", &self.ca_pem, "ca_file", &self.ca_file)?;
        at_most_one_of("cert_pem", &self.cert_pem, "cert_file", &self.cert_file)?;
        at_most_one_of("key_pem", &self.key_pem, "key_file", &self.key_file)
    }
}
