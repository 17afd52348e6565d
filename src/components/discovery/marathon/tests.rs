//! Tests against fake Marathon servers. Their responses follow the documentation of the API.

use axum::Router;
use axum::extract::RawQuery;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::get;

use super::DEFINITION;
use crate::common::testing::{Body, Recorder, Running, eventually, serve};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;

const APPS: &str = r#"{"apps": [
  {"id": "/mapped", "labels": {"team.name": "a"}, "container": {"docker": {"image": "shop:1"}, "portMappings":
     [{"labels": {"pprof": "yes"}, "containerPort": 8080, "hostPort": 0}, {"containerPort": 9090, "hostPort": 31000}]},
   "tasks": [{"id": "m1", "host": "h1", "ports": [31500, 31000]}]},
  {"id": "/inside", "networks": [{"mode": "container", "name": "dcos"}],
   "container": {"docker": {"image": "old:1", "portMappings": [{"containerPort": 8080, "hostPort": 1}]}},
   "tasks": [{"id": "i1", "host": "h1", "ipAddresses": [{"ipAddress": "9.0.0.3", "protocol": "IPv4"}]}]},
  {"id": "/defined", "requirePorts": true, "portDefinitions": [{"port": 10000, "labels": {"x": "y"}}],
   "tasks": [{"id": "d1", "host": "h2", "ports": [31001]}]},
  {"id": "/chosen", "requirePorts": false, "portDefinitions": [{"port": 10000, "labels": null}],
   "tasks": [{"id": "c1", "host": "h2", "ports": [31002]}]},
  {"id": "/plain", "tasks": [{"id": "p1", "host": "h3", "ports": [31003]},
                               {"id": "p2", "host": "h4", "ports": [31004]}]},
  {"id": "/none", "tasks": []}
]}"#;

#[tokio::test]
async fn each_port_of_each_task_is_a_target_and_a_server_that_is_away_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "secret\n").unwrap();
    let apps = |RawQuery(query): RawQuery, headers: HeaderMap| async move {
        assert_eq!(query.as_deref(), Some("embed=apps.tasks"));
        assert_eq!(headers["authorization"], "token=secret");
        APPS
    };
    let (base, server) = serve(Router::new().route("/v2/apps/", get(apps))).await;
    let failing = || async { (StatusCode::SERVICE_UNAVAILABLE, "no leader") };
    let (failing_url, _other) = serve(Router::new().route("/v2/apps/", get(failing))).await;
    let recorder = Recorder::new("discovery.marathon.test", folder.path());
    let servers = [&failing_url, &base].map(|server| Value::string(server.as_str()));
    let body = Body::new()
        .with("servers", Value::array(servers))
        .text("auth_token_file", &token.display().to_string());
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("an answer", || recorder.health().0 != HealthState::Unknown).await;
    let targets = recorder.exported_targets("targets");
    let shortened: Vec<String> = targets
        .iter()
        .map(|target| target.replace("__meta_marathon_", ""))
        .collect();
    assert_eq!(
        shortened,
        [
            "{__address__=h1:31500,app=/mapped,app_label_team_name=a,image=shop:1,port_index=0,\
             port_mapping_label_pprof=yes,task=m1}",
            "{__address__=h1:31000,app=/mapped,app_label_team_name=a,image=shop:1,port_index=1,task=m1}",
            "{__address__=9.0.0.3:8080,app=/inside,image=old:1,port_index=0,task=i1}",
            "{__address__=h2:10000,app=/defined,image=,port_definition_label_x=y,port_index=0,task=d1}",
            "{__address__=h2:31002,app=/chosen,image=,port_index=0,task=c1}",
            "{__address__=h3:31003,app=/plain,image=,port_index=0,task=p1}",
            "{__address__=h4:31004,app=/plain,image=,port_index=0,task=p2}",
        ],
        "{}",
        recorder.health().1
    );
    drop(server);
    running.component.update(body.arguments(&DEFINITION)).unwrap();
    eventually("the failure", || recorder.health().0 == HealthState::Unhealthy).await;
    let (_, message) = recorder.health();
    assert!(
        message.contains("no leader; request to") && !message.contains("secret"),
        "{message}"
    );
    assert_eq!(recorder.exported_targets("targets"), targets);
    running.stop().await;
}
