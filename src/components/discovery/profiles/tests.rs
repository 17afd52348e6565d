//! Tests of the targets that pods get through the annotations of each convention, and of a running component.

use serde_json::{Value, json};

use super::annotations::choose;
use super::{DEFINITION, ProfilesArguments};
use crate::common::kubernetes::followed::wanted::Chosen;
use crate::common::kubernetes::followed::{Timing, build};
use crate::common::kubernetes::objects::Pod;
use crate::common::kubernetes::pods;
use crate::common::kubernetes::testing::{ApiServer, fast, pod};
use crate::common::testing::{Body, Recorder, Running, eventually};
use alluvium_pipeline::component::{Definition, HealthState};

/// Returns a pod with the ports 8080 `http`, 6060 `pprof` and 9000 for UDP, and with these annotations.
fn annotated(annotations: &[(&str, &str)]) -> Value {
    let mut pod = pod("shop", "a", "10.0.0.1");
    pod["metadata"]["annotations"] = annotations
        .iter()
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    pod["spec"]["containers"] = json!([
        {"name": "main", "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}]},
        {"name": "side", "ports": [
            {"name": "pprof", "containerPort": 6060, "protocol": "TCP"},
            {"name": "stats", "containerPort": 9000, "protocol": "UDP"},
        ]},
    ]);
    pod
}

fn chosen(pod: &Value) -> Chosen {
    let pod: Pod = serde_json::from_value(pod.clone()).unwrap();
    choose(pods::targets(&pod, &pods::labels_with_namespace(&pod)))
}

/// Returns the targets of a pod in short form, without meta labels. The complaint, if there is one, follows them.
fn targets(annotations: &[(&str, &str)]) -> Vec<String> {
    let Chosen { targets, complaint } = chosen(&annotated(annotations));
    let line = |mut target: crate::common::arguments::targets::Target| {
        target.retain(|name, _| !name.starts_with("__meta_") && !matches!(&**name, "namespace" | "pod" | "node"));
        let labels: Vec<String> = target.iter().map(|(name, value)| format!("{name}={value}")).collect();
        labels.join(" ")
    };
    targets.into_iter().map(line).chain(complaint).collect()
}

#[test]
fn pods_without_annotations_and_pods_that_do_not_run_have_no_targets() {
    assert_eq!(targets(&[("pyroscope.io/scrape", "false"), ("a/b", "true")]), [""; 0]);
    for phase in ["Pending", "Succeeded", "Failed", "Unknown"] {
        let mut pod = annotated(&[("pyroscope.io/scrape", "true")]);
        assert_eq!(chosen(&pod).targets.len(), 2);
        pod["status"]["phase"] = phase.into();
        assert_eq!(chosen(&pod), Chosen::default());
    }
}

#[test]
fn targets_say_where_they_are_and_keep_the_labels_of_discovery() {
    let chosen = chosen(&annotated(&[
        ("pyroscope.io/scrape", "true"),
        ("pyroscope.io/port", "6060"),
    ]));
    let [target] = &chosen.targets[..] else {
        panic!("{chosen:?}");
    };
    for (name, value) in [
        ("namespace", "shop"),
        ("pod", "a"),
        ("container", "side"),
        ("node", "node-1"),
        ("__meta_kubernetes_pod_label_app", "shop"),
        ("__meta_kubernetes_pod_container_port_name", "pprof"),
    ] {
        assert_eq!(target.get(name).map(|value| &**value), Some(value), "{name}");
    }
}

#[test]
fn pyroscopes_annotations_take_a_port_or_every_tcp_port() {
    let scrape = ("pyroscope.io/scrape", "true");
    assert_eq!(
        targets(&[scrape]),
        [
            "__address__=10.0.0.1:8080 container=main",
            "__address__=10.0.0.1:6060 container=side"
        ]
    );
    let annotations = [
        scrape,
        ("pyroscope.io/port", "7000"),
        ("pyroscope.io/scheme", "https"),
        ("pyroscope.io/application-name", "cart"),
    ];
    assert_eq!(
        targets(&annotations),
        ["__address__=10.0.0.1:7000 __scheme__=https container=main service_name=cart"]
    );
    let mut bare = annotated(&[scrape]);
    bare["spec"]["containers"] = json!([{"name": "main"}, {"name": "side"}]);
    let bare = chosen(&bare).targets;
    assert_eq!(bare.len(), 1);
    assert_eq!(&*bare[0]["__address__"], "10.0.0.1");
    assert_eq!(
        targets(&[scrape, ("pyroscope.io/port", "http")]),
        ["annotation pyroscope.io/port: `http` is not a port number"]
    );
    assert_eq!(
        targets(&[scrape, ("pyroscope.io/scheme", "ftp")]),
        ["annotation pyroscope.io/scheme: `ftp` is neither http nor https"]
    );
}

#[test]
fn pyroscopes_annotations_may_switch_kinds() {
    let kinds = |switches: &[(&str, &str)]| {
        let mut annotations = vec![("pyroscope.io/scrape", "true"), ("pyroscope.io/port", "1")];
        annotations.extend(switches);
        let all = targets(&annotations).join("\n");
        all.strip_prefix("__address__=10.0.0.1:1 ")
            .unwrap()
            .replace(" container=main", "")
    };
    let (cpu, memory) = ("pyroscope.io/profile-cpu-enabled", "pyroscope.io/profile-mem-enabled");
    assert_eq!(
        kinds(&[(cpu, "true"), (memory, "true")]),
        "__profile_kinds__=process_cpu,memory"
    );
    assert_eq!(
        kinds(&[(cpu, "true"), (memory, "false")]),
        "__profile_kinds__=process_cpu"
    );
    assert_eq!(
        kinds(&[(memory, "false")]),
        "__profile_kinds__=block,goroutine,mutex,process_cpu"
    );
    assert_eq!(kinds(&[(memory, "maybe")]), "container=main");
}

#[test]
fn grafanas_annotations_say_port_scheme_and_path_by_type() {
    let enabled = |profile_type: &str| (format!("profiles.grafana.com/{profile_type}.scrape"), "true");
    let (cpu, memory, fgprof) = (enabled("cpu"), enabled("memory"), enabled("fgprof"));
    let annotations = [
        (&*cpu.0, cpu.1),
        ("profiles.grafana.com/cpu.port_name", "pprof"),
        (&*memory.0, memory.1),
        ("profiles.grafana.com/memory.port", "6060"),
        (&*fgprof.0, fgprof.1),
        ("profiles.grafana.com/fgprof.port", "7000"),
        ("profiles.grafana.com/fgprof.scheme", "https"),
        ("profiles.grafana.com/fgprof.path", "/wall"),
        ("profiles.grafana.com/mutex.scrape", "false"),
        ("profiles.grafana.com/service_name", "cart"),
    ];
    assert_eq!(
        targets(&annotations),
        [
            "__address__=10.0.0.1:6060 __profile_kinds__=process_cpu,memory container=side service_name=cart",
            "__address__=10.0.0.1:7000 __profile_kinds__=fgprof __profile_path__=/wall __scheme__=https container=main \
             service_name=cart",
        ]
    );
    let named = [
        (&*cpu.0, cpu.1),
        ("profiles.grafana.com/cpu.port_name", "nowhere"),
        (&*memory.0, memory.1),
        ("profiles.grafana.com/memory.port_name", "http"),
        ("profiles.grafana.com/memory.port", "81"),
    ];
    assert_eq!(
        targets(&named),
        [
            "__address__=10.0.0.1:81 __profile_kinds__=memory container=main",
            "no container declares a port called `nowhere`",
        ]
    );
}

#[test]
fn coroots_annotations_need_a_port_which_may_be_pyroscopes() {
    let scrape = ("coroot.com/profile-scrape", "true");
    let port = ("coroot.com/profile-port", "6060");
    assert_eq!(targets(&[scrape, port]), ["__address__=10.0.0.1:6060 container=side"]);
    assert_eq!(targets(&[("coroot.com/profile-scrape", "True"), port]), [""; 0]);
    let other = ("pyroscope.io/port", "8080");
    assert_eq!(targets(&[scrape, other]), ["__address__=10.0.0.1:8080 container=main"]);
    let annotations = [scrape, port, ("pyroscope.io/scrape", "true"), other];
    assert_eq!(targets(&annotations), ["__address__=10.0.0.1:6060 container=side"]);
    assert_eq!(
        targets(&[scrape]),
        ["coroot.com/profile-scrape needs coroot.com/profile-port"]
    );
}

#[test]
fn profefes_annotations_have_a_port_a_service_and_a_path_that_counts() {
    let enable = ("profefe.com/enable", "true");
    let default_target = "__address__=10.0.0.1:6060 container=side service_name=a";
    assert_eq!(targets(&[enable]), [default_target]);
    assert_eq!(targets(&[enable, ("profefe.com/port", "x")]), [default_target]);
    assert_eq!(
        targets(&[enable, ("profefe.com/path", "/debug/pprof/")]),
        [default_target]
    );
    let named = [enable, ("profefe.com/port", "8080"), ("profefe.com/service", "cart")];
    assert_eq!(
        targets(&named),
        ["__address__=10.0.0.1:8080 container=main service_name=cart"]
    );
    let custom_path_targets = targets(&[enable, ("profefe.com/path", "/admin/pprof")]);
    let paths: Vec<&str> = custom_path_targets
        .iter()
        .map(|line| line.split(' ').nth(2).unwrap())
        .collect();
    assert_eq!(
        paths,
        [
            "__profile_path__=/admin/pprof/block",
            "__profile_path__=/admin/pprof/goroutine",
            "__profile_path__=/admin/pprof/heap",
            "__profile_path__=/admin/pprof/mutex",
            "__profile_path__=/admin/pprof/profile",
        ]
    );
    assert!(
        custom_path_targets[2].contains("__profile_kinds__=memory"),
        "{custom_path_targets:?}"
    );
}

#[tokio::test]
async fn annotated_pods_are_followed_and_mistakes_are_told() {
    const FAST: Definition<ProfilesArguments> = Definition {
        build: Some(|context, arguments| {
            let timing = Timing {
                pace: fast(),
                between_exports: std::time::Duration::from_millis(1),
            };
            build(context, arguments, timing)
        }),
        ..DEFINITION
    };
    let server = ApiServer::start().await;
    let scrape = ("coroot.com/profile-scrape", "true");
    server.put("pods", annotated(&[scrape, ("coroot.com/profile-port", "6060")]));
    server.put("pods", pod("shop", "plain", "10.0.0.2"));
    let folder = tempfile::tempdir().unwrap();
    let recorder = Recorder::new("discovery.profiles.test", folder.path());
    let namespaces = Body::new().with(
        "names",
        alluvium_lang::value::Value::array([alluvium_lang::value::Value::string("shop")]),
    );
    let body = Body::new()
        .text("api_server", &server.url)
        .block("namespaces", namespaces);
    let running = Running::start(&FAST, &recorder, &body);
    let is_healthy = |message: &str| recorder.health() == (HealthState::Healthy, message.to_owned());
    eventually("the annotated pod", || is_healthy("1 targets of 2 objects")).await;
    assert!(recorder.exported_targets("targets")[0].contains("__address__=10.0.0.1:6060"));
    server.put("pods", annotated(&[scrape]));
    let message = "0 targets of 2 objects, 1 objects lack targets: shop/a: coroot.com/profile-scrape needs \
                   coroot.com/profile-port";
    eventually("the mistake", || is_healthy(message)).await;
    server.delete("pods", "shop", "a");
    eventually("its end", || is_healthy("0 targets of 1 objects")).await;
    assert_eq!(
        server.requests("/namespaces/shop/pods").len(),
        server.requests("").len()
    );
    running.stop().await;
}
