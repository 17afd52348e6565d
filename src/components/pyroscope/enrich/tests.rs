//! Tests of the component from outside: profiles go into the receiver and arrive at a sink.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::common::testing::{Body, Collector, Recorder, Running, receivers, targets};
use crate::pyroscope::enrich::DEFINITION;
use alluvium_lang::value::Value;
use alluvium_profile::{Labels, RawProfile, SinkErrorKind};

fn profile(labels: &[(&str, &str)]) -> RawProfile {
    RawProfile {
        labels: Labels::from_pairs(labels.iter().copied()),
        id: "".into(),
        pprof: Bytes::from_static(&[0x0a, 4, 8, 1, 16, 2]),
    }
}

fn body(sink: &Arc<Collector>) -> Body {
    let known = targets(&[
        &[("ip", "10.0.0.7"), ("pod", "cart-1"), ("zone", "eu"), ("empty", "")],
        &[("ip", ""), ("pod", "nameless")],
        &[("pod", "without")],
    ]);
    Body::new()
        .with("targets", known)
        .text("target_match_label", "ip")
        .with("forward_to", receivers([sink.clone() as _]))
}

#[tokio::test]
async fn a_profile_gets_the_labels_of_the_target_with_its_value() {
    let sink = Arc::new(Collector::default());
    let recorder = Recorder::new("pyroscope.enrich.test", Path::new("/nonexistent"));
    let running = Running::start(&DEFINITION, &recorder, &body(&sink));
    let receiver = recorder.receiver();
    let profiles = vec![
        profile(&[("ip", "10.0.0.7"), ("zone", "old"), ("__name__", "cpu")]),
        profile(&[("ip", "10.0.0.8")]),
        profile(&[("service_name", "s")]),
    ];
    assert!(receiver.append(profiles).await.is_empty());
    let labels = || -> Vec<String> {
        sink.profiles()
            .iter()
            .map(|profile| profile.labels.to_string())
            .collect()
    };
    assert_eq!(
        labels(),
        [
            r#"{__name__="cpu", ip="10.0.0.7", pod="cart-1", zone="eu"}"#,
            r#"{ip="10.0.0.8"}"#,
            r#"{service_name="s"}"#,
        ]
    );
    assert_eq!(recorder.health().1, "number of values of ip among the targets: 1");
    let metrics = recorder.context.metrics.encode();
    assert!(
        metrics.contains("pyroscope_enrich_profiles_total{outcome=\"unmatched\"} 2"),
        "{metrics}"
    );

    // The update compares another label of the profile and copies only some labels of the target. The receiver stays.
    let some = body(&sink).text("profiles_match_label", "host").with(
        "labels_to_copy",
        Value::array([Value::string("pod"), Value::string("other")]),
    );
    running.component.update(some.arguments(&DEFINITION)).unwrap();
    assert!(receiver.append(vec![profile(&[("host", "10.0.0.7")])]).await.is_empty());
    assert_eq!(labels().last().unwrap(), r#"{host="10.0.0.7", pod="cart-1"}"#);
    running.stop().await;
}

#[tokio::test]
async fn a_receiver_that_outlives_its_component_says_so() {
    let recorder = Recorder::new("pyroscope.enrich.test", Path::new("/nonexistent"));
    let running = Running::start(&DEFINITION, &recorder, &body(&Arc::default()));
    let receiver = recorder.receiver();
    running.stop().await;
    let errors = receiver.append(vec![profile(&[("a", "b")])]).await;
    assert_eq!(errors[0].error.kind, SinkErrorKind::Gone);
    assert_eq!(errors[0].error.message, "the component pyroscope.enrich.test has ended");
}

#[test]
fn the_label_of_targets_must_be_named() {
    let error = body(&Arc::default())
        .text("target_match_label", "")
        .read(&DEFINITION)
        .map(drop);
    assert!(error.unwrap_err().starts_with("target_match_label: "));
}
