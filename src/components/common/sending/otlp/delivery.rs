//! Sends the batches of a queue to one OTLP endpoint.

use std::time::Instant;

use bytes::Bytes;

use crate::common::sending::otlp::content::{Content, content};
use crate::common::sending::outbox::{Deliver, DropReason, Failure, FailureKind, Outcome, Sending};
use alluvium_base::BoxFuture;
use alluvium_pipeline::component::live::{Entry, Outcome as LiveOutcome};
use alluvium_profile::RawProfile;
use alluvium_wire::call::{CallError, Caller};
use alluvium_wire::client::HttpClient;
use alluvium_wire::otlp::client::{Packing, Transport, export};
use alluvium_wire::otlp::messages::ExportProfilesServiceResponse;

/// Sends batches to one endpoint.
pub(crate) struct Delivery {
    /// The HTTP client for the requests.
    pub client: HttpClient,
    /// URL of the requests: the address of the server for gRPC, the complete URL for HTTP.
    pub url: url::Url,
    /// Transport protocol of the requests.
    pub transport: Transport,
    /// Compression of the requests.
    pub packing: Packing,
}

impl Deliver for Delivery {
    fn deliver<'a>(&'a self, profiles: &'a [RawProfile], sending: Sending<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(self.send(profiles, sending))
    }
}

impl Delivery {
    async fn send(&self, profiles: &[RawProfile], sending: Sending<'_>) -> Outcome {
        let batch = profiles.to_vec();
        let result = tokio::task::spawn_blocking(move || content(&batch)).await;
        let Content {
            body,
            profiles,
            refused,
        } = match result {
            Ok(content) => content,
            Err(error) => return Outcome::Failed(Failure::of_endpoint(format!("cannot build the request: {error}"))),
        };
        let unreadable = || Failure {
            message: "profiles cannot be read".to_owned(),
            kind: FailureKind::Profiles,
            retry_after: None,
        };
        if profiles == 0 {
            return Outcome::Partly(refused, unreadable());
        }
        match self.post(body, profiles, sending).await {
            Some(failure) => Outcome::Failed(failure),
            None if refused.is_empty() => Outcome::Accepted,
            None => Outcome::Partly(refused, unreadable()),
        }
    }

    /// Sends one request. Returns the failure, or `None` if the request succeeded.
    async fn post(&self, body: Bytes, profiles: usize, sending: Sending<'_>) -> Option<Failure> {
        let (bytes, started) = (body.len(), Instant::now());
        let answer = self.ask(body, sending).await;
        let duration = started.elapsed();
        sending.metrics.latency.observe(duration.as_secs_f64());
        let (word, outcome, failure) = match answer {
            Ok(answer) => match answer.partial_success.filter(|partial| partial.rejected_profiles > 0) {
                None => ("ok", LiveOutcome::Good("taken"), None),
                Some(partial) => {
                    let rejected = u64::try_from(partial.rejected_profiles).unwrap_or_default();
                    sending.metrics.dropped(DropReason::Rejected, rejected, 0);
                    let message = partial.error_message;
                    tracing::warn!(
                        component = %sending.live.id(), endpoint = %sending.settings.endpoint, rejected,
                        error = %message, "endpoint refused profiles, dropping them"
                    );
                    ("partial", LiveOutcome::Bad("partly refused", message), None)
                }
            },
            Err(failure) => {
                let word = match failure.kind {
                    FailureKind::Profiles | FailureKind::TooLarge => "refused",
                    FailureKind::Server | FailureKind::Endpoint => "failed",
                };
                (word, LiveOutcome::Bad(word, failure.message.clone()), Some(failure))
            }
        };
        sending.metrics.request(word);
        sending.live.tell(|| Entry::Write {
            endpoint: sending.settings.endpoint.clone(),
            profiles,
            bytes,
            duration,
            outcome,
        });
        failure
    }

    async fn ask(&self, body: Bytes, sending: Sending<'_>) -> Result<ExportProfilesServiceResponse, Failure> {
        let headers = self.client.headers().await;
        let headers = headers.map_err(|error| Failure::of_endpoint(error.to_string()))?;
        let caller = Caller::new(self.client.client().clone(), self.url.clone())
            .with_headers(headers)
            .with_timeout(sending.timeout);
        let answer: Result<_, CallError> = export(&caller, self.transport, self.packing, body).await;
        answer.map_err(|error| Failure::of_call(&error, sending.settings))
    }
}
