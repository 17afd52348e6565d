//! Tests that the components export the values of a Secret or ConfigMap, against a fake API server.

use serde_json::json;

use crate::common::kubernetes::testing::ApiServer;
use crate::common::kubernetes::values::ValuesArguments;
use crate::common::testing::{Body, Recorder, Running, eventually};
use crate::remote::kubernetes::{configmap, secret};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{Definition, HealthState};

fn body(server: &ApiServer, name: &str) -> Body {
    Body::new()
        .text("name", name)
        .text("namespace", "shop")
        .text("poll_frequency", "20ms")
        .block("client", Body::new().text("api_server", &server.url))
}

/// Builds the component on a thread that may block, as the engine does.
async fn start(definition: Definition<ValuesArguments>, recorder: &Recorder, body: Body) -> Running<ValuesArguments> {
    let recorder = recorder.clone();
    let start = move || Running::start(&definition, &recorder, &body);
    tokio::task::spawn_blocking(start).await.unwrap()
}

#[tokio::test]
async fn a_secret_is_followed_stays_secret_and_trouble_leaves_the_last_values() {
    let server = ApiServer::start().await;
    let secret = |value: &str| {
        let data = json!({"password": value, "binary": "/w=="});
        json!({"metadata": {"namespace": "shop", "name": "db"}, "data": data})
    };
    server.put("secrets", secret("aHVzaA=="));
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("remote.kubernetes.secret.test", folder.path());
    let running = start(secret::DEFINITION, &recorder, body(&server, "db")).await;
    let holds = |text: &str| recorder.export("data") == Value::object([("password", Value::Secret(text.into()))]);
    assert!(holds("hush"));
    server.put("secrets", secret("bmV3"));
    eventually("the new value", || holds("new")).await;
    server.delete("secrets", "shop", "db");
    eventually("trouble", || recorder.health().0 == HealthState::Unhealthy).await;
    let message = recorder.health().1;
    assert_eq!(
        message,
        "cannot get /api/v1/namespaces/shop/secrets/db: the server answered 404 Not Found: secrets \"db\" not found"
    );
    assert!(holds("new"));
    running.stop().await;
}

#[tokio::test]
async fn values_of_a_configmap_are_plain_and_one_without_any_is_empty() {
    let server = ApiServer::start().await;
    server.put(
        "configmaps",
        json!({"metadata": {"namespace": "shop", "name": "a"}, "data": {"x.yaml": "y: 1"}}),
    );
    server.put("configmaps", json!({"metadata": {"namespace": "shop", "name": "b"}}));
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("remote.kubernetes.configmap.test", folder.path());
    let running = start(configmap::DEFINITION, &recorder, body(&server, "a")).await;
    assert_eq!(
        recorder.export("data"),
        Value::object([("x.yaml", Value::string("y: 1"))])
    );
    let (component, empty) = (running.component.clone(), body(&server, "b"));
    let update = move || component.update(empty.arguments(&configmap::DEFINITION));
    tokio::task::spawn_blocking(update).await.unwrap().unwrap();
    assert_eq!(recorder.export("data"), Value::object::<&str>([]));
    running.stop().await;
}
