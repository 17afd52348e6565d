//! Sends the profiles of a batch to an endpoint, in as many requests as they need.
//!
//! In: profiles of a batch. Out: one [`Outcome`] for the whole batch, which lists the refused profiles. This module
//! does not retry requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::stream;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use parking_lot::Mutex;

use crate::common::sending::outbox::{Deliver, Failure, FailureKind, Outcome, Sending};
use crate::pyroscope::write::arguments::EndpointArguments;
use crate::pyroscope::write::parcel::{self, Content, Parcel};
use alluvium_base::BoxFuture;
use alluvium_pipeline::component::live::{Entry, Outcome as LiveOutcome};
use alluvium_profile::upload::Upload;
use alluvium_profile::{RawProfile, SinkError};
use alluvium_wire::call::{CallError, Caller};
use alluvium_wire::client::HttpClient;
use alluvium_wire::ingest;
use alluvium_wire::push::PushClient;
use alluvium_wire::queue_report::QUEUE_HEADER;
use alluvium_wire::refusals::{self, Refused};

/// Maximum number of concurrent requests of one batch. The requests of different uploads and tenants are sent
/// concurrently, so that a slow response does not delay the other requests. A Pyroscope server needs half a second or
/// more for each response, because it responds when it has stored a segment with the profile. The size of the batch
/// limits the memory.
const AT_ONCE: usize = 64;

/// Time after a rate limit in which each profile is sent in its own request.
const SPLIT_TIME: Duration = Duration::from_mins(1);

/// Sends batches to one endpoint.
pub(super) struct Delivery {
    /// The HTTP client for the requests to the endpoint.
    pub client: HttpClient,
    /// The configuration of the endpoint.
    pub arguments: EndpointArguments,
    /// Time of the last push that the endpoint refused because of a limit, without a list of the refused profiles.
    /// Pyroscope stores a part of such a push. To send its profiles together again would store this part twice, and
    /// would never succeed if they exceed the limit together.
    pub last_limit: Mutex<Option<Instant>>,
}

impl Deliver for Delivery {
    fn deliver<'a>(&'a self, profiles: &'a [RawProfile], sending: Sending<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(self.send_all(profiles, sending))
    }
}

impl Delivery {
    /// Sends the profiles, several requests at a time.
    async fn send_all(&self, profiles: &[RawProfile], sending: Sending<'_>) -> Outcome {
        let mut headers = match self.client.headers().await {
            Ok(headers) => headers,
            Err(error) => return Outcome::Failed(Failure::of_endpoint(error.to_string())),
        };
        if let Ok(report) = HeaderValue::from_str(&sending.report.to_header()) {
            headers.insert(QUEUE_HEADER, report);
        }
        let tenant_label = self.arguments.tenant_label.as_ref().map(|label| &*label.0);
        let is_split = self.last_limit.lock().is_some_and(|last| last.elapsed() < SPLIT_TIME);
        let mut parcels = parcel::pack(profiles, tenant_label, is_split);
        if let [_] = parcels.as_slice()
            && let Some(parcel) = parcels.pop()
        {
            return self.send(&parcel, headers, sending).await.outcome;
        }
        // Tenants that have reached a limit. Their remaining parcels of this batch are not sent.
        let limits: Mutex<Vec<(Option<Arc<str>>, Failure)>> = Mutex::default();
        let limits = &limits;
        let sent = stream::iter(parcels).map(|parcel| {
            let headers = headers.clone();
            async move {
                let reached = {
                    let limits = limits.lock();
                    let limit = limits.iter().find(|(tenant, _)| *tenant == parcel.tenant);
                    limit.map(|(_, failure)| failure.clone())
                };
                if let Some(failure) = reached {
                    return (parcel.indices, Outcome::Failed(failure));
                }
                let sent = self.send(&parcel, headers, sending).await;
                if let Outcome::Failed(failure) = &sent.outcome
                    && sent.is_limited
                {
                    limits.lock().push((parcel.tenant, failure.clone()));
                }
                (parcel.indices, sent.outcome)
            }
        });
        join(sent.buffer_unordered(AT_ONCE).collect().await)
    }

    /// Sends one request and turns its response into an outcome.
    async fn send(&self, parcel: &Parcel, headers: HeaderMap, sending: Sending<'_>) -> Sent {
        let mut caller = Caller::new(self.client.client().clone(), self.arguments.url.url().clone())
            .with_headers(headers)
            .with_timeout(sending.timeout);
        if let Some(tenant) = &parcel.tenant {
            caller = caller.with_tenant(tenant);
        }
        let started = Instant::now();
        let (answer, bytes) = match &parcel.content {
            Content::Push(profiles) => (PushClient::new(caller).push(profiles).await, bytes_of(profiles)),
            Content::Upload { upload, query, id } => {
                (ingest_upload(caller, upload, query, id).await, upload.body.len())
            }
        };
        let duration = started.elapsed();
        sending.metrics.latency.observe(duration.as_secs_f64());
        let tell = |outcome: LiveOutcome| {
            sending.live.tell(|| Entry::Write {
                endpoint: self.arguments.url.written().clone(),
                profiles: parcel.indices.len(),
                bytes,
                duration,
                outcome,
            });
        };
        let error = match answer {
            Ok(()) => {
                sending.metrics.request("ok");
                tell(LiveOutcome::Good("taken"));
                return Sent::new(Outcome::Accepted);
            }
            Err(error) => error,
        };
        let failure = Failure::of_call(&error, sending.settings);
        if let Content::Push(profiles) = &parcel.content
            && let Some(refused) = refusals::of_error(&error, profiles)
        {
            sending.metrics.request("partial");
            tell(LiveOutcome::Bad("partly refused", failure.message.clone()));
            return Sent::new(Outcome::Partly(refused, failure));
        }
        let is_limited =
            failure.kind == FailureKind::Endpoint && matches!(error, CallError::Refused { status: 429, .. });
        if is_limited && matches!(parcel.content, Content::Push(_)) {
            *self.last_limit.lock() = Some(Instant::now());
        }
        let word = match failure.kind {
            FailureKind::Profiles | FailureKind::TooLarge => "refused",
            FailureKind::Server | FailureKind::Endpoint => "failed",
        };
        sending.metrics.request(word);
        tell(LiveOutcome::Bad(word, failure.message.clone()));
        Sent {
            outcome: Outcome::Failed(failure),
            is_limited,
        }
    }
}

/// The result of one request.
struct Sent {
    outcome: Outcome,
    /// True if the endpoint refused the request because of a limit.
    is_limited: bool,
}

impl Sent {
    fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            is_limited: false,
        }
    }
}

/// Sends the unchanged body of an upload to `/ingest`. `query` contains the upload's name, which holds the labels. A
/// server that stores an upload remembers its `id` and does not store the same upload again.
async fn ingest_upload(caller: Caller, upload: &Upload, query: &str, id: &str) -> Result<(), CallError> {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (CONTENT_TYPE, &upload.content_type),
        (CONTENT_ENCODING, &upload.content_encoding),
    ] {
        if !value.is_empty()
            && let Ok(value) = value.parse()
        {
            headers.insert(name, value);
        }
    }
    ingest::set_upload_id(&mut headers, id);
    let caller = caller.with_query(query);
    caller.post("ingest", headers, upload.body.clone()).await.map(drop)
}

/// Joins the outcomes of several parcels. Each outcome is paired with the positions of the parcel's profiles in the
/// batch.
fn join(outcomes: Vec<(Vec<usize>, Outcome)>) -> Outcome {
    let parcels = outcomes.len();
    let mut refused: Vec<Refused> = Vec::new();
    let mut failures: Vec<Failure> = Vec::new();
    let mut failed_parcels = 0;
    for (indices, outcome) in outcomes {
        match outcome {
            Outcome::Accepted => {}
            Outcome::Partly(of_parcel, failure) => {
                let in_batch = |refused: Refused| {
                    let index = *indices.get(refused.index)?;
                    Some(Refused { index, ..refused })
                };
                refused.extend(of_parcel.into_iter().filter_map(in_batch));
                failures.push(failure);
            }
            Outcome::Failed(failure) => {
                failed_parcels += 1;
                // If a push of several profiles fails because of a profile, it is unknown which profile that is.
                let is_known =
                    indices.len() == 1 || matches!(failure.kind, FailureKind::Endpoint | FailureKind::Server);
                let error = is_known.then(|| SinkError::new(failure.kind.of_sink(), failure.message.clone()));
                refused.extend(indices.into_iter().map(|index| Refused {
                    index,
                    error: error.clone(),
                }));
                failures.push(failure);
            }
        }
    }
    // Of several failures, the outcome contains the one that a retry is most likely to resolve. Otherwise, profiles
    // that a retry may still deliver would be dropped.
    match failures.into_iter().min_by_key(|failure| failure.kind) {
        None => Outcome::Accepted,
        Some(failure) if failed_parcels == parcels && failure.kind == FailureKind::Endpoint => Outcome::Failed(failure),
        Some(failure) => Outcome::Partly(refused, failure),
    }
}

fn bytes_of(profiles: &[RawProfile]) -> usize {
    profiles.iter().map(|profile| profile.pprof.len()).sum()
}
