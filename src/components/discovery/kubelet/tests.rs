//! Tests against a fake kubelet: which targets result from its pods.

use axum::Router;
use axum::routing::get;
use serde_json::json;

use super::DEFINITION;
use crate::common::kubernetes::testing::pod;
use crate::common::testing::{Body, Recorder, Running, eventually, serve};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;

#[tokio::test]
async fn the_pods_of_a_node_are_targets_as_those_of_the_api_server() {
    let pods = [
        pod("shop", "b", "10.0.0.2"),
        pod("shop", "a", "10.0.0.1"),
        pod("other", "c", "10.0.0.3"),
    ];
    let answer = json!({"kind": "PodList", "items": pods}).to_string();
    let router = Router::new().route("/prefix/pods", get(move || async move { answer.clone() }));
    let (base, _server) = serve(router).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.kubelet.test", folder.path());
    let body = Body::new()
        .text("url", &format!("{base}/prefix"))
        .with("namespaces", Value::array([Value::string("shop")]));
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("two targets", || recorder.exported_targets("targets").len() == 2).await;
    let target = |name: &str, ip: &str| {
        format!(
            "{{__address__={ip}:8080,namespace=shop,pod_container_id=containerd://0a1b,pod_container_image=shop:1,\
             pod_container_init=false,pod_container_name=main,pod_container_port_name=http,\
             pod_container_port_number=8080,pod_container_port_protocol=TCP,pod_host_ip=192.168.0.1,pod_ip={ip},\
             pod_label_app=shop,pod_labelpresent_app=true,pod_name={name},pod_node_name=node-1,pod_phase=Running,\
             pod_ready=true,pod_uid=uid-{name}}}"
        )
    };
    let exported = recorder.exported_targets("targets").join("\n");
    let expected = [target("a", "10.0.0.1"), target("b", "10.0.0.2")];
    assert_eq!(exported.replace("__meta_kubernetes_", ""), expected.join("\n"));
    running.stop().await;
}

#[tokio::test]
async fn a_node_without_pods_may_say_null_and_other_answers_are_trouble() {
    let router = Router::new()
        .route("/pods", get(|| async { r#"{"kind": "PodList", "items": null}"# }))
        .route("/other/pods", get(|| async { "Unauthorized" }));
    let (base, _server) = serve(router).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.kubelet.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &Body::new().text("url", &base));
    eventually("health", || {
        recorder.health() == (HealthState::Healthy, "0 targets found".to_owned())
    })
    .await;
    let other = Body::new().text("url", &format!("{base}/other"));
    running.component.update(other.arguments(&DEFINITION)).unwrap();
    eventually("trouble", || recorder.health().0 == HealthState::Unhealthy).await;
    assert!(recorder.health().1.contains("/other/pods"), "{:?}", recorder.health());
    running.stop().await;
}
