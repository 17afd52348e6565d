//! `pyroscope.relabel`: changes the labels of profiles by relabel rules, and drops the profiles that they exclude.
//!
//! In: profiles through the exported receiver. Out: profiles to `forward_to`. The component decodes the pprof bytes
//! only if there are rules for the labels of samples. A bounded cache stores the result of the rules for each set of
//! labels, because the same series arrives every few seconds.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::common::passing::fanout::{Fanout, LaneMetrics, Receivers};
use crate::common::passing::receiver;
use crate::common::passing::receiver::TakesProfiles;
use crate::common::passing::relabel::{RULES, Rules};
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::attribute::Positive;
use alluvium_lang::body::arguments;
use alluvium_lang::schema::{Attribute, Kind, RECEIVER};
use alluvium_lang::value::{Number, Value};
use alluvium_pipeline::component::live::Relabeled;
use alluvium_pipeline::component::{
    Component, ComponentError, Context, Definition, HealthState, Stability, run_passive,
};
use alluvium_profile::relabel::LabelMap;
use alluvium_profile::upload::Upload;
use alluvium_profile::{Labels, RawProfile, RefusedProfile, SinkError, SinkErrorKind};

mod cache;
mod metrics;
mod samples;
#[cfg(test)]
mod tests;

use cache::Cache;
use metrics::RelabelMetrics;
use samples::RelabelOutcome;

arguments! {
    /// Arguments of `pyroscope.relabel`.
    pub(crate) struct RelabelArguments {
        /// Receivers of the profiles that the rules keep.
        forward_to: Receivers,
        /// Maximum number of label sets whose relabeling result is cached.
        max_cache_size: Positive = 10000,
    }
    blocks {
        /// A relabel rule. Rules apply in the order in which they are written.
        rule: Rules,
        /// A relabel rule for the labels of samples (not in Alloy).
        sample_rule: Rules,
    }
}

/// The component's definition.
pub(crate) const DEFINITION: Definition<RelabelArguments> = Definition {
    name: "pyroscope.relabel",
    stability: Stability::GenerallyAvailable,
    exports: &[
        Attribute::required("receiver", Kind::Capsule(RECEIVER), "Receives the profiles to change."),
        Attribute::required(
            "rules",
            Kind::Capsule(RULES),
            "The rules, for components that accept them.",
        ),
    ],
    metrics: |scope| drop((RelabelMetrics::new(scope), LaneMetrics::new(scope))),
    build: Some(build),
    doc: "`pyroscope.relabel` changes the labels of profiles by relabel rules, drops the profiles that the rules \
        exclude, and forwards all other profiles.",
};

struct Relabel {
    context: Context,
    metrics: RelabelMetrics,
    fanout: Fanout,
    state: Mutex<State>,
}

struct State {
    rules: Rules,
    sample_rules: Rules,
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
            exports: with_receiver(context.exports.clone(), receiver::export(&context.id, weak.clone())),
            ..context
        },
        state: Mutex::new(State {
            rules: Rules::default(),
            sample_rules: Rules::default(),
            cache: Cache::new(1),
        }),
    });
    component.update(arguments)?;
    Ok(component)
}

fn pairs(labels: &Labels) -> LabelMap {
    labels.pairs().iter().cloned().collect()
}

/// Adds the receiver, which never changes, to every set of exports.
fn with_receiver(
    exports: alluvium_pipeline::component::ExportsSender,
    receiver: Value,
) -> alluvium_pipeline::component::ExportsSender {
    Arc::new(move |mut set: BTreeMap<Arc<str>, Value>| {
        set.insert("receiver".into(), receiver.clone());
        exports(set);
    })
}

impl Relabel {
    /// Returns the relabeled labels, or `None` if the rules drop the profile.
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

    /// Applies the rules for samples to a profile. Returns `None` if no sample is left.
    async fn relabel_samples(&self, profile: RawProfile) -> Result<Option<RawProfile>, SinkError> {
        let rules = self.state.lock().sample_rules.clone();
        if rules.is_empty() {
            return Ok(Some(profile));
        }
        if Upload::is_in(&profile.pprof) {
            self.metrics.unread.inc();
            return Ok(Some(profile));
        }
        let bytes = profile.pprof.clone();
        let left = tokio::task::spawn_blocking(move || samples::relabel(&bytes, &rules)).await;
        let left = left.map_err(|error| SinkError::new(SinkErrorKind::Internal, error.to_string()))?;
        let left = left.map_err(|error| SinkError::new(SinkErrorKind::Invalid, error.to_string()))?;
        let (pprof, dropped) = match left {
            RelabelOutcome::All => return Ok(Some(profile)),
            RelabelOutcome::Changed(pprof, dropped) => (Some(pprof), dropped),
            RelabelOutcome::Nothing(dropped) => (None, dropped),
        };
        self.metrics.samples_dropped.inc_by(dropped);
        Ok(pprof.map(|pprof| RawProfile { pprof, ..profile }))
    }

    async fn append(&self, profiles: Vec<RawProfile>) -> Vec<RefusedProfile> {
        let mut indices = Vec::with_capacity(profiles.len());
        let mut kept = Vec::with_capacity(profiles.len());
        let mut refused = Vec::new();
        for (index, profile) in profiles.into_iter().enumerate() {
            self.metrics.processed.inc();
            if self.context.live.is_watched() {
                // Live views show the effect of each rule, which the cache does not store.
                let rules = self.state.lock().rules.clone();
                rules.tell(&self.context.live, Relabeled::Profile, &pairs(&profile.labels));
            }
            let relabeled = match self.relabel(&profile.labels) {
                Some(labels) => self.relabel_samples(RawProfile { labels, ..profile }).await,
                None => Ok(None),
            };
            match relabeled {
                Ok(Some(profile)) => {
                    indices.push(index);
                    kept.push(profile);
                }
                Ok(None) => {
                    self.metrics.dropped.inc();
                }
                Err(error) => refused.push(RefusedProfile::new(index, error)),
            }
        }
        if kept.is_empty() {
            return refused;
        }
        self.metrics.written.inc_by(kept.len() as i64);
        let failed = self.fanout.append(kept).await;
        refused.extend(failed.into_iter().filter_map(|one| one.within(&indices)));
        refused
    }
}

impl TakesProfiles for Relabel {
    fn take(self: Arc<Self>, profiles: Vec<RawProfile>) -> BoxFuture<'static, Vec<RefusedProfile>> {
        Box::pin(async move { self.append(profiles).await })
    }
}

impl Component<RelabelArguments> for Relabel {
    fn update(&self, arguments: Arc<RelabelArguments>) -> Result<(), ComponentError> {
        let rules = arguments.rule.capsule();
        *self.state.lock() = State {
            rules: arguments.rule.clone(),
            sample_rules: arguments.sample_rule.clone(),
            cache: Cache::new(arguments.max_cache_size.get()),
        };
        self.metrics.cache_size.set(0);
        self.fanout.update(&arguments.forward_to);
        (self.context.exports)(BTreeMap::from([("rules".into(), Value::Capsule(rules))]));
        (self.context.health)(HealthState::Healthy, "relabeling profiles".to_owned());
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        run_passive(shutdown)
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
