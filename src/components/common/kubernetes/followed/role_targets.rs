//! The targets of a role, stored by object. A change rebuilds only the affected targets.

use std::collections::BTreeMap;

use crate::common::kubernetes::followed::arguments::Role;
use crate::common::kubernetes::followed::cluster::{Cluster, Discovered};
use crate::common::kubernetes::followed::store::StoredObject;
use crate::common::kubernetes::followed::wanted::Choose;
use crate::common::kubernetes::objects::{EndpointSlice, Endpoints, Ingress, Key, Node, Pod, Service};
use alluvium_lang::value::Value;

/// The targets of one role.
pub(super) struct RoleTargets {
    role: Role,
    choose: Choose,
    /// The targets of each object.
    ready: BTreeMap<Key, Box<[Value]>>,
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

    /// Rebuilds the targets that are affected by changes since the last call. An object is settled if all objects that
    /// its targets may refer to have been listed. The other objects are skipped, unless targets depend only on their
    /// own object: these targets are built at once, so that the object need not be kept until the list ends. The
    /// outcome concerns settled objects only.
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

    /// Returns the targets of all settled objects, ordered by namespace and name of the objects.
    pub(super) fn all(&self, is_settled: &dyn Fn(&Key) -> bool) -> Vec<Value> {
        let settled = self.ready.iter().filter(|(key, _)| is_settled(key));
        settled.flat_map(|(_, targets)| targets).cloned().collect()
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
        let is_independent = self.tells_of_one_object(cluster);
        let is_due = |key: &Key| is_independent || is_settled(key);
        let mut outcome = Outcome::Unchanged;
        for key in store.changed() {
            if store.contains(key) || !is_due(key) {
                continue;
            }
            self.complaints.remove(key);
            let had_targets = self.ready.remove(key).is_some_and(|targets| !targets.is_empty());
            if had_targets && is_settled(key) {
                outcome = Outcome::Changed;
            }
        }
        let stale: Vec<(&Key, &StoredObject<T>)> = if is_independent {
            let changed = store.changed().iter();
            changed.filter_map(|key| Some((key, store.get(key)?))).collect()
        } else {
            let is_stale =
                |key: &Key, kept: &StoredObject<T>| store.changed().contains(key) || T::is_touched(key, kept, cluster);
            let all = store.iter();
            all.filter(|(key, kept)| is_stale(key, kept) && is_settled(key))
                .collect()
        };
        for (key, kept) in stale {
            let chosen = (self.choose)(T::targets(key, kept, cluster));
            match chosen.complaint {
                Some(complaint) => self.complaints.insert(key.clone(), complaint),
                None => self.complaints.remove(key),
            };
            let shared = |target| {
                let target = texts.share_all(target);
                texts.target(target)
            };
            let targets: Box<[Value]> = chosen.targets.into_iter().map(shared).collect();
            if self.ready.get(key).map_or(&[][..], |ready| &**ready) != &*targets {
                self.ready.insert(key.clone(), targets);
                if is_settled(key) {
                    outcome = Outcome::Changed;
                }
            }
        }
        if is_independent {
            T::store_mut(cluster).empty();
        }
        cluster.texts = texts;
        outcome
    }

    /// Returns true if targets depend only on their own object. The content of the object is then dropped as soon as
    /// its targets have been built.
    pub(super) fn tells_of_one_object(&self, cluster: &Cluster) -> bool {
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

    fn nothing_attached() -> AttachMetadata {
        AttachMetadata {
            node: false,
            namespace: false,
        }
    }

    #[test]
    fn a_target_of_one_object_is_built_before_the_list_ends_and_exported_after_it() {
        let mut cluster = Cluster::new(nothing_attached());
        let mut targets = RoleTargets::new(Role::Pod, Chosen::all);
        let first = serde_json::from_value::<Pod>(pod("shop", "a", "10.0.0.1")).unwrap();
        cluster.take(&"".into(), Event::ListBegins::<Pod>);
        cluster.take(&"".into(), Event::Present(vec![first]));
        let is_settled = |_: &Key| false;
        assert_eq!(targets.refresh(&mut cluster, &is_settled), Outcome::Unchanged);
        let key = Key::new("shop", "a");
        assert!(cluster.pods.contains(&key) && cluster.pods.get(&key).is_none());
        assert_eq!(targets.all(&is_settled).len(), 0);
        cluster.take(&"".into(), Event::ListEnds::<Pod>);
        let is_settled = |_: &Key| true;
        assert_eq!(targets.refresh(&mut cluster, &is_settled), Outcome::Unchanged);
        assert_eq!(targets.all(&is_settled).len(), 1);
    }

    #[test]
    fn what_is_kept_does_not_grow_with_objects_that_come_and_go() {
        let mut cluster = Cluster::new(nothing_attached());
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
            targets.all(&settled).is_empty() && cluster.texts.len() < 5000,
            "{}",
            cluster.texts.len()
        );
    }
}
