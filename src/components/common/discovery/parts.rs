//! Stores the targets of a discovery that requests its targets in several parts, for example one for each name, service
//! or path. If the request for a part fails, the part keeps its last targets, and the other parts are not affected.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::common::arguments::targets::Target;
use crate::common::discovery::discovery_error::DiscoveryError;
use crate::common::discovery::outdated::Outdated;

/// The last result for each part, by its name.
#[derive(Debug, Default)]
pub(crate) struct Parts(Mutex<BTreeMap<Arc<str>, Part>>);

#[derive(Debug, Default)]
struct Part {
    targets: Vec<Target>,
    failure: Option<Arc<DiscoveryError>>,
}

impl Parts {
    /// Stores the result for a part. After a failure the part keeps its targets.
    pub(crate) fn set(&self, name: &Arc<str>, listed: Result<Vec<Target>, DiscoveryError>) {
        let mut parts = self.0.lock();
        let part = parts.entry(name.clone()).or_default();
        match listed {
            Ok(targets) => {
                *part = Part { targets, failure: None };
            }
            Err(error) => part.failure = Some(Arc::new(error)),
        }
    }

    /// Removes the parts for which `is_there` returns false.
    pub(crate) fn retain(&self, is_there: impl Fn(&str) -> bool) {
        self.0.lock().retain(|name, _| is_there(name));
    }

    /// Returns the targets of all parts, in the order of the parts' names.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let parts = self.0.lock();
        parts.values().flat_map(|part| part.targets.iter().cloned()).collect()
    }

    /// Returns the error of the first failed part, and the number of other failed parts. Returns `None` if no part
    /// failed.
    pub(crate) fn failure(&self) -> Option<Outdated> {
        let parts = self.0.lock();
        let mut failures = parts.values().filter_map(|part| part.failure.as_ref());
        let first = failures.next()?.clone();
        Some(Outdated::Parts {
            first,
            others: failures.count(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_fails_keeps_its_targets_and_the_others_go_on() {
        let target = |address: &str| Target::from([("__address__".into(), address.into())]);
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "b".into());
        let parts = Parts::default();
        parts.set(&a, Ok(vec![target("one")]));
        parts.set(&b, Ok(vec![target("two")]));
        let failed = |reason: &str| Err(DiscoveryError::Response(reason.to_owned()));
        let failure = || parts.failure().map(|outdated| outdated.to_string());
        parts.set(&a, failed("a is away"));
        parts.set(&b, Ok(vec![target("three")]));
        assert_eq!(parts.targets(), [target("one"), target("three")]);
        assert_eq!(failure().unwrap(), "a is away");
        parts.set(&b, failed("b too"));
        assert_eq!(failure().unwrap(), "a is away (and 1 more)");
        parts.retain(|name| name == "b");
        parts.set(&b, Ok(Vec::new()));
        assert_eq!((parts.targets(), failure()), (Vec::new(), None));
    }
}
