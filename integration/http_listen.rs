//! The HTTP port: limits for the resources that slow, silent or many clients hold, and the stop of the server.
//!
//! Raw sockets act as clients. The test sets short timeouts of the server and never sleeps.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium::server::{ProfileStore, ServerOptions};
use alluvium_admin::listen::ListenOptions;
use alluvium_base::BoxFuture;
use alluvium_profile::sink::Receiver;
use alluvium_profile::{Labels, ProfileSink, RawProfile, RefusedProfile, SinkError, TenantId};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::harness::{Nothing, TestServer};

/// A sink that accepts a profile once a permit is available.
struct Gate {
    entered: Semaphore,
    open: Semaphore,
}

impl Gate {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            entered: Semaphore::new(0),
            open: Semaphore::new(0),
        })
    }
}

impl ProfileStore for Gate {
    fn sink(self: Arc<Self>, _tenant: &TenantId) -> Receiver {
        self
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), SinkError>> {
        Box::pin(async { Ok(()) })
    }
}

impl ProfileSink for Gate {
    fn append(&self, _profiles: Vec<RawProfile>) -> BoxFuture<'_, Vec<RefusedProfile>> {
        Box::pin(async {
            self.entered.add_permits(1);
            self.open.acquire().await.unwrap().forget();
            Vec::new()
        })
    }
}

async fn server(gate: &Arc<Gate>, listen: ListenOptions) -> TestServer {
    TestServer::start_with(gate.clone(), Arc::new(Nothing), ServerOptions::default(), listen).await
}

fn profile() -> RawProfile {
    RawProfile {
        labels: Labels::from_pairs([("__name__", "a")]),
        id: "".into(),
        pprof: "bytes".into(),
    }
}

fn push(server: &TestServer) -> tokio::task::JoinHandle<bool> {
    let pusher = server.pusher();
    tokio::spawn(async move { pusher.push(&[profile()]).await.is_ok() })
}

#[tokio::test]
async fn clients_that_do_not_finish_their_headers_are_sent_away() {
    let listen = ListenOptions {
        header_timeout: Duration::from_millis(500),
        ..ListenOptions::default()
    };
    let server = server(&Gate::new(), listen).await;
    for start in ["", "P", "PRI * HTTP/2.0\r\n", "GET /ready HTTP/1.1\r\nHost: x\r\n"] {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(start.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_mins(1), stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "{start:?} is held for ever");
    }
    assert_eq!(server.get("/ready").await.0, 200);
}

#[tokio::test]
async fn more_connections_than_allowed_wait_and_are_served_later() {
    let gate = Gate::new();
    let listen = ListenOptions {
        max_connections: 2,
        header_timeout: Duration::from_secs(5),
        ..ListenOptions::default()
    };
    let server = server(&gate, listen).await;
    let held = [push(&server), push(&server)];
    let _ = gate.entered.acquire_many(2).await.unwrap();
    let url = format!("{}/ready", server.url);
    let client = crate::harness::client();
    let third = tokio::spawn(async move { client.get(url).send().await.unwrap().status() });
    assert!(!third.is_finished());
    gate.open.add_permits(2);
    for push in held {
        assert!(push.await.unwrap());
    }
    assert_eq!(third.await.unwrap().as_u16(), 200);
}

#[tokio::test]
async fn connections_that_say_nothing_give_way_to_new_ones() {
    let listen = ListenOptions {
        max_connections: 3,
        header_timeout: Duration::from_hours(1),
        ..ListenOptions::default()
    };
    let server = server(&Gate::new(), listen).await;
    let mut silent = Vec::new();
    for said in [
        "",
        "GET /ready HTTP/1.1\r\nHost: x\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        silent.push(stream);
    }
    // Each client has its own connection, which stays open.
    let clients: Vec<_> = (0..4).map(|_| crate::harness::client()).collect();
    for client in &clients {
        let answer = client.get(format!("{}/ready", server.url)).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }
    for mut stream in silent {
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_mins(1), stream.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "it was not closed");
    }
}

#[tokio::test]
async fn requests_in_work_are_finished_when_the_server_stops() {
    let gate = Gate::new();
    let server = server(&gate, ListenOptions::default()).await;
    let work = push(&server);
    gate.entered.acquire().await.unwrap().forget();
    let idle = TcpStream::connect(server.address()).await.unwrap();
    server.begin_stop();
    let deadline = Instant::now() + Duration::from_mins(1);
    while TcpStream::connect(server.address()).await.is_ok() {
        assert!(Instant::now() < deadline, "the port is still open");
        tokio::task::yield_now().await;
    }
    gate.open.add_permits(1);
    assert!(work.await.unwrap());
    assert_eq!(server.stop().await, 0);
    drop(idle);
}

#[tokio::test]
async fn what_is_not_finished_by_the_end_of_the_grace_period_is_cut_off() {
    let gate = Gate::new();
    let listen = ListenOptions {
        grace: Duration::from_millis(50),
        ..ListenOptions::default()
    };
    let server = server(&gate, listen).await;
    let work = push(&server);
    gate.entered.acquire().await.unwrap().forget();
    assert_eq!(server.stop().await, 1);
    assert!(!work.await.unwrap());
}
