//! Prometheus relabel rules: the `rule` block, its checks, and the engine that applies rules to a set of labels.
//!
//! In: arguments of `rule` blocks and labels. Out: changed labels, or nothing when a rule drops them. The behaviour is
//! that of Prometheus (frozen there for compatibility); the checks and their messages follow Alloy's.

use std::collections::BTreeMap;
use std::sync::Arc;

use md5::{Digest, Md5};
use regex::Regex;

use crate::components::common::re2::{self, Template};
use crate::lang::schema::{Arguments, Attribute, Block, Kind, Schema};
use crate::lang::value::Capsule;
use crate::pipeline::component::ArgumentError;
use crate::pipeline::component::live::{Change, Entry, LiveHandle, Step};

/// Capsule kind of the `rules` export; the capsule wraps [`Rules`].
pub const RULES: &str = "relabel.Rules";

/// The `rule` block, which may stand any number of times.
pub const RULE_BLOCK: Block = Block {
    name: "rule",
    labelled: false,
    many: true,
    required: false,
    implied: false,
    schema: &RULE,
    defaults: &[],
    doc: "A relabeling rule; rules apply in the order written.",
};

const DEFAULT_REGEX: &str = "(.*)";
const DEFAULT_REPLACEMENT: &str = "$1";
const DEFAULT_SEPARATOR: &str = ";";

const RULE: Schema = Schema {
    attributes: &[
        Attribute::with_default(
            "action",
            Kind::String,
            "\"replace\"",
            "What to do: replace, keep, drop, keepequal, dropequal, hashmod, labelmap, labeldrop, labelkeep, lowercase or uppercase.",
        ),
        Attribute::with_default(
            "modulus",
            Kind::Uint,
            "0",
            "Positive number to take the hash of the source labels modulo of, for hashmod.",
        ),
        Attribute::with_default(
            "regex",
            Kind::String,
            "\"(.*)\"",
            "RE2 expression, anchored at both ends, that the joined source labels (or the label names) must match.",
        ),
        Attribute::with_default(
            "replacement",
            Kind::String,
            "\"$1\"",
            "Text that the target label is set to; `$1` and `${name}` stand for groups of the expression.",
        ),
        Attribute::with_default(
            "separator",
            Kind::String,
            "\";\"",
            "Text between the values of the source labels.",
        ),
        Attribute::with_default(
            "source_labels",
            Kind::List(&Kind::String),
            "[]",
            "Labels whose values are joined and matched.",
        ),
        Attribute::with_default(
            "target_label",
            Kind::String,
            "\"\"",
            "Label that receives the result; may refer to groups in a replace.",
        ),
    ],
    blocks: &[],
};

/// Labels while rules work on them.
pub type LabelMap = BTreeMap<Arc<str>, Arc<str>>;

/// What a rule does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Set the target label to the expanded replacement when the expression matches.
    Replace,
    /// Drop what does not match.
    Keep,
    /// Drop what matches.
    Drop,
    /// Drop what differs from the target label.
    KeepEqual,
    /// Drop what equals the target label.
    DropEqual,
    /// Set the target label to a hash modulo.
    HashMod,
    /// Copy labels to new names.
    LabelMap,
    /// Remove labels by name.
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

impl Action {
    /// The action as it is written.
    pub fn name(self) -> &'static str {
        ACTIONS
            .iter()
            .find(|(_, action)| *action == self)
            .map_or("", |(name, _)| name)
    }
}

/// One compiled rule.
#[derive(Debug, Clone)]
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

/// What a value must match.
#[derive(Debug, Clone)]
enum Pattern {
    /// `(.*)`, the default: everything matches and is the first group. A compiled one would take some 20 KB for nothing.
    Everything,
    /// Anything else.
    Regex(Regex),
}

impl Pattern {
    fn new(text: &str) -> Result<Self, regex::Error> {
        match text {
            DEFAULT_REGEX => Ok(Self::Everything),
            _ => re2::anchored(text).map(Self::Regex),
        }
    }

    fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Regex(regex) => regex.is_match(text),
        }
    }

    /// What these templates become; `None` when the text does not match.
    fn expand<const N: usize>(&self, text: &str, templates: [&Template; N]) -> Option<[String; N]> {
        match self {
            Self::Everything => Some(templates.map(|template| template.expand_everything(text))),
            Self::Regex(regex) => {
                let captures = regex.captures(text)?;
                Some(templates.map(|template| template.expand(&captures)))
            }
        }
    }
}

/// Compiled rules; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Rules(Arc<[Rule]>);

impl Rules {
    /// Checks and compiles the `rule` blocks of a body.
    pub fn from_arguments(arguments: &Arguments) -> Result<Self, ArgumentError> {
        arguments
            .blocks("rule")
            .enumerate()
            .map(|(index, block)| {
                Rule::from_arguments(&block.body).map_err(|(attribute, message)| ArgumentError {
                    path: if attribute.is_empty() {
                        format!("rule[{index}]")
                    } else {
                        format!("rule[{index}].{attribute}")
                    },
                    message,
                })
            })
            .collect::<Result<Vec<_>, _>>()
            .map(|rules| Self(rules.into()))
    }

    /// Applies the rules in order. `None` means dropped: a rule said so, or no label is left.
    pub fn apply(&self, mut labels: LabelMap) -> Option<LabelMap> {
        for rule in self.0.iter() {
            if !rule.apply(&mut labels) {
                return None;
            }
        }
        (!labels.is_empty()).then_some(labels)
    }

    /// As [`Rules::apply`], and says what each rule did that did something. For those who look: it compares the labels after every rule.
    pub fn trace(&self, mut labels: LabelMap) -> (Option<LabelMap>, Vec<Step>) {
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

    /// Tells whoever looks at a component what the rules make of `labels`.
    pub fn tell(&self, live: &LiveHandle, of_profile: bool, labels: &LabelMap) {
        live.tell(|| {
            let (after, steps) = self.trace(labels.clone());
            Entry::Relabel {
                of_profile,
                before: labels.clone(),
                steps,
                after,
            }
        });
    }

    /// These rules as a capsule of kind [`RULES`].
    pub fn capsule(&self) -> Capsule {
        Capsule::new(RULES, self.clone())
    }

    /// Number of rules.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when there is no rule.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Rule {
    /// Checks and compiles one rule; the error names the attribute at fault.
    fn from_arguments(arguments: &Arguments) -> Result<Self, (&'static str, String)> {
        let action_text = arguments.string("action");
        let pattern = arguments.string("regex");
        let replacement = arguments.string("replacement");
        let separator = arguments.string("separator");
        let target_label = arguments.string("target_label");
        let source_labels = arguments.strings("source_labels");
        let modulus = u64::try_from(arguments.int("modulus"))
            .map_err(|_| ("modulus", "modulus must not be negative".to_owned()))?;

        if action_text.is_empty() {
            return Err(("action", "relabel action cannot be empty".to_owned()));
        }
        let lower = action_text.to_lowercase();
        let action = ACTIONS
            .iter()
            .find(|(name, _)| *name == lower)
            .map(|(_, action)| *action)
            .ok_or_else(|| ("action", format!("unrecognized action type \"{action_text}\"")))?;
        let rule = Self {
            action,
            pattern: Pattern::new(&pattern)
                .map_err(|error| ("regex", format!("invalid regular expression: {}", re2::reason(&error))))?,
            modulus,
            target: Template::new(&target_label),
            replacement: Template::new(&replacement),
            source_labels,
            separator,
            target_label,
        };
        rule.check(&replacement)?;
        Ok(rule)
    }

    /// The checks of Alloy, in its order.
    fn check(&self, replacement: &str) -> Result<(), (&'static str, String)> {
        use Action::{DropEqual, HashMod, KeepEqual, LabelDrop, LabelKeep, LabelMap, Lowercase, Replace, Uppercase};

        let name = self.action.name();
        let target = self.target_label.as_ref();
        let is_default_replacement = replacement == DEFAULT_REPLACEMENT;
        let is_default_separator = self.separator.as_ref() == DEFAULT_SEPARATOR;
        if self.action == HashMod && self.modulus == 0 {
            let message = "relabel configuration for hashmod requires non-zero modulus";
            return Err(("modulus", message.to_owned()));
        }
        if matches!(
            self.action,
            Replace | HashMod | Lowercase | Uppercase | KeepEqual | DropEqual
        ) {
            if target.is_empty() {
                let message = format!("relabel configuration for {name} action requires 'target_label' value");
                return Err(("target_label", message));
            }
            let is_valid = if self.action == Replace && target.contains('$') {
                is_template(target)
            } else {
                is_label_name(target)
            };
            if !is_valid {
                let message = format!("\"{target}\" is invalid 'target_label' for {name} action");
                return Err(("target_label", message));
            }
        }
        if matches!(self.action, Lowercase | Uppercase | KeepEqual | DropEqual) && !is_default_replacement {
            return Err(("replacement", format!("'replacement' can not be set for {name} action")));
        }
        if self.action == LabelMap && !is_template(replacement) {
            let message = format!("\"{replacement}\" is invalid 'replacement' for {name} action");
            return Err(("replacement", message));
        }
        if matches!(self.action, KeepEqual | DropEqual)
            && (!matches!(self.pattern, Pattern::Everything) || self.modulus != 0 || !is_default_separator)
        {
            let message =
                format!("{name} action requires only 'source_labels' and 'target_label', and no other fields");
            return Err(("", message));
        }
        if matches!(self.action, LabelDrop | LabelKeep)
            && (!self.source_labels.is_empty()
                || !target.is_empty()
                || self.modulus != 0
                || !is_default_separator
                || !is_default_replacement)
        {
            return Err(("", format!("{name} action requires only 'regex', and no other fields")));
        }
        Ok(())
    }

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
pub fn is_label_name(name: &str) -> bool {
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
