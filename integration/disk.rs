//! The whole server on a disk that fails, and two servers on the same tables.
//!
//! Scenarios: a server, called over HTTP, whose disk operations fail with different errors; a real system limit on the
//! size of files; two processes with separate logs and the same local tables. Guarantee: the server refuses pushes with
//! 503 and `Retry-After`, still answers queries, and recovers by itself. Every acknowledged profile is stored once.

use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use alluvium::server::ServerOptions;
use alluvium::store::common::fault::{FaultHook, FaultPoint, Faults};
use alluvium::store::common::schema::Table;
use alluvium::store::{Store, StoreConfig};
use alluvium_admin::listen::ListenOptions;
use alluvium_telemetry::metrics::Scope;
use alluvium_wire::call::{CallError, Caller};
use alluvium_wire::push::PushClient;

use crate::harness::{TestServer, client};
use crate::kill::numbered_at;
use crate::program::{Address, Program, run, sql};

const PATIENCE: Duration = Duration::from_mins(1);

type Places = fn(FaultPoint) -> bool;

/// Makes the operations at some places of the store fail with the error `kind`, while `broken` is true.
struct Disk {
    broken: AtomicBool,
    places: Places,
    kind: io::ErrorKind,
}

impl FaultHook for Disk {
    fn check(&self, place: FaultPoint) -> io::Result<()> {
        if self.broken.load(Ordering::SeqCst) && (self.places)(place) {
            Err(io::Error::from(self.kind))
        } else {
            Ok(())
        }
    }
}

/// A client of a single server.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    url: String,
}

impl Client {
    pub(crate) fn new(url: &str) -> Self {
        Self {
            http: client(),
            url: url.to_owned(),
        }
    }

    /// Pushes the profile with this number.
    pub(crate) async fn push(&self, number: u64) -> Result<(), CallError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let caller = Caller::new(self.http.clone(), self.url.parse().unwrap()).with_timeout(Duration::from_secs(30));
        PushClient::new(caller).push(&[numbered_at(number, "shop", now)]).await
    }

    pub(crate) async fn flush(&self) -> u16 {
        let answer = self.http.post(format!("{}/flush", self.url)).send().await.unwrap();
        answer.status().as_u16()
    }

    /// Returns the numbers of the stored profiles, each with its count.
    pub(crate) async fn found(&self) -> Vec<(u64, u64)> {
        let query = "SELECT total, count(*) FROM profiles GROUP BY 1 ORDER BY 1";
        let rows = sql(&self.http, &self.url, query).await;
        let parse = |text: &String| text.parse().unwrap();
        rows.iter().map(|row| (parse(&row[0]), parse(&row[1]))).collect()
    }
}

/// Returns each number with the count 1.
pub(crate) fn once(numbers: &[u64]) -> Vec<(u64, u64)> {
    numbers.iter().map(|number| (*number, 1)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_fails_refuses_pushes_and_answers_questions_and_recovers_by_itself() {
    let cases: [(&str, Places, io::ErrorKind); 4] = [
        (
            "no space for the log",
            |place| matches!(place, FaultPoint::LogWrite),
            io::ErrorKind::StorageFull,
        ),
        (
            "the log cannot be synced",
            |place| matches!(place, FaultPoint::LogSync),
            io::ErrorKind::Other,
        ),
        (
            "no space for files",
            |place| matches!(place, FaultPoint::FileWrite(_) | FaultPoint::EntryWrite(_)),
            io::ErrorKind::StorageFull,
        ),
        ("read-only", |_| true, io::ErrorKind::ReadOnlyFilesystem),
    ];
    for (name, places, kind) in cases {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(Disk {
            broken: AtomicBool::new(false),
            places,
            kind,
        });
        let config = StoreConfig {
            // With this limit, a few profiles fill the head when files cannot be written.
            head_limit_bytes: 60_000,
            faults: Faults::new(disk.clone()),
            ..StoreConfig::new(folder.path())
        };
        let opened = config.clone();
        let store = tokio::task::spawn_blocking(move || Store::open(opened, &Scope::new()).unwrap())
            .await
            .unwrap();
        let options = ServerOptions::default();
        let server = TestServer::start_with(store.clone(), store.clone(), options, ListenOptions::default()).await;
        let client = Client::new(&server.url);
        let mut kept = Vec::new();
        for number in 1..=3 {
            client.push(number).await.unwrap();
            kept.push(number);
        }
        disk.broken.store(true, Ordering::SeqCst);
        // If only the files of the tables cannot be written, the log accepts profiles until memory is full.
        let mut number = 3;
        let refused = loop {
            number += 1;
            match client.push(number).await {
                Ok(()) => kept.push(number),
                Err(error) => break error,
            }
            assert!(number < 5000, "{name}: nothing is refused");
        };
        let text = format!("{refused:?}");
        assert!(
            text.contains("503") || text.to_lowercase().contains("unavailable"),
            "{name}: {text}"
        );
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let raw = numbered_at(number + 1, "shop", now).pprof;
        let ingest = format!(
            "/ingest?name=shop&format=pprof&from={}&until={}",
            now.as_secs(),
            now.as_secs() + 1
        );
        let answer = server.post(&ingest).body(raw).send().await.unwrap();
        assert_eq!(answer.status(), 503, "{name}");
        assert!(answer.headers().contains_key("retry-after"), "{name}");
        // If only the log cannot be written, the flush succeeds and may free space for the log.
        let expected = if places(FaultPoint::FileWrite(Table::Samples)) {
            503
        } else {
            204
        };
        assert_eq!(client.flush().await, expected, "{name}");
        // Exactly the acknowledged profiles can be read.
        assert_eq!(client.found().await, once(&kept), "{name}");

        disk.broken.store(false, Ordering::SeqCst);
        number += 2;
        let deadline = Instant::now() + PATIENCE;
        while client.push(number).await.is_err() {
            assert!(Instant::now() < deadline, "{name}: the server does not recover");
            number += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        kept.push(number);
        assert_eq!(server.get("/ready").await.0, 200, "{name}");
        assert_eq!(client.flush().await, 204, "{name}");
        assert_eq!(client.found().await, once(&kept), "{name}");
        server.stop().await;
        drop(store);
        let again =
            tokio::task::spawn_blocking(move || Store::open(StoreConfig::new(&config.dir), &Scope::new()).unwrap())
                .await
                .unwrap();
        let options = ServerOptions::default();
        let server = TestServer::start_with(again.clone(), again, options, ListenOptions::default()).await;
        assert_eq!(
            Client::new(&server.url).found().await,
            once(&kept),
            "{name}: after a restart"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_the_system_cuts_short_lose_and_double_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").to_string_lossy().into_owned();
    let address = Address::keep();
    let url = format!("http://{address}");
    let http = client();
    // No file may grow beyond 32 KiB. A write that reaches the limit is cut short, and the next one fails. The kernel
    // also sends a signal, which the process ignores.
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "trap '' 25; ulimit -f 64; exec \"$@\"",
            "sh",
            env!("CARGO_BIN_EXE_alluvium"),
        ])
        .args(["serve", "--listen", &address, "--data", &data, "--log.level", "error"]);
    let log = folder.path().join("log");
    let mut server = Program::start(command, &log);
    server.ready(&http, &format!("{url}/ready")).await;
    let client = Client::new(&url);
    let (mut kept, mut refused) = (Vec::new(), 0);
    let deadline = Instant::now() + PATIENCE;
    for number in 1..=400u64 {
        if let Ok(()) = client.push(number).await {
            kept.push(number);
        } else {
            refused += 1;
            // The server recovers by itself.
            loop {
                let ready = http.get(format!("{url}/ready")).send().await.unwrap();
                if ready.status().is_success() {
                    break;
                }
                assert!(Instant::now() < deadline, "the server does not recover");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    assert!(refused > 0, "the log never reached its limit");
    assert!(kept.len() > 300, "only {} of 400 pushes were accepted", kept.len());
    assert_eq!(client.found().await, once(&kept));
    // After a kill and a start without the limit, the result is the same.
    server.kill();
    let arguments = ["serve", "--listen", &address, "--data", &data];
    let mut server = Program::alluvium(&arguments, &log);
    server.ready(&http, &format!("{url}/ready")).await;
    let found = client.found().await;
    assert!(found.iter().all(|(_, count)| *count == 1));
    let there: Vec<u64> = found.iter().map(|(number, _)| *number).collect();
    assert!(kept.iter().all(|number| there.contains(number)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_starts_on_a_full_disk_answers_and_takes_pushes_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").to_string_lossy().into_owned();
    let address = Address::keep();
    let url = format!("http://{address}");
    let (http, client, log) = (client(), Client::new(&url), folder.path().join("log"));
    let mut server = Program::alluvium(&["serve", "--listen", &address, "--data", &data], &log);
    server.ready(&http, &format!("{url}/ready")).await;
    client.push(1).await.unwrap();
    assert_eq!(client.flush().await, 204);
    client.push(2).await.unwrap();
    server.kill();
    // No file may grow by a byte, as on a full disk. The program's log is not on that disk.
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' 25; ulimit -S -f 0; exec \"$@\" >/dev/null 2>&1", "sh"])
        .args([
            env!("CARGO_BIN_EXE_alluvium"),
            "serve",
            "--listen",
            &address,
            "--data",
            &data,
        ]);
    let mut server = Program::start(command, &log);
    let deadline = Instant::now() + PATIENCE;
    let not_ready = loop {
        server.check();
        if let Ok(answer) = http.get(format!("{url}/ready")).send().await {
            let (status, text) = (answer.status(), answer.text().await.unwrap());
            assert_eq!(status, 503, "{text}");
            if text.contains("read-only") {
                break text;
            }
        }
        assert!(Instant::now() < deadline, "the server does not start");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(not_ready.contains("write-ahead log"), "{not_ready}");
    assert_eq!(client.found().await, once(&[1, 2]));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let (from, until) = (now.as_secs(), now.as_secs() + 1);
    let ingest = format!("{url}/ingest?name=shop&format=pprof&from={from}&until={until}");
    let body = numbered_at(3, "shop", now).pprof;
    let answer = http.post(ingest).body(body).send().await.unwrap();
    assert_eq!(answer.status(), 503);
    assert!(answer.headers().contains_key("retry-after"));
    let (pid, room) = (server.id().to_string(), "--fsize=unlimited:");
    assert!(
        Command::new("prlimit")
            .args(["--pid", &pid, room])
            .status()
            .unwrap()
            .success()
    );
    server.ready(&http, &format!("{url}/ready")).await;
    client.push(4).await.unwrap();
    assert_eq!(client.flush().await, 204);
    assert_eq!(client.found().await, once(&[1, 2, 4]));
    assert!(server.terminate().success());
    let (sound, out, errors) = run(&["store", "check", &data]);
    assert!(sound, "{}\n{errors}", String::from_utf8_lossy(&out));
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_that_maintain_the_same_tables_lose_and_double_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let yaml = folder.path().join("server.yaml");
    let text = "maintenance:\n  interval: 20ms\n  vacuum_interval: 50ms\n  cpu_share: 1\n  deletion_delay: 30s\n";
    std::fs::write(&yaml, text).unwrap();
    let yaml = yaml.to_string_lossy().into_owned();
    let data: Vec<_> = ["one", "two"].iter().map(|name| folder.path().join(name)).collect();
    for dir in &data {
        std::fs::create_dir(dir).unwrap();
    }
    // The servers have separate logs and locks but common tables.
    let tables = folder.path().join("tables");
    std::fs::create_dir(&tables).unwrap();
    for dir in &data {
        std::os::unix::fs::symlink(&tables, dir.join("tables")).unwrap();
    }
    let http = client();
    let mut servers = Vec::new();
    for dir in &data {
        let address = Address::keep();
        let arguments = [
            "serve",
            "--listen",
            &address,
            "--data",
            &dir.to_string_lossy(),
            "--config",
            &yaml,
        ];
        let mut server = Program::alluvium(&arguments, &folder.path().join("log"));
        server.ready(&http, &format!("http://{address}/ready")).await;
        servers.push((server, format!("http://{address}"), address));
    }
    let pushers = servers.iter().enumerate().map(|(index, (_, url, _))| {
        let client = Client::new(url);
        tokio::spawn(async move {
            for number in 0..60u64 {
                client.push(1 + number * 2 + index as u64).await.unwrap();
                if number % 3 == 2 {
                    // The flush fails if the other server is faster in every attempt to commit. It is retried later.
                    client.flush().await;
                }
            }
        })
    });
    for pusher in pushers.collect::<Vec<_>>() {
        pusher.await.unwrap();
    }
    for (server, ..) in &mut servers {
        assert!(server.terminate().success(), "{}", server.tail());
    }
    let (_, url, address) = &servers[0];
    // Profiles that a server has not flushed to the tables are in its own log.
    for dir in &data {
        let arguments = [
            "serve",
            "--listen",
            address,
            "--data",
            &dir.to_string_lossy(),
            "--config",
            &yaml,
        ];
        let mut server = Program::alluvium(&arguments, &folder.path().join("log"));
        server.ready(&http, &format!("{url}/ready")).await;
        assert_eq!(Client::new(url).flush().await, 204);
        assert!(server.terminate().success(), "{}", server.tail());
    }
    let mut server = Program::alluvium(
        &["serve", "--listen", address, "--data", &data[0].to_string_lossy()],
        &folder.path().join("log"),
    );
    server.ready(&http, &format!("{url}/ready")).await;
    assert_eq!(Client::new(url).found().await, once(&(1..=120).collect::<Vec<_>>()));
    let samples = sql(&http, url, "SELECT count(*), sum(value) FROM samples").await;
    assert_eq!(samples, [[120.to_string(), (120 * 121 / 2).to_string()]]);
    drop(server);
    let (sound, out, errors) = run(&["store", "check", &data[0].to_string_lossy()]);
    assert!(sound, "{}\n{errors}", String::from_utf8_lossy(&out));
    // At least one of the servers merged files.
    let merged = std::fs::read_dir(tables.join("profiles/_delta_log")).unwrap();
    let replaced = merged.filter(|entry| {
        let path = entry.as_ref().unwrap().path();
        std::fs::read_to_string(path).is_ok_and(|text| text.contains("\"remove\""))
    });
    assert!(replaced.count() > 0);
}
