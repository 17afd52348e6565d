//! Prometheus relabel rules: their checks, and the engine that applies them to a set of labels.
//!
//! In: rules and labels. Out: changed labels, or nothing if a rule drops them. The behaviour is the same as in
//! Prometheus, and compatibility requires that it never changes. Components read rules from blocks of the
//! configuration, and the store reads rules from the limits of a tenant.

mod template;

use std::collections::BTreeMap;
use std::sync::Arc;

use md5::{Digest, Md5};

use crate::relabel::template::Template;
use alluvium_base::letters::{to_lower, to_upper};
use alluvium_base::re2::{Expression, Re2Error};

pub const DEFAULT_REGEX: &str = "(.*)";
pub const DEFAULT_REPLACEMENT: &str = "$1";
pub const DEFAULT_SEPARATOR: &str = ";";

/// Labels while rules change them.
pub type LabelMap = BTreeMap<Arc<str>, Arc<str>>;

/// The effect of a rule. The source of a rule is the text that joins the values of its source labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Set the target label to the expanded replacement if the source matches the expression.
    Replace,
    /// Drop the labels unless the source matches the expression.
    Keep,
    /// Drop the labels if the source matches the expression.
    Drop,
    /// Drop the labels if the source differs from the target label.
    KeepEqual,
    /// Drop the labels if the source equals the target label.
    DropEqual,
    /// Set the target label to a hash of the source, modulo a number.
    HashMod,
    /// Copy each label whose name matches the expression. The name of the copy is the expanded replacement.
    LabelMap,
    /// Remove the labels whose names match the expression.
    LabelDrop,
    /// Remove all labels except those whose names match the expression.
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

impl Action {
    /// Returns the action with this name, in any letter case.
    pub fn of_name(name: &str) -> Option<Self> {
        let lower = name.to_lowercase();
        ACTIONS
            .iter()
            .find(|(name, _)| *name == lower)
            .map(|(_, action)| *action)
    }

    /// Returns the name of the action.
    pub fn name(self) -> &'static str {
        ACTIONS
            .iter()
            .find(|(_, action)| *action == self)
            .map_or("", |(name, _)| name)
    }
}

/// One rule, checked and compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    action: Action,
    source_labels: Vec<Arc<str>>,
    separator: Arc<str>,
    pattern: Pattern,
    modulus: u64,
    target_label: Arc<str>,
    target: Template,
    replacement: Template,
}

/// A rule as written, with defaults for missing fields.
#[derive(Debug, Clone)]
pub struct RuleSpec {
    pub action: Action,
    pub source_labels: Vec<Arc<str>>,
    pub separator: Arc<str>,
    pub pattern: Pattern,
    pub modulus: u64,
    pub target_label: Arc<str>,
    pub replacement: Arc<str>,
}

/// An error in a relabel rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RuleError {
    /// The field with the error; empty if several fields contradict each other.
    pub field: &'static str,
    pub message: String,
}

/// The pattern that a value must match.
#[derive(Debug, Clone)]
pub enum Pattern {
    /// `(.*)`, the default: every value matches and is the first group.
    Everything,
    /// An expression that was compiled.
    Regex(Expression),
}

/// The error of a text that is not a regular expression. The text of the error has one line.
#[derive(Debug, thiserror::Error)]
#[error("invalid regular expression: {0}")]
pub struct PatternError(#[from] Re2Error);

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
    /// Creates the pattern of an RE2 expression, anchored at both ends.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        if text == DEFAULT_REGEX {
            return Ok(Self::Everything);
        }
        Ok(Self::Regex(Expression::anchored(text)?))
    }

    fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Regex(regex) => regex.is_match(text),
        }
    }

    /// Expands the templates. Returns `None` if the text does not match.
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
pub struct Rules(Arc<[Rule]>);

impl Rules {
    /// Applies the rules in order. Returns `None` if a rule drops the labels or no label is left.
    pub fn apply(&self, mut labels: LabelMap) -> Option<LabelMap> {
        (self.change(&mut labels) && !labels.is_empty()).then_some(labels)
    }

    /// Applies the rules in place. A label with an empty value is removed first, because Prometheus does not
    /// distinguish it from a missing label. `labels` may be empty before and after the call. Returns false if a rule
    /// drops the labels.
    pub fn change(&self, labels: &mut LabelMap) -> bool {
        labels.retain(|_, value| !value.is_empty());
        self.0.iter().all(|rule| rule.apply(labels))
    }

    /// Returns true if there is no rule.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the rules in the order in which they run.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }
}

impl From<Vec<Rule>> for Rules {
    fn from(rules: Vec<Rule>) -> Self {
        Self(rules.into())
    }
}

impl RuleSpec {
    /// Checks the rule as Prometheus does, in the same order and with the same messages.
    pub fn check(&self) -> Result<(), RuleError> {
        use Action::{DropEqual, HashMod, KeepEqual, LabelDrop, LabelKeep, LabelMap, Lowercase, Replace, Uppercase};

        let error = |field: &'static str, message: String| Err(RuleError { field, message });
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
            && (!matches!(self.pattern, Pattern::Everything) || self.modulus != 0 || !is_default_separator)
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
    /// Compiles a rule that passes [`RuleSpec::check`].
    pub fn new(spec: RuleSpec) -> Self {
        Self {
            action: spec.action,
            pattern: spec.pattern,
            modulus: spec.modulus,
            target: Template::new(&spec.target_label),
            replacement: Template::new(&spec.replacement),
            source_labels: spec.source_labels,
            separator: spec.separator,
            target_label: spec.target_label,
        }
    }

    /// Returns the action that the rule performs.
    pub fn action(&self) -> Action {
        self.action
    }

    /// Applies the rule. Returns false if it drops the labels.
    pub fn apply(&self, labels: &mut LabelMap) -> bool {
        match self.action {
            Action::LabelMap => {
                let copies: Vec<(Arc<str>, Arc<str>)> = labels
                    .iter()
                    .filter_map(|(name, value)| {
                        let [copy] = self.pattern.expand(name, [&self.replacement])?;
                        Some((copy.into(), value.clone()))
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
            Action::Lowercase => set(labels, &self.target_label, to_lower(&source).into()),
            Action::Uppercase => set(labels, &self.target_label, to_upper(&source).into()),
            Action::LabelMap | Action::LabelDrop | Action::LabelKeep => {}
        }
        true
    }

    fn replace(&self, source: &Arc<str>, labels: &mut LabelMap) {
        // Literal texts of the rule are shared by all labels that it sets.
        let expanded = match (self.target.as_literal(), self.replacement.as_literal()) {
            (Some(target), Some(value)) => self.pattern.is_match(source).then_some((target, value)),
            // The most common rule copies a label.
            (Some(target), None) if matches!(self.pattern, Pattern::Everything) && self.replacement.is_everything() => {
                Some((target, source.clone()))
            }
            (Some(target), None) => {
                let expanded = self.pattern.expand(source, [&self.replacement]);
                expanded.map(|[value]| (target, value.into()))
            }
            (None, _) => {
                let expanded = self.pattern.expand(source, [&self.target, &self.replacement]);
                expanded.map(|[target, value]| (target.into(), value.into()))
            }
        };
        if let Some((target, value)) = expanded
            && is_label_name(&target)
        {
            set(labels, &target, value);
        }
    }

    /// Returns the joined values of the source labels. A missing label is treated as empty.
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

/// Sets a label. An empty value removes the label.
fn set(labels: &mut LabelMap, name: &Arc<str>, value: Arc<str>) {
    if value.is_empty() {
        labels.remove(name);
    } else {
        labels.insert(name.clone(), value);
    }
}

/// Returns Prometheus' hash for `hashmod`: the last 8 bytes of the MD5 digest, big endian.
fn hash(data: &[u8]) -> u64 {
    let digest = Md5::digest(data);
    digest
        .iter()
        .skip(8)
        .fold(0, |hash, byte| (hash << 8) | u64::from(*byte))
}

/// Returns true for `[a-zA-Z_][a-zA-Z0-9_]*`.
fn is_label_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|first| first == b'_' || first.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// Returns true for a label name that may contain `$name` and `${name}`:
/// `^(?:(?:[a-zA-Z_]|\$(?:\{\w+\}|\w+))+\w*)+$`.
pub fn is_template(text: &str) -> bool {
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
