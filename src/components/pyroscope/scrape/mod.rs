//! `pyroscope.scrape`: fetches pprof profiles from targets over HTTP.
//!
//! In: targets and settings. Out: profiles to the receivers. Each kind of profile of each target has its own loop, so a
//! slow or dead target does not delay other targets. `sharing` removes the targets of other collectors, `target` builds
//! URLs and labels, `scraper` is the loop, and `response` checks responses. `goroutines` fetches a full goroutine dump
//! of a target if a user requests one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::common::arguments::targets::Target;
use crate::common::passing::fanout::{Fanout, LaneMetrics};
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{Component, ComponentError, Context, Definition, HealthState, Stability};
use alluvium_wire::client::HttpClient;

mod arguments;
mod goroutines;
#[cfg(test)]
mod goroutines_tests;
mod metrics;
mod request;
mod response;
mod scrape_error;
mod scraper;
mod sharing;
#[cfg(test)]
mod sharing_tests;
mod target;
#[cfg(test)]
mod tests;

use arguments::{ScrapeArguments, Settings};
use goroutines::{DumpError, GoroutineTarget};
use metrics::ScrapeMetrics;
use scraper::{Scraper, Stop, TargetState};
use sharing::Shares;
use target::{Identity, ScrapeTarget};

/// Minimum time between two updates of the loops if the arguments change. A discovery that changes all the time must
/// not restart loops all the time.
const SYNC_AT_MOST_EVERY: Duration = Duration::from_secs(5);

/// Minimum time between two updates of the loops if the distribution of targets in the cluster changes.
const SHARE_AT_MOST_EVERY: Duration = Duration::from_secs(1);

/// The component's definition.
pub(crate) const DEFINITION: Definition<ScrapeArguments> = Definition {
    name: "pyroscope.scrape",
    stability: Stability::GenerallyAvailable,
    exports: &[],
    metrics: |scope| drop((ScrapeMetrics::new(scope), LaneMetrics::new(scope))),
    build: Some(build),
    doc: "`pyroscope.scrape` fetches pprof profiles from targets over HTTP and forwards them.",
};

struct Scrape {
    context: Context,
    metrics: ScrapeMetrics,
    fanout: Arc<Fanout>,
    current: Mutex<ScrapeSettings>,
    /// The running loops, for debug info and goroutine dumps.
    running: Mutex<Vec<Shown>>,
    /// The distribution of the targets among collectors, for debug info.
    shares: Mutex<Shares>,
    changed: Notify,
}

/// The current arguments and the HTTP client built from them.
#[derive(Clone)]
struct ScrapeSettings {
    arguments: Arc<ScrapeArguments>,
    client: HttpClient,
    /// Number that increases when any argument except targets and receivers changes. All loops restart then.
    generation: u64,
}

/// A running loop, for debug info and goroutine dumps.
#[derive(Clone)]
struct Shown {
    target: ScrapeTarget,
    state: Arc<Mutex<TargetState>>,
    settings: Arc<Settings>,
    client: HttpClient,
}

/// A running loop and the signals that end it.
struct Loop {
    generation: u64,
    stop: Stop,
    shown: Shown,
}

fn build(
    context: Context,
    arguments: Arc<ScrapeArguments>,
) -> Result<Arc<dyn Component<ScrapeArguments>>, ComponentError> {
    let fanout = Fanout::new(&context);
    fanout.update(&arguments.forward_to);
    let current = ScrapeSettings::new(arguments, &context, None)?;
    Ok(Arc::new(Scrape {
        metrics: ScrapeMetrics::new(&context.metrics),
        context,
        fanout: Arc::new(fanout),
        current: Mutex::new(current),
        running: Mutex::default(),
        shares: Mutex::default(),
        changed: Notify::new(),
    }))
}

impl ScrapeSettings {
    fn new(
        arguments: Arc<ScrapeArguments>,
        context: &Context,
        before: Option<&ScrapeSettings>,
    ) -> Result<Self, ComponentError> {
        let (client, generation) = match before {
            Some(before) if before.arguments.settings == arguments.settings => {
                (before.client.clone(), before.generation)
            }
            _ => {
                let options = arguments.settings.client.options(&context.user_agent);
                let client = HttpClient::new(&options).map_err(|error| ComponentError(error.to_string()))?;
                (client, before.map_or(0, |before| before.generation + 1))
            }
        };
        Ok(Self {
            arguments,
            client,
            generation,
        })
    }
}

impl Scrape {
    /// Starts and stops loops to match the wanted targets.
    #[expect(clippy::iter_over_hash_type, reason = "each target has a loop of its own")]
    fn sync(&self, loops: &mut HashMap<Identity, Loop>, tasks: &mut JoinSet<()>, shutdown: &Shutdown) {
        let current = self.current.lock().clone();
        let limits = &current.arguments.settings.limits;
        let mut targets: HashMap<Identity, ScrapeTarget> = HashMap::new();
        let mut refused = 0;
        let mut first_error = None;
        let (own, shares) = sharing::share(&current.arguments, &self.context.cluster);
        for target in scrape_targets(&own.targets, &current.arguments.settings) {
            match target {
                Ok(target) => {
                    targets.insert(target.identity(), target);
                }
                Err(error) => {
                    refused += 1;
                    first_error.get_or_insert(error);
                }
            }
        }
        if let Some(error) = &first_error {
            tracing::warn!(component = %self.context.id, count = refused, error = %error, "cannot scrape some targets");
        }
        loops.retain(|identity, running| {
            let is_current = running.generation == current.generation;
            let stays = is_current && targets.contains_key(identity);
            if !stays && is_current && shares.is_shared() {
                // The current scrape may finish: the collector that takes the target over begins with the next one.
                running.stop.soon.cancel();
            } else if !stays {
                running.stop.now.cancel();
            }
            stays
        });
        for (identity, target) in targets {
            loops.entry(identity).or_insert_with(|| {
                let shown = Shown {
                    target: target.clone(),
                    state: Arc::default(),
                    settings: current.arguments.settings.clone(),
                    client: current.client.clone(),
                };
                let scraper = Scraper {
                    live: self.context.live.clone(),
                    target,
                    settings: current.arguments.settings.clone(),
                    client: current.client.clone(),
                    own_http: self.context.own_http.clone(),
                    fanout: self.fanout.clone(),
                    metrics: self.metrics.clone(),
                    state: shown.state.clone(),
                };
                let stop = Stop::new(shutdown);
                tasks.spawn(scraper.run(stop.clone()));
                Loop {
                    generation: current.generation,
                    stop,
                    shown,
                }
            });
        }
        self.metrics.targets.set(loops.len() as i64);
        self.metrics.targets_elsewhere.set(shares.foreign_count() as i64);
        let mut running: Vec<Shown> = loops.values().map(|running| running.shown.clone()).collect();
        running.sort_by(|left, right| left.target.url.cmp(&right.target.url));
        *self.running.lock() = running;
        let mut message = format!("{} profiles are scraped", loops.len()) + &shares.note();
        *self.shares.lock() = shares;
        let mut health = HealthState::Healthy;
        if let Some(error) = first_error {
            health = HealthState::Unhealthy;
            message += &format!(", {refused} cannot be scraped: {error}");
        }
        if let Some(limit) = limits.targets().filter(|_| own.beyond > 0) {
            health = HealthState::Unhealthy;
            message += &format!(", {} targets are ignored: max_targets is {limit}", own.beyond);
        }
        (self.context.health)(health, message);
    }

    /// Returns the target whose goroutines a running loop scrapes from exactly this URL.
    fn goroutine_target(&self, url: String) -> Result<GoroutineTarget, DumpError> {
        let running = self.running.lock();
        let has_url = |shown: &&Shown| shown.target.url.as_str() == url && shown.target.has_goroutines();
        let Some(shown) = running.iter().find(has_url) else {
            return Err(DumpError::UnknownTarget(url));
        };
        Ok(GoroutineTarget {
            url: shown.target.url.clone(),
            timeout: shown.settings.timeout,
            client: shown.client.clone(),
            own_http: self.context.own_http.clone(),
        })
    }

    async fn work(self: Arc<Self>, shutdown: Shutdown) -> Result<(), ComponentError> {
        let mut loops = HashMap::new();
        let mut tasks = JoinSet::new();
        let mut shares = self.context.cluster.changes();
        loop {
            self.sync(&mut loops, &mut tasks, &shutdown);
            let synced = Instant::now();
            let mut next: Option<Instant> = None;
            let earlier = |next: Option<Instant>, pause| {
                let due = synced + pause;
                Some(next.map_or(due, |next| next.min(due)))
            };
            loop {
                tokio::select! {
                    () = shutdown.cancelled() => {
                        while tasks.join_next().await.is_some() {}
                        return Ok(());
                    }
                    Some(ended) = tasks.join_next() => {
                        if let Err(error) = ended && error.is_panic() {
                            return Err(ComponentError(format!("a scrape loop panicked: {error}")));
                        }
                    }
                    () = self.changed.notified() => next = earlier(next, SYNC_AT_MOST_EVERY),
                    () = shares.next() => next = earlier(next, SHARE_AT_MOST_EVERY),
                    () = sleep_until(next) => break,
                }
            }
        }
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Returns a scrape target, or an error, for every kind of profile of every target.
fn scrape_targets(
    discovered: &[Target],
    settings: &Settings,
) -> impl Iterator<Item = Result<ScrapeTarget, target::TargetError>> {
    discovered.iter().flat_map(move |discovered| {
        let (kinds, error) = target::kinds(discovered, settings);
        let targets = kinds
            .into_iter()
            .map(move |kind| ScrapeTarget::new(discovered, kind, settings));
        targets.chain(error.map(Err))
    })
}

impl Component<ScrapeArguments> for Scrape {
    fn update(&self, arguments: Arc<ScrapeArguments>) -> Result<(), ComponentError> {
        let mut current = self.current.lock();
        *current = ScrapeSettings::new(arguments.clone(), &self.context, Some(&current))?;
        drop(current);
        self.fanout.update(&arguments.forward_to);
        self.changed.notify_one();
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(self.work(shutdown))
    }

    /// Returns the list of targets in the same form as Alloy, with job, URL, health, labels and the last scrape.
    fn debug_info(&self) -> Value {
        let entry = |shown: &Shown| {
            let state = shown.state.lock().clone();
            let health = match (&state.last_scrape, &state.last_error) {
                (None, _) => "unknown",
                (Some(_), None) => "up",
                (Some(_), Some(_)) => "down",
            };
            let last_scrape = state.last_scrape.map_or(Value::Null, |time| {
                let time: chrono::DateTime<chrono::Utc> = SystemTime::into(time);
                Value::string(time.to_rfc3339())
            });
            let labels = target::public_labels(&shown.target.labels).map(|(name, value)| (name, Value::String(value)));
            let fields = [
                ("job", Value::string(shown.target.labels.get("job").unwrap_or_default())),
                ("url", Value::string(shown.target.url.as_str())),
                ("health", Value::string(health)),
                ("labels", Value::object(labels)),
                ("last_error", Value::string(state.last_error.unwrap_or_default())),
                ("last_scrape", last_scrape),
                (
                    "scrape_duration",
                    Value::string(alluvium_base::duration::format(state.duration)),
                ),
            ];
            let dump = shown
                .target
                .has_goroutines()
                .then(|| ("goroutine_dump", Value::Bool(true)));
            Value::object(fields.into_iter().chain(dump))
        };
        let running = self.running.lock().clone();
        let targets = ("targets", Value::array(running.iter().map(entry)));
        let clustering = self.shares.lock().debug_info();
        Value::object(
            [targets]
                .into_iter()
                .chain(clustering.map(|shown| ("clustering", shown))),
        )
    }

    /// Returns the full goroutine dump of a target, see [`goroutines`].
    fn serve(&self, request: Request<Bytes>) -> Option<BoxFuture<'static, Response<Bytes>>> {
        let target = goroutines::requested_url(&request).and_then(|url| self.goroutine_target(url));
        if let Ok(target) = &target {
            tracing::info!(component = %self.context.id, target = %target.url, "fetching a goroutine dump");
        }
        let large_responses = self.context.large_responses.clone();
        Some(Box::pin(
            async move { goroutines::respond(target, &large_responses).await },
        ))
    }
}
