//! Tests against a fake control plane. Its responses follow the documentation of Kuma's service.

use std::sync::Arc;

use axum::Router;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::post;
use parking_lot::Mutex;
use serde_json::{Value as Content, json};

use super::{ASSIGNMENT, DEFINITION};
use crate::common::testing::{Body, Recorder, Running, eventually, serve};
use alluvium_pipeline::component::HealthState;

#[tokio::test]
async fn proxies_become_targets_and_only_what_is_new_is_sent() {
    let requests: Arc<Mutex<Vec<Content>>> = Arc::default();
    let noted = requests.clone();
    let handler = move |RawQuery(query): RawQuery, body: String| {
        assert_eq!(query.as_deref(), Some("fetch-timeout=120000ms"));
        let question: Content = serde_json::from_str(&body).unwrap();
        let is_known = question["version_info"] == "v1" && question["response_nonce"] == "n1";
        noted.lock().push(question);
        async move {
            if is_known {
                return StatusCode::NOT_MODIFIED.into_response();
            }
            let resource = json!({
                "@type": ASSIGNMENT, "mesh": "default", "service": "shop",
                "labels": {"team.name": "a", "both": "service"},
                "targets": [{"name": "shop-1", "scheme": "http", "address": "10.0.0.1:5670", "metricsPath": "/metrics",
                             "labels": {"zone": "z", "both": "proxy"}}, {"name": "shop-2", "address": "10.0.0.2:5670"}],
            });
            let answer = json!({"versionInfo": "v1", "nonce": "n1", "typeUrl": ASSIGNMENT, "resources": [resource]});
            answer.to_string().into_response()
        }
    };
    let other = || async { json!({"typeUrl": "other"}).to_string() };
    let router = Router::new()
        .route("/v3/discovery:monitoringassignments", post(handler))
        .route("/other/v3/discovery:monitoringassignments", post(other));
    let (base, _server) = serve(router).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.kuma.test", folder.path());
    let body = Body::new().text("server", &base).text("refresh_interval", "5ms");
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("several requests", || requests.lock().len() > 3).await;
    let targets = recorder.exported_targets("targets");
    let shortened: Vec<String> = targets
        .iter()
        .map(|target| target.replace("__meta_kuma_", ""))
        .collect();
    assert_eq!(
        shortened,
        [
            "{__address__=10.0.0.1:5670,dataplane=shop-1,label_both=service,label_team_name=a,label_zone=z,\
             mesh=default,service=shop,__metrics_path__=/metrics,__scheme__=http,instance=shop-1}",
            "{__address__=10.0.0.2:5670,dataplane=shop-2,label_both=service,label_team_name=a,mesh=default,\
             service=shop,__metrics_path__=,__scheme__=,instance=shop-2}",
        ]
    );
    assert_eq!(recorder.health().0, HealthState::Healthy, "{}", recorder.health().1);
    let first = requests.lock()[0].clone();
    assert_eq!(
        (&first["version_info"], &first["type_url"]),
        (&json!(""), &json!(ASSIGNMENT))
    );
    assert!(first["node"]["id"].is_string());

    let invalid = Body::new().text("server", &format!("{base}/other"));
    running.component.update(invalid.arguments(&DEFINITION)).unwrap();
    eventually("the failure", || {
        recorder
            .health()
            .1
            .ends_with(&format!("answered with `other`, not {ASSIGNMENT}"))
    })
    .await;
    running.stop().await;
}
