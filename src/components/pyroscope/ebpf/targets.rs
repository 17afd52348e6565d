//! Finds the target of a process and builds the labels of its profiles. The module does no I/O.

use std::collections::HashMap;
use std::sync::Arc;

use crate::common::arguments::targets::Target;
use crate::common::discovery::identity::{CONTAINER_ID, PID, container_id, service_name};
use crate::pyroscope::ebpf::arguments::EbpfArguments;
use alluvium_ebpf::ProcessInfo;
use alluvium_profile::Labels;
use alluvium_profile::labels::{PROFILE_NAME, SERVICE_NAME};

/// The targets, indexed by process and by container.
#[derive(Debug, Default)]
pub(super) struct Targets {
    labels: Vec<Labels>,
    by_pid: HashMap<u32, usize>,
    by_container: HashMap<Arc<str>, usize>,
    /// Labels for processes without a target, or `None` if such processes are not profiled.
    rest: Option<Labels>,
}

impl Targets {
    /// Indexes targets by process and container. A target that names neither a process nor a container matches nothing.
    pub(super) fn new(arguments: &EbpfArguments) -> Self {
        let mut sorted = Self::sorted(arguments.targets.iter());
        if !arguments.options.targets_only {
            sorted.take_rest();
        }
        sorted
    }

    fn sorted(targets: impl Iterator<Item = Target>) -> Self {
        let mut sorted = Self::default();
        for target in targets {
            let target = &target;
            let pid = target.get(PID).and_then(|pid| pid.parse().ok());
            let container = container_id(target);
            if pid.is_none() && container.is_none() {
                continue;
            }
            let index = sorted.labels.len();
            sorted.labels.push(labels(target, pid, container.as_deref()));
            // A target that names a process matches that process only.
            match (pid, container) {
                (Some(pid), _) => {
                    sorted.by_pid.insert(pid, index);
                }
                (None, Some(container)) => {
                    sorted.by_container.insert(container, index);
                }
                (None, None) => {}
            }
        }
        sorted
    }

    /// Adds labels for processes without a target, so that they are profiled, too.
    fn take_rest(&mut self) {
        self.rest = Some(Labels::from_pairs([
            (PROFILE_NAME, "process_cpu"),
            (SERVICE_NAME, "ebpf/unspecified"),
        ]));
    }

    /// Returns the labels for the profiles of a process, or `None` if it has no target and is not profiled.
    pub(super) fn find(&self, process: &ProcessInfo) -> Option<&Labels> {
        let index = self
            .by_pid
            .get(&process.pid)
            .or_else(|| self.by_container.get(process.container_id.as_str()));
        match index {
            Some(index) => self.labels.get(*index),
            None => self.rest.as_ref(),
        }
    }

    /// Returns the number of targets that can match.
    pub(super) fn len(&self) -> usize {
        self.labels.len()
    }
}

/// Returns the labels for the profiles of a target: its labels that do not begin with `__`, its process and container
/// ids, its service name, and the profile name.
fn labels(target: &Target, pid: Option<u32>, container: Option<&str>) -> Labels {
    let public = target.iter().filter(|(name, _)| !name.starts_with("__"));
    let name = target.get(PROFILE_NAME).map_or("process_cpu", AsRef::as_ref);
    let own = [
        (SERVICE_NAME, Some(service_name(target, "ebpf/"))),
        (PROFILE_NAME, Some(name.to_owned())),
        (CONTAINER_ID, container.map(str::to_owned)),
        (PID, pid.map(|pid| pid.to_string())),
    ];
    let own = own
        .into_iter()
        .filter_map(|(name, value)| Some((Arc::from(name), Arc::from(value?))));
    Labels::from_pairs(public.map(|(name, value)| (name.clone(), value.clone())).chain(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(pairs: &[(&str, &str)]) -> Target {
        pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    }

    fn process(pid: u32, container: &str) -> ProcessInfo {
        ProcessInfo {
            pid,
            start: 1,
            executable: String::new(),
            comm: String::new(),
            container_id: container.to_owned(),
            user: None,
        }
    }

    #[test]
    fn a_process_wins_over_its_container_and_the_rest_is_left_out_or_named() {
        let targets = [
            target(&[
                (PID, "7"),
                (CONTAINER_ID, "abc"),
                ("service_name", "mine"),
                ("__meta_x", "y"),
            ]),
            target(&[
                ("__meta_kubernetes_pod_container_id", "containerd://abc"),
                ("__meta_kubernetes_namespace", "shop"),
                ("__meta_kubernetes_pod_container_name", "cart"),
            ]),
            target(&[("service_name", "nobody")]),
        ];
        let targets_without_rest = Targets::sorted(targets.clone().into_iter());
        let service = |targets: &Targets, process: &ProcessInfo| {
            targets
                .find(process)
                .and_then(|labels| labels.get("service_name"))
                .map(str::to_owned)
        };
        assert_eq!(targets_without_rest.len(), 2);
        assert_eq!(
            service(&targets_without_rest, &process(7, "abc")).as_deref(),
            Some("mine")
        );
        assert_eq!(
            service(&targets_without_rest, &process(8, "abc")).as_deref(),
            Some("ebpf/shop/cart")
        );
        assert_eq!(service(&targets_without_rest, &process(9, "")), None);
        let mut all = Targets::sorted(targets.into_iter());
        all.take_rest();
        assert_eq!(service(&all, &process(9, "")).as_deref(), Some("ebpf/unspecified"));
        let labels = targets_without_rest.find(&process(7, "abc")).unwrap();
        assert_eq!(labels.get("__name__"), Some("process_cpu"));
        assert_eq!(labels.get("__process_pid__"), Some("7"));
        assert_eq!(labels.get("__meta_x"), None);
    }
}
