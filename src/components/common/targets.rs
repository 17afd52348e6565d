//! Targets as values of the configuration language: a list of maps of strings.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lang::value::Value;

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
