//! The role `ingress`: a target for each path of each rule of an ingress.

use crate::common::arguments::targets::Target;
use crate::common::discovery::meta_labels::MetaLabels;
use crate::common::kubernetes::followed::cluster::{Cluster, Discovered};
use crate::common::kubernetes::followed::store::{Described, StoredObject};
use crate::common::kubernetes::objects::{Ingress, IngressRule, Key};
use crate::common::kubernetes::pods::{PREFIX, set_object, with};

impl Described for Ingress {
    fn labels(&self) -> Target {
        let mut labels = MetaLabels::new(PREFIX);
        labels.set("namespace", &self.metadata.namespace);
        labels.set_some("ingress_class_name", self.spec.ingress_class_name.as_ref());
        set_object(&mut labels, "ingress", &self.metadata);
        labels.into_target()
    }
}

/// The targets of an ingress.
impl Discovered for Ingress {
    fn targets(key: &Key, ingress: &StoredObject<Self>, cluster: &Cluster) -> Vec<Target> {
        let mut common_labels = ingress.labels.clone();
        cluster.attach_namespace(&mut common_labels, &key.namespace);
        let spec = &ingress.object.spec;
        let mut targets = Vec::new();
        for rule in &spec.rules {
            let mut tls_hosts = spec.tls.iter().flat_map(|tls| &tls.hosts);
            let is_tls = tls_hosts.any(|pattern| matches(pattern, &rule.host));
            for path in paths(rule) {
                let mut labels = MetaLabels::new(PREFIX);
                labels
                    .set("ingress_scheme", if is_tls { "https" } else { "http" })
                    .set("ingress_host", &rule.host)
                    .set("ingress_path", path);
                targets.push(with(&common_labels, labels.with_address(rule.host.as_str())));
            }
        }
        targets
    }

    fn is_touched(key: &Key, _: &StoredObject<Self>, cluster: &Cluster) -> bool {
        cluster.has_changed(&key.namespace, None, None)
    }
}

/// Returns the paths of a rule. A rule without paths, or an empty path, yields `/`.
fn paths(rule: &IngressRule) -> Vec<&str> {
    let Some(http) = &rule.http else {
        return vec!["/"];
    };
    let paths = http.paths.iter().map(|one| one.path.as_str());
    paths.map(|path| if path.is_empty() { "/" } else { path }).collect()
}

/// Returns true if the host pattern of a certificate matches a host. `*` stands for the first part of the name.
fn matches(pattern: &str, host: &str) -> bool {
    pattern == host
        || match (pattern.strip_prefix("*."), host.split_once('.')) {
            (Some(domain), Some((_, rest))) => domain == rest,
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_one_part_of_a_name() {
        assert!(matches("a.example.com", "a.example.com") && matches("*.example.com", "a.example.com"));
        assert!(!matches("*.example.com", "a.b.example.com") && !matches("*.example.com", "example.com"));
        assert!(!matches("a.*.com", "a.example.com"));
    }
}
