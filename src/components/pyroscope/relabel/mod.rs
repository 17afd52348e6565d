//! `pyroscope.relabel`: changes or drops profiles on their way by relabel rules on the labels of their series.
//!
//! In: profiles through the exported receiver. Out: profiles to `forward_to`. The pprof bytes are not looked at. What
//! the rules make of a set of labels is remembered in a bounded cache, since a series comes again every few seconds.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::base::{BoxFuture, Shutdown};
use crate::components::common::fanout::{Fanout, LaneMetrics, Receivers};
use crate::components::common::relabel::{LabelMap, RULES, Rules};
use crate::lang::attribute::Positive;
use crate::lang::body::arguments;
use crate::lang::schema::{Attribute, Kind, RECEIVER};
use crate::lang::value::{Capsule, Number, Value};
use crate::pipeline::component::live::Relabeled;
use crate::pipeline::component::{Component, ComponentError, Context, Definition, HealthState, Stability};
use crate::profile::sink::Receiver;
use crate::profile::{Labels, ProfileSink, RawProfile, SinkError, SinkErrorKind};

mod cache;
mod metrics;
#[cfg(test)]
mod tests;

use cache::Cache;
use metrics::RelabelMetrics;

arguments! {
    /// Arguments of `pyroscope.relabel`.
    pub(crate) struct RelabelArguments {
        /// Receivers of the profiles that are kept.
        forward_to: Receivers,
        /// Sets of labels whose result is remembered.
        max_cache_size: Positive = 10000,
    }
    blocks {
        /// A relabeling rule; rules apply in the order written.
        rule: Rules,
    }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<RelabelArguments> = Definition {
    name: "pyroscope.relabel",
    stability: Stability::GenerallyAvailable,
    exports: &[
        Attribute::required("receiver", Kind::Capsule(RECEIVER), "Takes the profiles to change."),
        Attribute::required(
            "rules",
            Kind::Capsule(RULES),
            "The rules, for components that take them.",
        ),
    ],
    metrics: |scope| drop((RelabelMetrics::new(scope), LaneMetrics::new(scope))),
    build: Some(build),
    doc: "`pyroscope.relabel` changes the labels of profiles by relabeling rules, drops profiles that are not wanted, \
        and forwards the rest.",
};

struct Relabel {
    context: Context,
    metrics: RelabelMetrics,
    fanout: Fanout,
    state: Mutex<State>,
}

struct State {
    rules: Rules,
    cache: Cache,
}

fn build(
    context: Context,
    arguments: Arc<RelabelArguments>,
) -> Result<Arc<dyn Component<RelabelArguments>>, ComponentError> {
    let component = Arc::new_cyclic(|weak: &Weak<Relabel>| Relabel {
        metrics: RelabelMetrics::new(&context.metrics),
        fanout: Fanout::new(&context),
        context: Context {
            exports: with_receiver(
                context.exports.clone(),
                Arc::new(RelabelReceiver {
                    id: context.id.clone(),
                    relabel: weak.clone(),
                }),
            ),
            ..context
        },
        state: Mutex::new(State {
            rules: Rules::default(),
            cache: Cache::new(1),
        }),
    });
    component.update(arguments)?;
    Ok(component)
}

fn pairs(labels: &Labels) -> LabelMap {
    labels.pairs().iter().cloned().collect()
}

/// Adds the receiver, always the same one, to every set of exports.
fn with_receiver(
    exports: crate::pipeline::component::ExportsSender,
    receiver: Receiver,
) -> crate::pipeline::component::ExportsSender {
    let capsule = Value::Capsule(Capsule::new(RECEIVER, receiver));
    Arc::new(move |mut set: BTreeMap<Arc<str>, Value>| {
        set.insert("receiver".into(), capsule.clone());
        exports(set);
    })
}

impl Relabel {
    /// What the rules make of labels; `None` for dropped.
    fn relabel(&self, labels: &Labels) -> Option<Labels> {
        let mut state = self.state.lock();
        if let Some(known) = state.cache.get(labels) {
            self.metrics.cache_hits.inc();
            return known;
        }
        self.metrics.cache_misses.inc();
        let result = state.rules.apply(pairs(labels)).map(Labels::from_pairs);
        state.cache.insert(labels.clone(), result.clone());
        self.metrics.cache_size.set(state.cache.len() as i64);
        result
    }

    async fn append(&self, profiles: Vec<RawProfile>) -> Vec<(usize, SinkError)> {
        let mut places = Vec::with_capacity(profiles.len());
        let mut kept = Vec::with_capacity(profiles.len());
        for (place, profile) in profiles.into_iter().enumerate() {
            self.metrics.processed.inc();
            if self.context.live.is_watched() {
                // What the cache knows is not enough for who wants to see each rule.
                let rules = self.state.lock().rules.clone();
                rules.tell(&self.context.live, Relabeled::Profile, &pairs(&profile.labels));
            }
            match self.relabel(&profile.labels) {
                Some(labels) => {
                    places.push(place);
                    kept.push(RawProfile { labels, ..profile });
                }
                None => {
                    self.metrics.dropped.inc();
                }
            }
        }
        if kept.is_empty() {
            return Vec::new();
        }
        self.metrics.written.inc_by(kept.len() as i64);
        let errors = self.fanout.append(kept).await;
        errors
            .into_iter()
            .filter_map(|(index, error)| Some((*places.get(index)?, error)))
            .collect()
    }
}

impl Component<RelabelArguments> for Relabel {
    fn update(&self, arguments: Arc<RelabelArguments>) -> Result<(), ComponentError> {
        let rules = arguments.rule.capsule();
        *self.state.lock() = State {
            rules: arguments.rule.clone(),
            cache: Cache::new(arguments.max_cache_size.get()),
        };
        self.metrics.cache_size.set(0);
        self.fanout.update(&arguments.forward_to);
        (self.context.exports)(BTreeMap::from([("rules".into(), Value::Capsule(rules))]));
        (self.context.health)(HealthState::Healthy, "relabeling profiles".to_owned());
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        Box::pin(async move {
            shutdown.cancelled().await;
            Ok(())
        })
    }

    fn is_passive(&self) -> bool {
        true
    }

    fn debug_info(&self) -> Value {
        let number = |value: i64| Value::Number(Number::Int(value));
        Value::object([
            ("processed", number(self.metrics.processed.get())),
            ("written", number(self.metrics.written.get())),
            ("dropped", number(self.metrics.dropped.get())),
            ("cached", number(self.metrics.cache_size.get())),
        ])
    }
}

/// The receiver that is exported; it does not keep the component alive.
struct RelabelReceiver {
    id: Arc<str>,
    relabel: Weak<Relabel>,
}

impl ProfileSink for RelabelReceiver {
    fn append(&self, profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<(usize, SinkError)>> {
        Box::pin(async move {
            match self.relabel.upgrade() {
                Some(relabel) => relabel.append(profiles).await,
                None => {
                    let gone = SinkError::new(SinkErrorKind::Gone, "the pyroscope.relabel component has ended");
                    (0..profiles.len()).map(|place| (place, gone.clone())).collect()
                }
            }
        })
    }

    fn component_id(&self) -> &str {
        &self.id
    }
}
