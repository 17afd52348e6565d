//! `discovery.process`: the processes of this machine as targets.
//!
//! In: `/proc`, and targets of containers to join with. Out: a target a process. All is read again every `refresh_interval`; between, new
//! ids are looked for every two seconds, so that a process that lives for seconds is a target too, and ended ones stay until the next
//! full look, so that what was sampled of them still finds its labels.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::base::{BoxFuture, Shutdown};
use crate::components::common::discovery;
use crate::components::common::targets::{self, Target};
use crate::ebpf::proc::pids;
use crate::lang::schema::Arguments;
use crate::lang::value::{Number, Value};
use crate::pipeline::component::live::LiveHandle;
use crate::pipeline::component::{Component, ComponentError, Context, Definition, HealthState, Stability};

mod arguments;
pub mod scan;

use arguments::Settings;

/// How often new ids are looked for: a list of a folder, some tens of microseconds.
const LOOK: Duration = Duration::from_secs(2);

/// The component's definition.
pub const DEFINITION: Definition = Definition {
    name: "discovery.process",
    stability: Stability::GenerallyAvailable,
    arguments: &arguments::SCHEMA,
    exports: discovery::EXPORTS,
    validate: discovery::check_refresh_interval,
    build: Some(build),
    doc: "`discovery.process` finds the processes of this machine and the containers that they run in.",
};

struct ProcessDiscovery {
    context: Context,
    settings: Mutex<Settings>,
    found: Mutex<Found>,
    changed: Notify,
}

/// What was found last.
#[derive(Default)]
struct Found {
    by_pid: BTreeMap<u32, Target>,
    /// Ids that have no target: threads of the kernel, and those that are gone.
    passed_over: BTreeSet<u32>,
    /// When all was read.
    read: Option<Instant>,
    exported: Vec<Target>,
}

fn build(context: Context, arguments: Arguments) -> Result<Arc<dyn Component>, ComponentError> {
    let component = ProcessDiscovery {
        context,
        settings: Mutex::new(Settings::from(&arguments)),
        found: Mutex::default(),
        changed: Notify::new(),
    };
    component.refresh(true);
    Ok(Arc::new(component))
}

impl ProcessDiscovery {
    /// Reads all processes, or only those that are new, and exports what changed.
    fn refresh(&self, all: bool) {
        let settings = self.settings.lock().clone();
        let proc = Path::new("/proc");
        let mut found = self.found.lock();
        let pids = match pids() {
            Ok(pids) => pids,
            Err(error) => {
                (self.context.health)(HealthState::Unhealthy, format!("cannot list /proc: {error}"));
                return;
            }
        };
        if all {
            found.by_pid.clear();
            found.passed_over.clear();
            found.read = Some(Instant::now());
        }
        let new: Vec<u32> = pids
            .into_iter()
            .filter(|pid| !found.by_pid.contains_key(pid) && !found.passed_over.contains(pid))
            .collect();
        if new.is_empty() && !all {
            return;
        }
        let users = if settings.wanted.username {
            scan::users(&std::fs::read_to_string("/etc/passwd").unwrap_or_default())
        } else {
            Default::default()
        };
        for pid in new {
            match scan::target(proc, pid, settings.wanted, &users) {
                Some(target) => {
                    found.by_pid.insert(pid, target);
                }
                None => {
                    found.passed_over.insert(pid);
                }
            }
        }
        let targets = scan::join(found.by_pid.values().cloned().collect(), &settings.join);
        if targets != found.exported || all {
            found.exported.clone_from(&targets);
            let count = found.by_pid.len();
            drop(found);
            targets::tell(&targets, &self.context.live);
            (self.context.exports)(BTreeMap::from([("targets".into(), targets::to_value(targets))]));
            (self.context.health)(HealthState::Healthy, format!("{count} processes found"));
        }
    }

    async fn work(self: Arc<Self>, shutdown: Shutdown) -> Result<(), ComponentError> {
        loop {
            let is_due = {
                let interval = self.settings.lock().refresh_interval;
                self.found.lock().read.is_none_or(|read| read.elapsed() >= interval)
            };
            let this = self.clone();
            tokio::task::spawn_blocking(move || this.refresh(is_due))
                .await
                .map_err(|error| ComponentError(format!("reading processes panicked: {error}")))?;
            let pause = LOOK.min(self.settings.lock().refresh_interval);
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                () = self.changed.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

impl Component for ProcessDiscovery {
    fn update(&self, arguments: Arguments) -> Result<(), ComponentError> {
        *self.settings.lock() = Settings::from(&arguments);
        self.refresh(true);
        self.changed.notify_one();
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(self.work(shutdown))
    }

    fn show_live(&self, _arguments: &Arguments, live: &LiveHandle) {
        targets::tell(&self.found.lock().exported, live);
    }

    fn debug_info(&self) -> Value {
        let found = self.found.lock();
        let number = |count: usize| Value::Number(Number::Int(i64::try_from(count).unwrap_or(i64::MAX)));
        Value::object([
            ("processes", number(found.by_pid.len())),
            ("targets", number(found.exported.len())),
        ])
    }
}
