//! A Kubernetes API with five thousand pods. Fifty pods per second are created or deleted.
//!
//! Over plain HTTP, the API answers a list request with pages of pods, and a watch request with the changes. It has
//! only the features that a discovery needs. A pod has the fields and the size that pods of a real API server have. No
//! pod has annotations that request profiles: the bench measures only discovery.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Number of pods at any time.
const PODS: u64 = 5000;
/// Time between two changes.
const EVERY: Duration = Duration::from_millis(20);

/// A component that keeps all targets, with two labels more.
const KEPT: &str = r#"
discovery.relabel "all" {
	targets = discovery.kubernetes.pods.targets

	rule {
		source_labels = ["__meta_kubernetes_namespace", "__meta_kubernetes_pod_container_name"]
		separator     = "/"
		target_label  = "service_name"
	}

	rule {
		source_labels = ["__meta_kubernetes_pod_node_name"]
		target_label  = "node"
	}
}
"#;

/// The API, on its own port.
pub(crate) struct Cluster {
    address: String,
    started: Instant,
    /// Number of changes that were sent to a watch.
    changed: AtomicU64,
}

impl Cluster {
    pub(crate) fn start() -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let cluster = Arc::new(Self {
            address: listener.local_addr().unwrap().to_string(),
            started: Instant::now(),
            changed: AtomicU64::new(0),
        });
        let answering = cluster.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let cluster = answering.clone();
                std::thread::spawn(move || cluster.answer(&stream));
            }
        });
        cluster
    }

    /// Returns the shipped configuration for annotated pods, with this API as the cluster. Its rules drop all targets
    /// of the bench, so a second `discovery.relabel` keeps them.
    pub(crate) fn config(&self) -> String {
        let shipped = include_str!("../../config/kubernetes.alloy");
        let there = format!("role       = \"pod\"\n\tapi_server = \"http://{}\"", self.address);
        shipped.replace("role = \"pod\"", &there) + KEPT
    }

    /// Returns the number of changes that were sent to watches so far.
    pub(crate) fn changed(&self) -> u64 {
        self.changed.load(Ordering::Relaxed)
    }

    /// Returns the number of changes that are due. Odd changes remove the oldest pod, even changes add a pod.
    fn due(&self) -> u64 {
        (self.started.elapsed().as_nanos() / EVERY.as_nanos()) as u64
    }

    /// Handles the requests of a connection until it is closed.
    fn answer(&self, mut stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            while reader.read_line(&mut line).is_ok_and(|read| read > 2) {}
            line.clear();
            let answered = if path.contains("watch=") {
                self.watch(stream, &path)
            } else {
                let body = self.list(&path).to_string();
                let length = body.len();
                let head =
                    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n");
                stream.write_all((head + &body).as_bytes())
            };
            if answered.is_err() {
                return;
            }
        }
    }

    /// Returns a page of the pods. The version is the number of changes before the first page. The token of a further
    /// page consists of the version and of the number of the page's first pod.
    fn list(&self, path: &str) -> Value {
        let token = parameter(path, "continue").and_then(|token| token.split_once('-'));
        let (version, first) = if let Some((version, first)) = token {
            (version.parse().unwrap(), first.parse().unwrap())
        } else {
            let version = self.due();
            (version, version.div_ceil(2))
        };
        let limit = parameter(path, "limit").and_then(|limit| limit.parse().ok());
        let all = PODS + version / 2;
        let end = all.min(first + limit.unwrap_or(PODS));
        let mut metadata = json!({ "resourceVersion": version.to_string() });
        if end < all {
            metadata["continue"] = format!("{version}-{end}").into();
        }
        let items: Vec<Value> = (first..end).map(|number| pod(number, version)).collect();
        json!({ "kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items })
    }

    /// Sends the changes after a version, each when it is due, as long as the client reads.
    fn watch(&self, mut stream: &TcpStream, path: &str) -> std::io::Result<()> {
        let from = parameter(path, "resourceVersion");
        let mut version: u64 = from.and_then(|from| from.parse().ok()).unwrap_or(0);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")?;
        loop {
            while version < self.due() {
                version += 1;
                let (kind, number) = if version % 2 == 1 {
                    ("DELETED", version / 2)
                } else {
                    ("ADDED", PODS + version / 2 - 1)
                };
                let event = json!({ "type": kind, "object": pod(number, version) }).to_string() + "\n";
                write!(stream, "{:x}\r\n{event}\r\n", event.len())?;
                self.changed.fetch_add(1, Ordering::Relaxed);
            }
            std::thread::sleep(EVERY);
        }
    }
}

/// Returns a parameter of a request.
fn parameter<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let mut parameters = path.split(['?', '&']).filter_map(|part| part.split_once('='));
    parameters.find(|(key, _)| *key == name).map(|(_, value)| value)
}

/// Returns a running pod with the usual labels, two containers and two ports. Half of its text is of fields that a
/// discovery does not read.
fn pod(number: u64, version: u64) -> Value {
    let name = format!("shop-{}-6d5f7c9b8-{number:05}", number % 100);
    let id = format!("containerd://{number:064x}");
    let ip = format!("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255);
    let started = "2026-01-01T00:00:00Z";
    let container = |name: &str, port: u16| {
        json!({
            "name": name, "image": format!("registry.example.com/shop/{name}:1.2.3"), "imagePullPolicy": "IfNotPresent",
            "ports": [{ "name": "http", "containerPort": port, "protocol": "TCP" }],
            "env": [{ "name": "GOMAXPROCS", "value": "2" }, { "name": "LOG_LEVEL", "value": "info" },
                { "name": "NODE_NAME",
                    "valueFrom": { "fieldRef": { "apiVersion": "v1", "fieldPath": "spec.nodeName" } } }],
            "resources": { "limits": { "memory": "256Mi" }, "requests": { "cpu": "100m", "memory": "128Mi" } },
            "livenessProbe": { "httpGet": { "path": "/healthz", "port": port, "scheme": "HTTP" }, "periodSeconds": 10 },
            "volumeMounts": [{ "name": "kube-api-access",
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount" }],
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"
        })
    };
    let status = |name: &str| {
        json!({ "name": name, "ready": true, "started": true, "restartCount": 0, "containerID": id,
            "image": format!("registry.example.com/shop/{name}:1.2.3"),
            "imageID": format!("registry.example.com/shop/{name}@sha256:{number:064x}"),
            "state": { "running": { "startedAt": started } }, "lastState": {} })
    };
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": started });
    let owned = |fields: &[&str]| -> Value { fields.iter().map(|field| (format!("f:{field}"), json!({}))).collect() };
    let managed = |manager: &str, fields: Value| {
        json!({ "manager": manager, "operation": "Update", "apiVersion": "v1", "time": started,
            "fieldsType": "FieldsV1", "fieldsV1": fields })
    };
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": name, "namespace": format!("team-{}", number % 20), "uid": format!("{number:032x}"),
            "resourceVersion": version.to_string(), "creationTimestamp": started,
            "generateName": format!("shop-{}-6d5f7c9b8-", number % 100),
            "labels": { "app": format!("shop-{}", number % 100), "pod-template-hash": "6d5f7c9b8", "tier": "web" },
            "annotations": { "prometheus.io/scrape": "true", "pyroscope.io/scrape": "false" },
            "ownerReferences": [{ "kind": "ReplicaSet", "name": format!("shop-{}-6d5f7c9b8", number % 100),
                "controller": true, "blockOwnerDeletion": true, "apiVersion": "apps/v1", "uid": "0" }],
            "managedFields": [
                managed("kube-controller-manager", json!({
                    "f:metadata": { "f:labels": owned(&[".", "app", "pod-template-hash", "tier"]),
                        "f:annotations": owned(&[".", "prometheus.io/scrape", "pyroscope.io/scrape"]) },
                    "f:spec": owned(&["dnsPolicy", "enableServiceLinks", "restartPolicy", "schedulerName",
                        "securityContext", "terminationGracePeriodSeconds", "containers", "volumes"])
                })),
                managed("kubelet", json!({ "f:status": owned(&["conditions", "containerStatuses", "hostIP", "hostIPs",
                    "phase", "podIP", "podIPs", "startTime"]) }))
            ]
        },
        "spec": {
            "nodeName": format!("node-{}", number % 50),
            "containers": [container("main", 8080), container("proxy", 15000)],
            "volumes": [{ "name": "kube-api-access", "projected": { "defaultMode": 420, "sources": [
                { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } }] } }],
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default", "securityContext": {}, "schedulerName": "default-scheduler",
            "tolerations": [{ "key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": 300 }]
        },
        "status": {
            "phase": "Running", "podIP": ip, "podIPs": [{ "ip": ip }], "hostIP": "192.0.2.1", "startTime": started,
            "conditions": [condition("Initialized"), condition("Ready"), condition("ContainersReady"),
                condition("PodScheduled")],
            "containerStatuses": [status("main"), status("proxy")], "qosClass": "Burstable"
        }
    })
}
