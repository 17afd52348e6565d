//! The relabel rules of a tenant, for the labels of its series and for the sample types of its profiles. The rules also
//! contain the settings for the sanitisation of label names, the number of sessions of a series, and numeric labels.
//!
//! In: the text of the rules, from the limits of a configuration or from a record of the log. Out: compiled rules. The
//! log stores the text with each profile, so that a replay produces the same rows under another configuration. `ingest`
//! applies the rules to a profile.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use alluvium_profile::relabel::{
    Action, DEFAULT_REGEX, DEFAULT_REPLACEMENT, DEFAULT_SEPARATOR, Pattern, Rule, RuleSpec, Rules,
};

/// Maximum size of the text of a tenant's rules in bytes. Each record of the log contains that text.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Maximum number of rule texts that a replay keeps compiled.
const MAX_COMPILED_RULES: usize = 64;
/// Label that holds a sample type while the rules run.
pub(crate) const TYPE: &str = "__type__";
/// Label that holds the unit of a sample type while the rules run.
pub(crate) const UNIT: &str = "__unit__";

/// The text of a relabel rule, with the names and defaults of Prometheus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RuleText {
    pub(crate) action: String,
    pub(crate) source_labels: Vec<String>,
    pub(crate) separator: String,
    pub(crate) regex: String,
    pub(crate) modulus: u64,
    pub(crate) target_label: String,
    pub(crate) replacement: String,
}

impl Default for RuleText {
    fn default() -> Self {
        Self {
            action: "replace".to_owned(),
            source_labels: Vec::new(),
            separator: DEFAULT_SEPARATOR.to_owned(),
            regex: DEFAULT_REGEX.to_owned(),
            modulus: 0,
            target_label: String::new(),
            replacement: DEFAULT_REPLACEMENT.to_owned(),
        }
    }
}

/// When Pyroscope's default rules apply. They rename `godeltaprof_` profiles and the CPU time of `wall` profiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DefaultRules {
    /// The default rules run before the tenant's rules.
    #[default]
    First,
    /// The default rules run after the tenant's rules.
    Last,
    Disabled,
}

/// The error of an unknown position of the default rules.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is none of `first`, `last` and `disabled`")]
pub(crate) struct UnknownPosition(String);

impl FromStr for DefaultRules {
    type Err = UnknownPosition;

    fn from_str(text: &str) -> Result<Self, UnknownPosition> {
        match text {
            "" | "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            "disabled" => Ok(Self::Disabled),
            other => Err(UnknownPosition(other.to_owned())),
        }
    }
}

/// The text of the rules of a tenant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RulesText {
    /// `ingestion_relabeling_default_rules_position`.
    pub(crate) defaults: DefaultRules,
    /// `ingestion_relabeling_rules`: the rules for the labels of each series of a profile.
    pub(crate) series: Vec<RuleText>,
    /// `sample_type_relabeling_rules`: the rules for each sample type of a profile.
    pub(crate) sample_types: Vec<RuleText>,
    /// True for `disable_label_sanitization: false`: label names are rewritten to valid Prometheus names, or refused.
    pub(crate) sanitize: bool,
    /// `max_sessions_per_series`. With `None`, which is not written to the log, series have no session id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_sessions: Option<NonZeroU32>,
    /// `numeric_sample_labels`: names of the numeric labels of samples that become labels of series. An empty list is
    /// not written to the log.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) numeric_labels: Vec<String>,
}

/// The reason why rules cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RulesError {
    /// A rule is invalid by itself.
    #[error("{list}[{index}]{field}: {message}")]
    Rule {
        /// The configuration key of the list.
        list: &'static str,
        /// Index of the rule in the list.
        index: usize,
        /// The invalid field after a dot, or empty if several fields do not fit together.
        field: String,
        message: String,
    },
    /// The text of all rules of a tenant is too long.
    #[error("the rules of a tenant have {0} bytes as JSON, but at most {MAX_TEXT_BYTES} are allowed")]
    TooLong(usize),
    /// The text in the log is invalid. This program never writes such a text.
    #[error("cannot read the rules: {0}")]
    Unreadable(String),
}

/// The compiled rules of a tenant. Two values are equal if their texts are equal.
#[derive(Debug)]
pub struct RelabelRules {
    written: RulesText,
    /// `written` as JSON, for the log.
    text: Arc<str>,
    pub(crate) series: Rules,
    pub(crate) sample_types: Rules,
    /// True if the result of the series rules may depend on the sample type.
    pub(crate) by_type: bool,
}

impl PartialEq for RelabelRules {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for RelabelRules {}

impl RelabelRules {
    /// Compiles rules. Returns `None` if only the default rules apply.
    pub(crate) fn new(written: RulesText) -> Result<Option<Arc<Self>>, RulesError> {
        let has_rules = !written.series.is_empty() || !written.sample_types.is_empty();
        let has_settings = written.sanitize || written.max_sessions.is_some() || !written.numeric_labels.is_empty();
        if !has_rules && !has_settings && written.defaults != DefaultRules::Disabled {
            return Ok(None);
        }
        let text = serde_json::to_string(&written).map_err(|error| RulesError::Unreadable(error.to_string()))?;
        if text.len() > MAX_TEXT_BYTES {
            return Err(RulesError::TooLong(text.len()));
        }
        let series = compile("ingestion_relabeling_rules", &written.series)?;
        let is_type = |label: &String| label == TYPE || label == UNIT;
        // Some actions also read the target label.
        let reads_type = |rule: &RuleText| rule.source_labels.iter().any(is_type) || is_type(&rule.target_label);
        // A `labelmap` rule may copy labels of any name.
        let copies = |rule: &Rule| rule.action() == Action::LabelMap;
        Ok(Some(Arc::new(Self {
            by_type: written.series.iter().any(reads_type) || series.iter().any(copies),
            sample_types: compile("sample_type_relabeling_rules", &written.sample_types)?,
            series,
            text: text.into(),
            written,
        })))
    }

    /// Returns the rules as the configuration contains them.
    pub(crate) fn written(&self) -> &RulesText {
        &self.written
    }

    /// Returns the text of the rules as the log stores it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn defaults(&self) -> DefaultRules {
        self.written.defaults
    }

    /// Returns true if label names are rewritten to valid Prometheus names.
    pub(crate) fn sanitizes(&self) -> bool {
        self.written.sanitize
    }

    /// Returns the limit of the sessions of a series. With `None`, series have no session id.
    pub(crate) fn max_sessions(&self) -> Option<NonZeroU32> {
        self.written.max_sessions
    }

    /// Returns the names of the numeric labels of samples that become labels of series.
    pub(crate) fn numeric_labels(&self) -> &[String] {
        &self.written.numeric_labels
    }

    /// Compiles rules from a text of the log.
    fn of_text(text: &str) -> Result<Option<Arc<Self>>, RulesError> {
        let written = serde_json::from_str(text).map_err(|error| RulesError::Unreadable(error.to_string()))?;
        Self::new(written)
    }
}

fn compile(list: &'static str, rules: &[RuleText]) -> Result<Rules, RulesError> {
    let compiled = rules.iter().enumerate().map(|(index, rule)| {
        let rule_error = |field: &str, message: String| RulesError::Rule {
            list,
            index,
            field: if field.is_empty() {
                String::new()
            } else {
                format!(".{field}")
            },
            message,
        };
        let action = Action::of_name(&rule.action)
            .ok_or_else(|| rule_error("action", format!("unrecognized action type \"{}\"", rule.action)))?;
        let spec = RuleSpec {
            action,
            source_labels: rule.source_labels.iter().map(|label| label.as_str().into()).collect(),
            separator: rule.separator.as_str().into(),
            pattern: Pattern::new(&rule.regex).map_err(|error| rule_error("regex", error.to_string()))?,
            modulus: rule.modulus,
            target_label: rule.target_label.as_str().into(),
            replacement: rule.replacement.as_str().into(),
        };
        spec.check().map_err(|error| rule_error(error.field, error.message))?;
        Ok::<_, RulesError>(Rule::new(spec))
    });
    compiled.collect::<Result<Vec<Rule>, _>>().map(Rules::from)
}

/// Compiled rules from records of the log, kept so that records with the same text do not compile it again.
#[derive(Debug, Default)]
pub(crate) struct KnownRules(HashMap<Box<str>, Option<Arc<RelabelRules>>>);

impl KnownRules {
    /// Returns the compiled rules for a text in the log.
    pub(crate) fn rules_of(&mut self, text: &str) -> Result<Option<Arc<RelabelRules>>, RulesError> {
        if let Some(rules) = self.0.get(text) {
            return Ok(rules.clone());
        }
        let rules = RelabelRules::of_text(text)?;
        if self.0.len() >= MAX_COMPILED_RULES {
            self.0.clear();
        }
        self.0.insert(text.into(), rules.clone());
        Ok(rules)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drop_of(label: &str, regex: &str) -> RuleText {
        RuleText {
            action: "Drop".to_owned(),
            source_labels: vec![label.to_owned()],
            regex: regex.to_owned(),
            ..RuleText::default()
        }
    }

    fn series_rules(series: Vec<RuleText>) -> Result<Option<Arc<RelabelRules>>, RulesError> {
        RelabelRules::new(RulesText {
            series,
            ..RulesText::default()
        })
    }

    #[test]
    fn rules_survive_the_log_and_are_compiled_once() {
        let written = RulesText {
            defaults: DefaultRules::Last,
            series: vec![drop_of("secret", ".+")],
            sample_types: vec![drop_of(TYPE, "alloc_.*")],
            sanitize: true,
            max_sessions: NonZeroU32::new(3),
            numeric_labels: vec!["thread_id".to_owned()],
        };
        let rules = RelabelRules::new(written.clone()).unwrap().unwrap();
        let mut known = KnownRules::default();
        let compiled = known.rules_of(rules.text()).unwrap().unwrap();
        assert_eq!((&compiled, compiled.written()), (&rules, &written));
        assert!(Arc::ptr_eq(&compiled, &known.rules_of(rules.text()).unwrap().unwrap()));
        assert!(!rules.by_type);
        assert!(matches!(known.rules_of("{"), Err(RulesError::Unreadable(_))));
        assert!(matches!(
            known.rules_of("{\"newer\": 1}"),
            Err(RulesError::Unreadable(_))
        ));
    }

    #[test]
    fn the_default_rules_alone_are_no_rules() {
        assert_eq!(series_rules(Vec::new()).unwrap(), None);
        let sessions = RulesText {
            max_sessions: NonZeroU32::new(1),
            ..RulesText::default()
        };
        let rules = RelabelRules::new(sessions).unwrap().unwrap();
        assert!(rules.text().contains("\"max_sessions\":1"));
        let numbers = RulesText {
            numeric_labels: vec!["bytes".to_owned()],
            ..RulesText::default()
        };
        let rules = RelabelRules::new(numbers).unwrap().unwrap();
        assert_eq!(rules.numeric_labels(), ["bytes"]);
        // The texts of rules without these settings are those of older programs.
        let sanitizes = RulesText {
            sanitize: true,
            ..RulesText::default()
        };
        let rules = RelabelRules::new(sanitizes).unwrap().unwrap();
        assert!(!rules.text().contains("max_sessions"), "{}", rules.text());
        assert!(!rules.text().contains("numeric_labels"), "{}", rules.text());
        for (defaults, is_set) in [(DefaultRules::Last, false), (DefaultRules::Disabled, true)] {
            let written = RulesText {
                defaults,
                ..RulesText::default()
            };
            assert_eq!(RelabelRules::new(written).unwrap().is_some(), is_set, "{defaults:?}");
        }
        assert_eq!("".parse(), Ok(DefaultRules::First));
        let error = "middle".parse::<DefaultRules>().unwrap_err();
        assert!(error.to_string().contains("`middle`"));
    }

    #[test]
    fn a_wrong_rule_is_refused_with_its_place() {
        let valid_rule = drop_of("a", "b");
        let error_text = |rule: RuleText| series_rules(vec![valid_rule.clone(), rule]).unwrap_err().to_string();
        let message = error_text(drop_of("a", "("));
        assert!(
            message.starts_with("ingestion_relabeling_rules[1].regex: invalid regular expression:"),
            "{message}"
        );
        let action = RuleText {
            action: "explode".to_owned(),
            ..RuleText::default()
        };
        assert_eq!(
            error_text(action),
            "ingestion_relabeling_rules[1].action: unrecognized action type \"explode\""
        );
        assert!(error_text(RuleText::default()).contains("[1].target_label: relabel configuration for replace action"));
        let mixed_rule = RuleText {
            action: "labeldrop".to_owned(),
            ..drop_of("a", "b")
        };
        assert!(error_text(mixed_rule).starts_with("ingestion_relabeling_rules[1]: labeldrop action requires only"));
        let long_rules = vec![drop_of("a", &"x".repeat(1000)); 70];
        assert!(matches!(series_rules(long_rules), Err(RulesError::TooLong(_))));
    }

    #[test]
    fn rules_that_read_or_copy_types_are_asked_for_each_type() {
        assert!(series_rules(vec![drop_of(TYPE, "cpu")]).unwrap().unwrap().by_type);
        let copy = RuleText {
            action: "labelmap".to_owned(),
            regex: "__(.+)__".to_owned(),
            ..RuleText::default()
        };
        assert!(series_rules(vec![copy]).unwrap().unwrap().by_type);
        let equal = RuleText {
            action: "dropequal".to_owned(),
            source_labels: vec!["dropped_type".to_owned()],
            target_label: TYPE.to_owned(),
            ..RuleText::default()
        };
        assert!(series_rules(vec![equal]).unwrap().unwrap().by_type);
        assert!(!series_rules(vec![drop_of("__name__", "x")]).unwrap().unwrap().by_type);
    }
}
