//! Tests with serversets in a fake ZooKeeper.

use super::DEFINITION;
use crate::common::testing::{Body, Recorder, Running, eventually};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;
use alluvium_testing::zookeeper::ZooKeeper;

fn member(host: &str, shard: i64) -> String {
    format!(
        r#"{{"serviceEndpoint": {{"host": "{host}", "port": 80}},
            "additionalEndpoints": {{"http-admin": {{"host": "{host}", "port": 81}}}},
            "status": "ALIVE", "shard": {shard}}}"#
    )
}

fn target(path: &str, host: &str, shard: i64) -> String {
    format!(
        "{{__address__={host}:80,endpoint_host={host},endpoint_host_http_admin={host},endpoint_port=80,\
         endpoint_port_http_admin=81,path={path},shard={shard},status=ALIVE}}"
    )
}

fn shortened_targets(recorder: &Recorder) -> Vec<String> {
    let targets = recorder.exported_targets("targets");
    targets
        .iter()
        .map(|target| target.replace("__meta_serverset_", ""))
        .collect()
}

#[tokio::test]
async fn members_become_targets_and_their_changes_are_followed() {
    let zookeeper = ZooKeeper::start().await;
    zookeeper.set("/jobs/shop/member_0000000001", &member("one", 0));
    zookeeper.set("/jobs/note", "no member");
    zookeeper.set("/other", "{}");
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.serverset.test", folder.path());
    let list = |items: &[&str]| Value::array(items.iter().copied().map(Value::string));
    let body = Body::new()
        .with("servers", list(&[&zookeeper.address]))
        .with("paths", list(&["/jobs/", "/late"]));
    let running = Running::start(&DEFINITION, &recorder, &body);
    let one = target("/jobs/shop/member_0000000001", "one", 0);
    eventually("the first member", || shortened_targets(&recorder) == [one.clone()]).await;
    assert_eq!(
        recorder.health(),
        (HealthState::Unhealthy, "zookeeper has no node /late".to_owned())
    );

    zookeeper.set("/late/member_1", &member("late", 7));
    zookeeper.set("/jobs/shop/member_0000000002", &member("two", 1));
    let two = target("/jobs/shop/member_0000000002", "two", 1);
    let late = target("/late/member_1", "late", 7);
    eventually("all members", || {
        shortened_targets(&recorder) == [one.clone(), two.clone(), late.clone()]
    })
    .await;
    eventually("health", || {
        recorder.health() == (HealthState::Healthy, "3 targets found".to_owned())
    })
    .await;

    zookeeper.delete("/jobs/shop/member_0000000001");
    zookeeper.set("/late/member_1", &member("later", 7));
    let later = target("/late/member_1", "later", 7);
    eventually("the members that are left", || {
        shortened_targets(&recorder) == [two.clone(), later.clone()]
    })
    .await;
    zookeeper.delete("/late/member_1");
    zookeeper.delete("/late");
    eventually("the path to go", || {
        recorder.health().1 == "zookeeper has no node /late"
    })
    .await;
    assert_eq!(shortened_targets(&recorder), [two]);

    running.stop().await;
    eventually("no session is left", || zookeeper.sessions() == 0).await;
}

#[tokio::test]
async fn a_member_is_read_as_go_reads_json() {
    let zookeeper = ZooKeeper::start().await;
    for (node, member) in [
        (
            "additional",
            r#"{"serviceEndpoint": {"host": "a", "port": 80}, "additionalEndpoints": null}"#,
        ),
        (
            "endpoint",
            r#"{"serviceEndpoint": {"host": "b", "port": 80},
                "additionalEndpoints": {"x": {"host": "c", "port": null}}}"#,
        ),
        ("null", "null"),
        ("object", "{}"),
        ("service", r#"{"serviceEndpoint": null, "status": "ALIVE", "shard": 1}"#),
        (
            "shard",
            r#"{"serviceEndpoint": {"host": "d", "port": 80}, "status": null, "shard": null}"#,
        ),
        (
            "upper",
            r#"{"ServiceEndpoint": {"Host": "e", "Port": 80}, "STATUS": "DEAD", "Shard": 2}"#,
        ),
    ] {
        zookeeper.set(&format!("/jobs/{node}"), member);
    }
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.serverset.test", folder.path());
    let list = |item: &str| Value::array([Value::string(item)]);
    let body = Body::new()
        .with("servers", list(&zookeeper.address))
        .with("paths", list("/jobs"));
    let running = Running::start(&DEFINITION, &recorder, &body);
    let expected = [
        "{__address__=a:80,endpoint_host=a,endpoint_port=80,path=/jobs/additional,shard=0,status=}",
        "{__address__=b:80,endpoint_host=b,endpoint_host_x=c,endpoint_port=80,endpoint_port_x=0,path=/jobs/endpoint,\
         shard=0,status=}",
        "{__address__=d:80,endpoint_host=d,endpoint_port=80,path=/jobs/shard,shard=0,status=}",
        "{__address__=e:80,endpoint_host=e,endpoint_port=80,path=/jobs/upper,shard=2,status=DEAD}",
    ];
    eventually("the members", || shortened_targets(&recorder) == expected).await;
    running.stop().await;
}
