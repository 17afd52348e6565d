//! Tests against a fake swarm manager. Its responses follow Docker's API documentation.

use axum::Router;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::get;

use super::DEFINITION;
use crate::common::testing::{Body, Recorder, Running, eventually, serve};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;

const SERVICES: &str = r#"[
  {"ID": "s1", "Spec": {"Name": "shop", "Labels": {"team.name": "a"}, "Mode": {"Replicated": {"Replicas": 2}},
     "TaskTemplate": {"ContainerSpec": {"Image": "shop:1", "Hostname": "h"}}},
   "Endpoint": {"Ports": [{"Name": "web", "Protocol": "tcp", "PublishedPort": 8080, "PublishMode": "ingress"},
                          {"Protocol": "udp", "PublishedPort": 53, "PublishMode": "ingress"}],
                "VirtualIPs": [{"NetworkID": "n1", "Addr": "10.0.0.3/24"}, {"NetworkID": "n9", "Addr": ""}]},
   "UpdateStatus": {"State": "completed"}},
  {"ID": "s2", "Spec": {"Name": "agent", "Mode": {"Global": {}}, "TaskTemplate": {}},
   "Endpoint": {"VirtualIPs": [{"NetworkID": "n2", "Addr": "fd00::3/64"}]}}
]"#;
const TASKS: &str = r#"[
  {"ID": "t1", "ServiceID": "s1", "NodeID": "m1", "Slot": 2, "DesiredState": "running",
   "Spec": {"ContainerSpec": {"Labels": {"own": "spec"}}},
   "Status": {"State": "running", "ContainerStatus": {"ContainerID": "c1"},
              "PortStatus": {"Ports": [{"Protocol": "tcp", "PublishedPort": 32000, "PublishMode": "host"}]}},
   "NetworksAttachments": [{"Network": {"ID": "n1"}, "Addresses": ["10.0.0.5/24"]}]},
  {"ID": "t2", "ServiceID": "s2", "NodeID": "gone", "DesiredState": "running", "Status": {"State": "starting"},
   "NetworksAttachments": [{"Network": {"ID": "n2"}, "Addresses": ["10.0.1.5/24"]}]}
]"#;
const NODES: &str = r#"[
  {"ID": "m1", "Spec": {"Role": "manager", "Availability": "active", "Labels": {"rack-no": "7"}},
   "Description": {"Hostname": "one", "Platform": {"Architecture": "x86_64", "OS": "linux"},
                   "Engine": {"EngineVersion": "28.0.1"}},
   "Status": {"State": "ready", "Addr": "192.0.2.1"},
   "ManagerStatus": {"Leader": true, "Reachability": "reachable", "Addr": "192.0.2.1:2377"}},
  {"ID": "w1", "Spec": {"Role": "worker", "Availability": "drain"}, "Description": {"Hostname": "two"},
   "Status": {"State": "down", "Addr": "192.0.2.2"}}
]"#;
const NETWORKS: &str = r#"[{"Id": "n1", "Name": "front", "Scope": "swarm", "Ingress": true, "Labels": {"k": "v"}}]"#;
const CONTAINERS: &str = r#"[{"Id": "c1", "Labels": {"own": "image", "of-image": "yes"}}]"#;

async fn discover(role: &'static str, router: Router) -> Vec<String> {
    let (base, _server) = serve(router).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.dockerswarm.test", folder.path());
    let filter = Body::new()
        .text("name", "name")
        .with("values", Value::array([Value::string("x")]));
    let body = Body::new()
        .text("host", &base)
        .text("role", role)
        .block("filter", filter);
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("an answer", || recorder.health().0 != HealthState::Unknown).await;
    assert_eq!(recorder.health().0, HealthState::Healthy, "{}", recorder.health().1);
    running.stop().await;
    let targets = recorder.exported_targets("targets");
    let shorten = |target: &String| target.replace("__meta_dockerswarm_", "");
    targets.iter().map(shorten).collect()
}

/// Adds a route that answers `filtered` to requests with the expected filter, and an error to other requests.
fn with_filter(router: Router, path: &str, filtered: &'static str) -> Router {
    let answer = move |RawQuery(query): RawQuery| async move {
        match query.as_deref() {
            Some("filters=%7B%22name%22%3A%5B%22x%22%5D%7D") => filtered.into_response(),
            other => (StatusCode::BAD_REQUEST, format!("{other:?}")).into_response(),
        }
    };
    router.route(path, get(answer))
}

#[tokio::test]
async fn a_service_has_targets_by_its_virtual_addresses_and_ports() {
    let router = Router::new().route("/networks", get(|| async { NETWORKS }));
    let targets = discover("services", with_filter(router, "/services", SERVICES)).await;
    assert_eq!(
        targets,
        [
            "{__address__=10.0.0.3:8080,network_id=n1,network_ingress=true,network_internal=false,network_label_k=v,\
             network_name=front,network_scope=swarm,service_endpoint_port_name=web,\
             service_endpoint_port_publish_mode=ingress,service_id=s1,service_label_team_name=a,\
             service_mode=replicated,service_name=shop,service_task_container_hostname=h,\
             service_task_container_image=shop:1,service_updating_status=completed}",
            "{__address__=[fd00::3]:80,service_id=s2,service_mode=global,service_name=agent}",
        ]
    );
}

#[tokio::test]
async fn a_task_has_targets_by_its_own_ports_and_by_its_addresses() {
    let router = Router::new()
        .route("/services", get(|| async { SERVICES }))
        .route("/nodes", get(|| async { NODES }))
        .route("/containers/json", get(|| async { CONTAINERS }))
        .route("/networks", get(|| async { NETWORKS }));
    let targets = discover("tasks", with_filter(router, "/tasks", TASKS)).await;
    let labels = |network: &str, mode: &str| {
        format!(
            "container_label_of_image=yes,container_label_own=spec,{network}node_address=192.0.2.1,\
             node_availability=active,node_hostname=one,node_id=m1,node_label_rack_no=7,\
             node_platform_architecture=x86_64,node_platform_os=linux,node_role=manager,node_status=ready,\
             service_id=s1,service_label_team_name=a,service_mode=replicated,service_name=shop,task_container_id=c1,\
             task_desired_state=running,task_id=t1,task_port_publish_mode={mode},task_slot=2,task_state=running"
        )
    };
    let network = "network_id=n1,network_ingress=true,network_internal=false,network_label_k=v,network_name=front,\
                   network_scope=swarm,";
    assert_eq!(
        targets,
        [
            format!("{{__address__=192.0.2.1:32000,{}}}", labels("", "host")),
            format!("{{__address__=10.0.0.5:8080,{}}}", labels(network, "ingress")),
            "{__address__=10.0.1.5:80,service_id=s2,service_mode=global,service_name=agent,\
             task_desired_state=running,task_id=t2,task_slot=0,task_state=starting}"
                .to_owned(),
        ]
    );
}

#[tokio::test]
async fn tasks_are_found_where_containers_may_not_be_listed() {
    let router = Router::new()
        .route("/services", get(|| async { "[]" }))
        .route("/nodes", get(|| async { "[]" }))
        .route("/containers/json", get(|| async { StatusCode::FORBIDDEN }))
        .route("/networks", get(|| async { "[]" }));
    let targets = discover("tasks", with_filter(router, "/tasks", TASKS)).await;
    assert!(targets[0].contains("container_label_own=spec"), "{targets:?}");
}

#[tokio::test]
async fn a_node_is_a_target_at_the_port() {
    let targets = discover("nodes", with_filter(Router::new(), "/nodes", NODES)).await;
    assert_eq!(
        targets,
        [
            "{__address__=192.0.2.1:80,node_address=192.0.2.1,node_availability=active,node_engine_version=28.0.1,\
             node_hostname=one,node_id=m1,node_label_rack_no=7,node_manager_address=192.0.2.1:2377,\
             node_manager_leader=true,node_manager_reachability=reachable,node_platform_architecture=x86_64,\
             node_platform_os=linux,node_role=manager,node_status=ready}",
            "{__address__=192.0.2.2:80,node_address=192.0.2.2,node_availability=drain,node_engine_version=,\
             node_hostname=two,node_id=w1,node_platform_architecture=,node_platform_os=,node_role=worker,\
             node_status=down}",
        ]
    );
}

#[tokio::test]
async fn an_address_that_is_none_is_an_error_that_shows_it() {
    let router = Router::new()
        .route("/networks", get(|| async { "[]" }))
        .route("/services", get(|| async { SERVICES.replace("10.0.0.3/24", "10.0.0") }));
    let (base, _server) = serve(router).await;
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.dockerswarm.test", folder.path());
    let body = Body::new().text("host", &base).text("role", "services");
    let running = Running::start(&DEFINITION, &recorder, &body);
    eventually("the error", || {
        recorder.health().1.starts_with("docker returned the address `10.0.0`")
    })
    .await;
    running.stop().await;
}
