//! Prometheus relabel rules: the `rule` block, its checks, and the engine that applies rules to a set of labels.
//!
//! In: arguments of `rule` blocks and labels. Out: changed labels, or nothing when a rule drops them. The behaviour is
//! that of Prometheus (frozen there for compatibility); the checks and their messages follow Alloy's.

use std::collections::BTreeMap;
use std::sync::Arc;

use md5::{Digest, Md5};

use crate::components::common::re2::{Expression, Template};
use crate::lang::argument_error::{ArgumentError, ArgumentErrors};
use crate::lang::attribute::{FromValue, wrong};
use crate::lang::body::{FromBlocks, FromBody, arguments};
use crate::lang::schema::{ArgumentBlock, Arguments, Kind, Schema};
use crate::lang::value::{Capsule, Value};
use crate::pipeline::component::live::{Change, Entry, LiveHandle, Relabeled, Step};

/// Capsule kind of the `rules` export; the capsule wraps [`Rules`].
pub(crate) const RULES: &str = "relabel.Rules";

const DEFAULT_REGEX: &str = "(.*)";
const DEFAULT_REPLACEMENT: &str = "$1";
const DEFAULT_SEPARATOR: &str = ";";

arguments! {
    /// The body of `rule { }`.
    struct RuleArguments {
        /// What to do: replace, keep, drop, keepequal, dropequal, hashmod, labelmap, labeldrop, labelkeep, lowercase or
        /// uppercase.
        action: Action = "replace",
        /// Positive number to take the hash of the source labels modulo of, for hashmod.
        modulus: u64 = 0,
        /// RE2 expression, anchored at both ends, that the joined source labels (or the label names) must match.
        regex: Pattern = "(.*)",
        /// Text that the target label is set to; `$1` and `${name}` stand for groups of the expression.
        replacement: Arc<str> = "$1",
        /// Text between the values of the source labels.
        separator: Arc<str> = ";",
        /// Labels whose values are joined and matched.
        source_labels: Vec<Arc<str>> = [],
        /// Label that receives the result; may refer to groups in a replace.
        target_label: Arc<str> = "",
    }
    check RuleArguments::check;
}

/// Labels while rules work on them.
pub(crate) type LabelMap = BTreeMap<Arc<str>, Arc<str>>;

/// What a rule does when it applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Set the target label to the expanded replacement when the expression matches.
    Replace,
    /// Drop what does not match.
    Keep,
    /// Drop what matches the expression.
    Drop,
    /// Drop what differs from the target label.
    KeepEqual,
    /// Drop what equals the target label.
    DropEqual,
    /// Set the target label to a hash modulo.
    HashMod,
    /// Copy labels to new names.
    LabelMap,
    /// Remove labels whose names match.
    LabelDrop,
    /// Remove all labels but those by name.
    LabelKeep,
    /// Set the target label to the source in lower case.
    Lowercase,
    /// Set the target label to the source in upper case.
    Uppercase,
}

const ACTIONS: [(&str, Action); 11] = [
    ("replace", Action::Replace),
    ("keep", Action::Keep),
    ("drop", Action::Drop),
    ("keepequal", Action::KeepEqual),
    ("dropequal", Action::DropEqual),
    ("hashmod", Action::HashMod),
    ("labelmap", Action::LabelMap),
    ("labeldrop", Action::LabelDrop),
    ("labelkeep", Action::LabelKeep),
    ("lowercase", Action::Lowercase),
    ("uppercase", Action::Uppercase),
];

impl FromValue for Action {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let text = Arc::<str>::from_value(name, value)?;
        if text.is_empty() {
            return Err(wrong("relabel action cannot be empty"));
        }
        let lower = text.to_lowercase();
        let found = ACTIONS.iter().find(|(name, _)| *name == lower);
        found
            .map(|(_, action)| *action)
            .ok_or_else(|| wrong(format!("unrecognized action type \"{text}\"")))
    }
}

impl Action {
    /// The action as it is written.
    pub(crate) fn name(self) -> &'static str {
        ACTIONS
            .iter()
            .find(|(_, action)| *action == self)
            .map_or("", |(name, _)| name)
    }
}

/// One rule, checked and compiled.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule {
    action: Action,
    source_labels: Vec<Arc<str>>,
    separator: Arc<str>,
    pattern: Pattern,
    modulus: u64,
    target_label: Arc<str>,
    target: Template,
    replacement: Template,
}

/// What a value must match.
#[derive(Debug, Clone)]
pub(crate) enum Pattern {
    /// `(.*)`, the default: everything matches and is the first group.
    Everything,
    /// An expression that was compiled.
    Regex(Expression),
}

impl FromValue for Pattern {
    const KIND: Kind = Kind::String;

    fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
        let text = Arc::<str>::from_value(name, value)?;
        if &*text == DEFAULT_REGEX {
            return Ok(Self::Everything);
        }
        let compiled = Expression::anchored(&text).map(Self::Regex);
        compiled.map_err(|reason| wrong(format!("invalid regular expression: {reason}")))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Everything, Self::Everything) => true,
            (Self::Regex(left), Self::Regex(right)) => left.as_str() == right.as_str(),
            _ => false,
        }
    }
}

impl Pattern {
    fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Regex(regex) => regex.is_match(text),
        }
    }

    /// Expands the templates; `None` when the text does not match.
    fn expand<const N: usize>(&self, text: &str, templates: [&Template; N]) -> Option<[String; N]> {
        match self {
            Self::Everything => Some(templates.map(|template| template.expand_everything(text))),
            Self::Regex(regex) => {
                let groups = regex.groups(text)?;
                Some(templates.map(|template| template.expand(&groups)))
            }
        }
    }
}

/// Compiled rules; cheap to clone.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rules(Arc<[Rule]>);

impl Rules {
    /// Applies the rules in order. `None` means dropped: a rule said so, or no label is left.
    pub(crate) fn apply(&self, mut labels: LabelMap) -> Option<LabelMap> {
        (self.change(&mut labels) && !labels.is_empty()).then_some(labels)
    }

    /// Applies the rules in place. `labels` may be empty before or after. False when a rule drops them.
    pub(crate) fn change(&self, labels: &mut LabelMap) -> bool {
        self.0.iter().all(|rule| rule.apply(labels))
    }

    /// True when there is no rule.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As [`Rules::apply`], with the steps of the rules that changed something. For live views: it compares the labels
    /// after every rule.
    pub(crate) fn trace(&self, mut labels: LabelMap) -> (Option<LabelMap>, Vec<Step>) {
        let mut steps = Vec::new();
        for (place, rule) in self.0.iter().enumerate() {
            let before = labels.clone();
            let action = rule.action.name();
            let step = |change| Step {
                rule: place,
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

    /// Sends the steps of the rules on `labels` to open live views.
    pub(crate) fn tell(&self, live: &LiveHandle, of: Relabeled, labels: &LabelMap) {
        live.tell(|| {
            let (after, steps) = self.trace(labels.clone());
            Entry::Relabel {
                of,
                before: labels.clone(),
                steps,
                after,
            }
        });
    }

    /// These rules as a capsule of kind [`RULES`].
    pub(crate) fn capsule(&self) -> Capsule {
        Capsule::new(RULES, self.clone())
    }
}

/// The `rule` blocks of a body.
impl FromBlocks for Rules {
    const BODY: &'static Schema = RuleArguments::SCHEMA;
    const IS_LABELLED: bool = false;
    const IS_MANY: bool = true;

    fn from_blocks(name: &str, blocks: &[&ArgumentBlock]) -> Result<Self, ArgumentErrors> {
        Vec::<Rule>::from_blocks(name, blocks).map(|rules| Self(rules.into()))
    }
}

impl FromBody for Rule {
    const SCHEMA: &'static Schema = RuleArguments::SCHEMA;

    fn from_body(body: &Arguments) -> Result<Self, ArgumentErrors> {
        let arguments = RuleArguments::from_body(body)?;
        Ok(Self {
            action: arguments.action,
            pattern: arguments.regex,
            modulus: arguments.modulus,
            target: Template::new(&arguments.target_label),
            replacement: Template::new(&arguments.replacement),
            source_labels: arguments.source_labels,
            separator: arguments.separator,
            target_label: arguments.target_label,
        })
    }
}

impl RuleArguments {
    /// The checks of Alloy, in its order.
    fn check(&self) -> Result<(), ArgumentError> {
        use Action::{DropEqual, HashMod, KeepEqual, LabelDrop, LabelKeep, LabelMap, Lowercase, Replace, Uppercase};

        let error = |path: &str, message: String| Err(ArgumentError::new(path, message));
        let name = self.action.name();
        let target = self.target_label.as_ref();
        let replacement = self.replacement.as_ref();
        let is_default_replacement = replacement == DEFAULT_REPLACEMENT;
        let is_default_separator = self.separator.as_ref() == DEFAULT_SEPARATOR;
        if self.action == HashMod && self.modulus == 0 {
            let message = "relabel configuration for hashmod requires non-zero modulus";
            return error("modulus", message.to_owned());
        }
        if matches!(
            self.action,
            Replace | HashMod | Lowercase | Uppercase | KeepEqual | DropEqual
        ) {
            if target.is_empty() {
                let message = format!("relabel configuration for {name} action requires 'target_label' value");
                return error("target_label", message);
            }
            let is_valid = if self.action == Replace && target.contains('$') {
                is_template(target)
            } else {
                is_label_name(target)
            };
            if !is_valid {
                let message = format!("\"{target}\" is invalid 'target_label' for {name} action");
                return error("target_label", message);
            }
        }
        if matches!(self.action, Lowercase | Uppercase | KeepEqual | DropEqual) && !is_default_replacement {
            return error("replacement", format!("'replacement' can not be set for {name} action"));
        }
        if self.action == LabelMap && !is_template(replacement) {
            let message = format!("\"{replacement}\" is invalid 'replacement' for {name} action");
            return error("replacement", message);
        }
        if matches!(self.action, KeepEqual | DropEqual)
            && (!matches!(self.regex, Pattern::Everything) || self.modulus != 0 || !is_default_separator)
        {
            let message =
                format!("{name} action requires only 'source_labels' and 'target_label', and no other fields");
            return error("", message);
        }
        if matches!(self.action, LabelDrop | LabelKeep)
            && (!self.source_labels.is_empty()
                || !target.is_empty()
                || self.modulus != 0
                || !is_default_separator
                || !is_default_replacement)
        {
            return error("", format!("{name} action requires only 'regex', and no other fields"));
        }
        Ok(())
    }
}

impl Rule {
    /// Applies the rule; false means drop.
    fn apply(&self, labels: &mut LabelMap) -> bool {
        match self.action {
            Action::LabelMap => {
                let copies: Vec<(String, Arc<str>)> = labels
                    .iter()
                    .filter_map(|(name, value)| {
                        let [copy] = self.pattern.expand(name, [&self.replacement])?;
                        Some((copy, value.clone()))
                    })
                    .collect();
                for (name, value) in copies {
                    set(labels, &name, value);
                }
                return true;
            }
            Action::LabelDrop => {
                labels.retain(|name, _| !self.pattern.is_match(name));
                return true;
            }
            Action::LabelKeep => {
                labels.retain(|name, _| self.pattern.is_match(name));
                return true;
            }
            _ => {}
        }
        let source = self.source(labels);
        match self.action {
            Action::Replace => self.replace(&source, labels),
            Action::Keep => return self.pattern.is_match(&source),
            Action::Drop => return !self.pattern.is_match(&source),
            Action::KeepEqual => return self.target_value(labels) == source.as_ref(),
            Action::DropEqual => return self.target_value(labels) != source.as_ref(),
            Action::HashMod => {
                let value = hash(source.as_bytes()) % self.modulus.max(1);
                set(labels, &self.target_label, value.to_string().into());
            }
            Action::Lowercase => set(labels, &self.target_label, source.to_lowercase().into()),
            Action::Uppercase => set(labels, &self.target_label, source.to_uppercase().into()),
            Action::LabelMap | Action::LabelDrop | Action::LabelKeep => {}
        }
        true
    }

    fn replace(&self, source: &Arc<str>, labels: &mut LabelMap) {
        // The most common rule copies a label; it needs no captures.
        if let (Pattern::Everything, Some(target)) = (&self.pattern, self.target.as_literal()) {
            let value = match self.replacement.as_literal() {
                Some(text) => text.into(),
                None if self.replacement.is_everything() => source.clone(),
                None => self.replacement.expand_everything(source).into(),
            };
            if is_label_name(target) {
                set(labels, target, value);
            }
            return;
        }
        let Some([target, value]) = self.pattern.expand(source, [&self.target, &self.replacement]) else {
            return;
        };
        if is_label_name(&target) {
            set(labels, &target, value.into());
        }
    }

    /// The values of the source labels, joined; a label that is not there counts as empty.
    fn source(&self, labels: &LabelMap) -> Arc<str> {
        if let [only] = self.source_labels.as_slice() {
            return labels.get(only).cloned().unwrap_or_default();
        }
        let mut joined = String::new();
        for (index, name) in self.source_labels.iter().enumerate() {
            if index > 0 {
                joined.push_str(&self.separator);
            }
            joined.push_str(labels.get(name).map_or("", AsRef::as_ref));
        }
        joined.into()
    }

    fn target_value<'a>(&self, labels: &'a LabelMap) -> &'a str {
        labels.get(&self.target_label).map_or("", AsRef::as_ref)
    }
}

/// Sets a label; an empty value removes it.
fn set(labels: &mut LabelMap, name: &str, value: Arc<str>) {
    if value.is_empty() {
        labels.remove(name);
    } else {
        labels.insert(name.into(), value);
    }
}

/// Prometheus' hash for `hashmod`: the last 8 bytes of the MD5 digest, big endian.
fn hash(data: &[u8]) -> u64 {
    let digest = Md5::digest(data);
    digest
        .iter()
        .skip(8)
        .fold(0, |hash, byte| (hash << 8) | u64::from(*byte))
}

/// True for `[a-zA-Z_][a-zA-Z0-9_]*`.
pub(crate) fn is_label_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// True for a label name in which `$name` and `${name}` may stand: `^(?:(?:[a-zA-Z_]|\$(?:\{\w+\}|\w+))+\w*)+$`.
fn is_template(text: &str) -> bool {
    let is_word = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    let word_length = |text: &str| text.bytes().take_while(|byte| is_word(*byte)).count();
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let used = if first == b'$' {
            let body = &rest[1..];
            let length = match body.strip_prefix('{') {
                Some(braced) => match word_length(braced) {
                    0 => 0,
                    length if braced[length..].starts_with('}') => length + 2,
                    _ => 0,
                },
                None => word_length(body),
            };
            if length == 0 {
                return false;
            }
            1 + length
        } else if is_word(first) && (rest.len() < text.len() || !first.is_ascii_digit()) {
            1
        } else {
            return false;
        };
        rest = &rest[used..];
    }
    !text.is_empty()
}

#[cfg(test)]
mod tests;
