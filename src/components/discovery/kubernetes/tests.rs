//! Tests which targets each role builds from objects, and that interruptions of the connection do not affect the
//! targets.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{DEFINITION, KubernetesArguments};
use crate::common::kubernetes::followed::{Timing, build};
use crate::common::kubernetes::testing::{ApiServer, End, fast, pod};
use crate::common::testing::{Body, Recorder, Running, eventually};
use alluvium_lang::value::Value as Setting;
use alluvium_pipeline::component::{Definition, HealthState};

/// The component with very short pauses between attempts and between exports.
const FAST: Definition<KubernetesArguments> = Definition {
    build: Some(|context, arguments| {
        let timing = Timing {
            pace: fast(),
            between_exports: Duration::from_millis(1),
        };
        build(context, arguments, timing)
    }),
    ..DEFINITION
};

/// A component that runs against a server.
struct Followed {
    recorder: Recorder,
    running: Running<KubernetesArguments>,
    _folder: tempfile::TempDir,
}

impl Followed {
    fn start(body: &Body) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let recorder = Recorder::new("discovery.kubernetes.test", folder.path());
        Self {
            running: Running::start(&FAST, &recorder, body),
            recorder,
            _folder: folder,
        }
    }

    fn targets(&self) -> Vec<String> {
        self.recorder.exported_targets("targets")
    }

    fn addresses(&self) -> Vec<String> {
        let address = |target: String| {
            let rest = target.split_once("__address__=").unwrap().1.to_owned();
            rest.split(',').next().unwrap().to_owned()
        };
        self.targets().into_iter().map(address).collect()
    }

    async fn wait_for_addresses(&self, addresses: &[&str]) {
        eventually(&format!("{addresses:?}"), || self.addresses() == addresses).await;
    }

    async fn wait_until_healthy(&self) {
        eventually("health", || self.recorder.health().0 == HealthState::Healthy).await;
    }

    /// Waits until the component is unhealthy with a message that contains `said`. Returns the message.
    async fn wait_for_trouble(&self, part: &str) -> String {
        let is_reported = || {
            let (state, message) = self.recorder.health();
            state == HealthState::Unhealthy && message.contains(part)
        };
        eventually(part, is_reported).await;
        self.recorder.health().1
    }
}

fn body(server: &ApiServer, role: &str) -> Body {
    Body::new().text("api_server", &server.url).text("role", role)
}

/// Waits until the objects of the server have become `count` targets, and returns the targets. The names of labels lack
/// the prefix `__meta_kubernetes_`.
async fn targets(server: &ApiServer, body: &Body, count: usize) -> Vec<String> {
    let followed = Followed::start(body);
    eventually("targets", || followed.targets().len() == count).await;
    followed.wait_until_healthy().await;
    let exported = followed.targets();
    followed.running.stop().await;
    assert!(!server.requests("").is_empty());
    exported
        .iter()
        .map(|target| target.replace("__meta_kubernetes_", ""))
        .collect()
}

fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[name] = value;
    object
}

#[tokio::test]
async fn pods_have_a_target_for_each_port_and_one_for_a_container_without() {
    let server = ApiServer::start().await;
    let containers = json!([
        {"name": "main", "image": "shop:1", "ports": [
            {"name": "http", "containerPort": 8080, "protocol": "TCP"}, {"containerPort": 6060, "protocol": "TCP"},
        ]},
        {"name": "side", "image": "side:1"},
    ]);
    let object = with(pod("shop", "a", "10.0.0.1"), "/spec/containers", containers);
    let object = with(
        object,
        "/spec/initContainers",
        json!([{"name": "first", "image": "init:1"}]),
    );
    let object = with(
        object,
        "/metadata/annotations",
        json!({"profiles.grafana.com/cpu.port": "6060"}),
    );
    let owners = json!([{"kind": "X", "name": "x"}, {"kind": "ReplicaSet", "name": "a-1", "controller": true}]);
    server.put("pods", with(object, "/metadata/ownerReferences", owners));
    server.put("pods", pod("shop", "pending", ""));
    server.put(
        "pods",
        with(pod("shop", "six", "fd00::1"), "/status/conditions", json!([])),
    );
    let common = |labels: &str| {
        format!(
            "namespace=shop,pod_annotation_profiles_grafana_com_cpu_port=6060,\
             pod_annotationpresent_profiles_grafana_com_cpu_port=true,{labels},\
             pod_controller_kind=ReplicaSet,pod_controller_name=a-1,pod_host_ip=192.168.0.1,pod_ip=10.0.0.1,\
             pod_label_app=shop,pod_labelpresent_app=true,pod_name=a,pod_node_name=node-1,pod_phase=Running,\
             pod_ready=true,pod_uid=uid-a}}"
        )
    };
    let main = "pod_container_id=containerd://0a1b,pod_container_image=shop:1,pod_container_init=false,\
                pod_container_name=main,pod_container_port_name=";
    let exported = targets(&server, &body(&server, "pod"), 5).await;
    assert_eq!(
        exported,
        [
            format!(
                "{{__address__=10.0.0.1:8080,{}",
                common(&format!(
                    "{main}http,pod_container_port_number=8080,pod_container_port_protocol=TCP"
                ))
            ),
            format!(
                "{{__address__=10.0.0.1:6060,{}",
                common(&format!(
                    "{main},pod_container_port_number=6060,pod_container_port_protocol=TCP"
                ))
            ),
            format!(
                "{{__address__=10.0.0.1,{}",
                common("pod_container_id=,pod_container_image=side:1,pod_container_init=false,pod_container_name=side")
            ),
            format!(
                "{{__address__=10.0.0.1,{}",
                common("pod_container_id=,pod_container_image=init:1,pod_container_init=true,pod_container_name=first")
            ),
            "{__address__=[fd00::1]:8080,namespace=shop,pod_container_id=containerd://0a1b,\
             pod_container_image=shop:1,pod_container_init=false,pod_container_name=main,\
             pod_container_port_name=http,pod_container_port_number=8080,pod_container_port_protocol=TCP,\
             pod_host_ip=192.168.0.1,pod_ip=fd00::1,pod_label_app=shop,pod_labelpresent_app=true,pod_name=six,\
             pod_node_name=node-1,pod_phase=Running,pod_ready=unknown,pod_uid=uid-six}"
                .to_owned(),
        ]
    );
}

#[tokio::test]
async fn nodes_have_the_best_of_their_addresses() {
    let server = ApiServer::start().await;
    server.put(
        "nodes",
        json!({
            "metadata": {"name": "node-1", "labels": {"kubernetes.io/os": "linux"}, "annotations": {"a": "b"}},
            "spec": {"providerID": "cloud://1"},
            "status": {
                "addresses": [
                    {"type": "Hostname", "address": "one"},
                    {"type": "InternalIP", "address": "192.168.0.1"},
                    {"type": "InternalIP", "address": "192.168.0.2"},
                ],
                "conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "Unknown"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            }
        }),
    );
    server.put("nodes", json!({"metadata": {"name": "new"}, "status": {}}));
    assert_eq!(
        targets(&server, &body(&server, "node"), 1).await,
        [
            "{__address__=192.168.0.1:10250,node_address_Hostname=one,node_address_InternalIP=192.168.0.1,\
          node_annotation_a=b,node_annotationpresent_a=true,node_condition_diskpressure=unknown,\
          node_condition_ready=true,node_label_kubernetes_io_os=linux,node_labelpresent_kubernetes_io_os=true,\
          node_name=node-1,node_provider_id=cloud://1,instance=node-1}"
        ]
    );
}

#[tokio::test]
async fn services_are_told_by_their_name_in_the_cluster() {
    let server = ApiServer::start().await;
    let service = |name: &str, spec: Value| json!({"metadata": {"namespace": "shop", "name": name}, "spec": spec});
    let port = json!([{"name": "http", "port": 80, "protocol": "TCP"}]);
    server.put(
        "services",
        service(
            "a",
            json!({"type": "ClusterIP", "clusterIP": "10.1.0.1", "ports": port}),
        ),
    );
    server.put(
        "services",
        service(
            "b",
            json!({"type": "ExternalName", "externalName": "b.example", "ports": port}),
        ),
    );
    let balanced = service(
        "c",
        json!({"type": "LoadBalancer", "clusterIP": "10.1.0.2", "ports": port}),
    );
    let ingress = json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "x"}, {"ip": "1.2.3.5"}]}});
    server.put("services", with(balanced, "/status", ingress));
    let common = "service_port_name=http,service_port_number=80,service_port_protocol=TCP,service_type=";
    assert_eq!(
        targets(&server, &body(&server, "service"), 3).await,
        [
            format!(
                "{{__address__=a.shop.svc:80,namespace=shop,service_cluster_ip=10.1.0.1,service_name=a,\
                 {common}ClusterIP}}"
            ),
            format!(
                "{{__address__=b.shop.svc:80,namespace=shop,service_external_name=b.example,service_name=b,\
                 {common}ExternalName}}"
            ),
            format!(
                "{{__address__=c.shop.svc:80,namespace=shop,service_cluster_ip=10.1.0.2,\
                 service_loadbalancer_ip=1.2.3.4,1.2.3.5,service_name=c,{common}LoadBalancer}}"
            ),
        ]
    );
}

#[tokio::test]
async fn an_ingress_has_a_target_for_each_path() {
    let server = ApiServer::start().await;
    server.put(
        "ingresses",
        json!({
            "metadata": {"namespace": "shop", "name": "in"},
            "spec": {
                "ingressClassName": "nginx",
                "tls": [{"hosts": ["*.example.com"]}],
                "rules": [
                    {"host": "a.example.com", "http": {"paths": [{"path": "/a"}, {}]}},
                    {"host": "example.com"},
                ]
            }
        }),
    );
    let line = |host: &str, path: &str, scheme: &str| {
        format!(
            "{{__address__={host},ingress_class_name=nginx,ingress_host={host},ingress_name=in,ingress_path={path},\
             ingress_scheme={scheme},namespace=shop}}"
        )
    };
    assert_eq!(
        targets(&server, &body(&server, "ingress"), 3).await,
        [
            line("a.example.com", "/a", "https"),
            line("a.example.com", "/", "https"),
            line("example.com", "/", "http")
        ]
    );
}

/// Adds a service `web` with endpoints and slices. One address of the service belongs to a pod, the other address does
/// not.
fn put_service(server: &ApiServer) {
    let second = json!({"name": "side", "image": "side:1", "ports": [{"name": "debug", "containerPort": 6060}]});
    let mut shop = pod("shop", "a", "10.0.0.1");
    shop["spec"]["containers"].as_array_mut().unwrap().push(second);
    server.put("pods", shop);
    server.put(
        "services",
        json!({
            "metadata": {"namespace": "shop", "name": "web", "labels": {"tier": "front"}},
            "spec": {"ipFamilyPolicy": "PreferDualStack", "ipFamilies": ["IPv4", "IPv6"]},
        }),
    );
    let pod_reference = json!({"kind": "Pod", "namespace": "shop", "name": "a"});
    server.put(
        "endpoints",
        json!({
            "metadata": {"namespace": "shop", "name": "web"},
            "subsets": [{
                "addresses": [{"ip": "10.0.0.1", "nodeName": "node-1", "targetRef": pod_reference}],
                "notReadyAddresses": [{"ip": "10.9.9.9", "hostname": "other"}],
                "ports": [{"name": "http", "port": 8080, "protocol": "UDP"}],
            }]
        }),
    );
    let slice = |name: &str, family: &str| {
        json!({
            "metadata": {"namespace": "shop", "name": name, "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": family,
            "endpoints": [{
                "addresses": ["10.0.0.1"], "conditions": {"ready": true, "serving": true, "terminating": false},
                "nodeName": "node-1", "zone": "z", "targetRef": pod_reference,
            }],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP", "appProtocol": "http"}],
        })
    };
    server.put("endpointslices", slice("web-1", "IPv4"));
    server.put("endpointslices", slice("web-2", "IPv6"));
}

const POD: &str = "pod_host_ip=192.168.0.1,pod_ip=10.0.0.1,pod_label_app=shop,pod_labelpresent_app=true,pod_name=a,\
                   pod_node_name=node-1,pod_phase=Running,pod_ready=true,pod_uid=uid-a";
const SERVICE: &str = "service_label_tier=front,service_labelpresent_tier=true,service_name=web";

#[tokio::test]
async fn endpoints_have_the_labels_of_service_and_pod_and_further_ports_of_the_pod() {
    let server = ApiServer::start().await;
    put_service(&server);
    assert_eq!(
        targets(&server, &body(&server, "endpoints"), 3).await,
        [
            format!(
                "{{__address__=10.0.0.1:8080,endpoint_address_target_kind=Pod,endpoint_address_target_name=a,\
                 endpoint_node_name=node-1,endpoint_port_name=http,endpoint_port_protocol=UDP,endpoint_ready=true,\
                 endpoints_name=web,namespace=shop,pod_container_image=shop:1,pod_container_init=false,\
                 pod_container_name=main,pod_container_port_name=http,pod_container_port_number=8080,\
                 pod_container_port_protocol=UDP,{POD},{SERVICE}}}"
            ),
            format!(
                "{{__address__=10.9.9.9:8080,endpoint_hostname=other,endpoint_port_name=http,\
                 endpoint_port_protocol=UDP,endpoint_ready=false,endpoints_name=web,namespace=shop,{SERVICE}}}"
            ),
            format!(
                "{{__address__=10.0.0.1:6060,endpoints_name=web,namespace=shop,pod_container_image=side:1,\
                 pod_container_init=false,pod_container_name=side,pod_container_port_name=debug,\
                 pod_container_port_number=6060,pod_container_port_protocol=,{POD},{SERVICE}}}"
            ),
        ]
    );
}

#[tokio::test]
async fn a_slice_has_the_same_and_one_of_a_second_family_no_targets() {
    let server = ApiServer::start().await;
    put_service(&server);
    let slice = "endpointslice_address_type=IPv4";
    let service_labels = "endpointslice_label_kubernetes_io_service_name=web,\
              endpointslice_labelpresent_kubernetes_io_service_name=true,endpointslice_name=web-1";
    assert_eq!(
        targets(&server, &body(&server, "endpointslice"), 2).await,
        [
            format!(
                "{{__address__=10.0.0.1:8080,endpointslice_address_target_kind=Pod,\
                 endpointslice_address_target_name=a,{slice},endpointslice_endpoint_conditions_ready=true,\
                 endpointslice_endpoint_conditions_serving=true,endpointslice_endpoint_conditions_terminating=false,\
                 endpointslice_endpoint_node_name=node-1,endpointslice_endpoint_zone=z,{service_labels},\
                 endpointslice_port=8080,endpointslice_port_app_protocol=http,\
                 endpointslice_port_name=http,endpointslice_port_protocol=TCP,\
                 namespace=shop,pod_container_image=shop:1,pod_container_init=false,pod_container_name=main,\
                 pod_container_port_name=http,pod_container_port_number=8080,pod_container_port_protocol=TCP,{POD},\
                 {SERVICE}}}"
            ),
            format!(
                "{{__address__=10.0.0.1:6060,{slice},{service_labels},namespace=shop,pod_container_image=side:1,\
                 pod_container_init=false,pod_container_name=side,pod_container_port_name=debug,\
                 pod_container_port_number=6060,pod_container_port_protocol=,{POD},{SERVICE}}}"
            ),
        ]
    );
}

#[tokio::test]
async fn what_is_attached_follows_its_node_and_its_namespace() {
    let server = ApiServer::start().await;
    server.put("pods", pod("shop", "a", "10.0.0.1"));
    server.put(
        "pods",
        with(pod("shop", "elsewhere", "10.0.0.2"), "/spec/nodeName", json!("node-2")),
    );
    server.put(
        "namespaces",
        json!({"metadata": {"name": "shop", "labels": {"team": "x"}}}),
    );
    let node = |zone: &str| json!({"metadata": {"name": "node-1", "labels": {"zone": zone}}});
    server.put("nodes", node("a"));
    let attached = Body::new()
        .with("node", Setting::Bool(true))
        .with("namespace", Setting::Bool(true));
    let followed = Followed::start(&body(&server, "pod").block("attach_metadata", attached));
    let has = |label: &str| followed.targets().iter().any(|target| target.contains(label));
    followed.wait_for_addresses(&["10.0.0.1:8080"]).await;
    assert!(has("node_label_zone=a") && has("node_name=node-1") && has("namespace_label_team=x"));
    server.put("nodes", node("b"));
    eventually("the node's new label", || has("node_label_zone=b")).await;
    server.put("namespaces", json!({"metadata": {"name": "shop"}}));
    eventually("no label of the namespace", || !has("namespace_label_team=x")).await;
    server.put("nodes", json!({"metadata": {"name": "node-2"}}));
    followed.wait_for_addresses(&["10.0.0.1:8080", "10.0.0.2:8080"]).await;
    server.delete("nodes", "", "node-1");
    followed.wait_for_addresses(&["10.0.0.2:8080"]).await;
    followed.running.stop().await;
}

#[tokio::test]
async fn namespaces_and_selectors_are_the_servers_business() {
    let server = ApiServer::start().await;
    for (namespace, name, ip) in [
        ("one", "a", "10.0.0.1"),
        ("two", "b", "10.0.0.2"),
        ("three", "c", "10.0.0.3"),
    ] {
        server.put("pods", pod(namespace, name, ip));
    }
    server.put(
        "pods",
        with(pod("one", "d", "10.0.0.4"), "/metadata/labels/app", json!("other")),
    );
    server.put(
        "pods",
        with(pod("one", "e", "10.0.0.5"), "/spec/nodeName", json!("node-2")),
    );
    let names = Setting::array(["one", "two", "one"].map(Setting::string));
    let selector = Body::new()
        .text("role", "pod")
        .text("label", "app=shop")
        .text("field", "spec.nodeName=node-1");
    let body = body(&server, "pod")
        .block("namespaces", Body::new().with("names", names))
        .block("selectors", selector);
    let followed = Followed::start(&body);
    followed.wait_for_addresses(&["10.0.0.1:8080", "10.0.0.2:8080"]).await;
    assert_eq!(
        server
            .requests("/api/v1/namespaces/one/pods?labelSelector=app%3Dshop&fieldSelector=spec.nodeName%3Dnode-1&limit")
            .len(),
        1
    );
    // The pod no longer has the label. For this watch, that is a deletion.
    server.put(
        "pods",
        with(pod("one", "a", "10.0.0.1"), "/metadata/labels/app", json!("other")),
    );
    followed.wait_for_addresses(&["10.0.0.2:8080"]).await;
    followed.running.stop().await;
}

#[tokio::test]
async fn a_list_is_read_in_pages_and_begun_again_when_its_version_is_forgotten() {
    let server = ApiServer::start().await;
    for index in 0..7 {
        server.put("pods", pod("shop", &format!("p{index}"), &format!("10.0.0.{index}")));
    }
    server.set_largest_page(3);
    server.refuse_where("continue=7-6", 410, "the continue parameter is too old", None);
    let followed = Followed::start(&body(&server, "pod"));
    eventually("all pages", || followed.targets().len() == 7).await;
    assert_eq!((server.lists("pods"), server.requests("continue=7-").len()), (2, 4));
    followed.running.stop().await;
}

#[tokio::test]
async fn a_watch_that_ends_is_taken_up_where_it_was_without_a_list() {
    let server = ApiServer::start().await;
    server.put("pods", pod("shop", "a", "10.0.0.1"));
    let followed = Followed::start(&body(&server, "pod"));
    followed.wait_for_addresses(&["10.0.0.1:8080"]).await;
    for (end, number) in [(End::Clean, 2), (End::Broken, 3), (End::Clean, 4)] {
        eventually("a watch", || !server.requests("watch=true").is_empty()).await;
        server.end_watches(end);
        server.put("pods", pod("shop", &format!("p{number}"), &format!("10.0.0.{number}")));
        eventually("a new pod", || followed.targets().len() == number).await;
    }
    server.delete("pods", "shop", "p3");
    followed
        .wait_for_addresses(&["10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.4:8080"])
        .await;
    followed.wait_until_healthy().await;
    assert_eq!(server.lists("pods"), 1);
    followed.running.stop().await;
}

#[tokio::test]
async fn a_version_that_is_forgotten_means_a_new_list_and_bookmarks_keep_it_fresh() {
    let server = ApiServer::start().await;
    server.put("pods", pod("shop", "a", "10.0.0.1"));
    server.put("pods", pod("shop", "b", "10.0.0.2"));
    let followed = Followed::start(&body(&server, "pod"));
    followed.wait_for_addresses(&["10.0.0.1:8080", "10.0.0.2:8080"]).await;
    // Objects of another kind change. A bookmark announces the new version to the watch.
    server.put("nodes", json!({"metadata": {"name": "x"}}));
    server.bookmark();
    server.end_watches(End::Clean);
    eventually("the version of the bookmark", || {
        !server.requests("resourceVersion=4").is_empty()
    })
    .await;
    server.compact();
    server.end_watches(End::Clean);
    server.put("pods", pod("shop", "c", "10.0.0.3"));
    followed
        .wait_for_addresses(&["10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"])
        .await;
    assert_eq!(server.lists("pods"), 1);
    // An object is deleted while there is no watch, and the server drops that event. The new list lacks the object.
    server.forbid(&["pods"]);
    server.end_watches(End::Broken);
    followed.wait_for_trouble("403").await;
    server.delete("pods", "shop", "a");
    server.put("nodes", json!({"metadata": {"name": "y"}}));
    server.compact();
    server.forbid(&[]);
    followed.wait_for_addresses(&["10.0.0.2:8080", "10.0.0.3:8080"]).await;
    followed.wait_until_healthy().await;
    followed.running.stop().await;
}

#[tokio::test]
async fn trouble_is_told_and_the_last_targets_stay() {
    let server = ApiServer::start().await;
    server.put("pods", pod("shop", "a", "10.0.0.1"));
    server.forbid(&["pods"]);
    let followed = Followed::start(&body(&server, "pod"));
    assert_eq!(
        followed.wait_for_trouble("403").await,
        "cannot list /api/v1/pods: the server answered 403 Forbidden: pods is forbidden: User \"me\" cannot list \
         resource"
    );
    assert!(followed.targets().is_empty());
    server.forbid(&[]);
    followed.wait_for_addresses(&["10.0.0.1:8080"]).await;
    followed.wait_until_healthy().await;
    server.forbid(&["pods"]);
    server.end_watches(End::Clean);
    followed.wait_for_trouble("403").await;
    assert_eq!(followed.addresses(), ["10.0.0.1:8080"]);
    let requests = server.requests("").len();
    server.forbid(&[]);
    followed.wait_until_healthy().await;
    assert!(server.requests("").len() > requests);
    followed.running.stop().await;
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again_without_a_new_list() {
    let server = ApiServer::start().await;
    server.put("pods", pod("shop", "a", "10.0.0.1"));
    server.refuse(429, "too many requests", Some(1));
    let followed = Followed::start(&body(&server, "pod"));
    followed
        .wait_for_trouble("429 Too Many Requests: too many requests")
        .await;
    followed.wait_for_addresses(&["10.0.0.1:8080"]).await;
    // If the server refuses a watch with status 429, the watch resumes later where it ended.
    server.refuse(429, "again", None);
    server.refuse(429, "and again", None);
    server.refuse(429, "and again", None);
    server.refuse(429, "and again", None);
    server.end_watches(End::Clean);
    server.put("pods", pod("shop", "b", "10.0.0.2"));
    followed.wait_for_addresses(&["10.0.0.1:8080", "10.0.0.2:8080"]).await;
    assert_eq!(server.lists("pods"), 2, "one list was refused, and one succeeded");
    followed.running.stop().await;
}

#[tokio::test]
async fn a_token_file_is_read_for_every_request() {
    let server = ApiServer::start().await;
    server.put("pods", pod("shop", "a", "10.0.0.1"));
    server.require_token("one");
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, "one\n").unwrap();
    let body = body(&server, "pod").text("bearer_token_file", token.to_str().unwrap());
    let followed = Followed::start(&body);
    followed.wait_for_addresses(&["10.0.0.1:8080"]).await;
    server.require_token("two");
    server.end_watches(End::Clean);
    followed.wait_for_trouble("401 Unauthorized").await;
    std::fs::write(&token, "two\n").unwrap();
    followed.wait_until_healthy().await;
    followed.running.stop().await;
}

#[tokio::test]
async fn a_kubeconfig_file_leads_to_the_server() {
    let server = ApiServer::start().await;
    server.put("pods", pod("shop", "a", "10.0.0.1"));
    server.require_token("secret");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    let text = format!(
        "{{current-context: c, contexts: [{{name: c, context: {{cluster: k, user: u}}}}], clusters: \
         [{{name: k, cluster: {{server: \"{}\"}}}}], users: [{{name: u, user: {{token: secret}}}}]}}",
        server.url
    );
    std::fs::write(&path, text).unwrap();
    let body = Body::new()
        .text("kubeconfig_file", path.to_str().unwrap())
        .text("role", "pod");
    let followed = Followed::start(&body);
    followed.wait_for_addresses(&["10.0.0.1:8080"]).await;
    followed.running.stop().await;
}

#[tokio::test]
async fn new_arguments_take_the_place_of_the_old_ones_and_bad_ones_do_not() {
    let server = ApiServer::start().await;
    server.put("pods", pod("shop", "a", "10.0.0.1"));
    let followed = Followed::start(&body(&server, "pod"));
    followed.wait_for_addresses(&["10.0.0.1:8080"]).await;
    let update = |body: Body| followed.running.component.update(body.arguments(&FAST));
    let missing = Body::new().text("kubeconfig_file", "/no/such/file").text("role", "pod");
    assert!(update(missing).unwrap_err().0.contains("cannot read /no/such/file"));
    assert_eq!(followed.addresses(), ["10.0.0.1:8080"]);
    // There are no services, so the old targets disappear.
    update(body(&server, "service")).unwrap();
    followed.wait_for_addresses(&[]).await;
    followed.wait_until_healthy().await;
    followed.running.stop().await;
}

#[tokio::test]
async fn objects_that_change_without_a_change_of_their_targets_export_nothing() {
    let server = ApiServer::start().await;
    server.put("pods", pod("shop", "a", "10.0.0.1"));
    let followed = Followed::start(&body(&server, "pod"));
    followed.wait_for_addresses(&["10.0.0.1:8080"]).await;
    let before = followed.recorder.export("targets");
    let restarts = |count: usize| json!([{"name": "main", "containerID": "containerd://0a1b", "restartCount": count}]);
    server.put(
        "pods",
        with(pod("shop", "a", "10.0.0.1"), "/status/containerStatuses", restarts(1)),
    );
    server.put("pods", pod("shop", "b", "10.0.0.2"));
    followed.wait_for_addresses(&["10.0.0.1:8080", "10.0.0.2:8080"]).await;
    let (Setting::Array(before), Setting::Array(after)) = (before, followed.recorder.export("targets")) else {
        panic!("an export is not a list");
    };
    let (Setting::Object(before), Setting::Object(after)) = (&before[0], &after[0]) else {
        panic!("an element of an export is not a target");
    };
    assert!(
        std::sync::Arc::ptr_eq(before, after),
        "the export shares the target of the unchanged pod"
    );
    followed.running.stop().await;
}

#[test]
fn the_arguments_are_checked() {
    let check = |body: Body| body.read(&DEFINITION).map(drop);
    let base = || Body::new().text("role", "pod");
    let selector = |role: &str| Body::new().text("role", role);
    assert_eq!(check(base().block("selectors", selector("pod"))), Ok(()));
    let error = check(base().block("selectors", selector("service"))).unwrap_err();
    assert!(
        error.starts_with("selectors[0].role: the role pod does not support selectors of the role service"),
        "{error}"
    );
    let duplicate_selectors = base()
        .block("selectors", selector("pod"))
        .block("selectors", selector("pod"));
    assert!(
        check(duplicate_selectors)
            .unwrap_err()
            .starts_with("selectors[1].role: the role pod already has a selector")
    );
    let own = Body::new().with("own_namespace", Setting::Bool(true));
    assert_eq!(check(base().block("namespaces", own.clone())), Ok(()));
    let remote_server = base().text("api_server", "http://x").block("namespaces", own);
    assert!(
        check(remote_server)
            .unwrap_err()
            .starts_with("namespaces.own_namespace: own_namespace is only known")
    );
}

/// An event in the cluster or on the connection to it.
#[derive(Clone, Debug)]
enum Happening {
    Put(usize, usize),
    Delete(usize),
    PutNode(usize),
    Bookmark,
    Compact,
    End,
    Break,
    Refuse(u16),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        6 => (0..6usize, 0..4usize).prop_map(|(name, version)| Happening::Put(name, version)),
        3 => (0..6usize).prop_map(Happening::Delete),
        1 => (0..3usize).prop_map(Happening::PutNode),
        1 => Just(Happening::Bookmark),
        1 => Just(Happening::Compact),
        1 => Just(Happening::End),
        1 => Just(Happening::Break),
        1 => prop_oneof![Just(429), Just(500), Just(410), Just(403)].prop_map(Happening::Refuse),
    ]
}

impl Happening {
    fn happen(&self, server: &ApiServer) {
        match self {
            Self::Put(name, version) => {
                let (namespace, name) = (format!("n{}", name % 2), format!("p{name}"));
                let changed = pod(&namespace, &name, &format!("10.0.0.{version}"));
                server.put(
                    "pods",
                    with(changed, "/spec/nodeName", json!(format!("node-{}", version % 2))),
                );
            }
            Self::Delete(name) => server.delete("pods", &format!("n{}", name % 2), &format!("p{name}")),
            Self::PutNode(zone) => {
                let labels = json!({"zone": zone.to_string()});
                server.put("nodes", json!({"metadata": {"name": "node-1", "labels": labels}}));
            }
            Self::Bookmark => server.bookmark(),
            Self::Compact => server.compact(),
            Self::End => server.end_watches(End::Clean),
            Self::Break => server.end_watches(End::Broken),
            Self::Refuse(status) => server.refuse(*status, "not now", None),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_targets_are_those_of_a_fresh_list(
        happenings in proptest::collection::vec(happening(), 1..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = ApiServer::start().await;
            server.set_largest_page(2);
            let attached = Body::new().with("node", Setting::Bool(true));
            let body = body(&server, "pod").block("attach_metadata", attached);
            let followed = Followed::start(&body);
            for happening in &happenings {
                happening.happen(&server);
                // The yield lets the component process some events one by one and other events together.
                tokio::task::yield_now().await;
            }
            let fresh = Followed::start(&body);
            fresh.wait_until_healthy().await;
            eventually("the same targets", || {
                followed.recorder.health().0 == HealthState::Healthy && followed.targets() == fresh.targets()
            })
            .await;
            followed.running.stop().await;
            fresh.running.stop().await;
        });
    }
}
