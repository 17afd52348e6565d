//! Targets as values of the configuration language: a list of maps of strings.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, text};
use alluvium_lang::schema::{Kind, TARGETS};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::live::{Entry, LiveHandle};

/// The labels of one target, by name.
pub(crate) type Target = BTreeMap<Arc<str>, Arc<str>>;

/// Targets that a component receives as an argument. They share memory with the configuration value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Targets(Value);

impl Targets {
    /// Iterates over the targets.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Target> {
        items(&self.0).iter().map(labels)
    }

    /// Returns the number of targets.
    pub(crate) fn count(&self) -> usize {
        count(&self.0)
    }

    /// Returns the value of the configuration.
    pub(super) fn value(&self) -> &Value {
        &self.0
    }
}

impl FromValue for Targets {
    const KIND: Kind = TARGETS;

    fn from_value(_: &str, value: &Value) -> Result<Self, ArgumentError> {
        Ok(Self(value.clone()))
    }
}

/// Converts targets to a value of the configuration language.
pub(crate) fn to_value(targets: impl IntoIterator<Item = Target>) -> Value {
    Value::array(targets.into_iter().map(one))
}

/// Returns the number of targets in a value.
pub(crate) fn count(targets: &Value) -> usize {
    items(targets).len()
}

/// Returns the targets in a value. A value that is no list has none.
pub(super) fn items(targets: &Value) -> &[Value] {
    match targets {
        Value::Array(items) => items,
        _ => &[],
    }
}

/// Returns the labels of a target. Labels whose values are no texts are skipped.
pub(super) fn labels(target: &Value) -> Target {
    let Value::Object(fields) = target else {
        return Target::new();
    };
    let label = |(name, value): (&Arc<str>, &Value)| Some((name.clone(), text(value)?));
    fields.iter().filter_map(label).collect()
}

/// Converts a target to a value of the configuration language.
pub(crate) fn one(target: Target) -> Value {
    let fields = target.into_iter().map(|(name, value)| (name, Value::String(value)));
    Value::Object(Arc::new(fields.collect()))
}

/// Like [`tell`], for targets that are already values of the configuration language.
pub(crate) fn tell_values(targets: &[Value], live: &LiveHandle) {
    live.exported_targets(targets.len());
    if live.is_watched() {
        targets
            .iter()
            .for_each(|target| live.tell(|| Entry::Target(labels(target))));
    }
}

/// Counts the targets that a component exports, and sends the targets to open live views. Components call this function
/// at every export.
pub(crate) fn tell(targets: &[Target], live: &LiveHandle) {
    live.exported_targets(targets.len());
    if live.is_watched() {
        targets
            .iter()
            .for_each(|target| live.tell(|| Entry::Target(target.clone())));
    }
}
