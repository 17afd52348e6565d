//! A server without free file descriptors.
//!
//! Scenario: many clients hold silent connections while the test lowers the limit of the real program to the number of
//! its open files. Guarantee: the server keeps running, responds to every client that sends a request, at worst with
//! status 503, and logs the problem at a limited rate. When the connections are gone, everything works again, and every
//! acknowledged profile is stored once.

use std::process::Command;
use std::time::{Duration, Instant};

use alluvium_wire::call::CallError;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tokio::net::TcpStream;

use crate::disk::{Client, once};
use crate::harness::client;
use crate::program::{Address, PATIENCE, Program};

/// Descriptor limit of the server. Half of it is for connections.
const LIMIT: u64 = 256;
/// Number of silent connections.
const SILENT: usize = 60;

/// Returns the number of descriptors that a process has open.
fn open(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}

fn limit(process: u32, descriptors: u64) {
    let pid = Pid::from_raw(process.cast_signed());
    let limit = Rlimit {
        current: Some(descriptors),
        maximum: Some(LIMIT),
    };
    prlimit(pid, Resource::Nofile, limit).unwrap();
}

async fn connections(address: &str, count: usize) -> Vec<TcpStream> {
    let mut all = Vec::new();
    for _ in 0..count {
        all.push(TcpStream::connect(address).await.unwrap());
    }
    all
}

/// Starts a server with [`LIMIT`] as the soft and the hard limit of descriptors.
fn start(address: &str, data: &str, log: &std::path::Path) -> Program {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -n {LIMIT}; exec \"$@\""), "sh"])
        .arg(env!("CARGO_BIN_EXE_alluvium"))
        .args(["serve", "--listen", address, "--data", data]);
    Program::start(command, log)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_descriptors_a_server_lives_and_afterwards_it_does_everything() {
    let folder = tempfile::tempdir().unwrap();
    let (address, data) = (Address::keep(), folder.path().join("data").display().to_string());
    let log = folder.path().join("log");
    let url = format!("http://{address}");
    let mut server = start(&address, &data, &log);
    server.ready(&client(), &format!("{url}/ready")).await;
    let sender = Client::new(&url);
    let mut kept: Vec<u64> = (1..=5).collect();
    for number in &kept {
        sender.push(*number).await.unwrap();
    }
    assert_eq!(sender.flush().await, 204);

    let started = Instant::now();
    let before = open(server.id());
    let silent = connections(&address, SILENT).await;
    let deadline = Instant::now() + PATIENCE;
    while open(server.id()) < before + SILENT {
        server.check();
        assert!(Instant::now() < deadline, "{} are open", open(server.id()));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    limit(server.id(), open(server.id()) as u64);
    // These connections find no free descriptor.
    let more = connections(&address, 20).await;
    let complaints = || {
        let text = std::fs::read_to_string(&log).unwrap();
        text.matches("cannot accept a connection").count()
    };
    while complaints() == 0 {
        server.check();
        assert!(Instant::now() < deadline, "no message was logged\n{}", server.tail());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Every client that sends a request gets a response, because the server closes silent connections one after the
    // other.
    for number in 6..=10 {
        let caller = Client::new(&url);
        match caller.push(number).await {
            Ok(()) => kept.push(number),
            Err(error) => assert!(matches!(error, CallError::Refused { status: 503, .. }), "{error:?}"),
        }
        let flushed = caller.flush().await;
        assert!(matches!(flushed, 204 | 503), "{flushed}");
    }
    server.check();
    // The server logs at most one message per ten seconds, plus the first. The messages are counted before the time is
    // read, so that a message between the two is not counted.
    let said = complaints();
    let most = 1 + usize::try_from(started.elapsed().as_secs() / 10).unwrap();
    assert!(said <= most, "{said} lines in {:?}", started.elapsed());

    drop((silent, more));
    let mut next = 10;
    let deadline = Instant::now() + PATIENCE;
    loop {
        next += 1;
        if Client::new(&url).push(next).await.is_ok() {
            kept.push(next);
            if sender.flush().await == 204 {
                break;
            }
        }
        assert!(
            Instant::now() < deadline,
            "the server does not recover\n{}",
            server.tail()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(sender.found().await, once(&kept));
    server.kill();
    let mut server = start(&address, &data, &log);
    server.ready(&client(), &format!("{url}/ready")).await;
    assert_eq!(Client::new(&url).found().await, once(&kept));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_leave_descriptors_for_files_and_silent_ones_give_way() {
    let folder = tempfile::tempdir().unwrap();
    let (address, data) = (Address::keep(), folder.path().join("data").display().to_string());
    let log = folder.path().join("log");
    let url = format!("http://{address}");
    let mut server = start(&address, &data, &log);
    server.ready(&client(), &format!("{url}/ready")).await;
    // This exceeds both the server's open file limit and its connection limit.
    let silent = connections(&address, LIMIT as usize + 50).await;
    let sender = Client::new(&url);
    for number in 1..=5 {
        sender.push(number).await.unwrap();
        assert_eq!(sender.flush().await, 204);
    }
    assert_eq!(sender.found().await, once(&[1, 2, 3, 4, 5]));
    let most = LIMIT as usize * 3 / 4;
    assert!(open(server.id()) < most, "{} are open", open(server.id()));
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(!text.contains("cannot accept"), "{}", server.tail());
    drop(silent);
    assert!(server.terminate().success());
}
