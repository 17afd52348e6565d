//! Decides which of the discovered targets this collector scrapes, and which belong to other collectors of the cluster.
//!
//! In: discovered targets and the cluster. Out: the targets of this collector. All collectors reach the same result for
//! the same targets, because only the labels decide. Labels that begin with `__meta_` may differ between discoveries,
//! so they are ignored.

use std::sync::Arc;

use crate::common::arguments::targets::Target;
use crate::pyroscope::scrape::arguments::ScrapeArguments;
use alluvium_cluster::{Cluster, Owner, View, ring};
use alluvium_lang::value::Value;

/// The distribution of targets among collectors, for health and debug info. Empty if targets are not shared.
#[derive(Default)]
pub(super) struct Shares(Option<Shared>);

struct Shared {
    view: Arc<View>,
    /// Address of each target of another collector, and the name of that collector. The name is missing while this
    /// collector does not participate.
    foreign_targets: Vec<(Arc<str>, Option<Arc<str>>)>,
}

/// The targets that this collector scrapes.
#[derive(Default)]
pub(super) struct Own {
    pub targets: Vec<Target>,
    /// Number of targets beyond the limit.
    pub beyond: usize,
}

/// Returns the targets that this collector scrapes, at most `max_targets`. If there is no cluster or the arguments do
/// not enable clustering, no target belongs to another collector.
pub(super) fn share(arguments: &ScrapeArguments, cluster: &Cluster) -> (Own, Shares) {
    let settings = &arguments.settings;
    let limit = settings.limits.targets().unwrap_or(usize::MAX);
    let Some(view) = cluster.view().filter(|_| settings.is_clustered) else {
        let own = Own {
            targets: arguments.targets.iter().take(limit).collect(),
            beyond: arguments.targets.count().saturating_sub(limit),
        };
        return (own, Shares(None));
    };
    let mut own = Own::default();
    let mut foreign_targets = Vec::new();
    for target in arguments.targets.iter() {
        let address = || target.get("__address__").cloned().unwrap_or_default();
        match view.owner(key(&target)) {
            // The limit counts only own targets. Collectors may have targets in different orders, so a limit for all
            // targets would cut off different targets on each of them.
            Owner::Own if own.targets.len() < limit => own.targets.push(target),
            Owner::Own => own.beyond += 1,
            Owner::Other(name) => foreign_targets.push((address(), Some(name))),
            Owner::Unknown => foreign_targets.push((address(), None)),
        }
    }
    (own, Shares(Some(Shared { view, foreign_targets })))
}

fn key(target: &Target) -> u64 {
    let labels = target.iter().filter(|(name, _)| !name.starts_with("__meta_"));
    ring::key(labels.map(|(name, value)| (&**name, &**value)))
}

impl Shares {
    /// Returns true if targets are shared with other collectors.
    pub(super) fn is_shared(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the number of targets that this collector does not scrape.
    pub(super) fn foreign_count(&self) -> usize {
        self.0.as_ref().map_or(0, |shared| shared.foreign_targets.len())
    }

    /// Returns the text for the health message.
    pub(super) fn note(&self) -> String {
        let Some(Shared { view, foreign_targets }) = &self.0 else {
            return String::new();
        };
        if view.is_participant() {
            let others = view.members.len().saturating_sub(1);
            format!(
                ", {} targets belong to {others} other collectors",
                foreign_targets.len()
            )
        } else {
            ", the cluster has not assigned targets to this collector yet".to_owned()
        }
    }

    /// Returns the part of the debug info about shared targets.
    pub(super) fn debug_info(&self) -> Option<Value> {
        let Shared { view, foreign_targets } = self.0.as_ref()?;
        let entry = |(address, name): &(Arc<str>, Option<Arc<str>>)| {
            let collector = name.clone().map_or(Value::Null, Value::String);
            Value::object([("address", Value::String(address.clone())), ("collector", collector)])
        };
        Some(Value::object([
            ("ready", Value::Bool(view.is_participant())),
            (
                "collectors",
                Value::array(view.members.iter().map(|member| Value::String(member.name.clone()))),
            ),
            ("targets_elsewhere", Value::array(foreign_targets.iter().map(entry))),
        ]))
    }
}
