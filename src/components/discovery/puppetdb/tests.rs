//! Tests against a fake PuppetDB. Its responses follow the documentation of the query API.

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;

use super::DEFINITION;
use crate::common::testing::{Body, Recorder, Running, eventually, serve};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;

const RESOURCES: &str = r#"[
  {"certname": "one.example", "resource": "49af", "type": "Class", "title": "Shop", "exported": true,
   "tags": ["a", "b"], "file": "/etc/site.pp", "environment": "prod", "line": 12,
   "parameters": {"port": 6060, "on": true, "labels": {"team-name": "x", "deep": {"er": "y"}}, "list": ["p", 1, null],
                  "nothing": null, "empty": "", "ratio": 0.5}},
  {"certname": "two.example", "type": "Class", "title": "Shop", "tags": [], "file": null}
]"#;

#[tokio::test]
async fn resources_become_targets_with_their_parameters_if_asked_for() {
    let handler = |headers: HeaderMap, body: String| async move {
        assert_eq!(headers["content-type"], "application/json");
        match &*body {
            r#"{"query":"resources { type = \"Class\" }"}"# => (StatusCode::OK, RESOURCES),
            _ => (StatusCode::BAD_REQUEST, "PQL parse error at line 1, column 1"),
        }
    };
    let (base, _server) = serve(Router::new().route("/prefix/pdb/query/v4", post(handler))).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.puppetdb.test", folder.path());
    let body = Body::new()
        .text("url", &format!("{base}/prefix"))
        .text("query", "resources { type = \"Class\" }")
        .with("include_parameters", Value::Bool(true));
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("an answer", || recorder.health().0 != HealthState::Unknown).await;
    let shortened_targets = || {
        let targets = recorder.exported_targets("targets");
        let shortened = targets.iter().map(|target| target.replace("__meta_puppetdb_", ""));
        shortened.collect::<Vec<_>>()
    };
    let one = |parameters: &str| {
        format!(
            "{{__address__=one.example:80,certname=one.example,environment=prod,exported=true,file=/etc/site.pp,\
             {parameters}query=resources {{ type = \"Class\" }},resource=49af,tags=,a,b,,title=Shop,type=Class}}"
        )
    };
    let two = "{__address__=two.example:80,certname=two.example,environment=,exported=false,file=,\
               query=resources { type = \"Class\" },resource=,title=Shop,type=Class}";
    let parameters = "parameter_labels_deep_er=y,parameter_labels_team_name=x,parameter_list=p,1,,parameter_on=true,\
                      parameter_port=6060,parameter_ratio=0.5,";
    assert_eq!(shortened_targets(), [&one(parameters), two], "{}", recorder.health().1);

    let without_parameters = body.clone().with("include_parameters", Value::Bool(false));
    running
        .component
        .update(without_parameters.arguments(&DEFINITION))
        .unwrap();
    eventually("targets without parameters", || shortened_targets() == [&one(""), two]).await;

    let invalid = body.text("query", "nodes");
    running.component.update(invalid.arguments(&DEFINITION)).unwrap();
    eventually("the failure", || recorder.health().0 == HealthState::Unhealthy).await;
    assert!(recorder.health().1.ends_with("PQL parse error at line 1, column 1"));
    running.stop().await;
}
