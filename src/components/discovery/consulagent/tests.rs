//! Tests against a fake agent. Its responses follow Consul's API documentation.

use axum::Router;
use axum::http::HeaderMap;
use axum::routing::get;

use super::DEFINITION;
use crate::common::testing::{Body, Recorder, Running, eventually, serve};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;

const ITSELF: &str = r#"{"Config": {"Datacenter": "dc1", "NodeName": "n1"}, "Member": {"Addr": "10.0.0.1"},
  "Meta": {"rack-no": "7"}}"#;
const SERVICES: &str = r#"{
  "web-1": {"ID": "web-1", "Service": "web", "Port": 8080, "Tags": ["a", "b"], "Meta": {"team": "x"},
            "TaggedAddresses": {"lan": {"Address": "fd00::1", "Port": 70000}}},
  "web-2": {"ID": "web-2", "Service": "web", "Address": "10.0.0.2", "Port": -1, "Tags": ["b"]},
  "db": {"ID": "db", "Service": "db", "Port": 5432, "Tags": null}
}"#;
const CHECKS: &str = r#"{
  "mem": {"CheckID": "mem", "Status": "passing", "ServiceID": ""},
  "c1": {"CheckID": "c1", "Status": "critical", "ServiceID": "web-1"}
}"#;

#[tokio::test]
async fn instances_of_the_agent_become_targets() {
    let answer = |body: &'static str| {
        get(move |headers: HeaderMap| async move {
            assert_eq!(headers["authorization"], "Basic dTpw");
            assert_eq!(headers["x-consul-token"], "t");
            body
        })
    };
    let router = Router::new()
        .route("/v1/agent/self", answer(ITSELF))
        .route("/v1/agent/services", answer(SERVICES))
        .route("/v1/agent/checks", answer(CHECKS));
    let (base, _server) = serve(router).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.consulagent.test", folder.path());
    let body = Body::new()
        .text("server", base.trim_start_matches("http://"))
        .text("username", "u")
        .text("password", "p")
        .text("token", "t");
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("an answer", || recorder.health().0 != HealthState::Unknown).await;
    let shortened_targets = || {
        let targets = recorder.exported_targets("targets");
        let shortened = targets.iter().map(|target| target.replace("__meta_consulagent_", ""));
        shortened.collect::<Vec<_>>()
    };
    let web_1 = "{__address__=10.0.0.1:8080,address=10.0.0.1,dc=dc1,health=critical,metadata_rack_no=7,node=n1,\
                 service=web,service_address=,service_id=web-1,service_metadata_team=x,service_port=8080,\
                 tagged_address_lan=[fd00::1]:70000,tags=,a,b,}";
    assert_eq!(
        shortened_targets(),
        [
            "{__address__=10.0.0.1:5432,address=10.0.0.1,dc=dc1,health=passing,metadata_rack_no=7,node=n1,service=db,\
             service_address=,service_id=db,service_port=5432,tags=,,}",
            web_1,
            "{__address__=10.0.0.2:-1,address=10.0.0.1,dc=dc1,health=passing,metadata_rack_no=7,node=n1,service=web,\
             service_address=10.0.0.2,service_id=web-2,service_port=-1,tags=,b,}",
        ]
    );
    let list = |items: &[&str]| Value::array(items.iter().copied().map(Value::string));
    let some = body
        .with("services", list(&["web"]))
        .with("tags", list(&["b", "a"]))
        .text("tag_separator", "|")
        .text("datacenter", "far");
    running.component.update(some.arguments(&DEFINITION)).unwrap();
    let expected = [web_1.replace("dc1", "far").replace(",a,b,", "|a|b|")];
    eventually("the one with both tags", || shortened_targets() == expected).await;
    running.stop().await;
}
