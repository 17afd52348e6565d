//! The targets of a role, stored by object. A change rebuilds only the affected targets.

use std::collections::BTreeMap;

use crate::common::arguments::targets;
use crate::common::kubernetes::followed::arguments::Role;
use crate::common::kubernetes::followed::cluster::{Cluster, Discovered};
use crate::common::kubernetes::followed::wanted::Choose;
use crate::common::kubernetes::objects::{EndpointSlice, Endpoints, Ingress, Key, Node, Pod, Service};
use alluvium_lang::value::Value;

/// The targets of one role.
pub(super) struct RoleTargets {
    role: Role,
    choose: Choose,
    ready: BTreeMap<Key, Vec<Value>>,
    /// For each object that requests more targets than it gets, the reason.
    complaints: BTreeMap<Key, String>,
}

/// Objects that request more targets than they get, for example pods with an invalid annotation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) objects: usize,
    /// The first of these objects, with the reason.
    pub(super) example: Option<String>,
}

/// Whether any target has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Unchanged,
    Changed,
}

impl RoleTargets {
    pub(super) fn new(role: Role, choose: Choose) -> Self {
        Self {
            role,
            choose,
            ready: BTreeMap::new(),
            complaints: BTreeMap::new(),
        }
    }

    /// Rebuilds the targets that are affected by changes since the last call. Skips objects for which `is_settled`
    /// returns false, because not all objects that they refer to have been listed.
    pub(super) fn refresh(&mut self, cluster: &mut Cluster, is_settled: &dyn Fn(&Key) -> bool) -> Outcome {
        let outcome = match self.role {
            Role::Pod => self.remake::<Pod>(cluster, is_settled),
            Role::Node => self.remake::<Node>(cluster, is_settled),
            Role::Service => self.remake::<Service>(cluster, is_settled),
            Role::Endpoints => self.remake::<Endpoints>(cluster, is_settled),
            Role::EndpointSlice => self.remake::<EndpointSlice>(cluster, is_settled),
            Role::Ingress => self.remake::<Ingress>(cluster, is_settled),
        };
        cluster.settle(is_settled);
        outcome
    }

    /// Returns all targets, ordered by namespace and name of their objects.
    pub(super) fn all(&self) -> Vec<Value> {
        self.ready.values().flatten().cloned().collect()
    }

    /// Returns the number of objects that request more targets than they get, and an example.
    pub(super) fn left_out(&self) -> LeftOut {
        let first = self.complaints.first_key_value();
        LeftOut {
            objects: self.complaints.len(),
            example: first.map(|(key, complaint)| format!("{}/{}: {complaint}", key.namespace, key.name)),
        }
    }

    fn remake<T: Discovered>(&mut self, cluster: &mut Cluster, is_settled: &dyn Fn(&Key) -> bool) -> Outcome {
        let mut texts = std::mem::take(&mut cluster.texts);
        let store = T::store(cluster);
        let mut outcome = Outcome::Unchanged;
        for key in store
            .changed()
            .iter()
            .filter(|key| store.get(key).is_none() && is_settled(key))
        {
            self.complaints.remove(key);
            if self.ready.remove(key).is_some_and(|targets| !targets.is_empty()) {
                outcome = Outcome::Changed;
            }
        }
        for (key, kept) in store.iter() {
            let is_stale = store.changed().contains(key) || T::is_touched(key, kept, cluster);
            if !is_stale || !is_settled(key) {
                continue;
            }
            let chosen = (self.choose)(T::targets(key, kept, cluster));
            match chosen.complaint {
                Some(complaint) => self.complaints.insert(key.clone(), complaint),
                None => self.complaints.remove(key),
            };
            let targets = chosen.targets.into_iter();
            let targets: Vec<Value> = targets.map(|target| targets::one(texts.share_all(target))).collect();
            if self.ready.get(key).map_or(&[][..], Vec::as_slice) != targets {
                self.ready.insert(key.clone(), targets);
                outcome = Outcome::Changed;
            }
        }
        if self.tells_of_one_object(cluster) {
            T::store_mut(cluster).empty(is_settled);
        }
        cluster.texts = texts;
        outcome
    }

    /// Returns true if targets depend only on their own object. The content of the object is then dropped as soon as
    /// its targets have been built.
    fn tells_of_one_object(&self, cluster: &Cluster) -> bool {
        match self.role {
            Role::Node => true,
            Role::Pod | Role::Service | Role::Ingress => !cluster.attached.node && !cluster.attached.namespace,
            Role::Endpoints | Role::EndpointSlice => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::kubernetes::followed::arguments::AttachMetadata;
    use crate::common::kubernetes::followed::wanted::Chosen;
    use crate::common::kubernetes::testing::pod;
    use crate::common::kubernetes::watch::Event;

    #[test]
    fn what_is_kept_does_not_grow_with_objects_that_come_and_go() {
        let attached = AttachMetadata {
            node: false,
            namespace: false,
        };
        let mut cluster = Cluster::new(attached);
        let mut targets = RoleTargets::new(Role::Pod, Chosen::all);
        let settled = |_: &Key| true;
        for generation in 0..500 {
            let name = |index: usize| format!("p{generation}-{index}");
            let ip = |index: usize| format!("10.{}.{}.{index}", generation / 250, generation % 250);
            let numbered_pod = |index| serde_json::from_value::<Pod>(pod("shop", &name(index), &ip(index))).unwrap();
            cluster.take(&"".into(), Event::Present((0..20).map(numbered_pod).collect()));
            assert_eq!(targets.refresh(&mut cluster, &settled), Outcome::Changed);
            for index in 0..20 {
                cluster.take::<Pod>(&"".into(), Event::Absent(Key::new("shop", &name(index))));
            }
            assert_eq!(targets.refresh(&mut cluster, &settled), Outcome::Changed);
        }
        // Some unused texts still wait for their removal. More than 40,000 texts were seen.
        assert!(
            targets.all().is_empty() && cluster.texts.len() < 5000,
            "{}",
            cluster.texts.len()
        );
    }
}
