//! Targets as values of the configuration language: a list of maps of strings.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lang::value::Value;
use crate::pipeline::component::live::{Entry, LiveHandle};

/// Labels of one target.
pub type Target = BTreeMap<Arc<str>, Arc<str>>;

/// Targets as a value.
pub fn to_value(targets: impl IntoIterator<Item = Target>) -> Value {
    Value::array(targets.into_iter().map(one))
}

/// How many targets a value holds.
pub fn count(targets: &Value) -> usize {
    match targets {
        Value::Array(items) => items.len(),
        _ => 0,
    }
}

/// Targets after `change`, which drops those that it answers with nothing. What did not change is shared with the value given: a target, or all of it.
pub fn map(targets: &Value, change: impl Fn(Target) -> Option<Target>) -> Value {
    let Value::Array(items) = targets else {
        return Value::array([]);
    };
    let mut is_same = true;
    let mut changed = Vec::with_capacity(items.len());
    for item in items.iter() {
        let labels = labels(item);
        let after = change(labels.clone());
        match after {
            Some(after) if after == labels && matches!(item, Value::Object(_)) => changed.push(item.clone()),
            Some(after) => {
                is_same = false;
                changed.push(one(after));
            }
            None => is_same = false,
        }
    }
    match is_same {
        true => targets.clone(),
        false => Value::array(changed),
    }
}

fn labels(target: &Value) -> Target {
    let Value::Object(fields) = target else {
        return Target::new();
    };
    let text = |(name, value): (&Arc<str>, &Value)| match value {
        Value::String(text) | Value::Secret(text) => Some((name.clone(), text.clone())),
        _ => None,
    };
    fields.iter().filter_map(text).collect()
}

fn one(target: Target) -> Value {
    let fields = target.into_iter().map(|(name, value)| (name, Value::String(value)));
    Value::Object(Arc::new(fields.collect()))
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
