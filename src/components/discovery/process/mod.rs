//! `discovery.process`: discovers the processes of this machine.
//!
//! In: `/proc`, and targets of containers to join with. Out: a target for each process. The component reads all
//! processes every `refresh_interval`. In between, it looks for new processes every two seconds, so that a process that
//! lives for only a few seconds becomes a target too. A process that has ended stays a target until all processes are
//! read again, so that its last samples still get its labels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::common::arguments::targets;
use crate::common::arguments::targets::Target;
use crate::common::discovery::schema;
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_ebpf::proc::pids;
use alluvium_lang::value::{Number, Value};
use alluvium_pipeline::component::live::LiveHandle;
use alluvium_pipeline::component::{
    Component, ComponentError, Context, Definition, HealthState, Stability, no_metrics,
};

mod arguments;
pub(crate) mod scan;

use arguments::ProcessArguments;

/// Time between two searches for new process IDs. A search lists one directory, which takes tens of microseconds.
const LOOK: Duration = Duration::from_secs(2);

/// The component's definition.
pub(crate) const DEFINITION: Definition<ProcessArguments> = Definition {
    name: "discovery.process",
    stability: Stability::GenerallyAvailable,
    exports: schema::EXPORTS,
    metrics: no_metrics,
    build: Some(build),
    doc: "`discovery.process` finds the processes of this machine and the containers that they run in.",
};

struct ProcessDiscovery {
    context: Context,
    arguments: Mutex<Arc<ProcessArguments>>,
    processes: Mutex<ProcessTable>,
    changed: Notify,
}

/// The processes from the last read of all processes and from the later searches, and the targets that were last
/// exported.
#[derive(Default)]
struct ProcessTable {
    by_pid: BTreeMap<u32, Target>,
    /// IDs without a target: kernel threads, and processes that ended before they were read.
    passed_over: BTreeSet<u32>,
    /// Time at which all processes were last read.
    read: Option<Instant>,
    exported: Vec<Target>,
}

/// The processes that a refresh reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    All,
    /// The processes whose IDs are new since the last refresh.
    New,
}

fn build(
    context: Context,
    arguments: Arc<ProcessArguments>,
) -> Result<Arc<dyn Component<ProcessArguments>>, ComponentError> {
    let component = ProcessDiscovery {
        context,
        arguments: Mutex::new(arguments),
        processes: Mutex::default(),
        changed: Notify::new(),
    };
    component.refresh(Look::All);
    Ok(Arc::new(component))
}

impl ProcessDiscovery {
    /// Reads processes. Exports the targets if they changed, or if `look` is [`Look::All`].
    fn refresh(&self, look: Look) {
        let all = look == Look::All;
        let arguments = self.arguments.lock().clone();
        let proc = Path::new("/proc");
        let mut processes = self.processes.lock();
        let pids = match pids() {
            Ok(pids) => pids,
            Err(error) => {
                (self.context.health)(HealthState::Unhealthy, format!("cannot list /proc: {error}"));
                return;
            }
        };
        if all {
            processes.by_pid.clear();
            processes.passed_over.clear();
            processes.read = Some(Instant::now());
        }
        let new: Vec<u32> = pids
            .into_iter()
            .filter(|pid| !processes.by_pid.contains_key(pid) && !processes.passed_over.contains(pid))
            .collect();
        if new.is_empty() && !all {
            return;
        }
        let users = if arguments.discover_config.username {
            scan::users(&std::fs::read_to_string("/etc/passwd").unwrap_or_default())
        } else {
            Default::default()
        };
        for pid in new {
            match scan::target(proc, pid, &arguments.discover_config, &users) {
                Some(target) => {
                    processes.by_pid.insert(pid, target);
                }
                None => {
                    processes.passed_over.insert(pid);
                }
            }
        }
        let targets = scan::join(
            processes.by_pid.values().cloned().collect(),
            &arguments.join.iter().collect::<Vec<_>>(),
        );
        if targets != processes.exported || all {
            processes.exported.clone_from(&targets);
            let count = processes.by_pid.len();
            drop(processes);
            targets::tell(&targets, &self.context.live);
            (self.context.exports)(BTreeMap::from([("targets".into(), targets::to_value(targets))]));
            (self.context.health)(HealthState::Healthy, format!("{count} processes found"));
        }
    }

    async fn work(self: Arc<Self>, shutdown: Shutdown) -> Result<(), ComponentError> {
        loop {
            let is_due = {
                let interval = self.arguments.lock().refresh_interval.get();
                self.processes.lock().read.is_none_or(|read| read.elapsed() >= interval)
            };
            let this = self.clone();
            tokio::task::spawn_blocking(move || this.refresh(if is_due { Look::All } else { Look::New }))
                .await
                .map_err(|error| ComponentError(format!("the thread that reads processes panicked: {error}")))?;
            let pause = LOOK.min(self.arguments.lock().refresh_interval.get());
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                () = self.changed.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

impl Component<ProcessArguments> for ProcessDiscovery {
    fn update(&self, arguments: Arc<ProcessArguments>) -> Result<(), ComponentError> {
        *self.arguments.lock() = arguments;
        self.refresh(Look::All);
        self.changed.notify_one();
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(self.work(shutdown))
    }

    fn show_live(&self, _arguments: &ProcessArguments, live: &LiveHandle) {
        targets::tell(&self.processes.lock().exported, live);
    }

    fn debug_info(&self) -> Value {
        let processes = self.processes.lock();
        let number = |count: usize| Value::Number(Number::Int(i64::try_from(count).unwrap_or(i64::MAX)));
        Value::object([
            ("processes", number(processes.by_pid.len())),
            ("targets", number(processes.exported.len())),
        ])
    }
}
