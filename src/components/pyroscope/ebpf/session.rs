//! One run of the profiler on its own thread. At the end of each interval it collects a window, which contains the
//! stacks of the interval, and builds a profile for each target.
//!
//! Samples of processes without a target are kept for some intervals, because discovery may list a process late.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::pyroscope::ebpf::arguments::EbpfOptions;
use crate::pyroscope::ebpf::metrics::EbpfMetrics;
use crate::pyroscope::ebpf::targets::Targets;
use alluvium_ebpf::{
    Accounts, Engine, FrameSources, NameCache, Namer, OmissionCounts, ProcessInfo, Profiler, RefusalCounts, Span,
    Stacks, StartError, Window,
};
use alluvium_profile::labels::SERVICE_NAME;
use alluvium_profile::pprof::gzip;
use alluvium_profile::{Labels, RawProfile};

/// Interval at which the session checks [`Shared::stop`].
const POLL: Duration = Duration::from_millis(125);
/// Limits for the samples of processes without a target.
#[derive(Clone, Copy)]
struct Keep {
    /// Maximum number of different stacks to keep.
    stacks: usize,
    /// Number of intervals for which samples are kept.
    intervals: u32,
}

impl Keep {
    const USUAL: Self = Self {
        stacks: 20_000,
        intervals: 8,
    };
    /// The limits at the end of the session, when nothing is kept.
    const NOTHING: Self = Self {
        stacks: 0,
        intervals: 0,
    };
}

/// State that a session shares with its component.
pub(super) struct Shared {
    /// The targets that samples are matched against.
    pub targets: Mutex<Arc<Targets>>,
    /// Set to end the session.
    pub stop: AtomicBool,
    /// Handles of the metrics.
    pub metrics: EbpfMetrics,
    /// Called with a description of the session when the description changes.
    pub health: Box<dyn Fn(String) + Send + Sync>,
}

/// Samples of a process that has no target yet.
struct PendingSamples {
    process: Arc<ProcessInfo>,
    stacks: Stacks,
    frame_sources: Arc<FrameSources>,
    span: Span,
    intervals: u32,
}

/// Starts the profiler and runs until `shared.stop` is set or profiling fails. Profiles are sent to `out`. If `out` is
/// full, they are dropped and counted. `started` is called once, with the result of the start.
pub(super) fn run(
    options: &EbpfOptions,
    shared: &Shared,
    out: &mpsc::Sender<Vec<RawProfile>>,
    started: impl FnOnce(Result<String, StartError>),
) {
    let mut profiler = match Profiler::start(options.profiler()) {
        Ok(profiler) => profiler,
        Err(error) => {
            shared.metrics.sessions_failing.inc();
            started(Err(error));
            return;
        }
    };
    shared.metrics.sessions.inc();
    let requested_hertz = options.profiler().hertz;
    let mut description = describe(profiler.engine(), requested_hertz, requested_hertz);
    started(Ok(description.clone()));
    let cost = profiler.cost().thread();
    let mut names = NameCache::new(options.profiler().budget, profiler.opener().clone());
    let mut before = Accounts::default();
    let mut refused = RefusalCounts::default();
    let mut excesses = OmissionCounts::default();
    let mut kept = Vec::new();
    let mut from = (Instant::now(), SystemTime::now());
    loop {
        let stopping = shared.stop.load(Ordering::Relaxed);
        let elapsed = from.0.elapsed();
        if elapsed < options.interval() && !stopping {
            std::thread::sleep(POLL.min(options.interval().saturating_sub(elapsed)));
            continue;
        }
        let window = match if stopping { profiler.stop() } else { profiler.take() } {
            Ok(window) => window,
            Err(error) => {
                tracing::error!(error = %error, "profiling stopped after an error");
                return;
            }
        };
        let span = Span {
            start_nanos: from
                .1
                .duration_since(UNIX_EPOCH)
                .map_or(0, |unix_time| i64::try_from(unix_time.as_nanos()).unwrap_or(i64::MAX)),
            duration_nanos: i64::try_from(elapsed.as_nanos()).unwrap_or(i64::MAX),
            period_nanos: window.period_nanos(),
        };
        from = (Instant::now(), SystemTime::now());
        let (accounts, hertz) = (window.accounts, window.hertz);
        let targets = shared.targets.lock().clone();
        let keep = if stopping { Keep::NOTHING } else { Keep::USUAL };
        let mut counts = Counts::default();
        let mut namer = Namer::new(&mut names, options.style());
        namer.learn_kernel(&window);
        let mut profiles = late(&mut kept, &targets, &mut namer, keep, &mut counts);
        profiles.extend(profiles_of(
            window,
            &targets,
            &mut namer,
            span,
            &mut kept,
            keep,
            &mut counts,
        ));
        names.end_window();
        shared
            .metrics
            .account(&before, &accounts, counts.profiled, counts.no_target);
        shared.metrics.state(&accounts, hertz, names.bytes());
        let refused_now = profiler.opener().refused();
        shared.metrics.refused(&refused, &refused_now);
        refused = refused_now;
        let excesses_now = profiler.opener().bounds.omission_counts();
        shared.metrics.left_out(&excesses, &excesses_now);
        excesses = excesses_now;
        before = accounts;
        hand_over(profiles, counts.profiled, shared, out, stopping);
        cost.note();
        if stopping {
            return;
        }
        let now = describe(profiler.engine(), requested_hertz, hertz);
        if now != description {
            (shared.health)(now.clone());
            description = now;
        }
    }
}

/// Describes the session, for the health message.
fn describe(engine: &Engine, requested_hertz: u32, hertz: u32) -> String {
    let mut text = format!("profiling this machine at {hertz} Hz");
    if hertz < requested_hertz {
        text.push_str(&format!(
            " instead of {requested_hertz}, to stay within budget.cpu_percent"
        ));
    }
    if let Engine::Events(reason) = engine {
        text.push_str(&format!(" by perf events without a BPF program: {reason}"));
    }
    text
}

#[derive(Default)]
struct Counts {
    profiled: u64,
    no_target: u64,
}

fn hand_over(
    profiles: Vec<RawProfile>,
    samples: u64,
    shared: &Shared,
    out: &mpsc::Sender<Vec<RawProfile>>,
    is_last: bool,
) {
    if profiles.is_empty() {
        return;
    }
    let count = profiles.len() as u64;
    let bytes: usize = profiles.iter().map(|profile| profile.pprof.len()).sum();
    let services: Vec<String> = profiles
        .iter()
        .map(|profile| profile.labels.get(SERVICE_NAME).unwrap_or_default().to_owned())
        .collect();
    // The last send blocks. The component receives until this thread ends, unless the component is aborted.
    let sent = if is_last {
        out.blocking_send(profiles).is_ok()
    } else {
        out.try_send(profiles).is_ok()
    };
    if sent {
        services.iter().for_each(|service| shared.metrics.profile(service));
        shared.metrics.bytes.inc_by(bytes as u64);
        shared.metrics.samples.inc_by(samples);
    } else {
        let reason = if out.is_closed() {
            "the component was aborted"
        } else {
            "receivers are too slow"
        };
        tracing::warn!(count, reason, "profiles were dropped");
        shared.metrics.dropped.inc_by(count);
    }
}

/// Returns the profiles of a window, one for each set of labels. Samples without a target are kept, or counted as
/// `no_target` if there is no room for them.
#[expect(
    clippy::iter_over_hash_type,
    reason = "profiles are sorted by their labels afterwards"
)]
fn profiles_of(
    window: Window,
    targets: &Targets,
    namer: &mut Namer<'_>,
    span: Span,
    kept: &mut Vec<PendingSamples>,
    keep: Keep,
    counts: &mut Counts,
) -> Vec<RawProfile> {
    let mut by_labels: HashMap<&Labels, Vec<(&ProcessInfo, &Stacks)>> = HashMap::new();
    let mut unknown = Vec::new();
    for (key, (process, stacks)) in &window.processes {
        match targets.find(process) {
            Some(labels) => {
                counts.profiled += stacks.ticks();
                by_labels.entry(labels).or_default().push((process.as_ref(), stacks));
            }
            None => unknown.push(*key),
        }
    }
    namer.learn(by_labels.values().flatten().map(|(_, stacks)| *stacks), &window.places);
    let mut ordered: Vec<_> = by_labels.into_iter().collect();
    ordered.sort_by_cached_key(|(labels, _)| labels.hash64());
    let profiles = ordered
        .into_iter()
        .map(|(labels, mut parts)| {
            parts.sort_unstable_by_key(|(process, _)| (process.pid, process.start));
            profile(labels, namer.profile(&parts, &window.places, span))
        })
        .collect();
    let mut room = keep
        .stacks
        .saturating_sub(kept.iter().map(|kept| kept.stacks.weights.len()).sum());
    let mut processes = window.processes;
    for key in unknown {
        let Some((process, stacks)) = processes.remove(&key) else {
            continue;
        };
        if stacks.weights.len() > room {
            counts.no_target += stacks.ticks();
            continue;
        }
        room -= stacks.weights.len();
        kept.push(PendingSamples {
            process,
            stacks,
            frame_sources: window.places.clone(),
            span,
            intervals: 0,
        });
    }
    profiles
}

/// Returns the profiles of kept samples whose process has a target now. Samples that have waited too long are counted
/// and dropped.
fn late(
    kept: &mut Vec<PendingSamples>,
    targets: &Targets,
    namer: &mut Namer<'_>,
    keep: Keep,
    counts: &mut Counts,
) -> Vec<RawProfile> {
    let mut profiles = Vec::new();
    kept.retain_mut(|waiting| {
        waiting.intervals += 1;
        let ticks = waiting.stacks.ticks();
        if let Some(labels) = targets.find(&waiting.process) {
            counts.profiled += ticks;
            let bytes = namer.profile(
                &[(&waiting.process, &waiting.stacks)],
                &waiting.frame_sources,
                waiting.span,
            );
            profiles.push(profile(labels, bytes));
            return false;
        }
        let stays = waiting.intervals < keep.intervals;
        if !stays {
            counts.no_target += ticks;
        }
        stays
    });
    profiles
}

fn profile(labels: &Labels, pprof: Vec<u8>) -> RawProfile {
    RawProfile {
        labels: labels.clone(),
        id: "".into(),
        pprof: Bytes::from(gzip(&pprof)),
    }
}
