//! A Kubernetes API with five thousand pods. Fifty pods per second are created or deleted.
//!
//! Over plain HTTP, the API answers a list request with all pods, and a watch request with the changes. It has only the
//! features that a discovery needs. No pod has annotations that request profiles: the bench measures only discovery.

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

    /// Returns the shipped configuration for annotated pods, with this API as the cluster.
    pub(crate) fn config(&self) -> String {
        let shipped = include_str!("../../config/kubernetes.alloy");
        let there = format!("role       = \"pod\"\n\tapi_server = \"http://{}\"", self.address);
        shipped.replace("role = \"pod\"", &there)
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
                let body = self.list().to_string();
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

    /// Returns all pods. The version is the number of changes so far.
    fn list(&self) -> Value {
        let version = self.due();
        let (gone, come) = (version.div_ceil(2), version / 2);
        let items: Vec<Value> = (gone..PODS + come).map(|number| pod(number, version)).collect();
        json!({ "kind": "PodList", "apiVersion": "v1", "metadata": { "resourceVersion": version.to_string() },
            "items": items })
    }

    /// Sends the changes after a version, each when it is due, as long as the client reads.
    fn watch(&self, mut stream: &TcpStream, path: &str) -> std::io::Result<()> {
        let from = path
            .split(['?', '&'])
            .find_map(|part| part.strip_prefix("resourceVersion="));
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

/// Returns a running pod with the usual labels, two containers and three ports.
fn pod(number: u64, version: u64) -> Value {
    let port = |name: &str, number: u16| json!({ "name": name, "containerPort": number, "protocol": "TCP" });
    let name = format!("shop-{}-6d5f7c9b8-{number:05}", number % 100);
    let id = format!("containerd://{number:064x}");
    let status = |name: &str| json!({ "name": name, "ready": true, "containerID": id, "image": "shop:1" });
    json!({
        "kind": "Pod", "apiVersion": "v1",
        "metadata": {
            "name": name, "namespace": format!("team-{}", number % 20), "uid": format!("{number:032x}"),
            "resourceVersion": version.to_string(), "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": { "app": format!("shop-{}", number % 100), "pod-template-hash": "6d5f7c9b8", "tier": "web" },
            "annotations": { "prometheus.io/scrape": "true", "pyroscope.io/scrape": "false" },
            "ownerReferences": [{ "kind": "ReplicaSet", "name": format!("shop-{}", number % 100), "controller": true,
                "apiVersion": "apps/v1", "uid": "0" }]
        },
        "spec": {
            "nodeName": format!("node-{}", number % 50),
            "containers": [
                { "name": "main", "image": "shop:1", "ports": [port("http", 8080), port("metrics", 9090)] },
                { "name": "proxy", "image": "proxy:1", "ports": [port("admin", 15000)] }
            ]
        },
        "status": {
            "phase": "Running", "podIP": format!("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255),
            "hostIP": "192.0.2.1", "conditions": [{ "type": "Ready", "status": "True" }],
            "containerStatuses": [status("main"), status("proxy")]
        }
    })
}
