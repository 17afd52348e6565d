//! Components that follow the objects of a cluster: `discovery.kubernetes` and `discovery.profiles`.
//!
//! In: the changes of objects, as an API server sends them. Out: targets, at most every five seconds. A change of an
//! object rebuilds only the affected targets. While a watch fails, the last targets stay. A component implements
//! [`Follow`] to select the objects to follow and the targets to export.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::future::select_all;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::common::arguments::targets;
use crate::common::discovery::schema;
use crate::common::discovery::schema::MAX_TARGETS;
use crate::common::kubernetes::watch::Pace;
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::value::{Number, Value};
use alluvium_pipeline::component::live::LiveHandle;
use alluvium_pipeline::component::{Component, ComponentError, Context, Definition, HealthState, Stability};

pub(crate) mod arguments;
mod backing;
mod cluster;
mod endpoints;
mod endpointslice;
mod ingress;
mod metrics;
mod node;
mod pod;
mod role_targets;
mod service;
mod source;
mod store;
pub(crate) mod wanted;

use cluster::Count;
use metrics::KubernetesMetrics;
use source::{Refresh, Source, Standing, Watch};
use store::MAX_OBJECTS;
use wanted::Follow;

/// Returns the definition of a component that follows a cluster.
pub(crate) const fn definition<A: Follow>(name: &'static str, doc: &'static str) -> Definition<A> {
    Definition {
        name,
        stability: Stability::GenerallyAvailable,
        exports: schema::EXPORTS,
        metrics: |scope| drop(KubernetesMetrics::new(scope)),
        build: Some(|context, arguments| build(context, arguments, Timing::default())),
        doc,
    }
}

/// Time intervals of a component. Tests shorten them.
#[derive(Clone, Copy)]
pub(crate) struct Timing {
    /// Pauses between failed attempts.
    pub(crate) pace: Pace,
    /// Minimum time between two exports.
    pub(crate) between_exports: Duration,
}

/// The default time between exports is the same as in Alloy.
impl Default for Timing {
    fn default() -> Self {
        Self {
            pace: Pace::default(),
            between_exports: Duration::from_secs(5),
        }
    }
}

struct Followed {
    context: Context,
    timing: Timing,
    metrics: KubernetesMetrics,
    source: Mutex<Arc<Source>>,
    /// The last exported targets.
    exported: Mutex<Value>,
    /// Wakes the run loop after a change of the arguments.
    updated: Notify,
}

/// Builds a component with the intervals in `timing`.
pub(crate) fn build<A: Follow>(
    context: Context,
    arguments: Arc<A>,
    timing: Timing,
) -> Result<Arc<dyn Component<A>>, ComponentError> {
    let metrics = KubernetesMetrics::new(&context.metrics);
    let source = Source::new(arguments.selection(), &context, metrics.clone())?;
    let component = Followed {
        context,
        timing,
        metrics,
        source: Mutex::new(Arc::new(source)),
        exported: Mutex::new(Value::array([])),
        updated: Notify::new(),
    };
    // Components that refer to the targets can be evaluated before the targets are known.
    component.export(Vec::new());
    Ok(Arc::new(component))
}

impl Followed {
    async fn work(&self, shutdown: Shutdown) {
        loop {
            let source = self.source.lock().clone();
            let watches = source.watches(self.timing.pace);
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.updated.notified() => {}
                (never, ..) = select_all(watches) => match never {},
                never = self.export_changes(&source) => match never {},
            }
        }
    }

    /// Exports targets when they have changed, and reports the health when it has changed.
    async fn export_changes(&self, source: &Arc<Source>) -> Infallible {
        let (mut due, mut has_news) = (Instant::now(), false);
        let (mut trouble, mut reported) = (None, None);
        loop {
            tokio::select! {
                () = source.changed.notified() => has_news = true,
                () = tokio::time::sleep_until(due), if has_news => {
                    has_news = false;
                    let source = source.clone();
                    let result = tokio::task::spawn_blocking(move || source.targets()).await;
                    due = Instant::now() + self.timing.between_exports;
                    match result {
                        Ok(Refresh::Incomplete) => due = Instant::now() + self.timing.between_exports / 50,
                        Ok(Refresh::Unchanged) => {}
                        Ok(Refresh::Changed(targets)) => trouble = self.export_all(targets),
                        Err(error) => trouble = Some(format!("building the targets panicked: {error}")),
                    }
                }
            }
            let health = self.health(&source.standing(), trouble.clone());
            if reported.as_ref() != Some(&health) {
                (self.context.health)(health.0, health.1.clone());
                reported = Some(health);
            }
        }
    }

    /// Exports targets, or returns the reason why they cannot be exported.
    fn export_all(&self, targets: Vec<Value>) -> Option<String> {
        let count = targets.len();
        if count > MAX_TARGETS {
            return Some(format!("found {count} targets, but at most {MAX_TARGETS} are exported"));
        }
        self.export(targets);
        None
    }

    fn export(&self, targets: Vec<Value>) {
        self.metrics
            .targets
            .set(i64::try_from(targets.len()).unwrap_or(i64::MAX));
        targets::tell_values(&targets, &self.context.live);
        let value = Value::array(targets);
        *self.exported.lock() = value.clone();
        (self.context.exports)(BTreeMap::from([("targets".into(), value)]));
    }

    fn health(&self, standing: &Standing, trouble: Option<String>) -> (HealthState, String) {
        let failures: Vec<&String> = standing.watches.iter().filter_map(Watch::failure).collect();
        let Count { kept, left_out } = standing.objects;
        let targets = targets::count(&self.exported.lock());
        match (failures.as_slice(), trouble) {
            ([failure], _) => (HealthState::Unhealthy, (*failure).clone()),
            ([first, others @ ..], _) => {
                let others = others.len();
                (
                    HealthState::Unhealthy,
                    format!("{first} (and {others} more watches fail)"),
                )
            }
            ([], Some(trouble)) => (HealthState::Unhealthy, trouble),
            ([], None) if left_out > 0 => {
                let message =
                    format!("{left_out} objects are left out, because at most {MAX_OBJECTS} of a kind are kept");
                (HealthState::Unhealthy, message)
            }
            ([], None) if standing.watches.iter().any(|watch| !watch.is_listed) => {
                (HealthState::Unknown, format!("{kept} objects listed so far"))
            }
            ([], None) => {
                let mut message = format!("{targets} targets of {kept} objects");
                if let Some(example) = &standing.left_out.example {
                    message += &format!(", {} objects lack targets: {example}", standing.left_out.objects);
                }
                (HealthState::Healthy, message)
            }
        }
    }
}

impl<A: Follow> Component<A> for Followed {
    fn update(&self, arguments: Arc<A>) -> Result<(), ComponentError> {
        let source = Source::new(arguments.selection(), &self.context, self.metrics.clone())?;
        *self.source.lock() = Arc::new(source);
        self.updated.notify_one();
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(async move {
            self.work(shutdown).await;
            Ok(())
        })
    }

    fn show_live(&self, _arguments: &A, live: &LiveHandle) {
        if let Value::Array(targets) = &*self.exported.lock() {
            targets::tell_values(targets, live);
        }
    }

    fn debug_info(&self) -> Value {
        let standing = self.source.lock().standing();
        let number = |count: usize| Value::Number(Number::Int(i64::try_from(count).unwrap_or(i64::MAX)));
        let watch = |watch: &Watch| {
            Value::object([
                ("kind", Value::string(watch.kind)),
                ("namespace", Value::string(watch.namespace.clone())),
                ("listed", Value::Bool(watch.is_listed)),
                (
                    "last_error",
                    Value::string(watch.failure().cloned().unwrap_or_default()),
                ),
            ])
        };
        Value::object([
            ("objects", number(standing.objects.kept)),
            ("targets", number(targets::count(&self.exported.lock()))),
            ("watches", Value::array(standing.watches.iter().map(watch))),
        ])
    }
}
