//! Evaluates a path on a document, and filters on elements.
//!
//! An order comparison or match is false if it does not support the types of its operands, as in the library that Alloy
//! uses.

use serde_json::Value as Json;

use super::path::{Filter, Selector, Step};

/// Returns the values that the steps select from `start`. Filters may refer to the whole document.
pub(super) fn apply<'a>(start: &'a Json, document: &'a Json, steps: &[Step]) -> Vec<&'a Json> {
    let mut values = vec![start];
    for step in steps {
        let mut next = Vec::new();
        for value in values {
            select(value, document, step, &mut next);
        }
        values = next;
    }
    values
}

fn select<'a>(value: &'a Json, document: &'a Json, step: &Step, out: &mut Vec<&'a Json>) {
    for selector in &step.selectors {
        match (selector, value) {
            (Selector::Name(name), Json::Object(fields)) => out.extend(fields.get(name)),
            (Selector::Index(index), Json::Array(items)) => {
                out.extend(position(*index, items.len()).and_then(|index| items.get(index)));
            }
            (Selector::Slice(start, end, stride), Json::Array(items)) => {
                let length = items.len() as i64;
                let bound = |value: i64| (if value < 0 { value + length } else { value }).clamp(0, length) as usize;
                let (start, end) = (bound(start.unwrap_or(0)), bound(end.unwrap_or(length)));
                let step = usize::try_from(stride.unsigned_abs()).unwrap_or(usize::MAX).max(1);
                if *stride < 0 {
                    // Backwards from the start to the end, which is excluded.
                    let last = start.min(items.len().saturating_sub(1));
                    out.extend(
                        (end + 1..=last)
                            .rev()
                            .step_by(step)
                            .filter_map(|index| items.get(index)),
                    );
                } else {
                    out.extend(items.get(start..end).unwrap_or_default().iter().step_by(step));
                }
            }
            (Selector::Filter(filter), Json::Array(items)) => {
                out.extend(items.iter().filter(|item| filter.accepts(item, document)));
            }
            (Selector::Filter(filter), Json::Object(fields)) => {
                out.extend(fields.values().filter(|item| filter.accepts(item, document)));
            }
            (Selector::All, Json::Array(items)) => out.extend(items),
            (Selector::All, Json::Object(fields)) => out.extend(fields.values()),
            _ => {}
        }
    }
    if step.is_recursive {
        match value {
            Json::Array(items) => items.iter().for_each(|item| select(item, document, step, out)),
            Json::Object(fields) => fields.values().for_each(|item| select(item, document, step, out)),
            _ => {}
        }
    }
}

fn position(index: i64, length: usize) -> Option<usize> {
    let index = if index < 0 {
        index.checked_add(length as i64)?
    } else {
        index
    };
    usize::try_from(index).ok()
}

/// The value of an operand for one element.
enum Operand<'a> {
    Nothing,
    One(std::borrow::Cow<'a, Json>),
}

impl Filter {
    /// True if the filter accepts an element of a document. A filter that is only a path accepts the element if the
    /// path selects a value.
    fn accepts(&self, element: &Json, document: &Json) -> bool {
        match self {
            Self::Path(..) => matches!(self.value(element, document), Operand::One(_)),
            _ => matches!(self.value(element, document), Operand::One(value) if *value == Json::Bool(true)),
        }
    }

    fn value<'a>(&'a self, element: &'a Json, document: &'a Json) -> Operand<'a> {
        use std::borrow::Cow;
        match self {
            Self::Value(value) => Operand::One(Cow::Borrowed(value)),
            Self::Pattern(pattern) => Operand::One(Cow::Owned(pattern.as_str().into())),
            Self::List(items) => {
                let items = items.iter().map(|item| match item.value(element, document) {
                    Operand::One(value) => value.into_owned(),
                    Operand::Nothing => Json::Null,
                });
                Operand::One(Cow::Owned(items.collect()))
            }
            Self::Path(from_document, steps) => {
                let start = if *from_document { document } else { element };
                match apply(start, document, steps).first() {
                    Some(value) => Operand::One(Cow::Borrowed(*value)),
                    None => Operand::Nothing,
                }
            }
            Self::Not(inner) => Operand::One(Cow::Owned(Json::Bool(!inner.accepts(element, document)))),
            Self::Binary(operator, left, right) => {
                Operand::One(Cow::Owned(binary(operator, left, right, element, document)))
            }
        }
    }
}

fn binary(operator: &str, left: &Filter, right: &Filter, element: &Json, document: &Json) -> Json {
    match operator {
        "&&" => return Json::Bool(left.accepts(element, document) && right.accepts(element, document)),
        "||" => return Json::Bool(left.accepts(element, document) || right.accepts(element, document)),
        _ => {}
    }
    let (left_value, right_value) = (left.value(element, document), right.value(element, document));
    let (left_value, right_value) = match (&left_value, &right_value) {
        (Operand::One(left), Operand::One(right)) => (left.as_ref(), right.as_ref()),
        // A missing value equals only another missing value.
        (Operand::Nothing, Operand::Nothing) => return Json::Bool(operator == "=="),
        (Operand::Nothing, Operand::One(expected)) if operator == "has" => {
            return Json::Bool(expected.as_bool() == Some(false));
        }
        _ => return Json::Bool(operator == "!="),
    };
    let ordering = match (left_value, right_value) {
        (Json::Number(left), Json::Number(right)) => left.as_f64().partial_cmp(&right.as_f64()),
        (Json::String(left), Json::String(right)) => Some(left.cmp(right)),
        _ => None,
    };
    let is_equal = match (left_value, right_value) {
        (Json::Number(_), Json::Number(_)) => ordering.is_some_and(std::cmp::Ordering::is_eq),
        (left, right) => left == right,
    };
    Json::Bool(match operator {
        "==" => is_equal,
        "!=" => !is_equal,
        "<" => ordering.is_some_and(std::cmp::Ordering::is_lt),
        "<=" => ordering.is_some_and(std::cmp::Ordering::is_le),
        ">" => ordering.is_some_and(std::cmp::Ordering::is_gt),
        ">=" => ordering.is_some_and(std::cmp::Ordering::is_ge),
        "in" => right_value.as_array().is_some_and(|items| items.contains(left_value)),
        "has" => right_value.as_bool() == Some(true),
        "empty" => right_value.as_bool() == Some(is_empty(left_value)),
        "=~" => match (right, left_value.as_str()) {
            (Filter::Pattern(pattern), Some(text)) => pattern.is_match(text),
            _ => false,
        },
        _ => return arithmetic(operator, left_value, right_value),
    })
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        Json::String(text) => text.is_empty(),
        _ => false,
    }
}

fn arithmetic(operator: &str, left: &Json, right: &Json) -> Json {
    if let (Json::String(left), Json::String(right), "+") = (left, right, operator) {
        return format!("{left}{right}").into();
    }
    let (Some(left), Some(right)) = (left.as_f64(), right.as_f64()) else {
        return Json::Null;
    };
    let result = match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        _ => left / right,
    };
    // Division by zero yields null.
    serde_json::Number::from_f64(result).map_or(Json::Null, Json::Number)
}
