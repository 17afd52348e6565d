//! Tests that components read `null` as an empty list. Servers written in Go send `null` for a list without entries.

use axum::Router;
use axum::http::header::CONTENT_TYPE;

use super::{consul, docker, dockerswarm, nomad};
use crate::common::testing::{AnyRunning, Body, Recorder, eventually, serve};
use alluvium_pipeline::component::{AnyDefinition, HealthState};

/// Starts a component whose server sends `answer` to every request. Checks that the component becomes healthy, and
/// returns its targets.
async fn discover(
    definition: &'static dyn AnyDefinition,
    answer: &'static str,
    body: impl Fn(&str) -> Body,
) -> Vec<String> {
    let headers = [(CONTENT_TYPE.as_str(), "application/json"), ("x-consul-index", "1")];
    let (base, _server) = serve(Router::new().fallback(move || async move { (headers, answer) })).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.test", folder.path());
    let running = AnyRunning::start(definition, &recorder, &body(&base));
    eventually("an answer", || recorder.health().0 != HealthState::Unknown).await;
    assert_eq!(recorder.health().0, HealthState::Healthy, "{}", recorder.health().1);
    running.stop().await;
    recorder.exported_targets("targets")
}

#[tokio::test]
async fn a_null_list_is_an_empty_one_to_every_api_of_a_program_in_go() {
    let host = |base: &str| Body::new().text("host", base);
    let server = |base: &str| Body::new().text("server", base.trim_start_matches("http://"));
    assert_eq!(discover(&docker::DEFINITION, "null", host).await, [""; 0]);
    for role in ["services", "tasks", "nodes"] {
        let targets = discover(&dockerswarm::DEFINITION, "null", |base| host(base).text("role", role)).await;
        assert_eq!(targets, [""; 0], "{role}");
    }
    let nomad = |base: &str| Body::new().text("server", base);
    assert_eq!(discover(&nomad::DEFINITION, "null", nomad).await, [""; 0]);
    assert_eq!(
        discover(&consul::DEFINITION, "null", |base| server(base)
            .text("datacenter", "dc1"))
        .await,
        [""; 0]
    );
}

#[tokio::test]
async fn a_container_without_names_or_networks_is_no_reason_to_refuse_the_others() {
    let containers = r#"[{"Id": "a", "Names": null, "Ports": null, "Labels": null, "HostConfig": null,
        "NetworkSettings": null}, null, {"Id": "b", "Names": ["/b"], "HostConfig": {"NetworkMode": "host"},
        "NetworkSettings": {"Networks": {"host": {"NetworkID": "n"}}}}]"#;
    let targets = discover(&docker::DEFINITION, containers, |base| Body::new().text("host", base)).await;
    assert_eq!(targets.len(), 1, "{targets:?}");
    assert!(targets[0].contains("__meta_docker_container_id=b"), "{targets:?}");
}
