//! Tests of the component without a JVM: which targets have a session, and how the component reports other targets.

use super::*;
use crate::common::testing::{Body, Recorder, Running, eventually, receivers, targets};
use crate::pyroscope::java::session::labels;

fn body(target_labels: &[&[(&str, &str)]]) -> Body {
    Body::new()
        .with("targets", targets(target_labels))
        .with("forward_to", receivers([]))
}

#[tokio::test(flavor = "multi_thread")]
async fn other_processes_are_passed_over_and_targets_without_a_number_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("pyroscope.java.test", folder.path());
    let own = std::process::id().to_string();
    let running = Running::start(&DEFINITION, &recorder, &body(&[&[(PID, &own)]]));
    eventually("a healthy component", || recorder.health().0 == HealthState::Healthy).await;
    assert_eq!(
        recorder.health().1,
        "0 Java processes are profiled, 1 other processes are not JVMs"
    );
    let arguments = body(&[&[(PID, &own)], &[("a", "b")], &[(PID, "many")]]).arguments(&DEFINITION);
    running.component.update(arguments).unwrap();
    eventually("an unhealthy component after the update", || {
        recorder.health().0 == HealthState::Unhealthy
    })
    .await;
    let message = recorder.health().1;
    assert!(message.ends_with("2 targets have no __process_pid__"), "{message}");
    running.stop().await;
}

#[test]
fn arguments_that_would_be_other_commands_are_refused() {
    for (body, reason) in [
        (
            body(&[]).text("tmp_dir", "/tmp,file=/etc/passwd"),
            "must be an absolute path",
        ),
        (body(&[]).text("tmp_dir", "tmp"), "must be an absolute path"),
        (
            body(&[]).block("profiling_config", Body::new().text("event", "cpu,file=/x")),
            "must not contain a comma",
        ),
        (
            body(&[]).block(
                "profiling_config",
                Body::new().with("sample_rate", Value::Number(Number::Int(0))),
            ),
            "sample_rate",
        ),
    ] {
        let error = body.read(&DEFINITION).unwrap_err();
        assert!(error.contains(reason), "{reason}: {error}");
    }
}

#[test]
fn profiles_have_the_public_labels_of_the_target_and_a_service() {
    let target = |pairs: &[(&str, &str)]| -> Target {
        pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    };
    let in_pod = target(&[
        (PID, "7"),
        ("team", "shop"),
        ("__meta_kubernetes_namespace", "prod"),
        ("__meta_kubernetes_pod_container_name", "cart"),
    ]);
    assert_eq!(
        labels(&in_pod, "memory", "cpu").to_string(),
        "{__delta__=\"false\", __name__=\"memory\", jfr_event=\"cpu\", pyroscope_spy=\"alloy.java\", \
         service_name=\"java/prod/cart\", team=\"shop\"}"
    );
    assert_eq!(
        labels(&target(&[]), "wall", "").get("service_name"),
        Some("unspecified")
    );
}
