//! The loop of one JVM: it records for an interval, reads the recording, forwards the profiles, and starts again.
//!
//! The loop ends when the process ends or is no longer a target. All code that waits for the JVM runs on blocking
//! threads and has timeouts.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::common::arguments::targets::Target;
use crate::common::discovery::identity::service_name;
use crate::common::passing::fanout::Fanout;
use crate::pyroscope::java::arguments::JavaArguments;
use crate::pyroscope::java::jvm::Jvm;
use crate::pyroscope::java::metrics::{JavaMetrics, Outcome};
use crate::pyroscope::java::recorder::{RecordError, Recorded};
use alluvium_base::Shutdown;
use alluvium_profile::jfr::{JfrError, Recording, RecordingFacts};
use alluvium_profile::labels::{PROFILE_NAME, SERVICE_NAME};
use alluvium_profile::{Labels, RawProfile, RefusedProfile, pprof};

/// Longest pause after a failure. The pause doubles with each failure in a row, because an attempt sends SIGQUIT to a
/// JVM without an attach socket, and a JVM that does not open the socket prints a thread dump instead.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// State that a session shares with its component.
#[derive(Clone)]
pub(super) struct Shared {
    pub component: Arc<str>,
    pub fanout: Arc<Fanout>,
    pub metrics: JavaMetrics,
    /// Limits the number of recordings that are read concurrently.
    pub reading: Arc<Semaphore>,
}

/// Arguments and target of a session. They may change while the session runs.
#[derive(Clone)]
pub(super) struct SessionArguments {
    pub arguments: Arc<JavaArguments>,
    pub target: Target,
}

/// State of a session, for debug info.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    pub recorder: &'static str,
    pub last_error: Option<String>,
    pub last_profiled: Option<SystemTime>,
    pub total_bytes: u64,
    pub total_samples: u64,
}

/// The loop that profiles one JVM.
pub(super) struct Session {
    pub jvm: Jvm,
    pub shared: Shared,
    pub assignment: Arc<Mutex<SessionArguments>>,
    pub state: Arc<Mutex<State>>,
}

/// A recording in progress.
struct Running {
    recorded: Arc<Recorded>,
    start_time: SystemTime,
    period: Duration,
}

impl Session {
    /// Runs until the process ends or `stop` is cancelled. Afterwards only the loaded library remains in the process.
    pub(super) async fn run(self, stop: Shutdown) {
        let mut failures = 0;
        let mut recorded = None;
        while !stop.is_cancelled() && self.jvm.key.check().is_ok() {
            let interval = self.assignment.lock().arguments.profiling_config.interval.get();
            match self.start(&mut recorded).await {
                Ok(running) => {
                    failures = 0;
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = tokio::time::sleep(interval) => {}
                    }
                    // A recording that a stop cuts short is forwarded, too.
                    self.finish(running).await;
                }
                // The process has just ended, which is not an error.
                Err(_) if self.jvm.key.check().is_err() => recorded = None,
                Err(error) => {
                    recorded = None;
                    failures += 1;
                    self.failed(Outcome::NotStarted, &error.to_string());
                    let pause = interval
                        .saturating_mul(1 << u32::min(failures - 1, 12))
                        .min(LONGEST_PAUSE);
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = tokio::time::sleep(pause.max(interval)) => {}
                    }
                }
            }
        }
        if let Some(recorded) = recorded {
            let cleaned = blocking(move || recorded.clean()).await;
            if let Err(error) = cleaned
                && self.jvm.key.check().is_ok()
            {
                tracing::warn!(component = %self.shared.component, error = %error, "cannot remove profiler files");
            }
        }
    }

    /// Starts a recording. Reuses `recorded` if the arguments still need the same files.
    async fn start(&self, recorded: &mut Option<Arc<Recorded>>) -> Result<Running, RecordError> {
        let arguments = self.assignment.lock().arguments.clone();
        let (jvm, kept) = (self.jvm, recorded.take());
        let period = arguments.profiling_config.period();
        let start_time = SystemTime::now();
        let started = blocking(move || {
            let recorded = match kept {
                Some(kept) if kept.is_for(&arguments) => kept,
                other => {
                    if let Some(other) = other {
                        other.clean()?;
                    }
                    Arc::new(Recorded::prepare(jvm, &arguments)?)
                }
            };
            match recorded.start(&arguments.profiling_config) {
                Ok(()) => Ok(recorded),
                Err(error) => {
                    // The caller receives the error of the start. An error of the cleanup is ignored.
                    let _ = recorded.clean();
                    Err(error)
                }
            }
        })
        .await?;
        self.state.lock().recorder = started.recorder().name();
        *recorded = Some(started.clone());
        Ok(Running {
            recorded: started,
            start_time,
            period,
        })
    }

    /// Stops a recording and forwards its profiles.
    async fn finish(&self, running: Running) {
        let Ok(permit) = self.shared.reading.clone().acquire_owned().await else {
            return;
        };
        let end_time = SystemTime::now();
        let recorded = running.recorded.clone();
        let bytes = match blocking(move || recorded.finish()).await {
            Ok(bytes) => bytes,
            // The process has ended and its last recording is lost, which is not an error.
            Err(_) if self.jvm.key.check().is_err() => {
                self.shared.metrics.recorded(Outcome::Lost);
                return;
            }
            Err(error) => return self.failed(Outcome::Lost, &error.to_string()),
        };
        let length = bytes.len() as u64;
        self.shared.metrics.bytes.inc_by(length);
        let target = self.assignment.lock().target.clone();
        let read = blocking(move || Read::new(&bytes, &target, &running, end_time)).await;
        drop(permit);
        let read = match read {
            Ok(read) => read,
            Err(error) => return self.failed(Outcome::Malformed, &format!("process {}: {error}", self.jvm.key.pid)),
        };
        self.shared.metrics.samples_lost.inc_by(read.samples_lost);
        let errors = self.shared.fanout.append(read.profiles).await;
        if let Some(RefusedProfile { error, .. }) = errors.first() {
            return self.failed(
                Outcome::Refused,
                &format!("receivers refused {} profiles: {error}", errors.len()),
            );
        }
        self.shared.metrics.recorded(Outcome::Forwarded);
        let mut state = self.state.lock();
        state.last_error = None;
        state.last_profiled = Some(end_time);
        state.total_bytes += length;
        state.total_samples += read.samples;
    }

    fn failed(&self, outcome: Outcome, error: &str) {
        self.shared.metrics.recorded(outcome);
        tracing::warn!(
            component = %self.shared.component, pid = self.jvm.key.pid, error,
            "cannot profile a java process"
        );
        self.state.lock().last_error = Some(error.to_owned());
    }
}

/// Runs `run` on a blocking thread.
async fn blocking<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(run).await {
        Ok(done) => done,
        // The task is never cancelled, so the error is a panic, which continues in this task.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// The profiles of a recording.
struct Read {
    profiles: Vec<RawProfile>,
    samples: u64,
    samples_lost: u64,
}

impl Read {
    fn new(bytes: &[u8], target: &Target, running: &Running, end_time: SystemTime) -> Result<Self, JfrError> {
        let nanos = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
        let recording = Recording::read(bytes, &[])?;
        let facts = RecordingFacts {
            time_nanos: nanos(running.start_time.duration_since(UNIX_EPOCH).unwrap_or_default()),
            duration_nanos: nanos(end_time.duration_since(running.start_time).unwrap_or_default()),
            period_nanos: recording.interval_nanos().unwrap_or(nanos(running.period)),
        };
        let profiles = recording.profiles(&facts);
        let samples = profiles
            .iter()
            .map(|profile| profile.columns.get().sample_count() as u64)
            .sum();
        let profiles = profiles.iter().map(|profile| RawProfile {
            labels: labels(target, profile.name, recording.event()),
            id: "".into(),
            pprof: pprof::encode(profile.columns.get()).into(),
        });
        Ok(Self {
            profiles: profiles.collect(),
            samples,
            samples_lost: recording.lost(),
        })
    }
}

/// Returns the labels of a profile: the target's labels that do not begin with `__`, the service name, and the
/// labels that Alloy also adds.
pub(super) fn labels(target: &Target, name: &str, event: &str) -> Labels {
    let public = target.iter().filter(|(name, _)| !name.starts_with("__"));
    let own = [
        (SERVICE_NAME, service_name(target, "java/")),
        (PROFILE_NAME, name.to_owned()),
        ("__delta__", "false".to_owned()),
        ("jfr_event", event.to_owned()),
        ("pyroscope_spy", "alloy.java".to_owned()),
    ];
    let own = own.into_iter().map(|(name, value)| (Arc::from(name), Arc::from(value)));
    Labels::from_pairs(public.map(|(name, value)| (name.clone(), value.clone())).chain(own))
}
