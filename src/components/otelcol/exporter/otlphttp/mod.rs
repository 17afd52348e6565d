//! `otelcol.exporter.otlphttp`: sends profiles by OTLP over HTTP, through a durable queue.
//!
//! In: profiles through the exported receiver. Out: export requests in protobuf. `common::sending::otlp` contains the
//! code that this component shares with `otelcol.exporter.otlp`.

use std::sync::Arc;

use crate::common::http::values::{HttpUrl, PlainHeaders};
use crate::common::sending::otlp;
use crate::common::sending::otlp::{Compression, Delivery, HttpTls, RetryOnFailure};
use crate::common::sending::outbox::{MetricNames, Plan, QueueArguments, register_metrics};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{Interval, choices};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::{Attribute, Kind, RECEIVER};
use alluvium_pipeline::component::{ComponentError, Definition, Stability};
use alluvium_wire::client::{ClientOptions, HttpClient};
use alluvium_wire::otlp::HTTP_ROUTE;
use alluvium_wire::otlp::client::Transport;

#[cfg(test)]
mod tests;

arguments! {
    /// Arguments of `otelcol.exporter.otlphttp`.
    pub(crate) struct ExporterArguments {
        /// Encoding of requests. Only proto is supported.
        encoding: Encoding = "proto",
        /// URL for export requests. Defaults to the endpoint of `client` followed by /v1development/profiles.
        profiles_endpoint: Option<HttpUrl>,
    }
    blocks {
        /// The server that profiles are sent to.
        client: Client,
        /// Limits of the queue and of its batches (not in Alloy).
        queue: QueueArguments,
        /// Retries and the waits between them.
        retry_on_failure: RetryOnFailure,
    }
    check ExporterArguments::check;
}

arguments! {
    /// The body of `client { }`.
    pub(crate) struct Client {
        /// Compression of requests: gzip or none.
        compression: Compression = "gzip",
        /// URL of the server, to which /v1development/profiles is appended. No effect if profiles_endpoint is set.
        endpoint: Option<HttpUrl>,
        /// Headers to send with every request.
        headers: PlainHeaders = {},
        /// Timeout for one request.
        timeout: Interval = "30s",
    }
    blocks {
        /// TLS settings of the connection.
        tls: HttpTls,
    }
}

choices! {
    /// The encoding of requests.
    pub(crate) enum Encoding {
        Proto = "proto",
    }
}

/// The definition of `otelcol.exporter.otlphttp`.
pub(crate) const DEFINITION: Definition<ExporterArguments> = Definition {
    name: "otelcol.exporter.otlphttp",
    stability: Stability::GenerallyAvailable,
    exports: &[Attribute::required(
        "input",
        Kind::Capsule(RECEIVER),
        "Receives profiles.",
    )],
    metrics: |scope| register_metrics(scope, &<ExporterArguments as otlp::Exporter>::METRICS),
    build: Some(otlp::build),
    doc: "`otelcol.exporter.otlphttp` sends profiles to OpenTelemetry collectors and servers by HTTP, and keeps them \
        in a durable queue until the server has accepted them.",
};

impl ExporterArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        if self.client.endpoint.is_none() && self.profiles_endpoint.is_none() {
            return Err(ArgumentError::new(
                "client",
                "client.endpoint or profiles_endpoint must be set",
            ));
        }
        Ok(())
    }
}

impl otlp::Exporter for ExporterArguments {
    const METRICS: MetricNames = MetricNames {
        sent_profiles: "otelcol_exporter_otlphttp_sent_profiles",
        sent_bytes: "otelcol_exporter_otlphttp_sent_bytes",
        dropped_profiles: "otelcol_exporter_otlphttp_dropped_profiles",
        dropped_bytes: "otelcol_exporter_otlphttp_dropped_bytes",
        dropped_profiles_by_reason: "otelcol_exporter_otlphttp_dropped_profiles_by_reason",
        retries: "otelcol_exporter_otlphttp_retries",
        requests: "otelcol_exporter_otlphttp_requests",
        latency: "otelcol_exporter_otlphttp_latency",
        queue_profiles: "otelcol_exporter_otlphttp_queue_profiles",
        queue_bytes: "otelcol_exporter_otlphttp_queue_bytes",
        queue_oldest_age: "otelcol_exporter_otlphttp_queue_oldest_age_seconds",
    };

    fn plan(&self, user_agent: &Arc<str>) -> Result<Plan, ComponentError> {
        let client = &self.client;
        let (endpoint, path) = match (&self.profiles_endpoint, &client.endpoint) {
            (Some(url), _) => (url, None),
            (None, Some(url)) => (url, Some(HTTP_ROUTE)),
            (None, None) => return Err(ComponentError("no endpoint is configured".to_owned())),
        };
        let mut url = endpoint.url().clone();
        if let Some(path) = path {
            url.set_path(&format!("{}/{path}", url.path().trim_end_matches('/')));
        }
        let options = ClientOptions {
            headers: client.headers.map().clone(),
            tls: client.tls.client.options(),
            ..ClientOptions::new(user_agent.clone())
        };
        let http = HttpClient::new(&options)
            .map_err(|error| ComponentError(format!("endpoint {}: {error}", endpoint.written())))?;
        let settings = self
            .retry_on_failure
            .settings(endpoint.written().clone(), client.timeout.get(), &self.queue);
        Ok(Plan {
            name: "".into(),
            url: url.clone(),
            settings,
            delivery: Arc::new(Delivery {
                client: http,
                url,
                transport: Transport::Http,
                packing: client.compression.of_client(),
            }),
        })
    }
}
