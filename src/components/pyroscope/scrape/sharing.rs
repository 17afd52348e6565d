//! Which of the discovered targets are scraped here, and which by other collectors of the cluster.
//!
//! In: discovered targets, the cluster. Out: the targets of this collector. Every collector comes to the same result
//! for the same targets, as their labels alone decide; those that begin with `__meta_` may differ between discoveries
//! and do not count.

use std::sync::Arc;

use crate::cluster::{Cluster, Owner, View, ring};
use crate::components::common::arguments::targets::Target;
use crate::components::pyroscope::scrape::arguments::ScrapeArguments;
use crate::lang::value::Value;

/// How targets were shared, for people. Empty where they are not.
#[derive(Default)]
pub(super) struct Shares(Option<Shared>);

struct Shared {
    view: Arc<View>,
    /// Address of each target of another collector, and that one's name; without a name while this collector takes no
    /// part.
    elsewhere: Vec<(Arc<str>, Option<Arc<str>>)>,
}

/// The targets that are scraped here.
#[derive(Default)]
pub(super) struct Own {
    pub targets: Vec<Target>,
    /// How many more there are than the limit allows.
    pub beyond: usize,
}

/// The targets that are scraped here. Without a cluster, or where the arguments do not ask for it, all of them.
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
    let mut elsewhere = Vec::new();
    for target in arguments.targets.iter() {
        let address = || target.get("__address__").cloned().unwrap_or_default();
        match view.owner(key(&target)) {
            // Each collector counts its own: the order of the others may be another elsewhere.
            Owner::Own if own.targets.len() < limit => own.targets.push(target),
            Owner::Own => own.beyond += 1,
            Owner::Other(name) => elsewhere.push((address(), Some(name))),
            Owner::Unknown => elsewhere.push((address(), None)),
        }
    }
    (own, Shares(Some(Shared { view, elsewhere })))
}

fn key(target: &Target) -> u64 {
    let labels = target.iter().filter(|(name, _)| !name.starts_with("__meta_"));
    ring::key(labels.map(|(name, value)| (&**name, &**value)))
}

impl Shares {
    /// Whether targets are shared with other collectors.
    pub(super) fn is_shared(&self) -> bool {
        self.0.is_some()
    }

    /// How many targets are not scraped here.
    pub(super) fn elsewhere(&self) -> usize {
        self.0.as_ref().map_or(0, |shared| shared.elsewhere.len())
    }

    /// What the health says of it.
    pub(super) fn note(&self) -> String {
        let Some(Shared { view, elsewhere }) = &self.0 else {
            return String::new();
        };
        if view.is_participant() {
            let others = view.members.len().saturating_sub(1);
            format!(", {} targets are left to {others} other collectors", elsewhere.len())
        } else {
            ", the cluster is not ready for a share of the targets".to_owned()
        }
    }

    /// The part of the debug info about it.
    pub(super) fn debug_info(&self) -> Option<Value> {
        let Shared { view, elsewhere } = self.0.as_ref()?;
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
            ("targets_elsewhere", Value::array(elsewhere.iter().map(entry))),
        ]))
    }
}
