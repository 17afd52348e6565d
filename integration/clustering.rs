//! Collectors that share targets, as processes. Exactly one collector scrapes each target while collectors join, leave,
//! are killed, sleep and are cut off. A target moves within the documented time.
//!
//! In: five collectors, 500 targets in this process, and a server in this process that accepts profiles. Each profile
//! has a unique number, so the server knows which collector scraped which target, and when. Datagrams between
//! collectors pass through this process, which can cut them off. Out: a line for each event.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use alluvium_wire::proto::push::PushRequest;
use axum::Router;
use axum::extract::{Path as Parameter, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use bytes::Bytes;
use prost::Message as _;
use tokio::net::{TcpListener, UdpSocket};

use crate::program::{Address, Program, alone, client};

const COLLECTORS: usize = 5;
const TARGETS: usize = 500;
const INTERVAL: Duration = Duration::from_secs(2);
/// Time within which a target moves, as documented.
const PROMISE: Duration = Duration::from_secs(15);
/// Maximum time until the profile of a scrape reaches the server, on a machine that is busy with other tests.
const ON_THE_WAY: Duration = Duration::from_millis(1500);
/// The first bytes of a profile without samples, up to the tag of its time field. The time makes the profile unique.
const PROFILE: &[u8] = &[0x0a, 4, 8, 1, 16, 2, 0x48];

/// One scrape of a target.
#[derive(Clone, Copy)]
struct Scrape {
    at: Instant,
    target: usize,
    /// Collector that scraped the target. `None` until the profile arrives at the server.
    by: Option<usize>,
}

/// All scrapes in order. The number of a profile is its index here.
type Scrapes = Arc<Mutex<Vec<Scrape>>>;

/// Responds to a scrape with a profile that contains its number.
async fn target(State(scrapes): State<Scrapes>, Parameter(target): Parameter<usize>) -> impl IntoResponse {
    let mut scrapes = scrapes.lock().unwrap();
    let number = scrapes.len() as u64;
    scrapes.push(Scrape {
        at: Instant::now(),
        target,
        by: None,
    });
    let mut profile = PROFILE.to_vec();
    prost::encoding::encode_varint(number, &mut profile);
    profile
}

/// Accepts profiles and records their senders.
async fn push(State(scrapes): State<Scrapes>, body: Bytes) -> impl IntoResponse {
    let request = PushRequest::decode(body).unwrap();
    let mut scrapes = scrapes.lock().unwrap();
    for series in request.series {
        let collector = series.labels.iter().find(|label| label.name == "collector").unwrap();
        for sample in series.samples {
            let mut number = sample.raw_profile.strip_prefix(PROFILE).unwrap();
            let number = prost::encoding::decode_varint(&mut number).unwrap();
            scrapes[number as usize].by = Some(collector.value.parse().unwrap());
        }
    }
    ([(CONTENT_TYPE, "application/proto")], "")
}

/// Forwards datagrams to the collectors, except across a cut.
#[derive(Clone, Default)]
struct Wires {
    /// Collectors on the other side of the cut.
    beyond: Arc<Mutex<Vec<usize>>>,
}

impl Wires {
    /// Starts a proxy for the collector `to` and returns the proxy's address. `addresses` contains the address of every
    /// collector.
    async fn stand_for(&self, to: usize, addresses: Vec<SocketAddr>) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let own = socket.local_addr().unwrap();
        let beyond = self.beyond.clone();
        tokio::spawn(async move {
            let mut buffer = [0; 2048];
            loop {
                // The system reports an error if a collector does not run.
                let Ok((length, from)) = socket.recv_from(&mut buffer).await else {
                    continue;
                };
                let from = addresses.iter().position(|address| *address == from);
                let is_cut = {
                    let beyond = beyond.lock().unwrap();
                    from.is_some_and(|from| beyond.contains(&from) != beyond.contains(&to))
                };
                if !is_cut {
                    let _ = socket.send_to(&buffer[..length], addresses[to]).await;
                }
            }
        });
        own
    }
}

struct Cluster {
    folder: tempfile::TempDir,
    addresses: Vec<Address>,
    wires: Wires,
    reached_at: Vec<SocketAddr>,
    running: BTreeMap<usize, Program>,
    scrapes: Scrapes,
    report: String,
}

impl Cluster {
    async fn new() -> Self {
        let scrapes = Scrapes::default();
        let routes = Router::new()
            .route("/{target}", get(target))
            .route("/push.v1.PusherService/Push", post(push))
            .with_state(scrapes.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let addresses: Vec<Address> = (0..COLLECTORS).map(|_| Address::keep()).collect();
        let sockets: Vec<SocketAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let wires = Wires::default();
        let mut reached_at = Vec::new();
        for number in 0..COLLECTORS {
            reached_at.push(wires.stand_for(number, sockets.clone()).await);
        }
        let folder = tempfile::tempdir().unwrap();
        for number in 0..COLLECTORS {
            let text = configuration(server, number);
            std::fs::write(folder.path().join(format!("{number}.alloy")), text).unwrap();
        }
        std::fs::write(folder.path().join("secret"), "known to all five of them\n").unwrap();
        Self {
            folder,
            addresses,
            wires,
            reached_at,
            running: BTreeMap::new(),
            scrapes,
            report: String::new(),
        }
    }

    fn start(&mut self, number: usize) {
        let path = |name: String| self.folder.path().join(name).display().to_string();
        let join: Vec<String> = self.reached_at.iter().map(ToString::to_string).collect();
        let arguments = [
            "run".to_owned(),
            path(format!("{number}.alloy")),
            format!("--server.http.listen-addr={}", self.addresses[number]),
            format!("--storage.path={}", path(format!("data-{number}"))),
            "--cluster.enabled".to_owned(),
            "--cluster.name=test".to_owned(),
            format!("--cluster.node-name=collector-{number}"),
            format!("--cluster.advertise-address={}", self.reached_at[number]),
            format!("--cluster.join-addresses={}", join.join(",")),
            format!("--cluster.secret-file={}", path("secret".to_owned())),
        ];
        let log = self.folder.path().join(format!("{number}.log"));
        self.running.insert(number, Program::alluvium(&arguments, &log));
    }

    /// Suspends or resumes a process.
    fn signal(&self, number: usize, signal: &str) {
        let id = self.running[&number].id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Returns the scrapes of these collectors since `begin`, by target and in order.
    fn by_target(&self, begin: Instant, by: &[usize]) -> Vec<Vec<Scrape>> {
        let mut all = vec![Vec::new(); TARGETS];
        for scrape in self.scrapes.lock().unwrap().iter() {
            if scrape.at >= begin && scrape.by.is_some_and(|number| by.contains(&number)) {
                all[scrape.target].push(*scrape);
            }
        }
        all
    }

    /// Returns true if, during the last two intervals, each target was scraped by a single collector of `side`, about
    /// once per interval. Each collector of `side` must have targets.
    fn is_settled(&self, side: &[usize]) -> bool {
        let end = before(Instant::now(), ON_THE_WAY);
        let mut owners = BTreeSet::new();
        let mut scrapes = self.by_target(before(end, 2 * INTERVAL), side);
        let is_of_one = scrapes.iter_mut().all(|scrapes| {
            scrapes.retain(|scrape| scrape.at < end);
            owners.extend(scrapes.first().and_then(|scrape| scrape.by));
            (1..=3).contains(&scrapes.len()) && scrapes.iter().all(|scrape| scrape.by == scrapes[0].by)
        });
        is_of_one && owners.len() == side.len()
    }

    /// Waits until each target has a single collector on each side of the cut; without a cut, there is one side. Adds
    /// to the report the time from `begin` until the last target had moved, and checks this time against [`PROMISE`].
    async fn settle(&mut self, begin: Instant, what: &str, sides: &[&[usize]]) {
        while !sides.iter().all(|side| self.is_settled(side)) {
            for program in self.running.values_mut() {
                program.check();
            }
            if begin.elapsed() > 3 * PROMISE {
                self.fail(what, sides, begin);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        for side in sides {
            let (moved, took, pause, twice) = self.measure(begin, side);
            writeln!(
                self.report,
                "| {what} | {side:?} | {moved} | {:.1} s | {:.1} s | {twice} |",
                took.as_secs_f64(),
                pause.as_secs_f64()
            )
            .unwrap();
            assert!(
                took <= PROMISE,
                "{what}: the last target moved only after {took:?}\n{}",
                self.report
            );
            assert!(
                pause <= PROMISE + INTERVAL,
                "{what}: a target was not scraped for {pause:?}\n{}",
                self.report
            );
        }
    }

    /// Measures one side since `begin`. Returns the number of moved targets, the time until the last target had moved,
    /// the longest pause between scrapes of a target, and the number of scrapes less than half an interval after the
    /// previous one. Scrapes before `begin` count for every side.
    fn measure(&self, begin: Instant, side: &[usize]) -> (usize, Duration, Duration, usize) {
        let (mut moved, mut took, mut pause, mut twice) = (0, Duration::ZERO, Duration::ZERO, 0);
        let everyone: Vec<usize> = (0..COLLECTORS).collect();
        for mut scrapes in self.by_target(before(begin, 3 * INTERVAL), &everyone) {
            scrapes.retain(|scrape| scrape.at < begin || scrape.by.is_some_and(|by| side.contains(&by)));
            let last = scrapes.last().unwrap();
            let since = scrapes
                .iter()
                .rposition(|scrape| scrape.by != last.by)
                .map_or(0, |at| at + 1);
            if scrapes[since].at > begin {
                moved += 1;
                took = took.max(scrapes[since].at - begin);
            }
            for pair in scrapes.windows(2) {
                let between = pair[1].at - pair[0].at;
                if pair[1].at > begin {
                    pause = pause.max(between);
                    twice += usize::from(between < INTERVAL / 2);
                }
            }
        }
        (moved, took, pause, twice)
    }

    fn fail(&self, what: &str, sides: &[&[usize]], begin: Instant) -> ! {
        let mut text = format!("{what}: not settled after {:?}\n{}", begin.elapsed(), self.report);
        for side in sides {
            let mut counts: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
            for scrapes in self.by_target(before(Instant::now(), ON_THE_WAY + 2 * INTERVAL), side) {
                let by = scrapes.iter().filter_map(|scrape| scrape.by).collect();
                *counts.entry(by).or_default() += 1;
            }
            writeln!(
                text,
                "{side:?}: number of targets for each sequence of collectors in the last scrapes: {counts:?}"
            )
            .unwrap();
        }
        for (number, program) in &self.running {
            writeln!(text, "collector {number}:\n{}", program.tail()).unwrap();
        }
        panic!("{text}");
    }

    async fn get(&self, number: usize, path: &str) -> String {
        let answer = client()
            .get(format!("http://{}{path}", self.addresses[number]))
            .send()
            .await;
        answer.unwrap().text().await.unwrap()
    }
}

fn before(at: Instant, time: Duration) -> Instant {
    at.checked_sub(time).unwrap()
}

fn configuration(server: SocketAddr, number: usize) -> String {
    let target = |target| format!("\t\t{{\"__address__\" = \"{server}\", \"__profile_path__\" = \"/{target}\"}},\n");
    let targets: String = (0..TARGETS).map(target).collect();
    let off = ["block", "memory", "mutex", "process_cpu"];
    let off: String = off
        .iter()
        .map(|kind| format!("\t\tprofile.{kind} {{\n\t\t\tenabled = false\n\t\t}}\n"))
        .collect();
    format!(
        "pyroscope.scrape \"all\" {{\n\ttargets = [\n{targets}\t]\n\tforward_to = [pyroscope.write.server.receiver]\n\
         \tscrape_interval = \"{}s\"\n\tclustering {{\n\t\tenabled = true\n\t}}\n\tprofiling_config {{\n{off}\t}}\n}}\n\
         pyroscope.write \"server\" {{\n\tendpoint {{\n\t\turl = \"http://{server}\"\n\t}}\n\texternal_labels = {{\
         collector = \"{number}\"}}\n}}\n",
        INTERVAL.as_secs()
    )
}

/// Returns true if the UDP ports are free. The cluster reserves only the TCP ports with the same numbers, so another
/// program may use the UDP ports.
fn has_free_ports(cluster: &Cluster) -> bool {
    let free = |address: &Address| std::net::UdpSocket::bind(&**address).is_ok();
    cluster.addresses.iter().all(free)
}

async fn story() {
    let mut cluster = Cluster::new().await;
    while !has_free_ports(&cluster) {
        cluster = Cluster::new().await;
    }
    let first = |count: usize| -> Vec<usize> { (0..count).collect() };
    let mut begin = Instant::now();
    for number in 0..3 {
        cluster.start(number);
    }
    cluster.settle(begin, "three start", &[&first(3)]).await;
    for number in 3..COLLECTORS {
        begin = Instant::now();
        cluster.start(number);
        cluster.settle(begin, "one joins", &[&first(number + 1)]).await;
    }
    let five = first(COLLECTORS);
    let peers: serde_json::Value = serde_json::from_str(&cluster.get(1, "/api/v0/web/peers").await).unwrap();
    let peers = peers.as_array().unwrap();
    assert_eq!(peers.len(), COLLECTORS);
    for peer in peers {
        assert_eq!(peer["isSelf"], peer["name"] == "collector-1");
        assert_eq!(peer["state"], "participant");
    }
    let metrics = cluster.get(0, "/metrics").await;
    assert!(
        metrics.contains("cluster_node_peers{state=\"participant\"} 5\n"),
        "{metrics}"
    );

    begin = Instant::now();
    assert!(cluster.running.remove(&4).unwrap().terminate().success());
    cluster.settle(begin, "one leaves", &[&first(4)]).await;
    begin = Instant::now();
    cluster.start(4);
    cluster.settle(begin, "it comes back", &[&five]).await;

    // Two collectors are killed at once, so they cannot announce that they leave.
    begin = Instant::now();
    for number in [0, 3] {
        cluster.running.get_mut(&number).unwrap().kill();
        cluster.running.remove(&number);
    }
    cluster.settle(begin, "two are killed", &[&[1, 2, 4]]).await;
    begin = Instant::now();
    for number in [0, 3] {
        cluster.start(number);
    }
    cluster.settle(begin, "both come back", &[&five]).await;

    begin = Instant::now();
    cluster.signal(2, "-STOP");
    cluster.settle(begin, "one sleeps", &[&[0, 1, 3, 4]]).await;
    begin = Instant::now();
    cluster.signal(2, "-CONT");
    cluster.settle(begin, "it wakes up", &[&five]).await;

    begin = Instant::now();
    *cluster.wires.beyond.lock().unwrap() = vec![0, 1];
    cluster.settle(begin, "two are cut off", &[&[0, 1], &[2, 3, 4]]).await;
    begin = Instant::now();
    cluster.wires.beyond.lock().unwrap().clear();
    cluster.settle(begin, "the cut heals", &[&five]).await;

    println!("| event | collectors | targets that moved | until all had moved | longest pause | early scrapes |");
    println!("| --- | --- | --- | --- | --- | --- |\n{}", cluster.report);
}

#[test]
fn each_target_is_scraped_by_one_collector_whoever_comes_or_goes() {
    let _alone = alone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(story());
}
