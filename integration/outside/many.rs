//! Many clients that are slow or silent.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{House, SMALL, check_small};

/// Maximum number of silent connections. It exceeds the number that a port accepts.
const MOST: u64 = 5_000;
/// Descriptors reserved for other tests of this process.
const FOR_OTHERS: u64 = 500;

/// Returns the number of connections that this process may open. Raises the open file limit of the process if necessary
/// and allowed.
fn affordable() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let wanted = MOST + FOR_OTHERS;
    if limit.current.is_some_and(|current| current < wanted) {
        let raised = Rlimit {
            current: Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted))),
            maximum: limit.maximum,
        };
        let _ = setrlimit(Resource::Nofile, raised);
    }
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    MOST.min(limit.saturating_sub(FOR_OTHERS)) as usize
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_silent_connections_keep_nobody_out_and_take_bounded_memory() {
    let mut house = House::start().await;
    let honest = house.honest();
    let count = affordable();
    let mut silent = Vec::with_capacity(count);
    for number in 0..count {
        // A connection may fail, because the port accepts fewer connections.
        let Ok(mut stream) = TcpStream::connect(&*house.address).await else {
            continue;
        };
        let said: &[u8] = match number % 4 {
            0 => b"",
            1 => b"P",
            2 => b"GET /ready HTTP/1.1\r\nX-Slow: ",
            _ => b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        };
        let _ = stream.write_all(said).await;
        silent.push(stream);
    }
    honest.is_served(3).await;
    house.check();
    println!("{} silent connections", silent.len());
    drop(silent);
    honest.end().await;
    house.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unfinished_headers_of_many_connections_stay_within_a_small_limit() {
    let mut house = House::start_in(tempfile::tempdir().unwrap(), &["--memory-limit", SMALL]).await;
    let honest = house.honest();
    let begin = format!("GET /ready HTTP/1.1\r\nHost: x\r\nX-Slow: {}", "a".repeat(60 << 10));
    let mut slow = Vec::new();
    for _ in 0..affordable().min(2500) {
        let Ok(mut stream) = TcpStream::connect(&*house.address).await else {
            continue;
        };
        let _ = stream.write_all(begin.as_bytes()).await;
        slow.push(stream);
    }
    honest.is_served(3).await;
    check_small(&house);
    house.check();
    drop(slow);
    honest.end().await;
    house.check();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_headers_and_slow_bodies_delay_nobody_and_take_bounded_memory() {
    let mut house = House::start().await;
    let honest = house.honest();
    let mut slow = Vec::new();
    for number in 0..400 {
        let mut stream = house.connect().await;
        let begin = match number % 4 {
            0 => "GET /ready HTTP/1.1\r\nHost: x\r\n".to_owned(),
            // The request announces the length of its body, so the server reserves memory for the body. The honest
            // client is still served, because small requests have a separate share of the memory.
            1 => format!(
                "POST /push.v1.PusherService/Push HTTP/1.1\r\nHost: x\r\nContent-Type: application/proto\r\n\
                 Content-Length: {}\r\n\r\n",
                60 << 20
            ),
            2 => "POST /ingest?name=slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFF\r\n".to_owned(),
            _ => "POST /api/v1/sql HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: 500000\r\n\r\n"
                .to_owned(),
        };
        stream.write_all(begin.as_bytes()).await.unwrap();
        slow.push(stream);
    }
    // Sends a byte now and then.
    for byte in [b"x", b"-", b"a", b":", b"b"] {
        for stream in &mut slow {
            let _ = stream.write_all(byte).await;
        }
        honest.is_served(1).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    house.check();
    drop(slow);
    honest.end().await;
    house.check();
}
