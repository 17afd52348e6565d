//! Tests against a fake daemon on a socket. Its responses follow Docker's API documentation.

use axum::Router;
use axum::extract::RawQuery;
use axum::routing::get;

use super::DEFINITION;
use crate::common::testing::{Body, Recorder, Running, eventually, serve, serve_unix};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;

const CONTAINERS: &str = r#"[
  {"Id": "web1", "Names": ["/web"], "Image": "shop:1", "ImageID": "sha256:ab", "Labels": {"com.example/team": "shop"},
   "Ports": [{"IP": "0.0.0.0", "PrivatePort": 6060, "PublicPort": 32768, "Type": "tcp"},
             {"PrivatePort": 7070, "Type": "tcp"}, {"PrivatePort": 53, "Type": "udp"}],
   "HostConfig": {"NetworkMode": "front"},
   "NetworkSettings": {"Networks": {
     "front": {"NetworkID": "n1", "IPAddress": "172.17.0.2"}, "back": {"NetworkID": "n2", "IPAddress": "172.18.0.2"}}}},
  {"Id": "side", "Names": ["/sidecar"], "Ports": null, "Labels": null, "HostConfig": {"NetworkMode": "container:web1"},
   "NetworkSettings": {"Networks": {}}},
  {"Id": "host", "Names": ["/agent"], "Ports": [], "HostConfig": {"NetworkMode": "host"},
   "NetworkSettings": {"Networks": {"host": {"NetworkID": "n3", "IPAddress": ""}}}},
  {"Id": "v6", "Names": ["/six"], "HostConfig": {"NetworkMode": "six"},
   "NetworkSettings": {"Networks": {"gone": null, "six": {"NetworkID": "n4", "GlobalIPv6Address": "fd00::2"}}}},
  {"Id": "circle", "Names": ["/circle"], "HostConfig": {"NetworkMode": "container:circle"}, "NetworkSettings": {}},
  {"Id": "nameless", "HostConfig": {"NetworkMode": "host"}, "NetworkSettings": {}}
]"#;
const NETWORKS: &str = r#"[{"Id": "n1", "Name": "front", "Scope": "local", "Internal": false, "Ingress": false,
  "Labels": {"zone.a": "b"}}, {"Id": "n2", "Name": "back", "Scope": "local", "Internal": true}]"#;

fn daemon() -> Router {
    Router::new()
        .route("/containers/json", get(|| async { CONTAINERS }))
        .route("/networks", get(|| async { NETWORKS }))
}

#[tokio::test]
async fn containers_become_targets_by_their_ports_and_networks() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let _daemon = serve_unix(daemon(), &socket);
    let recorder = Recorder::new("discovery.docker.test", folder.path());
    let body = Body::new().text("host", &format!("unix://{}", socket.display()));
    let running = Running::start(&DEFINITION, &recorder, &body);
    let web = |address: &str, port: &str| {
        format!(
            "{{__address__={address},__meta_docker_container_id=web1,__meta_docker_container_image=shop:1,\
             __meta_docker_container_image_id=sha256:ab,__meta_docker_container_label_com_example_team=shop,\
             __meta_docker_container_name=/web,__meta_docker_container_network_mode=front,{port}}}"
        )
    };
    let back = "__meta_docker_network_id=n2,__meta_docker_network_ingress=false,__meta_docker_network_internal=true,\
         __meta_docker_network_ip=172.18.0.2,__meta_docker_network_name=back,__meta_docker_network_scope=local";
    let expected = [
        web(
            "172.18.0.2:6060",
            &format!(
                "{back},__meta_docker_port_private=6060,__meta_docker_port_public=32768,\
                 __meta_docker_port_public_ip=0.0.0.0"
            ),
        ),
        web("172.18.0.2:7070", &format!("{back},__meta_docker_port_private=7070")),
        format!(
            "{{__address__=172.18.0.2:80,__meta_docker_container_id=side,__meta_docker_container_name=/sidecar,\
             __meta_docker_container_network_mode=container:web1,{back}}}"
        ),
        "{__address__=localhost,__meta_docker_container_id=host,__meta_docker_container_name=/agent,\
         __meta_docker_container_network_mode=host,__meta_docker_network_ip=}"
            .to_owned(),
        "{__address__=[fd00::2]:80,__meta_docker_container_id=v6,__meta_docker_container_name=/six,\
         __meta_docker_container_network_mode=six,__meta_docker_network_ip=fd00::2}"
            .to_owned(),
    ];
    eventually("the containers", || !recorder.exported_targets("targets").is_empty()).await;
    assert_eq!(recorder.exported_targets("targets"), expected);

    let all = body
        .with("match_first_network", Value::Bool(false))
        .text("host_networking_host", "node");
    running.component.update(all.arguments(&DEFINITION)).unwrap();
    eventually("the targets of both networks", || {
        recorder.exported_targets("targets").len() == 8
    })
    .await;
    let targets = recorder.exported_targets("targets");
    assert!(targets[2].contains("__address__=172.17.0.2:6060") && targets[2].contains("network_label_zone_a=b"));
    assert!(targets[6].contains("__address__=node,"), "{targets:?}");
    running.stop().await;
}

#[tokio::test]
async fn filters_are_sent_and_a_daemon_that_is_away_is_named() {
    let sent = |RawQuery(query): RawQuery| async move {
        let query = query.unwrap_or_default();
        let expected = "filters=%7B%22label%22%3A%5B%22a%22%2C%22b%22%2C%22c%22%5D%7D";
        if query == expected { CONTAINERS } else { "[]" }
    };
    let router = Router::new()
        .route("/prefix/containers/json", get(sent))
        .route("/prefix/networks", get(|| async { NETWORKS }));
    let (base, server) = serve(router).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.docker.test", folder.path());
    let filter = |values: &[&str]| {
        let values = values.iter().copied().map(Value::string);
        Body::new().text("name", "label").with("values", Value::array(values))
    };
    let host = format!("{}/prefix", base.replace("http://", "tcp://"));
    let body = Body::new()
        .text("host", &host)
        .block("filter", filter(&["a", "b"]))
        .block("filter", filter(&["c"]));
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("the containers", || recorder.exported_targets("targets").len() == 5).await;

    drop(server);
    let unreachable = Body::new().text("host", &format!("unix://{}", folder.path().join("none").display()));
    running.component.update(unreachable.arguments(&DEFINITION)).unwrap();
    eventually("the failure", || recorder.health().0 == HealthState::Unhealthy).await;
    let (_, message) = recorder.health();
    assert!(
        message.starts_with("docker at unix:///") && message.contains("No such file"),
        "{message}"
    );
    running.stop().await;
}

#[test]
fn a_socket_has_neither_tls_nor_a_proxy() {
    let body = Body::new().text("host", "unix:///run/docker.sock");
    assert_eq!(
        body.clone()
            .text("proxy_url", "http://proxy:3128")
            .read(&DEFINITION)
            .unwrap_err(),
        "proxy_url: proxy_url cannot be used with a unix:// host"
    );
    assert_eq!(
        body.block("tls_config", Body::new()).read(&DEFINITION).unwrap_err(),
        "tls_config: tls_config cannot be used with a unix:// host"
    );
    for host in ["unix://docker.sock", "npipe:////./pipe/docker_engine", "tcp://"] {
        assert!(Body::new().text("host", host).read(&DEFINITION).is_err(), "{host}");
    }
}
