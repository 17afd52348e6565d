//! Members with real sockets in one process: they find each other, and learn when one leaves.

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::{Agent, ClusterError, Options};
use crate::view::{Cluster, Part};
use alluvium_base::Shutdown;
use alluvium_telemetry::metrics::Scope;

const PATIENCE: Duration = Duration::from_mins(1);

struct Running {
    cluster: Cluster,
    address: SocketAddr,
    scope: Scope,
    shutdown: Shutdown,
    task: JoinHandle<()>,
}

fn options(name: &str, join: &str) -> Options {
    Options {
        name: name.to_owned(),
        join: join.to_owned(),
        rejoin_interval: Duration::from_secs(1),
        ..Options::default()
    }
}

async fn start(options: Options) -> Running {
    let scope = Scope::new();
    let agent = Agent::bind(options, ([127, 0, 0, 1], 0).into(), &scope).await.unwrap();
    let (cluster, address) = (agent.cluster(), agent.membership.own().address);
    let shutdown = Shutdown::new();
    let task = tokio::spawn(agent.run(shutdown.clone()));
    Running {
        cluster,
        address,
        scope,
        shutdown,
        task,
    }
}

impl Running {
    fn size(&self) -> usize {
        self.cluster.view().unwrap().members.len()
    }

    fn part(&self) -> Part {
        self.cluster.view().unwrap().part
    }
}

async fn wait_until(subject: &str, done: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain: {subject}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn members_find_each_other_and_one_that_stops_says_so() {
    let first = start(options("a", "")).await;
    wait_until("the first is alone", || first.part() == Part::Participant).await;
    let join = first.address.to_string();
    let (second, third) = (start(options("b", &join)).await, start(options("c", &join)).await);
    let all = [&first, &second, &third];
    wait_until("all know all", || {
        all.iter().all(|one| one.size() == 3 && one.part() == Part::Participant)
    })
    .await;
    let metrics = first.scope.encode();
    for line in [
        "cluster_node_info{state=\"participant\"} 1",
        "cluster_node_peers{state=\"participant\"} 3",
        "cluster_ready_for_traffic 1",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }

    let mut changes = first.cluster.changes();
    third.shutdown.cancel();
    third.task.await.unwrap();
    assert_eq!(third.cluster.view().unwrap().part, Part::Terminating);
    tokio::time::timeout(PATIENCE, changes.next()).await.unwrap();
    wait_until("the others are told", || first.size() == 2 && second.size() == 2).await;
}

#[tokio::test]
async fn who_has_another_secret_or_cluster_stays_outside_and_is_counted() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"only for those who may").unwrap();
    let secret = Some(file.path().to_owned());
    let first = start(Options {
        secret: secret.clone(),
        ..options("a", "")
    })
    .await;
    let join = first.address.to_string();
    let member = start(Options {
        secret: secret.clone(),
        ..options("b", &join)
    })
    .await;
    let stranger = start(options("c", &join)).await;
    let other = start(Options {
        secret,
        cluster: "other".to_owned(),
        ..options("d", &join)
    })
    .await;
    wait_until("the member is in", || first.size() == 2 && member.size() == 2).await;
    let refused = |reason: &str| {
        let metrics = first.scope.encode();
        let name = format!("cluster_transport_rx_packets_failed_total{{reason=\"{reason}\"}} ");
        metrics
            .lines()
            .any(|line| line.strip_prefix(&name).is_some_and(|count| count != "0"))
    };
    wait_until("both are counted", || refused("secret") && refused("cluster")).await;
    assert_eq!((first.size(), stranger.size(), other.size()), (2, 1, 1));
}

#[tokio::test]
async fn no_share_is_taken_before_there_are_members_enough() {
    let named_options = |name, join: &str| Options {
        wait_for_size: 2,
        ..options(name, join)
    };
    let first = start(named_options("a", "")).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(first.part(), Part::Viewer);
    let second = start(named_options("b", &first.address.to_string())).await;
    wait_until("there are two", || {
        first.part() == Part::Participant && second.part() == Part::Participant
    })
    .await;
    second.shutdown.cancel();
    wait_until("there is one", || first.part() == Part::Viewer).await;
}

#[tokio::test]
async fn what_cannot_be_used_is_said_by_its_flag() {
    let scope = Scope::new();
    let long_name = "x".repeat(200);
    for (options, flag) in [
        (options("", ""), "--cluster.node-name: "),
        (options(&long_name, ""), "--cluster.node-name: "),
        (options("a", "http://b"), "--cluster.join-addresses: "),
        (
            Options {
                advertise: "0.0.0.0".to_owned(),
                ..options("a", "")
            },
            "--cluster.advertise-address: ",
        ),
        (
            Options {
                secret: Some("/no/such/file".into()),
                ..options("a", "")
            },
            "--cluster.secret-file: ",
        ),
    ] {
        let error = Agent::bind(options, ([127, 0, 0, 1], 0).into(), &scope)
            .await
            .err()
            .unwrap();
        assert!(error.to_string().starts_with(flag), "{error}");
    }
    let occupant = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let error = Agent::bind(options("a", ""), occupant.local_addr().unwrap(), &scope).await;
    assert!(matches!(error.err(), Some(ClusterError::Listen(..))));
}
