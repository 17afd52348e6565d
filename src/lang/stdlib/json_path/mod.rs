//! `json_path(json, path)`: the values that a JSONPath selects, in document order.
//!
//! Understands `$`, `.name`, `.*`, `..name`, `..*`, `['name']`, `[0]`, `[-1]`, `[*]`, slices `[1:3]`, unions `[0,2]` and filters
//! `[?(@.name == 'x')]` ([`filter`]). Scripts `[(...)]` are refused with a message, as Alloy refuses them.

mod filter;

use serde_json::Value as Json;

use super::{count, encoding, fail, lists, text};
use crate::lang::value::{FunctionError, Value};

#[derive(Debug)]
enum Selector {
    Name(String),
    Index(i64),
    Slice(Option<i64>, Option<i64>, i64),
    All,
    Filter(Box<filter::Filter>),
}

#[derive(Debug)]
struct Step {
    /// Applies to every value below as well.
    deep: bool,
    selectors: Vec<Selector>,
}

pub fn json_path(arguments: &[Value]) -> Result<Value, FunctionError> {
    count(arguments, 2)?;
    let (document, path) = (text(arguments, 0)?, text(arguments, 1)?);
    // As in Alloy: there is nothing in an empty document, and an empty path leads nowhere.
    if document.trim().is_empty() || path.is_empty() {
        return Ok(Value::array([]));
    }
    let document = encoding::parse_json(&document)?;
    let steps = parse(&path).map_err(|message| fail(1, message))?;
    Ok(Value::array(
        apply(&document, &document, &steps)
            .into_iter()
            .map(|value| encoding::from_serde(value, &lists::whole_or_float)),
    ))
}

/// What the steps select from `start`; filters may refer to the whole document.
fn apply<'a>(start: &'a Json, document: &'a Json, steps: &[Step]) -> Vec<&'a Json> {
    let mut found = vec![start];
    for step in steps {
        let mut next = Vec::new();
        for value in found {
            select(value, document, step, &mut next);
        }
        found = next;
    }
    found
}

fn select<'a>(value: &'a Json, document: &'a Json, step: &Step, out: &mut Vec<&'a Json>) {
    for selector in &step.selectors {
        match (selector, value) {
            (Selector::Name(name), Json::Object(fields)) => out.extend(fields.get(name)),
            (Selector::Index(index), Json::Array(items)) => {
                out.extend(position(*index, items.len()).and_then(|at| items.get(at)));
            }
            (Selector::Slice(start, end, stride), Json::Array(items)) => {
                let length = items.len() as i64;
                let bound = |value: i64| (if value < 0 { value + length } else { value }).clamp(0, length) as usize;
                let (start, end) = (bound(start.unwrap_or(0)), bound(end.unwrap_or(length)));
                let step = usize::try_from(stride.unsigned_abs()).unwrap_or(usize::MAX).max(1);
                if *stride < 0 {
                    // Backwards from the start down to, without, the end.
                    let last = start.min(items.len().saturating_sub(1));
                    out.extend((end + 1..=last).rev().step_by(step).filter_map(|at| items.get(at)));
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
    if step.deep {
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

fn parse(path: &str) -> Result<Vec<Step>, String> {
    let mut rest = path.trim();
    rest = rest.strip_prefix('$').unwrap_or(rest);
    let mut steps = Vec::new();
    let mut first = true;
    while !rest.is_empty() {
        let deep = rest.starts_with("..");
        let bare = first && !rest.starts_with(['.', '[']);
        first = false;
        rest = if deep {
            &rest[2..]
        } else {
            rest.strip_prefix('.').unwrap_or(rest)
        };
        let selectors = if let Some(inner) = rest.strip_prefix('[') {
            let end = closing(inner).ok_or_else(|| format!("`[` without `]` in path `{path}`"))?;
            rest = &inner[end + 1..];
            union(&inner[..end])?
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let name = &rest[..end];
            rest = &rest[end..];
            if name.is_empty() && !bare {
                return Err(format!("a name is missing in path `{path}`"));
            }
            if let Some(other) = name.chars().find(|character| name != "*" && !is_bare(*character)) {
                return Err(format!("`{other}` in path `{path}`: write such a name as ['{name}']"));
            }
            vec![if name == "*" {
                Selector::All
            } else {
                Selector::Name(name.to_owned())
            }]
        };
        steps.push(Step { deep, selectors });
    }
    Ok(steps)
}

/// True for what a name may hold without brackets and quotes, as Alloy's JSONPath has it.
fn is_bare(character: char) -> bool {
    character.is_ascii_alphanumeric() || !character.is_ascii() || "_#%:;?^{|}~".contains(character)
}

/// Offset of the `]` that closes, not inside of quotes or of further brackets.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut depth = 0usize;
    for (offset, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth > 0 => depth -= 1,
            (None, ']') => return Some(offset),
            _ => {}
        }
    }
    None
}

fn union(text: &str) -> Result<Vec<Selector>, String> {
    let text = text.trim();
    if let Some(condition) = text.strip_prefix('?') {
        return Ok(vec![Selector::Filter(Box::new(filter::Filter::parse(condition)?))]);
    }
    if text.starts_with('(') {
        return Err(format!(
            "scripts (`[{text}]`) are not supported; write a filter or an index"
        ));
    }
    if let Some(name) = quoted(text) {
        return Ok(vec![Selector::Name(name.to_owned())]);
    }
    text.split(',')
        .map(|part| {
            let part = part.trim();
            if part == "*" {
                return Ok(Selector::All);
            }
            if let Some(name) = quoted(part) {
                return Ok(Selector::Name(name.to_owned()));
            }
            let number = |text: &str| -> Result<Option<i64>, String> {
                match text.trim() {
                    "" => Ok(None),
                    text => text
                        .parse()
                        .map(Some)
                        .map_err(|_| format!("`[{part}]` is not an index, a slice or a quoted name")),
                }
            };
            let bounds: Vec<&str> = part.split(':').collect();
            match bounds.as_slice() {
                [one] => number(one)?
                    .map(Selector::Index)
                    .ok_or_else(|| "an index is missing between `[` and `]`".to_owned()),
                [start, end] => Ok(Selector::Slice(number(start)?, number(end)?, 1)),
                [start, end, stride] => Ok(Selector::Slice(
                    number(start)?,
                    number(end)?,
                    number(stride)?.unwrap_or(1),
                )),
                _ => Err(format!("`[{part}]` is not a slice")),
            }
        })
        .collect()
}

fn quoted(text: &str) -> Option<&str> {
    ['\'', '"'].iter().find_map(|quote| {
        let inner = text.strip_prefix(*quote)?.strip_suffix(*quote)?;
        (!inner.contains(*quote)).then_some(inner)
    })
}
