//! Targets as values of the configuration language: a list of maps of strings.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lang::value::Value;
use crate::pipeline::live::{Entry, LiveHandle};

/// Labels of one target.
pub type Target = BTreeMap<Arc<str>, Arc<str>>;

/// Targets as a value.
pub fn to_value(targets: impl IntoIterator<Item = Target>) -> Value {
    Value::array(targets.into_iter().map(|target| {
        Value::Object(Arc::new(
            target
                .into_iter()
                .map(|(name, value)| (name, Value::String(value)))
                .collect(),
        ))
    }))
}

/// Counts the targets that a component exports, and tells them to whoever looks at it. Called at every export.
pub fn tell(targets: &[Target], live: &LiveHandle) {
    live.exported_targets(targets.len());
    if live.is_watched() {
        targets
            .iter()
            .for_each(|target| live.tell(|| Entry::Target(target.clone())));
    }
}
