//! Lists of targets in the form in which files and web services pass them to Prometheus: groups, each with addresses
//! and labels.
//!
//! In: JSON or YAML. Out: groups, or an error with line and column. As in Go, a missing list of targets is empty, and
//! `null` stands for an empty list, mapping or text. As in Prometheus, an unknown key, a group that is null and a label
//! without a name are errors.

use std::collections::BTreeMap;

use serde::Deserialize;

use alluvium_base::go_json;

/// A group as it is written in JSON or YAML.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
struct WrittenGroup {
    targets: Option<Vec<Option<String>>>,
    labels: Option<BTreeMap<String, Option<String>>>,
}

/// A group: targets with the same labels.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TargetGroup {
    /// Addresses, as `host:port`.
    pub(crate) targets: Vec<String>,
    pub(crate) labels: BTreeMap<String, String>,
}

/// An error in a list, with its position.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {problem}")]
pub(crate) struct GroupError {
    line: u64,
    column: u64,
    problem: String,
}

/// Reads groups from JSON.
pub(crate) fn from_json(json: &[u8]) -> Result<Vec<TargetGroup>, GroupError> {
    let written = go_json::from_slice(json).map_err(|error| {
        let message = error.to_string();
        GroupError {
            line: error.line() as u64,
            column: error.column() as u64,
            problem: problem(&message),
        }
    })?;
    groups(written)
}

/// Reads groups from YAML. If the text contains several documents, returns the groups of the first document.
pub(crate) fn from_yaml(yaml: &str) -> Result<Vec<TargetGroup>, GroupError> {
    let written: Vec<Option<Vec<Option<WrittenGroup>>>> = serde_saphyr::from_multiple(yaml).map_err(|error| {
        let position = error.location().map(|location| (location.line(), location.column()));
        let (line, column) = position.unwrap_or((1, 1));
        let message = error.without_snippet().to_string();
        GroupError {
            line,
            column,
            problem: problem(message.lines().next().unwrap_or_default()),
        }
    })?;
    groups(written.into_iter().next().flatten().unwrap_or_default())
}

/// Returns the message of a parser without its position and without advice to Rust programmers.
fn problem(message: &str) -> String {
    let ends = [" at line ", ", set DuplicateKeyPolicy", "; use Option<"];
    let end = ends.iter().filter_map(|end| message.find(end)).min();
    message[..end.unwrap_or(message.len())].to_owned()
}

fn groups(written: Vec<Option<WrittenGroup>>) -> Result<Vec<TargetGroup>, GroupError> {
    let group = |(index, group): (usize, Option<WrittenGroup>)| {
        let number = index + 1;
        let error = |problem| GroupError {
            line: 1,
            column: 1,
            problem,
        };
        let group = group.ok_or_else(|| error(format!("group {number} of the list is null")))?;
        let WrittenGroup { targets, labels } = group;
        let labels = labels.unwrap_or_default();
        if labels.contains_key("") {
            return Err(error(format!("group {number} of the list has a label without a name")));
        }
        let labels = labels.into_iter();
        Ok(TargetGroup {
            targets: targets
                .unwrap_or_default()
                .into_iter()
                .map(Option::unwrap_or_default)
                .collect(),
            labels: labels.map(|(name, value)| (name, value.unwrap_or_default())).collect(),
        })
    };
    written.into_iter().enumerate().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(targets: &[&str], labels: &[(&str, &str)]) -> TargetGroup {
        TargetGroup {
            targets: targets.iter().map(ToString::to_string).collect(),
            labels: labels
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
        }
    }

    #[test]
    fn what_is_null_or_missing_is_empty() {
        let env = [("env", "prod")];
        for (json, expected) in [
            ("null", vec![]),
            (
                r#"[{"targets": null, "labels": {"env": "prod"}}]"#,
                vec![group(&[], &env)],
            ),
            (r#"[{"labels": {"env": "prod"}}]"#, vec![group(&[], &env)]),
            (r#"[{"targets": ["a:1"], "labels": null}]"#, vec![group(&["a:1"], &[])]),
            (
                r#"[{"targets": ["a:1"], "labels": {"rack": null}}]"#,
                vec![group(&["a:1"], &[("rack", "")])],
            ),
            (
                r#"[{"Targets": ["a:1"], "LABELS": {"env": "prod"}}]"#,
                vec![group(&["a:1"], &env)],
            ),
        ] {
            assert_eq!(from_json(json.as_bytes()), Ok(expected), "{json}");
        }
        for (yaml, expected) in [
            ("", vec![]),
            ("# nothing\n", vec![]),
            ("~", vec![]),
            ("- targets: ['a:1']\n---\n", vec![group(&["a:1"], &[])]),
            (
                "- targets: ['a:1']\n---\n- targets: ['b:1']\n",
                vec![group(&["a:1"], &[])],
            ),
            ("- targets:\n  labels: {env: prod}\n", vec![group(&[], &env)]),
            (
                "- targets: ['a:1']\n  labels:\n    rack:\n    version: 1.10\n    no: no\n",
                vec![group(&["a:1"], &[("no", "no"), ("rack", ""), ("version", "1.10")])],
            ),
        ] {
            assert_eq!(from_yaml(yaml), Ok(expected), "{yaml}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_without_advice_about_rust() {
        for (json, expected) in [
            (
                r#"[{"label": {}}]"#,
                "1:9: unknown field `label`, expected `targets` or `labels`",
            ),
            (
                r#"[{"targets": 1}]"#,
                "1:14: invalid type: integer `1`, expected a sequence",
            ),
            ("[null]", "1:1: group 1 of the list is null"),
            (
                r#"[{}, {"labels": {"": "x"}}]"#,
                "1:1: group 2 of the list has a label without a name",
            ),
            ("", "1:0: EOF while parsing a value"),
        ] {
            assert_eq!(from_json(json.as_bytes()).unwrap_err().to_string(), expected, "{json}");
        }
        for yaml in [
            "- label: {}",
            "- targets: 1",
            "- targets: [a",
            "- ~",
            "targets: []",
            "- targets: []\n  targets: []",
            "- labels: {a: 1, a: 2}",
            "- labels: {~: x}",
            "- labels: {'': x}",
        ] {
            let error = from_yaml(yaml).unwrap_err().to_string();
            assert!(!error.contains("Option") && !error.contains("serde"), "{error}");
            assert!(!error.contains("Policy"), "{error}");
        }
    }
}
