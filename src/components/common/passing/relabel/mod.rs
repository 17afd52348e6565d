//! Relabel rules in a configuration: the `rule` block, and the steps that live views show.
//!
//! In: arguments of `rule` blocks. Out: the rules of [`alluvium_profile::relabel`]. Their checks and messages are the
//! same as in Alloy.

use std::ops::Deref;
use std::sync::Arc;

use alluvium_lang::argument_error::{ArgumentError, ArgumentErrors};
use alluvium_lang::attribute::{FromValue, wrong};
use alluvium_lang::body::{FromBlocks, FromBody, arguments};
use alluvium_lang::schema::{ArgumentBlock, Kind, Schema};
use alluvium_lang::value::{Capsule, Value};
use alluvium_pipeline::component::live::{Change, Entry, LiveHandle, Relabeled, Step};
use alluvium_profile::relabel::{self, Action, LabelMap, Pattern, Rule, RuleSpec};

/// Capsule kind of the `rules` export; the capsule wraps [`Rules`].
pub(crate) const RULES: &str = "relabel.Rules";

arguments! {
    /// The body of `rule { }`.
    struct RuleArguments {
        /// Action of the rule: replace, keep, drop, keepequal, dropequal, hashmod, labelmap, labeldrop, labelkeep,
        /// lowercase or uppercase.
        action: ActionArgument = "replace",
        /// Positive modulus for the action hashmod. The target label becomes the hash of the source labels modulo this
        /// number.
        modulus: u64 = 0,
        /// RE2 regular expression, anchored at both ends. It must match the joined source labels, or the label names
        /// for labelmap, labeldrop and labelkeep.
        regex: PatternArgument = "(.*)",
        /// New value of the target label. `$1` and `${name}` refer to groups of the regular expression.
        replacement: Arc<str> = "$1",
        /// Separator between the values of the source labels.
        separator: Arc<str> = ";",
        /// Labels whose values are joined and matched.
        source_labels: Vec<Arc<str>> = [],
        /// Label that receives the result. For the action replace, it may refer to groups.
        target_label: Arc<str> = "",
    }
    check RuleArguments::check;
}

/// The action of a rule, by its name in the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ActionArgument(Action);

impl FromValue for ActionArgument {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let text = Arc::<str>::from_value(name, value)?;
        if text.is_empty() {
            return Err(wrong("relabel action cannot be empty"));
        }
        let action = Action::of_name(&text).ok_or_else(|| wrong(format!("unrecognized action type \"{text}\"")));
        action.map(Self)
    }
}

/// The regular expression of a rule, which is compiled when the configuration is read.
#[derive(Clone, Debug, PartialEq)]
struct PatternArgument(Pattern);

impl FromValue for PatternArgument {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let text = Arc::<str>::from_value(name, value)?;
        Pattern::new(&text).map(Self).map_err(wrong)
    }
}

/// The `rule` blocks of a body, in the order in which they are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rules(relabel::Rules);

impl Deref for Rules {
    type Target = relabel::Rules;

    fn deref(&self) -> &relabel::Rules {
        &self.0
    }
}

impl Rules {
    /// Like [`relabel::Rules::apply`], but also returns the steps of the rules that changed something. Only live views
    /// use this function, because it is slower: it compares the labels after every rule.
    pub(crate) fn trace(&self, mut labels: LabelMap) -> (Option<LabelMap>, Vec<Step>) {
        let mut steps = Vec::new();
        for (index, rule) in self.iter().enumerate() {
            let before = labels.clone();
            let action = rule.action().name();
            let step = |change| Step {
                rule: index,
                action,
                change,
            };
            if !rule.apply(&mut labels) {
                steps.push(step(Change::Dropped));
                return (None, steps);
            }
            steps.extend(Change::between(&before, &labels).map(step));
        }
        ((!labels.is_empty()).then_some(labels), steps)
    }

    /// Shows the steps in which the rules change `labels` in the live views that are open.
    pub(crate) fn tell(&self, live: &LiveHandle, subject: Relabeled, labels: &LabelMap) {
        live.tell(|| {
            let (after, steps) = self.trace(labels.clone());
            Entry::Relabel {
                of: subject,
                before: labels.clone(),
                steps,
                after,
            }
        });
    }

    /// Returns these rules as a capsule of kind [`RULES`].
    pub(crate) fn capsule(&self) -> Capsule {
        Capsule::new(RULES, self.clone())
    }
}

impl FromBlocks for Rules {
    const BODY: &'static Schema = RuleArguments::SCHEMA;
    const IS_LABELLED: bool = false;
    const IS_MANY: bool = true;

    fn from_blocks(name: &str, blocks: &[&ArgumentBlock]) -> Result<Self, ArgumentErrors> {
        let rules = Vec::<RuleArguments>::from_blocks(name, blocks)?;
        let rules: Vec<Rule> = rules.iter().map(|rule| Rule::new(rule.spec())).collect();
        Ok(Self(rules.into()))
    }
}

impl RuleArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        self.spec()
            .check()
            .map_err(|error| ArgumentError::new(error.field, error.message))
    }

    fn spec(&self) -> RuleSpec {
        RuleSpec {
            action: self.action.0,
            source_labels: self.source_labels.clone(),
            separator: self.separator.clone(),
            pattern: self.regex.0.clone(),
            modulus: self.modulus,
            target_label: self.target_label.clone(),
            replacement: self.replacement.clone(),
        }
    }
}

#[cfg(test)]
mod tests;
