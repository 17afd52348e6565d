//! `pyroscope.java`: profiles Java processes of this machine. The processes need no agent on their command line.
//!
//! In: targets with process ids. Out: one set of profiles per process and interval. The component attaches to each JVM
//! by HotSpot's attach protocol. It then loads async-profiler or starts JDK Flight Recorder (JFR). Each JVM has its own
//! loop in `session`. `recorder` builds the commands and `attach` sends them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;

use crate::common::arguments::targets::Target;
use crate::common::discovery::identity::PID;
use crate::common::passing::fanout::{Fanout, LaneMetrics};
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_ebpf::proc::{self, ProcessKey};
use alluvium_lang::value::{Number, Value};
use alluvium_pipeline::component::{Component, ComponentError, Context, Definition, HealthState, Stability};

mod arguments;
mod attach;
mod jfc;
mod jvm;
mod library;
mod metrics;
mod options;
mod place;
mod recorder;
mod session;
#[cfg(test)]
mod tests;

use arguments::JavaArguments;
use jvm::{Jvm, NoJvm};
use metrics::JavaMetrics;
use session::{Session, SessionArguments, Shared, State};

/// Interval at which unprofiled processes are inspected again. A process can become a JVM: a shell that executes `java`
/// keeps its process id.
const LOOK: Duration = Duration::from_secs(5);
/// Maximum number of recordings that are stopped and read concurrently. Each may be large, and a process may answer
/// slowly.
const READINGS: usize = 4;
/// Number of inspections after which a process that is not a JVM is skipped while it runs the same program.
const LOOKS: u32 = 6;

/// The component's definition.
pub(crate) const DEFINITION: Definition<JavaArguments> = Definition {
    name: "pyroscope.java",
    stability: Stability::GenerallyAvailable,
    exports: &[],
    metrics: |scope| drop((JavaMetrics::new(scope), LaneMetrics::new(scope))),
    build: Some(build),
    doc: "`pyroscope.java` profiles the Java processes of this machine with async-profiler or JDK Flight Recorder.",
};

struct Java {
    context: Context,
    shared: Shared,
    arguments: Mutex<Arc<JavaArguments>>,
    /// The running sessions by process id, for debug info and updates.
    running: Mutex<BTreeMap<u32, Shown>>,
    changed: Notify,
}

/// A session as the component and debug info see it.
#[derive(Clone)]
struct Shown {
    assignment: Arc<Mutex<SessionArguments>>,
    state: Arc<Mutex<State>>,
    stop: Shutdown,
}

/// A process that could not be profiled, and the number of inspections so far.
struct Passed {
    key: ProcessKey,
    program: String,
    looks: u32,
    reason: NoJvm,
}

/// Targets without a session, for the health message.
#[derive(Default)]
struct SkippedTargets {
    without_pid: usize,
    no_jvm: usize,
    errors: Vec<String>,
}

fn build(context: Context, arguments: Arc<JavaArguments>) -> Result<Arc<dyn Component<JavaArguments>>, ComponentError> {
    let fanout = Fanout::new(&context);
    fanout.update(&arguments.forward_to);
    Ok(Arc::new(Java {
        shared: Shared {
            component: context.id.clone(),
            fanout: Arc::new(fanout),
            metrics: JavaMetrics::new(&context.metrics),
            reading: Arc::new(Semaphore::new(READINGS)),
        },
        context,
        arguments: Mutex::new(arguments),
        running: Mutex::default(),
        changed: Notify::new(),
    }))
}

impl Java {
    async fn work(self: Arc<Self>, shutdown: Shutdown) -> Result<(), ComponentError> {
        let mut tasks: JoinSet<u32> = JoinSet::new();
        let mut passed = HashMap::new();
        loop {
            let this = self.clone();
            let inspection = tokio::task::spawn_blocking(move || {
                let inspected = this.look(&mut passed);
                (inspected, passed)
            });
            let (inspected, after) = inspection
                .await
                .map_err(|error| ComponentError(format!("the inspection of processes panicked: {error}")))?;
            passed = after;
            self.sync(inspected, &mut tasks, &shutdown);
            let next_look = tokio::time::Instant::now() + LOOK;
            loop {
                tokio::select! {
                    () = shutdown.cancelled() => {
                        while tasks.join_next().await.is_some() {}
                        return Ok(());
                    }
                    Some(ended) = tasks.join_next() => {
                        let pid = ended.map_err(|error| ComponentError(format!("a session panicked: {error}")))?;
                        self.running.lock().remove(&pid);
                    }
                    () = self.changed.notified() => break,
                    () = tokio::time::sleep_until(next_look) => break,
                }
            }
        }
    }

    /// Returns the JVMs among the targets, and counts and errors of the other targets. Blocks for a short time.
    fn look(&self, passed: &mut HashMap<u32, Passed>) -> (Vec<(Target, Option<Jvm>, u32)>, SkippedTargets) {
        let arguments = self.arguments.lock().clone();
        let running: HashSet<u32> = self.running.lock().keys().copied().collect();
        let mut left = SkippedTargets::default();
        let mut jvms = Vec::new();
        let mut inspected = HashMap::new();
        for target in arguments.targets.iter() {
            let Some(pid) = target.get(PID).and_then(|pid| pid.parse().ok()) else {
                left.without_pid += 1;
                continue;
            };
            if running.contains(&pid) {
                jvms.push((target, None, pid));
                continue;
            }
            let start = proc::start(pid);
            let key = ProcessKey { pid, start };
            let program = proc::executable(pid);
            let before = passed.remove(&pid);
            let before = before.filter(|before| before.key == key && before.program == program);
            let inspection = match before {
                Some(before) if before.looks >= LOOKS => Err((before.reason, before.looks)),
                before => Jvm::find(pid).map_err(|reason| (reason, before.map_or(1, |before| before.looks + 1))),
            };
            match inspection {
                Ok(jvm) => jvms.push((target, Some(jvm), pid)),
                Err((reason, looks)) => {
                    match reason {
                        NoJvm::Ended(_) => {}
                        NoJvm::Other(_) => left.no_jvm += 1,
                        _ => left.errors.push(reason.to_string()),
                    }
                    // Any reason except `Other` may be temporary, so the process is inspected every time.
                    let looks = if matches!(reason, NoJvm::Other(_)) { looks } else { 0 };
                    let passed = Passed {
                        key,
                        program,
                        looks,
                        reason,
                    };
                    inspected.insert(pid, passed);
                }
            }
        }
        *passed = inspected;
        (jvms, left)
    }

    /// Starts and stops sessions to match the JVMs.
    fn sync(
        &self,
        (jvms, left): (Vec<(Target, Option<Jvm>, u32)>, SkippedTargets),
        tasks: &mut JoinSet<u32>,
        shutdown: &Shutdown,
    ) {
        let arguments = self.arguments.lock().clone();
        let mut running = self.running.lock();
        let listed: HashSet<u32> = jvms.iter().map(|(.., pid)| *pid).collect();
        for (pid, shown) in running.iter() {
            if !listed.contains(pid) {
                shown.stop.cancel();
            }
        }
        for (target, jvm, pid) in jvms {
            let assignment = SessionArguments {
                arguments: arguments.clone(),
                target,
            };
            match (running.get(&pid), jvm) {
                (Some(shown), _) => *shown.assignment.lock() = assignment,
                (None, Some(jvm)) => {
                    let shown = Shown {
                        assignment: Arc::new(Mutex::new(assignment)),
                        state: Arc::default(),
                        stop: shutdown.child_token(),
                    };
                    let session = Session {
                        jvm,
                        shared: self.shared.clone(),
                        assignment: shown.assignment.clone(),
                        state: shown.state.clone(),
                    };
                    let stop = shown.stop.clone();
                    tasks.spawn(async move {
                        session.run(stop).await;
                        pid
                    });
                    running.insert(pid, shown);
                }
                // The session ended after the inspection. The next inspection decides about the process again.
                (None, None) => {}
            }
        }
        let count = i64::try_from(running.len()).unwrap_or(i64::MAX);
        self.shared.metrics.processes.set(count);
        let errors = running
            .values()
            .filter_map(|shown| shown.state.lock().last_error.clone());
        let errors: Vec<String> = errors.chain(left.errors).collect();
        let mut message = format!("{} Java processes are profiled", running.len());
        if left.no_jvm > 0 {
            message += &format!(", {} other processes are not JVMs", left.no_jvm);
        }
        if left.without_pid > 0 {
            message += &format!(", {} targets have no {PID}", left.without_pid);
        }
        let state = match errors.first() {
            Some(error) => {
                message += &format!("; {} failed: {error}", errors.len());
                HealthState::Unhealthy
            }
            None if left.without_pid > 0 => HealthState::Unhealthy,
            None => HealthState::Healthy,
        };
        (self.context.health)(state, message);
    }
}

impl Component<JavaArguments> for Java {
    fn update(&self, arguments: Arc<JavaArguments>) -> Result<(), ComponentError> {
        self.shared.fanout.update(&arguments.forward_to);
        *self.arguments.lock() = arguments;
        self.changed.notify_one();
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(self.work(shutdown))
    }

    /// Returns the list of profiled targets, in the same form as Alloy.
    fn debug_info(&self) -> Value {
        let number = |number: u64| Value::Number(Number::Int(i64::try_from(number).unwrap_or(i64::MAX)));
        let time = |time: Option<SystemTime>| {
            time.map_or(Value::Null, |time| {
                let time: chrono::DateTime<chrono::Utc> = time.into();
                Value::string(time.to_rfc3339())
            })
        };
        let entry = |(pid, shown): (&u32, &Shown)| {
            let state = shown.state.lock().clone();
            let target = shown.assignment.lock().target.clone();
            let target = target.into_iter().map(|(name, value)| (name, Value::String(value)));
            Value::object([
                ("pid", number(u64::from(*pid))),
                ("recorder", Value::string(state.recorder)),
                ("last_profiled", time(state.last_profiled)),
                ("total_bytes", number(state.total_bytes)),
                ("total_samples", number(state.total_samples)),
                ("error_msg", Value::string(state.last_error.unwrap_or_default())),
                ("target", Value::object(target)),
            ])
        };
        let running = self.running.lock();
        Value::object([("profiled_targets", Value::array(running.iter().map(entry)))])
    }
}
