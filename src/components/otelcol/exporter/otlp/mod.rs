//! `otelcol.exporter.otlp`: sends profiles by OTLP over gRPC, through a durable queue.
//!
//! In: profiles through the exported receiver. Out: export requests. `common::sending::otlp` contains the code that
//! this component shares with `otelcol.exporter.otlphttp`.

use std::sync::Arc;

use url::Url;

use crate::common::http::values::PlainHeaders;
use crate::common::sending::otlp;
use crate::common::sending::otlp::{Compression, Delivery, GrpcTls, RetryOnFailure};
use crate::common::sending::outbox::{MetricNames, Plan, QueueArguments, register_metrics};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, Interval, wrong};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::{Attribute, Kind, RECEIVER};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{ComponentError, Definition, Stability};
use alluvium_wire::client::{ClientOptions, HttpClient};
use alluvium_wire::otlp::client::Transport;

#[cfg(test)]
mod tests;

arguments! {
    /// Arguments of `otelcol.exporter.otlp`.
    pub(crate) struct ExporterArguments {
        /// Timeout for one request.
        timeout: Interval = "5s",
    }
    blocks {
        /// The server that profiles are sent to.
        client: Client,
        /// Limits of the queue and of its batches (not in Alloy).
        queue: QueueArguments,
        /// Retries and the waits between them.
        retry_on_failure: RetryOnFailure,
    }
}

arguments! {
    /// The body of `client { }`.
    pub(crate) struct Client {
        /// Compression of requests: gzip or none.
        compression: Compression = "gzip",
        /// Address of the server, `host:port`. The prefix `http://` selects a plain connection, and `https://` TLS.
        endpoint: Endpoint,
        /// Headers to send with every request.
        headers: PlainHeaders = {},
    }
    blocks {
        /// TLS settings of the connection. The settings can also select a plain connection.
        tls: GrpcTls,
    }
}

/// The definition of `otelcol.exporter.otlp`.
pub(crate) const DEFINITION: Definition<ExporterArguments> = Definition {
    name: "otelcol.exporter.otlp",
    stability: Stability::GenerallyAvailable,
    exports: &[Attribute::required(
        "input",
        Kind::Capsule(RECEIVER),
        "Receives profiles.",
    )],
    metrics: |scope| register_metrics(scope, &<ExporterArguments as otlp::Exporter>::METRICS),
    build: Some(otlp::build),
    doc: "`otelcol.exporter.otlp` sends profiles to OpenTelemetry collectors and servers by gRPC, and keeps them in a \
        durable queue until the server has accepted them.",
};

/// An address with or without a scheme.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    written: Arc<str>,
    is_plain: bool,
    authority: Arc<str>,
}

impl FromValue for Endpoint {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let written = Arc::<str>::from_value(name, value)?;
        let (is_plain, authority) = match written.split_once("://") {
            None => (false, &*written),
            Some(("http", authority)) => (true, authority),
            Some(("https", authority)) => (false, authority),
            Some((scheme, _)) => return Err(wrong(format!("scheme `{scheme}` is not http or https"))),
        };
        let authority: Arc<str> = authority.trim_end_matches('/').into();
        let url: Result<Url, _> = format!("https://{authority}").parse();
        let is_address = url.is_ok_and(|url| url.host_str().is_some_and(|host| !host.is_empty()) && url.path() == "/");
        if !is_address {
            return Err(wrong(format!("`{written}` is not an address of the form host:port")));
        }
        Ok(Self {
            written,
            is_plain,
            authority,
        })
    }
}

impl otlp::Exporter for ExporterArguments {
    const METRICS: MetricNames = MetricNames {
        sent_profiles: "otelcol_exporter_otlp_sent_profiles",
        sent_bytes: "otelcol_exporter_otlp_sent_bytes",
        dropped_profiles: "otelcol_exporter_otlp_dropped_profiles",
        dropped_bytes: "otelcol_exporter_otlp_dropped_bytes",
        dropped_profiles_by_reason: "otelcol_exporter_otlp_dropped_profiles_by_reason",
        retries: "otelcol_exporter_otlp_retries",
        requests: "otelcol_exporter_otlp_requests",
        latency: "otelcol_exporter_otlp_latency",
        queue_profiles: "otelcol_exporter_otlp_queue_profiles",
        queue_bytes: "otelcol_exporter_otlp_queue_bytes",
        queue_oldest_age: "otelcol_exporter_otlp_queue_oldest_age_seconds",
    };

    fn plan(&self, user_agent: &Arc<str>) -> Result<Plan, ComponentError> {
        let Client {
            compression,
            endpoint,
            headers,
            tls,
        } = &self.client;
        let failed = |error: &dyn std::fmt::Display| ComponentError(format!("endpoint {}: {error}", endpoint.written));
        let scheme = if endpoint.is_plain || tls.insecure {
            "http"
        } else {
            "https"
        };
        let url: Url = format!("{scheme}://{}", endpoint.authority)
            .parse()
            .map_err(|error| failed(&error))?;
        let options = ClientOptions {
            headers: headers.map().clone(),
            tls: tls.client.options(),
            only_http2: true,
            follow_redirects: false,
            ..ClientOptions::new(user_agent.clone())
        };
        let client = HttpClient::new(&options).map_err(|error| failed(&error))?;
        let settings = self
            .retry_on_failure
            .settings(endpoint.written.clone(), self.timeout.get(), &self.queue);
        Ok(Plan {
            name: "".into(),
            url: url.clone(),
            settings,
            delivery: Arc::new(Delivery {
                client,
                url,
                transport: Transport::Grpc,
                packing: compression.of_client(),
            }),
        })
    }
}
