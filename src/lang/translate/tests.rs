//! Property tests: conversion to HCL and back yields the same tree, and the HCL formatter does not change the HCL text.

use proptest::prelude::*;

use super::{to_alloy, to_hcl};
use crate::{Source, fmt_named, parse, same};

/// Generates bodies of Alloy syntax with every kind of expression and with comments in between.
fn bodies() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "1",
        "010",
        "08",
        "2.5",
        ".5",
        "5.",
        "1e3",
        "18446744073709551616",
        "true",
        "null",
        "\"text\"",
        "\"a ${b} %{c} $${d}\"",
        "\"q\\\"b\\\\n\\n\"",
        "`raw\n\tlines\n`",
        "`one`",
        "\"\\u00e9\\x41\"",
        "a",
        "a.b.c",
        "x.y[0].z[\"k\"]",
        "f()",
        "string.join([], \",\")",
    ])
    .prop_map(str::to_owned);
    let operator = prop::sample::select(vec![
        "+", "-", "*", "/", "%", "^", "==", "!=", "<", "<=", ">", ">=", "&&", "||",
    ]);
    let expression = leaf.prop_recursive(4, 24, 3, move |inner| {
        let gap = prop::sample::select(vec!["", "\n", "\n// c\n", " /* k */ "]);
        let list = prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            (list.clone(), gap.clone()).prop_map(|(items, gap)| {
                let items: String = items.iter().map(|item| format!("{gap}{item},")).collect();
                format!("[{items}]")
            }),
            (list.clone(), gap.clone()).prop_map(|(items, gap)| {
                let items: String = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| format!("{gap}\"k {index}\" = {item},"))
                    .collect();
                format!("{{{items}}}")
            }),
            (list, gap).prop_map(|(items, gap)| {
                let items: String = items.iter().map(|item| format!("{gap}{item},")).collect();
                format!("g.h({items})")
            }),
            (inner.clone(), operator.clone(), inner.clone())
                .prop_map(|(left, operator, right)| format!("{left} {operator} {right}")),
            inner.clone().prop_map(|inner| format!("({inner})")),
            inner.clone().prop_map(|inner| format!("-{inner}")),
            inner.clone().prop_map(|inner| format!("!({inner})")),
            inner.prop_map(|inner| format!("({inner})[0].field")),
        ]
    });
    let attribute = (
        expression,
        prop::sample::select(vec!["\n", " // t\n", "\n\n", "\n// u\n\n"]),
    )
        .prop_map(|(value, end)| format!("name = {value}{end}"));
    let body = prop::collection::vec(attribute, 0..3).prop_map(|list| list.concat());
    let header = prop::sample::select(vec![
        "a",
        "a \"l\"",
        "a.b",
        "a.b \"l\"",
        "a.b.c \"l\"",
        "a.b.c",
        "declare \"d\"",
        "foreach \"f\"",
        "template",
    ]);
    body.prop_recursive(3, 8, 3, move |inner| {
        (prop::collection::vec((header.clone(), inner), 0..3)).prop_map(|blocks| {
            blocks
                .iter()
                .map(|(header, body)| format!("{header} {{ // h\n{body}}}\n"))
                .collect()
        })
    })
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let (file, diagnostics) = parse(&Source::new("in.alloy", text));
    // Skips a text that is invalid or that HCL cannot express. A test below shows that such texts are rare.
    if diagnostics.has_errors() {
        return Ok(());
    }
    let Ok(hcl) = to_hcl("in.alloy", text) else {
        return Ok(());
    };
    prop_assert_eq!(fmt_named("x.hcl", &hcl).ok(), Some(hcl.clone()));
    let alloy = to_alloy("x.hcl", &hcl);
    prop_assert!(alloy.is_ok(), "{}\n{}", hcl, alloy.unwrap_err().render());
    let alloy = alloy.unwrap_or_default();
    let (reparsed, _) = parse(&Source::new("out.alloy", alloy.as_str()));
    prop_assert!(same(&file, &reparsed), "{}\n{}\n{}", text, hcl, alloy);
    let count = |text: &str| text.matches("// ").count() + text.matches("/* ").count();
    prop_assert_eq!(count(text), count(&hcl), "{}\n{}", text, hcl);
    prop_assert_eq!(count(text), count(&alloy), "{}\n{}\n{}", text, hcl, alloy);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn conversion_there_and_back_gives_the_same_tree(text in bodies()) {
        check(&numbered(&text))?;
    }

    #[test]
    fn any_text_is_hcl_or_refused(text in ".{0,80}") {
        let _ = fmt_named("x.hcl", &text);
        let _ = to_alloy("x.hcl", &text);
    }
}

#[test]
fn a_comment_behind_a_text_of_several_lines_is_kept() {
    check("a {\n\tname = `raw\n\tlines\n` // t\n}\n").unwrap();
    check("a {\n\tname = `raw\n\tlines\n`\n}\n").unwrap();
}

/// Renames the attributes, so that every attribute has a unique name. HCL refuses repeated names.
fn numbered(text: &str) -> String {
    let mut parts = text.split("name = ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for (index, part) in parts.enumerate() {
        out.push_str(&format!("name{index} = {part}"));
    }
    out
}

#[test]
fn almost_every_generated_body_can_be_converted() {
    use proptest::strategy::ValueTree as _;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut converted, mut refused) = (0, Vec::new());
    for _ in 0..200 {
        let text = numbered(&bodies().new_tree(&mut runner).unwrap().current());
        let (_, diagnostics) = parse(&Source::new("in.alloy", text.as_str()));
        assert!(!diagnostics.has_errors(), "{}", diagnostics.render());
        match to_hcl("in.alloy", &text) {
            Ok(_) => converted += 1,
            Err(diagnostics) => refused.push(diagnostics.to_string()),
        }
    }
    assert!(converted > 180, "{converted}, the others: {refused:#?}");
}

#[test]
fn hostile_nesting_is_refused() {
    for piece in [
        "(",
        "[",
        "{a=",
        "-",
        "!",
        "f(",
        "a[",
        "1+",
        "a {\n",
        "\"${",
        "x ? 1 : ",
        "[for a in ",
        "<<E\n${",
    ] {
        for text in [format!("a = {}", piece.repeat(20_000)), piece.repeat(20_000)] {
            let (_, diagnostics) = parse(&Source::new("x.hcl", text.as_str()));
            assert!(diagnostics.has_errors(), "{piece}");
        }
    }
}
