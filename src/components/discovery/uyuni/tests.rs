//! Tests against a fake Uyuni server. Its responses follow the documentation of the XML-RPC API.

use std::sync::Arc;

use axum::Router;
use axum::routing::post;
use parking_lot::Mutex;

use super::DEFINITION;
use crate::common::testing::{Body, Recorder, Running, eventually, serve};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;

fn member(name: &str, value: &str) -> String {
    format!("<member><name>{name}</name><value>{value}</value></member>")
}

fn list(structs: &[&[(&str, &str)]]) -> String {
    let one = |members: &&[(&str, &str)]| {
        let members: String = members.iter().map(|(name, value)| member(name, value)).collect();
        format!("<value><struct>{members}</struct></value>")
    };
    let structs: String = structs.iter().map(one).collect();
    format!("<array><data>{structs}</data></array>")
}

fn answer(value: &str) -> String {
    format!("<methodResponse><params><param><value>{value}</value></param></params></methodResponse>")
}

#[tokio::test]
async fn endpoints_become_targets_and_a_lost_session_is_renewed() {
    // The session that is valid, and the number of logins.
    let session = Arc::new(Mutex::new(("s1", 0)));
    let known = session.clone();
    let handler = move |body: String| {
        let groups = list(&[&[("id", "<int>7</int>"), ("name", "blue")], &[("name", "green")]]);
        let systems = list(&[
            &[("id", "<i4>1000</i4>"), ("system_groups", &groups)],
            &[("id", "<int>1001</int>")],
        ]);
        let endpoints = list(&[
            &[
                ("system_id", "<int>1000</int>"),
                ("endpoint_name", "node"),
                ("port", "<int>9100</int>"),
                ("path", "/metrics"),
                ("module", "m"),
                ("exporter_name", "node_exporter"),
                ("tls_enabled", "<boolean>1</boolean>"),
            ],
            &[("system_id", "<int>1002</int>"), ("port", "<int>70000</int>")],
        ]);
        let networks = list(&[&[
            ("system_id", "<int>1000</int>"),
            ("hostname", "one"),
            ("primary_fqdn", "one.example"),
            ("ip", "10.0.0.1"),
        ]]);
        let mut known = known.lock();
        let is_known = body.contains(&format!("<params><param><value><string>{}</string>", known.0));
        let ids = "<value><array><data><value><int>1000</int></value><value><int>1001</int></value></data></array>";
        let text = if body.contains("<methodName>auth.login<") {
            assert!(
                body.contains("<string>u</string>") && body.contains("<string>hidden</string>"),
                "{body}"
            );
            known.1 += 1;
            answer(known.0)
        } else if !is_known {
            let fault = member("faultCode", "<int>-1</int>") + &member("faultString", "no session");
            format!("<methodResponse><fault><value><struct>{fault}</struct></value></fault></methodResponse>")
        } else if body.contains("system.listSystemGroupsForSystemsWithEntitlement") {
            assert!(body.contains("<string>monitoring_entitled</string>"), "{body}");
            answer(&systems)
        } else {
            assert!(body.contains(ids), "{body}");
            answer(if body.contains("system.monitoring.listEndpoints") {
                &endpoints
            } else {
                &networks
            })
        };
        async move { text }
    };
    let (base, _server) = serve(Router::new().route("/rpc/api", post(handler))).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.uyuni.test", folder.path());
    let body = Body::new()
        .text("server", &base)
        .text("username", "u")
        .with("password", Value::Secret("hidden".into()))
        .text("refresh_interval", "5ms");
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("an answer", || recorder.health().0 != HealthState::Unknown).await;
    let targets = recorder.exported_targets("targets");
    let shortened: Vec<String> = targets
        .iter()
        .map(|target| target.replace("__meta_uyuni_", ""))
        .collect();
    assert_eq!(
        shortened,
        [
            "{__address__=one:9100,endpoint_name=node,exporter=node_exporter,groups=blue,green,metrics_path=/metrics,\
             minion_hostname=one,primary_fqdn=one.example,proxy_module=m,scheme=https,system_id=1000}",
            "{__address__=:70000,endpoint_name=,exporter=,groups=,metrics_path=,minion_hostname=,primary_fqdn=,\
             proxy_module=,scheme=http,system_id=1002}",
        ],
        "{}",
        recorder.health().1
    );
    assert_eq!(session.lock().1, 1);
    session.lock().0 = "s2";
    eventually("a new session", || {
        session.lock().1 == 2 && recorder.health().0 == HealthState::Healthy
    })
    .await;
    assert_eq!(recorder.exported_targets("targets"), targets);
    running.stop().await;
}
