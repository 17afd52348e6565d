//! Sends the batches of a queue to one OTLP endpoint.

use std::collections::BTreeSet;
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
use alluvium_wire::refusals::{self, Refused};

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
            series,
            mut refused,
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
        match self.post(body, profiles, &series, sending).await {
            Outcome::Accepted if !refused.is_empty() => Outcome::Partly(refused, unreadable()),
            Outcome::Partly(more, failure) => {
                refused.extend(more);
                Outcome::Partly(refused, failure)
            }
            outcome => outcome,
        }
    }

    /// Sends one request, which contains `profiles` queued profiles. `series` are the queued profiles of its series.
    async fn post(&self, body: Bytes, profiles: usize, series: &[usize], sending: Sending<'_>) -> Outcome {
        let (bytes, started) = (body.len(), Instant::now());
        let answer = self.ask(body, profiles, series, sending).await;
        let duration = started.elapsed();
        sending.metrics.latency.observe(duration.as_secs_f64());
        let (word, live, outcome) = match answer {
            Ok(answer) => match answer.partial_success.filter(|partial| partial.rejected_profiles > 0) {
                None => ("ok", LiveOutcome::Good("taken"), Outcome::Accepted),
                Some(partial) => {
                    let rejected = u64::try_from(partial.rejected_profiles).unwrap_or_default();
                    sending.metrics.dropped(DropReason::Rejected, rejected, 0);
                    let message = partial.error_message;
                    tracing::warn!(
                        component = %sending.live.id(), endpoint = %sending.settings.endpoint, rejected,
                        error = %message, "endpoint refused profiles, dropping them"
                    );
                    (
                        "partial",
                        LiveOutcome::Bad("partly refused", message),
                        Outcome::Accepted,
                    )
                }
            },
            Err((failure, Some(refused))) => {
                let live = LiveOutcome::Bad("partly refused", failure.message.clone());
                ("partial", live, Outcome::Partly(refused, failure))
            }
            Err((failure, None)) => {
                let word = match failure.kind {
                    FailureKind::Profiles | FailureKind::TooLarge => "refused",
                    FailureKind::Server | FailureKind::Endpoint => "failed",
                };
                let live = LiveOutcome::Bad(word, failure.message.clone());
                (word, live, Outcome::Failed(failure))
            }
        };
        sending.metrics.request(word);
        sending.live.tell(|| Entry::Write {
            endpoint: sending.settings.endpoint.clone(),
            profiles,
            bytes,
            duration,
            outcome: live,
        });
        outcome
    }

    /// Makes one call. Returns the failure, and the refused profiles if the server stored all others.
    async fn ask(
        &self,
        body: Bytes,
        profiles: usize,
        series: &[usize],
        sending: Sending<'_>,
    ) -> Result<ExportProfilesServiceResponse, (Failure, Option<Vec<Refused>>)> {
        let headers = self.client.headers().await;
        let headers = headers.map_err(|error| (Failure::of_endpoint(error.to_string()), None))?;
        let caller = Caller::new(self.client.client().clone(), self.url.clone())
            .with_headers(headers)
            .with_timeout(sending.timeout);
        let answer = export(&caller, self.transport, self.packing, body).await;
        answer.map_err(|error| {
            let refused = refused_profiles(&error, series, profiles);
            (Failure::of_call(&error, sending.settings), refused)
        })
    }
}

/// Returns the refused queued profiles of a request that Pyroscope stored in part, or `None` if it stored no queued
/// profile completely, or if the error does not list the refused series. `series` are the queued profiles of the
/// series, and `count` is the number of different ones.
fn refused_profiles(error: &CallError, series: &[usize], count: usize) -> Option<Vec<Refused>> {
    let refused = refusals::series_of_error(error, series.len())?;
    let refused: BTreeSet<usize> = refused.into_iter().filter_map(|one| series.get(one).copied()).collect();
    let refused: Vec<Refused> = refused
        .into_iter()
        .map(|index| Refused { index, error: None })
        .collect();
    (refused.len() < count).then_some(refused)
}
