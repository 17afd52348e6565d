//! Functions over lists and values: `array.*` and `coalesce`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::arguments::{array, count, fail, text};
use crate::convert::value_name;
use crate::value::{Fields, FunctionError, Number, Value};

pub(super) fn concat(arguments: &[Value]) -> Result<Value, FunctionError> {
    let lists = (0..arguments.len())
        .map(|index| array(arguments, index))
        .collect::<Result<Vec<_>, _>>()?;
    // A single list is returned as it is, without a copy.
    Ok(match arguments {
        [list] => list.clone(),
        _ => Value::array(lists.concat()),
    })
}

/// Returns the first argument that is not null, zero or empty; otherwise the last one.
pub(super) fn coalesce(arguments: &[Value]) -> Result<Value, FunctionError> {
    Ok(arguments
        .iter()
        .find(|value| !is_zero(value))
        .or(arguments.last())
        .cloned()
        .unwrap_or_default())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == 0.0,
        Value::String(text) | Value::Secret(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Function(_) | Value::Capsule(_) => false,
    }
}

type Object = Arc<Fields>;

fn objects(arguments: &[Value], index: usize) -> Result<Vec<&Object>, FunctionError> {
    array(arguments, index)?
        .iter()
        .map(|item| match item {
            Value::Object(fields) => Ok(fields),
            other => Err(fail(index, format!("expected object, got {}", value_name(other)))),
        })
        .collect()
}

/// Joins two lists of objects on keys; fields of the right object win. If the fourth argument is true, the result also
/// contains a left object once for each right object that it does not match, as in Alloy.
pub(crate) fn combine_maps(arguments: &[Value]) -> Result<Value, FunctionError> {
    if arguments.len() != 4 {
        count(arguments, 3)?;
    }
    let (left, right) = (objects(arguments, 0)?, objects(arguments, 1)?);
    let keys = array(arguments, 2)?
        .iter()
        .map(|key| crate::convert::string(key).map_err(|error| fail(2, error.message)))
        .collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() {
        return Err(fail(2, "merge conditions must not be empty"));
    }
    let keep = match arguments.get(3) {
        None => false,
        Some(Value::Bool(keep)) => *keep,
        Some(other) => return Err(fail(3, format!("expected bool, got {}", value_name(other)))),
    };
    let mut joined = Vec::new();
    for left in &left {
        for right in &right {
            let matches = keys.iter().all(|key| {
                left.get(key)
                    .zip(right.get(key))
                    .is_some_and(|(left, right)| left == right)
            });
            if matches {
                let mut fields = (***left).clone();
                fields.extend(right.iter().map(|(key, value)| (key.clone(), value.clone())));
                joined.push(Value::Object(Arc::new(fields)));
            } else if keep {
                joined.push(Value::Object(Arc::clone(left)));
            }
        }
    }
    Ok(Value::array(joined))
}

/// Groups objects by a string field; the groups are sorted by the value of the field.
pub(super) fn group_by(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 3)?;
    let items = objects(arguments, 0)?;
    let key = text(arguments, 1)?;
    let Value::Bool(drop_missing) = arguments[2] else {
        return Err(fail(2, format!("expected bool, got {}", value_name(&arguments[2]))));
    };
    let mut groups: BTreeMap<Arc<str>, Vec<Value>> = BTreeMap::new();
    for item in items {
        let group = match item.get(&key) {
            None if drop_missing => continue,
            None => "".into(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => return Err(fail(0, format!("expected string, got {}", value_name(other)))),
        };
        groups.entry(group).or_default().push(Value::Object(item.clone()));
    }
    Ok(Value::array(groups.into_iter().map(|(group, items)| {
        Value::object([
            (key.clone(), Value::String(group)),
            ("items".into(), Value::array(items)),
        ])
    })))
}

/// Converts a number from JSON or YAML; whole numbers stay whole.
pub(crate) fn whole_or_float(number: &serde_json::Number) -> Number {
    number
        .as_i64()
        .map(Number::Int)
        .or_else(|| number.as_u64().map(Number::Uint))
        .unwrap_or_else(|| Number::Float(number.as_f64().unwrap_or(f64::NAN)))
}
