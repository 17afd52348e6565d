//! The services and routes beside questions and profiles, over HTTP: what the server is, how it is set up, and what
//! users keep in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::server::{ServerOptions, Settings};
use serde_json::{Value, json};

use crate::harness::{Nowhere, TestServer};
use crate::http_store::Site;

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

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_kept_by_tenant_and_an_older_one_replaces_no_newer_one() {
    let options = ServerOptions {
        multi_tenant: true,
        ..ServerOptions::default()
    };
    let site = Site::new(options).await;
    let ask = async |name: &str, tenant: &str, question: Value| {
        call(
            &site.server,
            &format!("/settings.v1.SettingsService/{name}"),
            tenant,
            &question,
        )
        .await
    };
    assert_eq!(ask("Get", "one", json!({})).await, (200, json!({})));
    let theme =
        |value: &str, at: i64| json!({"setting": {"name": "theme", "value": value, "modifiedAt": at.to_string()}});
    let dark = theme("dark", 2000);
    assert_eq!(ask("Set", "one", dark.clone()).await, (200, dark.clone()));
    let (status, answer) = ask("Set", "one", theme("light", 1999)).await;
    assert_eq!((status, &answer["code"]), (409, &json!("already_exists")), "{answer}");
    assert_eq!(ask("Set", "one", theme("blue", 2000)).await.0, 200);
    let (status, answer) = ask("Set", "one", json!({"setting": {"name": "now", "value": ""}})).await;
    let now: i64 = answer["setting"]["modifiedAt"].as_str().unwrap().parse().unwrap();
    assert!(status == 200 && now > 1_700_000_000_000, "{answer}");
    let (_, answer) = ask("Get", "one", json!({})).await;
    let names: Vec<&str> = answer["settings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|setting| setting["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        (names, &answer["settings"][1]["value"]),
        (vec!["now", "theme"], &json!("blue"))
    );
    assert_eq!(ask("Get", "two", json!({})).await, (200, json!({})));
    for _ in 0..2 {
        assert_eq!(ask("Delete", "one", json!({"name": "theme"})).await, (200, json!({})));
    }
    assert_eq!(
        ask("Get", "one", json!({})).await.1["settings"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    for wrong in [
        json!({}),
        json!({"setting": {"value": "x"}}),
        json!({"setting": {"name": "x".repeat(257), "value": "x"}}),
    ] {
        assert_eq!(ask("Set", "one", wrong.clone()).await.0, 400, "{wrong}");
    }
    let half = "x".repeat(600 << 10);
    assert_eq!(
        ask("Set", "one", json!({"setting": {"name": "a", "value": half}}))
            .await
            .0,
        200
    );
    assert_eq!(
        ask("Set", "one", json!({"setting": {"name": "b", "value": half}}))
            .await
            .0,
        400
    );
    assert_eq!(
        ask("Get", "one", json!({})).await.1["settings"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn a_server_whose_store_keeps_nothing_says_so() {
    let server = TestServer::start(Arc::new(Nowhere), ServerOptions::default()).await;
    let (status, answer) = call(&server, "/settings.v1.SettingsService/Get", "one", &json!({})).await;
    assert_eq!((status, &answer["code"]), (501, &json!("unimplemented")));
}
