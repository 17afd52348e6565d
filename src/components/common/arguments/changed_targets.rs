//! Applies a function to lists of targets. For a target that the previous list also contained, the function is not
//! called again.
//!
//! In: lists of targets, and a function that changes or drops a target. Out: the list of the results. A discovery that
//! rebuilds a few of its targets shares the memory of all others with its previous list, so a list of thousands of
//! targets costs only the rebuilt ones.

use std::collections::HashMap;
use std::sync::Arc;

use crate::common::arguments::targets::{Target, Targets, items, labels, one};
use crate::common::arguments::texts::Texts;
use alluvium_lang::value::{Fields, Value};

/// Minimum length of a list whose results share texts with each other.
const MANY: usize = 16;

/// The last list of targets, with the results.
#[derive(Debug, Default)]
pub(crate) struct ChangedTargets {
    /// The last list. As long as it is kept, a new target cannot have the address of one of its targets.
    targets: Value,
    /// The result of each target; `None` if the target is dropped.
    results: Vec<Option<Value>>,
    /// Texts that the function created, and lists of label names.
    texts: Texts,
}

impl ChangedTargets {
    /// Applies `change` to each target that the previous call did not receive, and returns the results of all targets.
    /// If `change` returns `None`, the target is dropped. `change` must depend on nothing but the target. Unchanged
    /// targets share memory with `targets`, and so does the list if no target changes.
    pub(crate) fn update(&mut self, targets: &Targets, change: impl Fn(Target) -> Option<Target>) -> Value {
        let Self {
            targets: previous,
            results,
            texts,
        } = self;
        let previous_results = std::mem::take(results);
        let known = items(previous).iter().map(address).zip(previous_results);
        let known: HashMap<*const Fields, Option<Value>> =
            known.filter_map(|(address, result)| Some((address?, result))).collect();
        let is_long = items(targets.value()).len() >= MANY;
        let result = |item: &Value| match address(item).and_then(|address| known.get(&address)) {
            Some(result) => result.clone(),
            None => changed(item, &change, is_long.then_some(&mut *texts)),
        };
        *results = items(targets.value()).iter().map(result).collect();
        *previous = targets.value().clone();
        let is_unchanged = |(item, result): (&Value, &Option<Value>)| {
            let after = result.as_ref().and_then(address);
            after.is_some() && after == address(item)
        };
        if matches!(previous, Value::Array(_)) && items(previous).iter().zip(&*results).all(is_unchanged) {
            return previous.clone();
        }
        Value::array(results.iter().flatten().cloned())
    }
}

/// Returns the address of a target. Two targets with the same address are equal.
fn address(target: &Value) -> Option<*const Fields> {
    match target {
        Value::Object(fields) => Some(Arc::as_ptr(fields)),
        _ => None,
    }
}

/// Applies `change` to a target. If there is a store of texts, the result shares its texts with other results.
fn changed(item: &Value, change: &impl Fn(Target) -> Option<Target>, texts: Option<&mut Texts>) -> Option<Value> {
    let before = labels(item);
    let after = change(before.clone())?;
    if after == before && matches!(item, Value::Object(_)) {
        return Some(item.clone());
    }
    let Some(texts) = texts else {
        return Some(one(after));
    };
    // A text with other owners comes from the target or from a rule, and is shared already.
    let mut share = |text: Arc<str>| match Arc::strong_count(&text) {
        1 => texts.share(text),
        _ => text,
    };
    let after = after.into_iter().map(|(name, value)| (share(name), share(value)));
    let after = after.collect();
    Some(texts.target(after))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::common::testing;
    use alluvium_lang::attribute::FromValue as _;

    fn targets(value: &Value) -> Targets {
        Targets::from_value("targets", value).unwrap()
    }

    /// Drops targets without a name, and sets a label on all others but `plain`.
    fn change(mut target: Target) -> Option<Target> {
        let name = target.get("name")?.clone();
        if &*name != "plain" {
            target.insert("copy".into(), format!("{name}!").into());
        }
        Some(target)
    }

    #[test]
    fn only_targets_that_the_previous_list_did_not_share_are_changed_again() {
        let list = testing::targets(&[&[("name", "a")], &[("name", "plain")], &[("other", "b")]]);
        let calls = Cell::new(0);
        let count = |target| {
            calls.set(calls.get() + 1);
            change(target)
        };
        let mut changed = ChangedTargets::default();
        let first = changed.update(&targets(&list), count);
        assert_eq!(
            first,
            testing::targets(&[&[("copy", "a!"), ("name", "a")], &[("name", "plain")]])
        );
        assert_eq!(address(&items(&first)[1]), address(&items(&list)[1]));

        let new = testing::targets(&[&[("name", "c")], &[("name", "a")]]);
        let next = Value::array(items(&new).iter().chain(items(&list)).cloned());
        let second = changed.update(&targets(&next), count);
        assert_eq!((calls.get(), items(&second).len()), (5, 4));
        assert_eq!(address(&items(&second)[2]), address(&items(&first)[0]));
        assert_ne!(address(&items(&second)[1]), address(&items(&first)[0]));
    }

    #[test]
    fn a_list_without_changes_is_the_same_list() {
        let list = testing::targets(&[&[("name", "plain")]]);
        let mut changed = ChangedTargets::default();
        for _ in 0..2 {
            let Value::Array(after) = changed.update(&targets(&list), change) else {
                panic!("no list");
            };
            assert_eq!(after.as_ptr(), items(&list).as_ptr());
        }
        assert_eq!(changed.update(&targets(&Value::Null), change), Value::array([]));
    }

    #[test]
    fn texts_that_the_function_creates_are_shared() {
        let numbers: Vec<String> = (0..MANY).map(|number| number.to_string()).collect();
        let numbered = numbers
            .iter()
            .map(|number| [("name", "a"), ("number", number.as_str())]);
        let numbered: Vec<[(&str, &str); 2]> = numbered.collect();
        let list: Vec<&[(&str, &str)]> = numbered.iter().map(<[_; 2]>::as_slice).collect();
        let list = testing::targets(&list);
        let after = ChangedTargets::default().update(&targets(&list), change);
        let copies: Vec<Arc<str>> = items(&after).iter().map(|item| labels(item)["copy"].clone()).collect();
        assert_eq!(copies.len(), MANY);
        assert!(copies.iter().all(|copy| Arc::ptr_eq(copy, &copies[0])));
    }
}
