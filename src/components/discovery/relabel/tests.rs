//! Tests of the exports that a component builds from its arguments.

use crate::common::testing::{Body, Recorder, Running, targets};
use crate::discovery::relabel::DEFINITION;
use alluvium_lang::value::Value;

fn rule(action: &str, source: &str, regex: &str) -> Body {
    Body::new()
        .text("action", action)
        .with("source_labels", Value::array([Value::string(source)]))
        .text("regex", regex)
}

#[tokio::test]
async fn targets_are_relabeled_again_on_every_update() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.relabel.test", folder.path());
    let body = Body::new()
        .block("rule", rule("drop", "phase", "Pending"))
        .block("rule", rule("replace", "pod", "(.+)").text("target_label", "instance"))
        .with(
            "targets",
            targets(&[
                &[("pod", "a"), ("phase", "Running")],
                &[("pod", "b"), ("phase", "Pending")],
            ]),
        );
    let running = Running::start(&DEFINITION, &recorder, &body);
    assert_eq!(
        recorder.exported_targets("output"),
        ["{instance=a,phase=Running,pod=a}"]
    );
    assert_eq!(recorder.export("rules").kind_name(), "capsule");

    let body = body.with("targets", targets(&[&[("pod", "c")]]));
    running.component.update(body.arguments(&DEFINITION)).unwrap();
    assert_eq!(recorder.exported_targets("output"), ["{instance=c,pod=c}"]);
    assert_eq!(
        format!("{:?}", running.component.debug_info()),
        r#"{"dropped": Int(0), "kept": Int(1), "targets": Int(1)}"#
    );
    running.stop().await;
}

#[tokio::test]
async fn a_label_with_an_empty_value_is_missing_for_the_rules_and_in_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.relabel.test", folder.path());
    let map = Body::new()
        .text("action", "labelmap")
        .text("regex", "port_(.+)")
        .text("replacement", "$1");
    let body = Body::new()
        .block("rule", map)
        .block("rule", rule("keep", "port_name", ""))
        .with("targets", targets(&[&[("pod", "a"), ("port_name", ""), ("name", "x")]]));
    let running = Running::start(&DEFINITION, &recorder, &body);
    assert_eq!(recorder.exported_targets("output"), ["{name=x,pod=a}"]);
    running.stop().await;
}

#[test]
fn a_wrong_rule_is_refused_before_anything_is_built() {
    let body = Body::new()
        .with("targets", targets(&[]))
        .block("rule", rule("explode", "a", "b"));
    let error = body.read(&DEFINITION).unwrap_err();
    assert!(error.starts_with("rule[0].action: "), "{error}");
}
