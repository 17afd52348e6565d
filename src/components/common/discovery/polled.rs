//! Runs discoveries that poll for their targets.
//!
//! In: a [`Discovery`], which lists targets. Out: exports, health, metrics, live view. If targets cannot be listed, the
//! last targets stay. New arguments are used immediately, and a late response to a request with old arguments is
//! dropped. After the first refresh, and after the first with new arguments, the refreshes of a fleet are spread over
//! the interval.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;

use crate::common::arguments::targets;
use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::outdated::Outdated;
use crate::common::discovery::schema;
use crate::common::discovery::schema::MAX_TARGETS;
use alluvium_base::net::hostname;
use alluvium_base::spread::Spread;
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::body::FromBody;
use alluvium_lang::value::{Number, Value};
use alluvium_pipeline::component::live::LiveHandle;
use alluvium_pipeline::component::{Component, ComponentError, Context, Definition, HealthState, Stability};
use alluvium_telemetry::metrics::Scope;

/// A discovery that lists targets on request.
pub(crate) trait Discovery: Sized + Send + Sync + 'static {
    /// The arguments of the component.
    type Arguments: FromBody + Debug + Send + Sync + 'static;

    /// Creates clients and reads certificates. Sends no request.
    fn new(arguments: &Self::Arguments, context: &Context) -> Result<Self, ComponentError>;

    /// Returns the time between two refreshes of the targets.
    fn interval(&self) -> Duration;

    /// Returns true if the targets come from a server that many collectors ask. Then the refreshes of a fleet are
    /// spread over the interval.
    fn is_spread(&self) -> bool {
        true
    }

    /// Returns the current targets, or the reason why they cannot be listed.
    fn targets(&self) -> impl Future<Output = Result<Vec<Target>, DiscoveryError>> + Send;

    /// Returns the reason why some targets of the last call of [`Discovery::targets`] are out of date, or `None` if all
    /// of them are current.
    fn failure(&self) -> Option<Outdated> {
        None
    }
}

/// Returns the definition of a component that runs a [`Discovery`].
pub(crate) const fn definition<D: Discovery>(name: &'static str, doc: &'static str) -> Definition<D::Arguments> {
    Definition {
        name,
        stability: Stability::GenerallyAvailable,
        exports: schema::EXPORTS,
        metrics: |scope| drop(Metrics::new(scope)),
        build: Some(build::<D>),
        doc,
    }
}

#[derive(Default)]
struct Metrics {
    requests: Counter,
    failures: Counter,
    targets: Gauge,
}

struct Polled<D> {
    context: Context,
    metrics: Metrics,
    /// The place of this collector's refreshes within the interval.
    spread: Spread,
    source: Mutex<Arc<D>>,
    exported: Mutex<Vec<Target>>,
    /// Wakes the run loop after a change of the arguments.
    updated: Notify,
}

fn build<D: Discovery>(
    context: Context,
    arguments: Arc<D::Arguments>,
) -> Result<Arc<dyn Component<D::Arguments>>, ComponentError> {
    let source = D::new(&arguments, &context)?;
    let component = Polled {
        metrics: Metrics::new(&context.metrics),
        spread: Spread::new(&hostname(), &context.id),
        context,
        source: Mutex::new(Arc::new(source)),
        exported: Mutex::default(),
        updated: Notify::new(),
    };
    // With an empty list, components that refer to the targets can be evaluated before the first response.
    component.export(Vec::new());
    Ok(Arc::new(component))
}

impl Metrics {
    fn new(scope: &Scope) -> Self {
        let metrics = Self::default();
        let (requests, failures) = (metrics.requests.clone(), metrics.failures.clone());
        scope.register("discovery_requests", "Refreshes of the targets", requests);
        scope.register("discovery_failures", "Failed refreshes of the targets", failures);
        scope.register(
            "discovery_targets",
            "Targets currently exported",
            metrics.targets.clone(),
        );
        metrics
    }
}

impl<D: Discovery> Polled<D> {
    async fn refresh(&self) -> Duration {
        let source = self.source.lock().clone();
        self.metrics.requests.inc();
        let listed = source.targets().await.and_then(|targets| match targets.len() {
            0..=MAX_TARGETS => Ok(targets),
            count => Err(DiscoveryError::TooManyTargets(count)),
        });
        if !Arc::ptr_eq(&source, &self.source.lock()) {
            return Duration::ZERO;
        }
        match listed {
            Ok(targets) => {
                match source.failure() {
                    None => (self.context.health)(HealthState::Healthy, format!("{} targets found", targets.len())),
                    Some(outdated) => self.failed(&outdated),
                }
                if !is_same(&self.exported.lock(), &targets) {
                    self.export(targets);
                }
            }
            Err(error) => self.failed(&error),
        }
        source.interval()
    }

    fn failed(&self, error: &dyn std::error::Error) {
        self.metrics.failures.inc();
        tracing::warn!(component = %self.context.id, %error, "cannot list targets, keeping the last targets");
        (self.context.health)(HealthState::Unhealthy, error.to_string());
    }

    fn export(&self, targets: Vec<Target>) {
        self.metrics
            .targets
            .set(i64::try_from(targets.len()).unwrap_or(i64::MAX));
        targets::tell(&targets, &self.context.live);
        self.exported.lock().clone_from(&targets);
        (self.context.exports)(BTreeMap::from([("targets".into(), targets::to_value(targets))]));
    }

    async fn work(&self, shutdown: Shutdown) {
        let mut is_first = true;
        loop {
            let interval = tokio::select! {
                () = shutdown.cancelled() => return,
                // The refresh is dropped, because a response for old arguments is useless.
                () = self.updated.notified() => {
                    is_first = true;
                    continue;
                }
                interval = self.refresh() => interval,
            };
            let pause = if is_first && self.source.lock().is_spread() {
                self.spread.first_pause(interval)
            } else {
                interval
            };
            is_first = tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.updated.notified() => true,
                () = tokio::time::sleep(pause) => false,
            };
        }
    }
}

impl<D: Discovery> Component<D::Arguments> for Polled<D> {
    fn update(&self, arguments: Arc<D::Arguments>) -> Result<(), ComponentError> {
        *self.source.lock() = Arc::new(D::new(&arguments, &self.context)?);
        self.updated.notify_one();
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(async move {
            self.work(shutdown).await;
            Ok(())
        })
    }

    fn show_live(&self, _arguments: &D::Arguments, live: &LiveHandle) {
        targets::tell(&self.exported.lock(), live);
    }

    fn debug_info(&self) -> Value {
        let count = i64::try_from(self.exported.lock().len()).unwrap_or(i64::MAX);
        Value::object([("targets", Value::Number(Number::Int(count)))])
    }
}

/// Returns true if both lists contain the same targets, in any order. Many servers list the same objects in another
/// order each time, for example DNS servers.
fn is_same(old: &[Target], new: &[Target]) -> bool {
    fn sorted(targets: &[Target]) -> Vec<&Target> {
        let mut targets: Vec<&Target> = targets.iter().collect();
        targets.sort_unstable();
        targets
    }
    old == new || (old.len() == new.len() && sorted(old) == sorted(new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_order_of_the_targets_is_no_change() {
        let list = |addresses: &[&str]| -> Vec<Target> {
            let target = |address: &&str| Target::from([("__address__".into(), (*address).into())]);
            addresses.iter().map(target).collect()
        };
        assert!(is_same(&list(&["a", "b", "a"]), &list(&["b", "a", "a"])));
        for other in [&["a", "b"][..], &["a", "b", "b"], &["a", "b", "c"], &[]] {
            assert!(!is_same(&list(&["a", "b", "a"]), &list(other)), "{other:?}");
        }
    }
}
