//! Tests with nodes of Nerve in a fake ZooKeeper.

use super::DEFINITION;
use crate::common::testing::{Body, Recorder, Running, eventually};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;
use alluvium_testing::zookeeper::ZooKeeper;

#[tokio::test]
async fn members_become_targets_and_stay_while_there_is_no_session() {
    let zookeeper = ZooKeeper::start().await;
    zookeeper.set(
        "/nerve/shop/i-1",
        r#"{"host": "10.0.0.1", "port": 8080, "name": "shop-1", "weight": 1}"#,
    );
    zookeeper.set("/nerve/shop/i-2", r#"{"host": "fd00::1", "port": 8081, "name": null}"#);
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.nerve.test", folder.path());
    let list = |items: &[&str]| Value::array(items.iter().copied().map(Value::string));
    let body = Body::new()
        .with("servers", list(&["127.0.0.1:1", &zookeeper.address]))
        .with("paths", list(&["/"]));
    let running = Running::start(&DEFINITION, &recorder, &body);
    let expected = [
        "{__address__=10.0.0.1:8080,__meta_nerve_endpoint_host=10.0.0.1,__meta_nerve_endpoint_name=shop-1,\
         __meta_nerve_endpoint_port=8080,__meta_nerve_path=/nerve/shop/i-1}",
        "{__address__=[fd00::1]:8081,__meta_nerve_endpoint_host=fd00::1,__meta_nerve_endpoint_name=,\
         __meta_nerve_endpoint_port=8081,__meta_nerve_path=/nerve/shop/i-2}",
    ];
    zookeeper.set("/", "");
    eventually("both members", || recorder.exported_targets("targets") == expected).await;

    zookeeper.end_sessions();
    eventually("the failure", || recorder.health().0 == HealthState::Unhealthy).await;
    let (_, message) = recorder.health();
    assert_eq!(
        message,
        format!("zookeeper at {}: unexpected end of file", zookeeper.address)
    );
    assert_eq!(recorder.exported_targets("targets"), expected);
    // New arguments take effect without a wait for the next attempt.
    running.component.update(body.arguments(&DEFINITION)).unwrap();
    eventually("a new session", || recorder.health().0 == HealthState::Healthy).await;
    running.stop().await;
}
