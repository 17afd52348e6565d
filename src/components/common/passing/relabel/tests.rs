//! Tests of the rules: one case for each action and check, in the form "labels, rule, labels".

use alluvium_lang::body::FromBlocks as _;
use alluvium_lang::schema::{ArgumentBlock, Arguments};
use alluvium_lang::value::{Number, Value};
use alluvium_profile::relabel::LabelMap;
use alluvium_profile::relabel::is_template;

use super::Rules;

/// Returns a `rule` block with the schema's defaults, as the language passes it to a component.
fn rule(attributes: &[(&str, Value)]) -> ArgumentBlock {
    let mut body = Arguments::default();
    for (name, value) in [
        ("action", Value::string("replace")),
        ("modulus", Value::Number(Number::Uint(0))),
        ("regex", Value::string("(.*)")),
        ("replacement", Value::string("$1")),
        ("separator", Value::string(";")),
        ("source_labels", Value::array([])),
        ("target_label", Value::string("")),
    ] {
        body.attributes.insert(name.into(), value);
    }
    for (name, value) in attributes {
        body.attributes.insert((*name).into(), value.clone());
    }
    ArgumentBlock {
        name: "rule".into(),
        label: None,
        body,
    }
}

fn text(value: &str) -> Value {
    Value::string(value)
}

fn sources(names: &[&str]) -> Value {
    Value::array(names.iter().map(|name| text(name)))
}

fn rules(blocks: Vec<ArgumentBlock>) -> Result<Rules, String> {
    let blocks: Vec<&ArgumentBlock> = blocks.iter().collect();
    Rules::from_blocks("rule", &blocks).map_err(|errors| errors.0[0].to_string())
}

fn labels(pairs: &[(&str, &str)]) -> LabelMap {
    pairs
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()))
        .collect()
}

fn apply(pairs: &[(&str, &str)], attributes: &[(&str, Value)]) -> Option<LabelMap> {
    rules(vec![rule(attributes)]).unwrap().apply(labels(pairs))
}

#[test]
fn replace_joins_matches_and_expands() {
    let attributes = [
        ("source_labels", sources(&["a", "b"])),
        ("regex", text("(.+?)(?::\\d+)?;(\\d+)")),
        ("target_label", text("a")),
        ("replacement", text("$1:$2")),
    ];
    assert_eq!(
        apply(&[("a", "10.0.0.1:80"), ("b", "6060")], &attributes),
        Some(labels(&[("a", "10.0.0.1:6060"), ("b", "6060")]))
    );
    assert_eq!(apply(&[("a", "x")], &attributes), Some(labels(&[("a", "x")])));
}

#[test]
fn an_empty_result_removes_the_label() {
    let attributes = [("source_labels", sources(&["none"])), ("target_label", text("a"))];
    assert_eq!(
        apply(&[("a", "1"), ("b", "2")], &attributes),
        Some(labels(&[("b", "2")]))
    );
    assert_eq!(apply(&[("a", "1")], &attributes), None);
}

#[test]
fn a_target_made_of_groups_is_used_when_it_is_a_name() {
    let attributes = |regex| {
        [
            ("source_labels", sources(&["a"])),
            ("regex", text(regex)),
            ("target_label", text("x_$1")),
            ("replacement", text("y")),
        ]
    };
    assert_eq!(
        apply(&[("a", "b")], &attributes("(.*)")),
        Some(labels(&[("a", "b"), ("x_b", "y")]))
    );
    assert_eq!(
        apply(&[("a", "b-c")], &attributes("(.*)")),
        Some(labels(&[("a", "b-c")]))
    );
}

#[test]
fn keep_and_drop_choose_by_the_joined_value() {
    let attributes = |action| {
        [
            ("source_labels", sources(&["a", "b"])),
            ("separator", text("-")),
            ("regex", text("1-2")),
            ("action", text(action)),
        ]
    };
    let pairs = [("a", "1"), ("b", "2")];
    assert!(apply(&pairs, &attributes("keep")).is_some());
    assert!(apply(&pairs, &attributes("drop")).is_none());
    assert!(apply(&[("a", "1")], &attributes("keep")).is_none());
    assert!(apply(&[("a", "1")], &attributes("drop")).is_some());
}

#[test]
fn keepequal_and_dropequal_compare_with_the_target() {
    let attributes = |action| {
        [
            ("source_labels", sources(&["a"])),
            ("target_label", text("b")),
            ("action", text(action)),
        ]
    };
    assert!(apply(&[("a", "1"), ("b", "1")], &attributes("keepequal")).is_some());
    assert!(apply(&[("a", "1"), ("b", "2")], &attributes("keepequal")).is_none());
    assert!(apply(&[("a", "1"), ("b", "1")], &attributes("dropequal")).is_none());
    assert!(apply(&[("a", "1"), ("b", "2")], &attributes("DropEqual")).is_some());
}

#[test]
fn hashmod_takes_the_last_eight_bytes_of_md5() {
    let attributes = |modulus| {
        [
            ("source_labels", sources(&["a"])),
            ("target_label", text("d")),
            ("action", text("hashmod")),
            ("modulus", Value::Number(Number::Uint(modulus))),
        ]
    };
    // md5("foo") = acbd18db4cc2f85cedef654fccc4a4d8; 0xedef654fccc4a4d8 mod 2^62 drops the two top bits.
    assert_eq!(
        apply(&[("a", "foo")], &attributes(1 << 62)).unwrap()["d"].as_ref(),
        (0xedef_654f_ccc4_a4d8_u64 % (1 << 62)).to_string()
    );
    // With a small modulus, the result is smaller than the modulus.
    assert!(
        apply(&[("a", "foo")], &attributes(3)).unwrap()["d"]
            .parse::<u64>()
            .unwrap()
            < 3
    );
}

#[test]
fn labelmap_labeldrop_and_labelkeep_go_by_names() {
    let pairs = [("__meta_app", "x"), ("__meta_zone", "y"), ("a", "1")];
    assert_eq!(
        apply(&pairs, &[("action", text("labelmap")), ("regex", text("__meta_(.+)"))]),
        Some(labels(&[
            ("__meta_app", "x"),
            ("__meta_zone", "y"),
            ("a", "1"),
            ("app", "x"),
            ("zone", "y")
        ]))
    );
    assert_eq!(
        apply(&pairs, &[("action", text("labeldrop")), ("regex", text("__meta_.+"))]),
        Some(labels(&[("a", "1")]))
    );
    assert_eq!(
        apply(&pairs, &[("action", text("labelkeep")), ("regex", text("__meta_app"))]),
        Some(labels(&[("__meta_app", "x")]))
    );
}

#[test]
fn lowercase_and_uppercase_map_the_joined_value() {
    let attributes = |action| {
        [
            ("source_labels", sources(&["a"])),
            ("target_label", text("b")),
            ("action", text(action)),
        ]
    };
    assert_eq!(
        apply(&[("a", "aB")], &attributes("lowercase")).unwrap()["b"].as_ref(),
        "ab"
    );
    assert_eq!(
        apply(&[("a", "aB")], &attributes("uppercase")).unwrap()["b"].as_ref(),
        "AB"
    );
}

#[test]
fn wrong_rules_are_refused_with_alloys_reason() {
    for (attributes, message) in [
        (
            vec![("action", text(""))],
            "rule[0].action: relabel action cannot be empty",
        ),
        (
            vec![("action", text("explode"))],
            "rule[0].action: unrecognized action type \"explode\"",
        ),
        (
            vec![("action", text("hashmod")), ("target_label", text("a"))],
            "rule[0].modulus: relabel configuration for hashmod requires non-zero modulus",
        ),
        (
            vec![],
            "rule[0].target_label: relabel configuration for replace action requires 'target_label' value",
        ),
        (
            vec![("target_label", text("a-b"))],
            "rule[0].target_label: \"a-b\" is invalid 'target_label' for replace action",
        ),
        (
            vec![("target_label", text("${a"))],
            "rule[0].target_label: \"${a\" is invalid 'target_label' for replace action",
        ),
        (
            vec![
                ("action", text("lowercase")),
                ("target_label", text("a")),
                ("replacement", text("x")),
            ],
            "rule[0].replacement: 'replacement' can not be set for lowercase action",
        ),
        (
            vec![("action", text("labelmap")), ("replacement", text("a-$1"))],
            "rule[0].replacement: \"a-$1\" is invalid 'replacement' for labelmap action",
        ),
        (
            vec![
                ("action", text("keepequal")),
                ("target_label", text("a")),
                ("regex", text("b")),
            ],
            "rule[0]: keepequal action requires only 'source_labels' and 'target_label', and no other fields",
        ),
        (
            vec![("action", text("labeldrop")), ("target_label", text("a"))],
            "rule[0]: labeldrop action requires only 'regex', and no other fields",
        ),
    ] {
        assert_eq!(rules(vec![rule(&attributes)]).unwrap_err(), message);
    }
    assert!(
        rules(vec![rule(&[("action", text("keep")), ("regex", text("("))])])
            .unwrap_err()
            .starts_with("rule[0].regex: invalid regular expression")
    );
}

#[test]
fn templates_are_names_with_references() {
    for template in ["a", "a1", "$1", "${1}", "a_${name}_b", "$1$2", "${1}9"] {
        assert!(is_template(template), "{template}");
    }
    for template in ["", "1a", "a-b", "$", "${}", "${1", "a.b"] {
        assert!(!is_template(template), "{template}");
    }
}
