//! The loop for one kind of profile of one target: it waits, fetches a profile, and forwards it. A profile of a
//! cumulative kind is replaced by its increase since the previous profile.
//!
//! In: a target. Out: profiles to the receivers, and the target's state. The loop may be cancelled at any point.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::MissedTickBehavior;

use crate::common::passing::fanout::Fanout;
use crate::common::passing::unpacked::unpack;
use crate::pyroscope::scrape::arguments::Settings;
use crate::pyroscope::scrape::metrics::{Outcome, ScrapeMetrics};
use crate::pyroscope::scrape::response::{self, ResponseError};
use crate::pyroscope::scrape::scrape_error::ScrapeError;
use crate::pyroscope::scrape::target::ScrapeTarget;
use alluvium_base::Shutdown;
use alluvium_pipeline::component::live::{Entry, LiveHandle, Outcome as LiveOutcome};
use alluvium_pipeline::component::own_http::OwnHttp;
use alluvium_profile::RawProfile;
use alluvium_profile::delta::{Delta, cumulative_types};
use alluvium_profile::legacy::{self, LegacyError};
use alluvium_profile::pprof::{self, DecodeError};
use alluvium_wire::client::HttpClient;

/// Time within which a fetched profile must reach its receivers after the component has received the stop signal.
const FORWARD_GRACE: Duration = Duration::from_secs(5);

/// State of a target, for debug info.
#[derive(Clone, Debug, Default)]
pub(super) struct TargetState {
    /// Start time of the last scrape.
    pub last_scrape: Option<SystemTime>,
    /// Duration of the last scrape.
    pub duration: Duration,
    /// Error of the last scrape, or `None` if it succeeded.
    pub last_error: Option<String>,
}

/// Maximum delay of a scrape of a shared target. A scrape with a longer delay is skipped, because another collector may
/// own the target by then.
const LATEST: Duration = Duration::from_secs(3);

/// The signals that end a loop from outside.
#[derive(Clone)]
pub(super) struct Stop {
    /// Ends the loop at once and aborts a scrape in progress.
    pub now: Shutdown,
    /// Ends the loop after the scrape in progress.
    pub soon: Shutdown,
}

impl Stop {
    /// Returns two signals that fire when `shutdown` is cancelled. The component can fire each of them earlier.
    pub(super) fn new(shutdown: &Shutdown) -> Self {
        let now = shutdown.child_token();
        Self {
            soon: now.child_token(),
            now,
        }
    }
}

/// The loop that scrapes one profile of one target.
pub(super) struct Scraper {
    /// Handle of the component, for logs and live views.
    pub live: LiveHandle,
    /// The target and the kind of profile.
    pub target: ScrapeTarget,
    /// Settings of all scrapes of the component.
    pub settings: Arc<Settings>,
    /// The HTTP client for requests.
    pub client: HttpClient,
    /// The program's own endpoints.
    pub own_http: OwnHttp,
    /// The receivers of the profiles.
    pub fanout: Arc<Fanout>,
    /// The metrics of the component.
    pub metrics: ScrapeMetrics,
    /// The state that debug info shows.
    pub state: Arc<Mutex<TargetState>>,
}

impl Scraper {
    /// Scrapes at every interval until `stop`. The first scrape waits for the target's own offset in the interval.
    pub(super) async fn run(self, stop: Stop) {
        let interval = self.settings.interval;
        let start = tokio::time::Instant::now() + first_wait(interval, self.target.spread(), SystemTime::now());
        let mut ticks = tokio::time::interval_at(start, interval);
        // If a scrape takes longer than the interval, the next scrape waits for the next full interval.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut delta = Delta::new();
        loop {
            let wait_start = tokio::time::Instant::now();
            let due = tokio::select! {
                // If the next scrape is already due, the stop takes precedence.
                biased;
                () = stop.soon.cancelled() => return,
                due = ticks.tick() => due,
            };
            if self.settings.is_clustered && wait_start < due && due.elapsed() > LATEST {
                continue;
            }
            match self.scrape(delta, &stop.now).await {
                Some(next) => delta = next,
                None => return,
            }
        }
    }

    /// Scrapes once and returns the state for the next difference, or `None` if the shutdown aborted the scrape.
    async fn scrape(&self, delta: Delta, shutdown: &Shutdown) -> Option<Delta> {
        let started = Instant::now();
        let start_time = SystemTime::now();
        let (delta, result, bytes) = tokio::select! {
            () = shutdown.cancelled() => return None,
            result = self.take(delta) => result,
        };
        let duration = started.elapsed();
        self.metrics.duration.observe(duration.as_secs_f64());
        let (outcome, error) = match result {
            Ok(None) => (Outcome::Baseline, None),
            Ok(Some(profile)) => match self.forward(profile, shutdown).await {
                Ok(()) => (Outcome::Forwarded, None),
                Err(error) => (Outcome::Refused, Some(error.to_string())),
            },
            Err(error) => (Outcome::Failed, Some(error.to_string())),
        };
        self.metrics.scraped(outcome);
        self.tell(outcome, error.as_deref(), duration, bytes);
        let is_new = {
            let mut state = self.state.lock();
            let is_new = error.is_some() && state.last_error != error;
            *state = TargetState {
                last_scrape: Some(start_time),
                duration,
                last_error: error.clone(),
            };
            is_new
        };
        if let Some(error) = error {
            // A target that is down causes one warning, not one warning per interval.
            if is_new {
                tracing::warn!(component = %self.live.id(), target = %self.target, error = %error, "scrape failed");
            } else {
                tracing::debug!(component = %self.live.id(), target = %self.target, error = %error,
                "scrape failed again");
            }
        }
        Some(delta)
    }

    /// Forwards a profile. A shutdown does not drop the profile at once, because some receivers may already have it.
    async fn forward(&self, profile: RawProfile, shutdown: &Shutdown) -> Result<(), ScrapeError> {
        let grace_period = async {
            shutdown.cancelled().await;
            tokio::time::sleep(FORWARD_GRACE).await;
        };
        tokio::select! {
            mut errors = self.fanout.append(vec![profile]) => match errors.pop() {
                None => Ok(()),
                Some(refused) => Err(refused.error.into()),
            },
            () = grace_period => Err(ScrapeError::Stopped),
        }
    }

    /// Fetches a profile and returns the profile to send, or `None` for the first profile of a cumulative kind. Also
    /// returns the state for the next difference, and the size of the fetched body in bytes.
    async fn take(&self, delta: Delta) -> (Delta, Result<Option<RawProfile>, ScrapeError>, usize) {
        let body = match self.fetch().await {
            Ok(body) => body,
            Err(error) => return (delta, Err(error), 0),
        };
        let bytes = body.len();
        self.metrics.bytes.inc_by(bytes as u64);
        let kind = &self.target.kind;
        let steps = Steps {
            is_text: legacy::is_like(&body),
            max_samples: self.settings.limits.profile_samples(),
            cumulative: kind.cumulative.then(|| kind.kind.clone()),
        };
        if steps.is_empty() {
            return (delta, Ok(Some(self.profile(body))), bytes);
        }
        // For a large heap profile the steps take milliseconds of CPU time, so they run on a blocking thread.
        let worked = tokio::task::spawn_blocking(move || {
            let mut delta = delta;
            let result = steps.run(body, &mut delta);
            (delta, result)
        });
        match worked.await {
            Ok((delta, result)) => (delta, result.map(|body| Some(self.profile(body?))), bytes),
            Err(error) => (Delta::new(), Err(error.into()), bytes),
        }
    }

    /// Reports a scrape to live views.
    fn tell(&self, outcome: Outcome, error: Option<&str>, duration: Duration, bytes: usize) {
        self.live.tell(|| Entry::Scrape {
            url: self.target.url.to_string(),
            profile: self.target.kind.kind.clone(),
            duration,
            outcome: match error {
                None => LiveOutcome::Good(outcome.name()),
                Some(error) => LiveOutcome::Bad(outcome.name(), error.to_owned()),
            },
            bytes,
        });
    }

    async fn fetch(&self) -> Result<Bytes, ScrapeError> {
        let deadline = self.settings.deadline(&self.target.kind);
        let fetch = async {
            let url = &self.target.url;
            let response = if self.own_http.is_at(url.host_str().unwrap_or_default(), url.port()) {
                self.ask_own().await?
            } else {
                let request = self.client.get(url.clone()).await?;
                self.client.client().send(request).await.map_err(ResponseError::Send)?
            };
            let max_bytes = self.settings.limits.profile_bytes();
            Ok(response::read(response, url.path(), max_bytes).await?)
        };
        let timeout_error = |_| ResponseError::Timeout(alluvium_base::duration::format(deadline));
        tokio::time::timeout(deadline, fetch).await.map_err(timeout_error)?
    }

    /// Requests the profile from this program's own endpoints, without a socket. The request has the same credentials
    /// as a request over the port.
    async fn ask_own(&self) -> Result<reqwest::Response, ScrapeError> {
        let url = &self.target.url;
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let mut request = http::Request::get(path).body(Bytes::new())?;
        *request.headers_mut() = self.client.headers().await?;
        Ok(self.own_http.send(request).await.into())
    }

    fn profile(&self, pprof: Bytes) -> RawProfile {
        let labels = if self.target.kind.increase {
            // The label tells the server not to compute differences of differences.
            self.target.labels.with("__delta__", "false")
        } else {
            self.target.labels.clone()
        };
        RawProfile {
            labels,
            id: "".into(),
            pprof,
        }
    }
}

/// The steps from a fetched body to the profile to send, for one scrape.
struct Steps {
    /// True if the body is a textual profile, which is converted to pprof.
    is_text: bool,
    /// Maximum number of samples, if there is a limit.
    max_samples: Option<u64>,
    /// The name of a cumulative kind, whose profiles are replaced by their increase.
    cumulative: Option<Arc<str>>,
}

impl Steps {
    fn is_empty(&self) -> bool {
        !self.is_text && !self.reads_pprof()
    }

    /// Returns true if a step reads the decompressed pprof bytes.
    fn reads_pprof(&self) -> bool {
        self.max_samples.is_some() || self.cumulative.is_some()
    }

    /// Returns the profile to send, or `None` for the first profile of a cumulative kind.
    fn run(&self, mut body: Bytes, delta: &mut Delta) -> Result<Option<Bytes>, ScrapeError> {
        if self.is_text {
            body = of_text(&body)?;
        }
        if !self.reads_pprof() {
            return Ok(Some(body));
        }
        let plain = unpack(&body)?;
        if let Some(limit) = self.max_samples {
            check_samples(&plain, limit)?;
        }
        match &self.cumulative {
            Some(kind) => Ok(difference(delta, kind, &plain, body)?),
            None => Ok(Some(body)),
        }
    }
}

/// Converts a textual profile to pprof.
fn of_text(body: &[u8]) -> Result<Bytes, LegacyError> {
    let profile = legacy::read(body)?;
    Ok(pprof::gzip(&pprof::encode(&profile)).into())
}

/// Refuses a decompressed profile with more than `limit` samples.
fn check_samples(plain: &[u8], limit: u64) -> Result<(), ScrapeError> {
    let count = pprof::sample_count(plain)? as u64;
    if count > limit {
        return Err(ResponseError::TooMany(count, limit).into());
    }
    Ok(())
}

/// Returns the increase since the last profile, gzip-compressed, or `None` for the first profile. `plain` is the
/// decompressed `body`.
fn difference(delta: &mut Delta, kind: &str, plain: &[u8], body: Bytes) -> Result<Option<Bytes>, DecodeError> {
    let profile = pprof::decode(plain)?;
    let cumulative = cumulative_types(kind, &profile.sample_types);
    if cumulative.is_empty() {
        // The profile is of another kind, for example because of a custom path. It is forwarded unchanged.
        return Ok(Some(body));
    }
    Ok(delta
        .next(&profile, &cumulative)
        .map(|plain| pprof::gzip(&plain).into()))
}

/// Returns the time to the first scrape. A target keeps its offset in the interval across restarts and reloads.
fn first_wait(interval: Duration, spread: u64, now: SystemTime) -> Duration {
    let length = interval.as_nanos().max(1);
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() % length;
    let offset = u128::from(spread) % length;
    let wait = (offset + length - now) % length;
    Duration::from_nanos(u64::try_from(wait).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_scrape_is_at_the_targets_place_in_the_interval() {
        let interval = Duration::from_secs(10);
        let time = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let offset = Duration::from_secs(3).as_nanos() as u64;
        assert_eq!(first_wait(interval, offset, time(1000)), Duration::from_secs(3));
        assert_eq!(first_wait(interval, offset, time(1005)), Duration::from_secs(8));
        assert_eq!(first_wait(interval, offset, time(1003)), Duration::ZERO);
    }
}
