//! The services and routes beside questions and profiles, over HTTP: what the server is, how it is set up, and what
//! users keep in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::server::{ServerOptions, Settings};
use serde_json::{Value, json};

use crate::harness::{Nowhere, TestServer};

/// Status and JSON of a call.
async fn call(server: &TestServer, route: &str, tenant: &str, question: &Value) -> (u16, Value) {
    let request = server
        .post(route)
        .header("content-type", "application/json")
        .header("x-scope-orgid", tenant);
    let response = request.body(question.to_string()).send().await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.unwrap()).unwrap())
}

#[tokio::test]
async fn a_client_learns_what_the_server_speaks() {
    let server = TestServer::start(Arc::new(Nowhere), ServerOptions::default()).await;
    for prefix in ["", "/profile"] {
        let route = format!("{prefix}/version.v1.Version/Version");
        assert_eq!(
            call(&server, &route, "one", &json!({})).await,
            (200, json!({"QuerierAPI": "1"}))
        );
        let route = format!("{prefix}/capabilities.v1.FeatureFlagsService/GetFeatureFlags");
        let (status, answer) = call(&server, &route, "one", &json!({})).await;
        assert_eq!(status, 200, "{answer}");
        let flags = answer["featureFlags"].as_array().unwrap().iter();
        let flags: BTreeMap<&str, bool> = flags
            .map(|flag| (flag["name"].as_str().unwrap(), flag["enabled"] == json!(true)))
            .collect();
        assert!(
            flags["v2StorageLayer"] && flags["utf8LabelNames"] && !flags["pyroscopeRuler"],
            "{flags:?}"
        );
    }
}

#[tokio::test]
async fn the_configuration_in_force_is_shown_with_what_differs_from_the_default() {
    let values =
        |length: &str| BTreeMap::from([("limits.a", json!(length)), ("limits.b", json!(7)), ("c", json!(true))]);
    let settings = Settings {
        in_force: values("1h0m0s"),
        default: values("0s"),
        retention: BTreeMap::from([("team".parse().unwrap(), "24h0m0s".to_owned())]),
    };
    let options = ServerOptions {
        multi_tenant: true,
        settings: Arc::new(settings),
        ..ServerOptions::default()
    };
    let server = TestServer::start(Arc::new(Nowhere), options).await;
    for (route, expected) in [
        ("", "c: true\nlimits:\n  a: \"1h0m0s\"\n  b: 7\n"),
        ("/default", "c: true\nlimits:\n  a: \"0s\"\n  b: 7\n"),
        ("/diff", "limits:\n  a: \"1h0m0s\"\n"),
    ] {
        let answer = server.get(&format!("/api/v1/status/config{route}")).await;
        assert_eq!(answer, (200, expected.to_owned()), "{route}");
    }
    let limits = |tenant: Option<&'static str>| {
        let mut request = server.client.get(format!("{}/api/v1/tenant_limits", server.url));
        if let Some(tenant) = tenant {
            request = request.header("x-scope-orgid", tenant);
        }
        async { request.send().await.unwrap() }
    };
    for (tenant, expected) in [
        ("team", json!({"a": "1h0m0s", "b": 7, "retention_period": "24h0m0s"})),
        ("other", json!({"a": "1h0m0s", "b": 7})),
    ] {
        assert_eq!(
            serde_json::from_str::<Value>(&limits(Some(tenant)).await.text().await.unwrap()).unwrap(),
            expected,
            "{tenant}"
        );
    }
    assert_eq!(limits(None).await.status(), 401);
}
