//! The chart and the plain manifests, rendered by helm and kustomize with many sets of values.
//!
//! In: `deploy/helm`, `deploy/kubernetes`. Out: objects. The test checks their commands, configuration, permissions and
//! minimal privileges against the program. No API server validates the objects here;
//! `docs/compatibility/kubernetes.md` describes how one did.

use std::process::{Command, Stdio};

use alluvium::cli::Cli;
use clap::Parser as _;
use serde_json::Value;

use super::make;
use crate::program::{other, run};
use crate::tidy::root;

/// Capabilities of a container with eBPF. Other containers have no capabilities.
const OF_EBPF: [&str; 7] = [
    "BPF",
    "CHECKPOINT_RESTORE",
    "DAC_READ_SEARCH",
    "IPC_LOCK",
    "PERFMON",
    "SYS_PTRACE",
    "SYSLOG",
];

/// Sets of values that replace defaults of the chart. The first set is empty.
const VARIATIONS: [&[&str]; 10] = [
    &[],
    &["collector.ebpf.enabled=true"],
    &["collector.kind=Deployment"],
    &["collector.pods.namespaces={shop,cart}"],
    &["collector.pods.enabled=false", "collector.ebpf.enabled=true"],
    &[
        "server.enabled=false",
        "collector.serverUrl=https://profiles.example.com",
    ],
    &[
        "collector.enabled=false",
        "server.replicas=2",
        "server.config.storage.backend=s3",
    ],
    &[
        "monitoring.enabled=true",
        "collector.rbac.nodes=true",
        "collector.rbac.namespaces=true",
        "collector.rbac.services=true",
        "collector.rbac.kubelet=true",
        "collector.rbac.objects[0].namespace=shop",
        "collector.rbac.objects[0].resource=secrets",
        "collector.rbac.objects[0].name=password",
    ],
    &[
        "server.auth=/etc/alluvium-auth/users",
        "server.authSecret=people",
        "collector.tokenSecret=collector",
    ],
    &[
        "collector.kind=Deployment",
        "collector.replicas=3",
        "collector.clustering.enabled=true",
        "collector.clustering.secret=members",
    ],
];

/// Returns a program's output; the error is its standard error.
fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn template(values: &[&str]) -> Result<String, String> {
    let mut arguments = vec![
        "template",
        "alluvium",
        "deploy/helm/alluvium",
        "--namespace",
        "alluvium",
    ];
    arguments.extend(values.iter().flat_map(|value| ["--set", value]));
    output("helm", &arguments)
}

fn objects(text: &str) -> Vec<Value> {
    let documents = text
        .split("---\n")
        .filter(|document| document.lines().any(|line| !line.starts_with('#')));
    documents
        .map(|document| serde_saphyr::from_str(document).unwrap())
        .collect()
}

fn of_kind<'a>(objects: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    objects.iter().filter(move |object| object["kind"] == kind)
}

fn texts(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .map_or(&[][..], Vec::as_slice)
        .iter()
        .map(|text| text.as_str().unwrap())
        .collect()
}

/// Returns the pod template of a workload, and its only container.
fn pod(object: &Value) -> Option<(&Value, &Value)> {
    let pod = object.pointer("/spec/template/spec")?;
    let containers = pod["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 1);
    Some((pod, &containers[0]))
}

/// Runs the checks that apply to all rendered objects.
fn check(objects: &[Value], what: &str) {
    for object in objects {
        let Some((pod, container)) = pod(object) else { continue };
        let arguments = [&["alluvium"][..], &texts(&container["args"])].concat();
        if let Err(error) = Cli::try_parse_from(arguments) {
            panic!("{what}: {error}");
        }
        // Every user may read the root of an emptyDir. The program creates a private folder in it.
        let mounts = container["volumeMounts"].as_array().unwrap();
        for argument in texts(&container["args"]) {
            let of_server = argument.strip_prefix("--data=");
            if let Some(folder) = of_server.or_else(|| argument.strip_prefix("--storage.path=")) {
                let parent = folder.rsplit_once('/').unwrap().0;
                assert!(
                    mounts.iter().any(|mount| mount["mountPath"] == parent),
                    "{what}: {folder}"
                );
            }
        }
        let (own, of_pod) = (&container["securityContext"], &pod["securityContext"]);
        assert_eq!(own["allowPrivilegeEscalation"], false, "{what}");
        assert_eq!(own["readOnlyRootFilesystem"], true, "{what}");
        assert_eq!(texts(&own["capabilities"]["drop"]), ["ALL"], "{what}");
        assert!(container["resources"]["limits"]["memory"].is_string(), "{what}");
        let ready = &container["readinessProbe"]["httpGet"]["path"];
        assert!(ready == "/ready" || ready == "/-/ready", "{what}: {ready}");
        if pod["hostPID"] == true {
            assert_eq!(texts(&own["capabilities"]["add"]), OF_EBPF, "{what}");
        } else {
            assert_eq!(own["capabilities"]["add"], Value::Null, "{what}");
            assert_eq!(of_pod["runAsNonRoot"], true, "{what}");
            assert_eq!(of_pod["seccompProfile"]["type"], "RuntimeDefault", "{what}");
        }
    }
    for role in of_kind(objects, "ClusterRole").chain(of_kind(objects, "Role")) {
        for rule in role["rules"].as_array().unwrap() {
            let verbs = texts(&rule["verbs"]);
            let is_narrow = rule["resourceNames"].is_array() || texts(&rule["resources"])[0].starts_with("nodes/");
            assert_eq!(
                verbs,
                if is_narrow { vec!["get"] } else { vec!["list", "watch"] },
                "{what}"
            );
        }
    }
    for map in of_kind(objects, "ConfigMap") {
        let folder = tempfile::tempdir().unwrap();
        let mut is_collector = false;
        for (name, text) in map["data"].as_object().unwrap() {
            is_collector |= name.ends_with(".alloy");
            std::fs::write(folder.path().join(name), text.as_str().unwrap()).unwrap();
        }
        if is_collector {
            let folder = folder.path().to_string_lossy();
            for arguments in [["validate", "--strict", &folder], ["fmt", "--test", &folder]] {
                let (is_well, said, errors) = run(&arguments);
                let said = String::from_utf8_lossy(&said).into_owned();
                assert!(is_well, "{what}: {arguments:?}: {said}{errors}");
            }
        }
    }
}

fn tools() -> bool {
    let helm = other("helm", &["version"], "helm").is_some();
    helm && other("kustomize", &["version"], "kustomize").is_some()
}

#[test]
fn the_chart_makes_commands_and_configurations_that_the_program_takes_with_few_rights() {
    if !tools() {
        return;
    }
    let linted = output("helm", &["lint", "--strict", "deploy/helm/alluvium"]);
    assert!(linted.is_ok(), "{linted:?}");
    for values in VARIATIONS {
        let objects = objects(&template(values).unwrap());
        assert!(objects.len() >= 3, "{values:?}");
        check(&objects, &format!("{values:?}"));
    }
}

#[test]
fn a_switch_gives_the_rights_that_it_needs_and_no_others() {
    if !tools() {
        return;
    }
    let resources = |values: &[&str], kind: &str| {
        let objects = objects(&template(values).unwrap());
        let rules = of_kind(&objects, kind).flat_map(|role| role["rules"].as_array().unwrap().clone());
        rules
            .flat_map(|rule| {
                texts(&rule["resources"])
                    .into_iter()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(resources(&[], "ClusterRole"), ["pods"]);
    assert_eq!(resources(&["collector.rbac.create=false"], "ClusterRole"), [""; 0]);
    assert_eq!(resources(&["collector.pods.enabled=false"], "ClusterRole"), [""; 0]);
    let namespaces = ["collector.pods.namespaces={shop,cart}"];
    assert_eq!(resources(&namespaces, "ClusterRole"), [""; 0]);
    assert_eq!(resources(&namespaces, "Role"), ["pods", "pods"]);
    let all = resources(VARIATIONS[7], "ClusterRole");
    let expected = [
        "pods",
        "nodes",
        "namespaces",
        "services",
        "endpoints",
        "endpointslices",
        "ingresses",
        "nodes/pods",
    ];
    assert_eq!(all, expected);
    // The right to nodes/proxy allows commands in every container. Only old kubelets need it.
    let old = ["collector.pods.enabled=false", "collector.rbac.kubeletProxy=true"];
    assert_eq!(resources(&old, "ClusterRole"), ["nodes/proxy"]);
    assert_eq!(resources(VARIATIONS[7], "Role"), ["secrets"]);
}

#[test]
fn names_derived_from_a_long_name_are_not_too_long_for_the_cluster() {
    if !tools() {
        return;
    }
    let name = format!("fullnameOverride={}", "n".repeat(60));
    let values = [VARIATIONS[9], &[name.as_str()]].concat();
    let objects = objects(&template(&values).unwrap());
    let longest = |kind| {
        let names = of_kind(&objects, kind).map(|object| object["metadata"]["name"].as_str().unwrap().len());
        names.max().unwrap()
    };
    assert_eq!(longest("Service"), 63);
    // A pod's label with its revision has 11 characters more, and at most 63.
    assert_eq!(longest("StatefulSet"), 52);
}

#[test]
fn collectors_that_share_pods_find_each_other_by_a_service_of_their_own() {
    if !tools() {
        return;
    }
    let objects = objects(&template(VARIATIONS[9]).unwrap());
    let is_of_members = |service: &&Value| service["spec"]["clusterIP"] == "None";
    let members = of_kind(&objects, "Service").find(is_of_members).unwrap();
    assert_eq!(members["spec"]["publishNotReadyAddresses"], true);
    let collectors = of_kind(&objects, "Deployment").next().unwrap();
    assert_eq!(collectors["spec"]["replicas"], 3);
    assert_eq!(
        members["spec"]["selector"],
        collectors["spec"]["selector"]["matchLabels"]
    );
    let (pod, container) = pod(collectors).unwrap();
    let arguments = texts(&container["args"]);
    let name = members["metadata"]["name"].as_str().unwrap();
    let join = format!("--cluster.join-addresses=dns+{name}:12345");
    for argument in [
        "--cluster.enabled",
        &join,
        "--cluster.secret-file=/etc/alluvium/cluster/secret",
    ] {
        assert!(arguments.contains(&argument), "{argument}: {arguments:?}");
    }
    let port = &container["ports"][1];
    assert_eq!(port["containerPort"], 12345);
    assert_eq!(port["protocol"], "UDP");
    let secret = pod["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|volume| volume["name"] == "cluster");
    assert_eq!(secret.unwrap()["secret"]["secretName"], "members");
    let map = of_kind(&objects, "ConfigMap")
        .find(|map| map["data"]["collector.alloy"].is_string())
        .unwrap();
    assert!(
        map["data"]["collector.alloy"]
            .as_str()
            .unwrap()
            .contains("clustering {")
    );
}

#[test]
fn the_notes_say_whether_the_server_asks_for_a_password() {
    if !tools() {
        return;
    }
    // `helm template` omits the notes, and `helm install` needs a cluster. Therefore a copy of the chart has the notes
    // as an object.
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("alluvium").display().to_string();
    output("cp", &["-r", "deploy/helm/alluvium", &chart]).unwrap();
    let notes = std::fs::read_to_string(format!("{chart}/templates/NOTES.txt")).unwrap();
    let indented: Vec<_> = notes.lines().map(|line| format!("  {line}")).collect();
    let object = format!("kind: Notes\ntext: |\n{}\n", indented.join("\n"));
    std::fs::write(format!("{chart}/templates/notes.yaml"), object).unwrap();
    for (values, is_said, is_not_said) in [
        ("server.auth=none", "asks for no password", "reads its users"),
        (
            "server.auth=/etc/alluvium-auth/users",
            "reads its users from /etc/alluvium-auth/users",
            "no password",
        ),
        (
            "server.config.auth.users=/etc/people",
            "reads its users from /etc/people",
            "no password",
        ),
    ] {
        let arguments = [
            "template",
            "alluvium",
            &chart,
            "--set",
            values,
            "-s",
            "templates/notes.yaml",
        ];
        let objects = objects(&output("helm", &arguments).unwrap());
        let text = objects[0]["text"].as_str().unwrap();
        assert!(
            text.contains(is_said) && !text.contains(is_not_said),
            "{values}: {text}"
        );
    }
}

#[test]
fn values_that_cannot_work_are_refused_with_the_reason() {
    if !tools() {
        return;
    }
    for (values, reason) in [
        (&["server.replicas=2"][..], "server.replicas above 1 needs a bucket"),
        (
            &["collector.kind=Job"],
            "collector.kind must be DaemonSet or Deployment",
        ),
        (
            &["collector.kind=Deployment", "collector.ebpf.enabled=true"],
            "collector.ebpf.enabled needs collector.kind DaemonSet",
        ),
        (&["server.enabled=false"], "needs collector.serverUrl"),
        (
            &["collector.clustering.enabled=true"],
            "collector.clustering.enabled needs collector.kind Deployment",
        ),
        (
            &["collector.kind=Deployment", "collector.replicas=2"],
            "collector.replicas above 1 needs collector.clustering.enabled",
        ),
    ] {
        let error = template(values).unwrap_err();
        assert!(error.contains(reason), "{values:?}: {error}");
    }
}

#[test]
fn the_plain_manifests_are_those_of_the_chart() {
    if !tools() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let fresh = folder.path().join("alluvium.yaml");
    let (is_well, text) = make(&["chart".to_owned(), format!("TO={}", fresh.display())]);
    assert!(is_well, "{text}");
    let committed = std::fs::read_to_string(root().join("deploy/kubernetes/base/alluvium.yaml")).unwrap();
    assert!(
        committed == std::fs::read_to_string(fresh).unwrap(),
        "the manifest differs from the chart: run `make chart`"
    );

    let build = |name: &str| {
        let objects = objects(&output("kustomize", &["build", &format!("deploy/kubernetes/{name}")]).unwrap());
        check(&objects, name);
        objects
    };
    let base = build("base");
    assert_eq!(of_kind(&base, "DaemonSet").count(), 1);
    let spec =
        |objects: &[Value], kind: &str| of_kind(objects, kind).next().unwrap()["spec"]["template"]["spec"].clone();
    let ebpf = build("overlays/ebpf");
    let of_chart = objects(&template(&["collector.ebpf.enabled=true"]).unwrap());
    assert_eq!(spec(&ebpf, "DaemonSet"), spec(&of_chart, "DaemonSet"));
    let bucket = build("overlays/bucket");
    assert_eq!(
        spec(&bucket, "StatefulSet")["containers"][0]["envFrom"][0]["secretRef"]["name"],
        "alluvium-bucket"
    );
}
