//! `pyroscope.enrich`: adds the labels of a target to the profiles that match it.
//!
//! In: targets, and profiles through the exported receiver. Out: the profiles to `forward_to`, with the labels of their
//! target. The argument `profiles_match_label` names a label of profiles, `target_match_label` a label of targets. A
//! profile matches a target if the values of these two labels are equal. The pprof bytes are not decoded.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use parking_lot::RwLock;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use crate::common::arguments::targets::{Target, Targets};
use crate::common::passing::fanout::{Fanout, LaneMetrics, Receivers};
use crate::common::passing::receiver;
use crate::common::passing::receiver::TakesProfiles;
use alluvium_base::{BoxFuture, Shutdown};
use alluvium_lang::attribute::NotEmpty;
use alluvium_lang::body::arguments;
use alluvium_lang::schema::{Attribute, Kind, RECEIVER};
use alluvium_lang::value::{Number, Value};
use alluvium_pipeline::component::{
    Component, ComponentError, Context, Definition, HealthState, Stability, run_passive,
};
use alluvium_profile::{Labels, RawProfile, RefusedProfile};
use alluvium_telemetry::metrics::Scope;

#[cfg(test)]
mod tests;

arguments! {
    /// Arguments of `pyroscope.enrich`.
    pub(crate) struct EnrichArguments {
        /// Receivers of the profiles.
        forward_to: Receivers,
        /// Labels of the target to copy to the profile. If not set or empty, all labels are copied.
        labels_to_copy: Option<Vec<Arc<str>>>,
        /// Name of the profile's label whose value must equal the value of the target's label. Defaults to the value of
        /// target_match_label.
        profiles_match_label: Option<Arc<str>>,
        /// Name of the target's label whose value must equal the value of the profile's label.
        target_match_label: NotEmpty<Arc<str>>,
        /// Targets whose labels are copied.
        targets: Targets,
    }
}

/// The definition of `pyroscope.enrich`.
pub(crate) const DEFINITION: Definition<EnrichArguments> = Definition {
    name: "pyroscope.enrich",
    stability: Stability::Experimental,
    exports: &[Attribute::required(
        "receiver",
        Kind::Capsule(RECEIVER),
        "Receives the profiles.",
    )],
    metrics: |scope| drop((EnrichMetrics::new(scope), LaneMetrics::new(scope))),
    build: Some(build),
    doc: "`pyroscope.enrich` adds the labels of a target to the profiles that match it.",
};

struct Enrich {
    context: Context,
    metrics: EnrichMetrics,
    fanout: Fanout,
    index: RwLock<Arc<Index>>,
}

/// The labels of the targets, by the value of the label that `target_match_label` names.
#[derive(Default)]
struct Index {
    profile_label: Arc<str>,
    /// Labels to copy, by the value that the profile's label `profile_label` must have.
    labels: HashMap<Arc<str>, Target>,
}

struct EnrichMetrics {
    profiles: Family<Vec<(&'static str, String)>, Counter>,
}

fn build(
    context: Context,
    arguments: Arc<EnrichArguments>,
) -> Result<Arc<dyn Component<EnrichArguments>>, ComponentError> {
    let component = Arc::new_cyclic(|weak: &Weak<Enrich>| {
        let receiver = receiver::export(&context.id, weak.clone());
        (context.exports)(BTreeMap::from([("receiver".into(), receiver)]));
        Enrich {
            metrics: EnrichMetrics::new(&context.metrics),
            fanout: Fanout::new(&context),
            context,
            index: RwLock::default(),
        }
    });
    component.update(arguments)?;
    Ok(component)
}

impl EnrichMetrics {
    fn new(scope: &Scope) -> Self {
        let profiles = Family::default();
        scope.register(
            "pyroscope_enrich_profiles",
            "Received profiles, by whether a target matched",
            profiles.clone(),
        );
        Self { profiles }
    }

    fn count(&self, outcome: &str) {
        let labels = vec![("outcome", outcome.to_owned())];
        self.profiles.get_or_create_owned(&labels).inc();
    }
}

impl Index {
    fn new(arguments: &EnrichArguments) -> Self {
        let target_label = &arguments.target_match_label.0;
        let is_copied = |name: &Arc<str>| match arguments.labels_to_copy.as_deref() {
            None | Some([]) => true,
            Some(names) => names.contains(name),
        };
        let entry = |mut target: Target| {
            let value = target.get(target_label).filter(|value| !value.is_empty())?.clone();
            target.retain(|name, value| is_copied(name) && !value.is_empty());
            Some((value, target))
        };
        let profile_label = arguments.profiles_match_label.as_ref().unwrap_or(target_label);
        Self {
            profile_label: profile_label.clone(),
            labels: arguments.targets.iter().filter_map(entry).collect(),
        }
    }

    /// Returns `labels` with the labels of the matching target added, or `None` if no target matches.
    fn enrich(&self, labels: &Labels) -> Option<Labels> {
        let target = self.labels.get(labels.get(&self.profile_label)?)?;
        Some(labels.with_all(target))
    }
}

impl TakesProfiles for Enrich {
    fn take(self: Arc<Self>, profiles: Vec<RawProfile>) -> BoxFuture<'static, Vec<RefusedProfile>> {
        let index = self.index.read().clone();
        let enriched = profiles.into_iter().map(|profile| {
            if let Some(labels) = index.enrich(&profile.labels) {
                self.metrics.count("matched");
                RawProfile { labels, ..profile }
            } else {
                self.metrics.count("unmatched");
                profile
            }
        });
        let enriched = enriched.collect();
        Box::pin(async move { self.fanout.append(enriched).await })
    }
}

impl Component<EnrichArguments> for Enrich {
    fn update(&self, arguments: Arc<EnrichArguments>) -> Result<(), ComponentError> {
        let index = Index::new(&arguments);
        let count = index.labels.len();
        *self.index.write() = Arc::new(index);
        self.fanout.update(&arguments.forward_to);
        let label = &arguments.target_match_label.0;
        (self.context.health)(
            HealthState::Healthy,
            format!("number of values of {label} among the targets: {count}"),
        );
        Ok(())
    }

    fn run(self: Arc<Self>, shutdown: Shutdown) -> BoxFuture<'static, Result<(), ComponentError>> {
        run_passive(shutdown)
    }

    fn is_passive(&self) -> bool {
        true
    }

    fn debug_info(&self) -> Value {
        let count = i64::try_from(self.index.read().labels.len()).unwrap_or(i64::MAX);
        Value::object([("known_values", Value::Number(Number::Int(count)))])
    }
}
