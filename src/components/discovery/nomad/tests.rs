//! Tests against a fake Nomad server. Its responses follow the documentation of the API.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{Path, RawQuery};
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::get;
use tokio::sync::Barrier;

use super::DEFINITION;
use crate::common::testing::{Body, Recorder, Running, eventually, serve};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;

const LIST: &str = r#"[
  {"Namespace": "a", "Services": [{"ServiceName": "web", "Tags": ["x"]}, {"ServiceName": "db", "Tags": []}]},
  {"Namespace": "b", "Services": [{"ServiceName": "web", "Tags": []}]}
]"#;

#[tokio::test]
async fn each_instance_of_each_service_is_a_target() {
    let list = |RawQuery(query): RawQuery| async move {
        assert_eq!(query.as_deref(), Some("region=global&namespace=*&stale="));
        LIST
    };
    let instances = |Path(name): Path<String>, RawQuery(query): RawQuery| async move {
        match (&*name, query.as_deref()) {
            ("web", Some("region=global&namespace=a&stale=")) => {
                let body = r#"[{"ID": "i1", "ServiceName": "web", "Namespace": "a", "NodeID": "n", "Datacenter": "dc1",
                    "Tags": ["x", "y"], "Address": "10.0.0.1", "Port": 28080},
                    {"ID": "i2", "ServiceName": "web", "Namespace": "a", "Tags": null,
                     "Address": "fd00::1", "Port": 1}]"#;
                body.into_response()
            }
            ("web", Some("region=global&namespace=b&stale=")) => {
                r#"[{"ID": "i3", "ServiceName": "web", "Namespace": "b", "Address": "10.0.0.3", "Port": 70000}]"#
                    .into_response()
            }
            ("db", _) => "[]".into_response(),
            other => (StatusCode::NOT_FOUND, format!("{other:?}")).into_response(),
        }
    };
    let router = Router::new()
        .route("/v1/services", get(list))
        .route("/v1/service/{name}", get(instances));
    let (base, server) = serve(router).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.nomad.test", folder.path());
    let body = Body::new().text("server", &base).text("namespace", "*");
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("an answer", || recorder.health().0 != HealthState::Unknown).await;
    let targets = recorder.exported_targets("targets");
    let shortened: Vec<String> = targets
        .iter()
        .map(|target| target.replace("__meta_nomad_", ""))
        .collect();
    assert_eq!(
        shortened,
        [
            "{__address__=10.0.0.1:28080,address=10.0.0.1,dc=dc1,namespace=a,node_id=n,service=web,\
             service_address=10.0.0.1,service_id=i1,service_port=28080,tags=,x,y,}",
            "{__address__=[fd00::1]:1,address=fd00::1,dc=,namespace=a,node_id=,service=web,service_address=fd00::1,\
             service_id=i2,service_port=1}",
            "{__address__=10.0.0.3:70000,address=10.0.0.3,dc=,namespace=b,node_id=,service=web,\
             service_address=10.0.0.3,service_id=i3,service_port=70000}",
        ],
        "{}",
        recorder.health().1
    );
    drop(server);
    let updated = body.with("allow_stale", Value::Bool(false));
    running.component.update(updated.arguments(&DEFINITION)).unwrap();
    eventually("the failure", || recorder.health().0 == HealthState::Unhealthy).await;
    let expected = format!("request to {base}/v1/services failed: ");
    assert!(recorder.health().1.starts_with(&expected), "{}", recorder.health().1);
    assert_eq!(recorder.exported_targets("targets"), targets);
    running.stop().await;
}

#[tokio::test]
async fn four_services_are_queried_at_a_time() {
    let services: Vec<String> = (0..20)
        .map(|number| format!(r#"{{"ServiceName": "s{number}"}}"#))
        .collect();
    let list = format!(r#"[{{"Namespace": "default", "Services": [{}]}}]"#, services.join(","));
    // Four requests wait for each other: there is no answer if the component sends fewer at a time.
    let barrier = Arc::new(Barrier::new(4));
    let (waiting, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let peak = most.clone();
    let instances = move |Path(name): Path<String>| {
        let (barrier, waiting, most) = (barrier.clone(), waiting.clone(), most.clone());
        async move {
            most.fetch_max(waiting.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            barrier.wait().await;
            waiting.fetch_sub(1, Ordering::SeqCst);
            format!(r#"[{{"ID": "{name}", "ServiceName": "{name}", "Address": "10.0.0.1", "Port": 80}}]"#)
        }
    };
    let router = Router::new()
        .route("/v1/services", get(move || std::future::ready(list.clone())))
        .route("/v1/service/{name}", get(instances));
    let (base, _server) = serve(router).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.nomad.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &Body::new().text("server", &base));
    eventually("an answer", || recorder.health().0 != HealthState::Unknown).await;
    assert_eq!(
        recorder.exported_targets("targets").len(),
        20,
        "{}",
        recorder.health().1
    );
    assert_eq!(peak.load(Ordering::SeqCst), 4);
    running.stop().await;
}
