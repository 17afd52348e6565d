//! Tables in a bucket on a real S3 server. The tests kill Alluvium's servers and the S3 server. Neither one server nor
//! three servers on one bucket may lose or duplicate acknowledged profiles.
//!
//! Scenarios: a server and its bucket killed in turn under load; a bucket that is unavailable while profiles arrive;
//! three servers on one bucket, one of them killed; a store that reaches its memory limit while the bucket is
//! unavailable. The S3 server is SeaweedFS, which supports `If-None-Match`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use alluvium::store::tables::bucket::options::S3Options;
use alluvium::store::tables::bucket::{BucketOptions, Provider, Secret};
use alluvium::store::tables::snapshot::SnapshotSource;
use alluvium::store::{Store, StoreConfig};
use alluvium_base::Shutdown;
use alluvium_profile::SinkErrorKind;
use alluvium_telemetry::metrics::Scope;
use alluvium_wire::call::Caller;
use alluvium_wire::push::PushClient;

use crate::harness::{client, tenant};
use crate::kill::{check, numbered, push_until_gone};
use crate::program::{Address, PATIENCE, Program, other, run, sql};
use crate::seaweed::{ACCESS_KEY, BUCKET, SECRET_KEY, Seaweed};

/// A server that runs in its own folder.
pub(crate) struct Server {
    // `http://HOST:PORT`.
    pub url: String,
    /// Log file of the server.
    pub log: std::path::PathBuf,
    pub process: Program,
    arguments: Vec<String>,
    _address: Address,
}

impl Server {
    /// Starts a server in the folder `name` below `folder`. Its configuration has the section `storage`.
    pub(crate) async fn start(folder: &Path, name: &str, storage: &str) -> Self {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let config = folder.join("server.yaml");
        std::fs::write(&config, format!("{storage}maintenance:\n  interval: 1s\n")).unwrap();
        let address = Address::keep();
        let arguments: Vec<String> = [
            "serve",
            "--listen",
            &address,
            "--data",
            &folder.join("data").to_string_lossy(),
            "--config",
            &config.to_string_lossy(),
            "--flush-age",
            "1s",
        ]
        .map(str::to_owned)
        .to_vec();
        let log = folder.join("log");
        let url = format!("http://{address}");
        let mut process = Program::alluvium(&arguments, &log);
        process.ready(&client(), &format!("{url}/ready")).await;
        Self {
            url,
            arguments,
            log,
            process,
            _address: address,
        }
    }

    pub(crate) async fn restart(&mut self) {
        self.process = Program::alluvium(&self.arguments, &self.log);
        self.process.ready(&client(), &format!("{}/ready", self.url)).await;
    }

    /// Flushes until a flush succeeds.
    pub(crate) async fn flush(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.process.check();
            let answer = client().post(format!("{}/flush", self.url)).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return;
            }
            assert!(Instant::now() < deadline, "no flush succeeded\n{}", self.process.tail());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Returns the sum of a metric over its labels.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = client()
            .get(format!("{}/metrics", self.url))
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        text.lines()
            .filter(|line| line.starts_with(name))
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum()
    }
}

/// Lets four clients push for `time` and returns the numbers of the acknowledged profiles.
pub(crate) async fn push_for(url: &str, next: &Arc<AtomicU64>, time: Duration) -> Vec<u64> {
    let stop = Shutdown::new();
    let clients: Vec<_> = (0..4)
        .map(|number| tokio::spawn(push_until_gone(url.to_owned(), number, next.clone(), stop.clone())))
        .collect();
    tokio::time::sleep(time).await;
    stop.cancel();
    let mut acknowledged = Vec::new();
    for client in clients {
        acknowledged.extend(client.await.unwrap());
    }
    acknowledged
}

/// Returns the number of rows of `table` for each value of `column`, which is the number of a profile.
pub(crate) async fn numbers(url: &str, table: &str, column: &str) -> BTreeMap<u64, u64> {
    let rows = sql(
        &client(),
        url,
        &format!("SELECT {column}, count(*) FROM {table} GROUP BY 1"),
    )
    .await;
    rows.iter()
        .map(|row| (row[0].parse().unwrap(), row[1].parse().unwrap()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_when_server_and_bucket_are_killed_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut weed) = Seaweed::start(folder.path()).await else {
        return;
    };
    let storage = weed.storage("one");
    let mut server = Server::start(folder.path(), "one", &storage).await;
    let next = Arc::new(AtomicU64::new(1));
    let mut acknowledged = BTreeSet::new();
    let http = client();
    for round in 0..6u64 {
        let pushing = tokio::spawn({
            let (url, next) = (server.url.clone(), next.clone());
            async move { push_for(&url, &next, Duration::from_millis(2500)).await }
        });
        tokio::time::sleep(Duration::from_millis(700 + round * 131 % 900)).await;
        if round % 2 == 0 {
            server.process.kill();
            acknowledged.extend(pushing.await.unwrap());
            server.restart().await;
        } else {
            weed.kill();
            // Without the bucket, the server accepts pushes into its local log, and queries read the local profiles.
            let while_away = push_for(&server.url, &next, Duration::from_millis(1500)).await;
            assert!(
                !while_away.is_empty(),
                "no push was acknowledged without the bucket\n{}",
                server.process.tail()
            );
            acknowledged.extend(while_away);
            acknowledged.extend(pushing.await.unwrap());
            weed.restart().await;
            server.flush().await;
        }
        check(&http, &server.url, &acknowledged, round).await;
    }
    server.flush().await;
    check(&http, &server.url, &acknowledged, 100).await;
    // Waits until the server has merged files.
    let deadline = Instant::now() + PATIENCE;
    while server.metric("alluvium_store_jobs_total").await == 0.0 {
        assert!(
            Instant::now() < deadline,
            "nothing was merged\n{}",
            server.process.tail()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    check(&http, &server.url, &acknowledged, 101).await;

    // The cache stays within its limit and reports its activity.
    let cached: u64 = std::fs::read_dir(folder.path().join("one/data/cache"))
        .unwrap()
        .map(|entry| entry.unwrap().metadata().unwrap().len())
        .sum();
    assert!(cached <= 2 << 20, "{cached} bytes are cached");
    assert!(server.metric("alluvium_store_object_cache_bytes").await <= f64::from(2 << 20));
    assert!(server.metric("alluvium_store_object_cache_hits_total").await > 0.0);
    assert!(server.metric("alluvium_store_object_requests_total").await > 0.0);

    let status = server.process.terminate();
    assert!(status.success(), "{status}\n{}", server.process.tail());
    let log = std::fs::read_to_string(&server.log).unwrap();
    assert!(!log.contains(SECRET_KEY), "the secret is in the log");

    // With the configuration file, the commands for a data folder use the same bucket.
    let data = folder.path().join("one/data").to_string_lossy().into_owned();
    let config = folder.path().join("one/server.yaml").to_string_lossy().into_owned();
    let (good, out, errors) = run(&["store", "check", &data, "--config", &config, "--format", "json"]);
    assert!(good, "{}{errors}", String::from_utf8_lossy(&out));
    let checked: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert!(checked["files"].as_u64().unwrap() > 0);
    let (good, out, errors) = run(&["store", "compact", &data, "--config", &config, "--format", "json"]);
    assert!(good, "{}{errors}", String::from_utf8_lossy(&out));
    let (good, out, errors) = run(&["store", "repair", &data, "--config", &config, "--format", "json"]);
    assert!(good, "{}{errors}", String::from_utf8_lossy(&out));
    let (good, out, errors) = run(&["store", "stats", &data, "--config", &config, "--format", "json"]);
    assert!(good, "{errors}");
    let stats: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let rows = stats["tables"]["profiles"]["rows"].as_u64().unwrap();
    assert!(rows >= acknowledged.len() as u64, "{stats}");
    let question = "SELECT count(*) AS n FROM profiles";
    let (good, out, errors) = run(&["sql", question, "--data", &data, "--config", &config, "--format", "csv"]);
    assert!(good, "{errors}");
    assert_eq!(
        String::from_utf8_lossy(&out).lines().nth(1),
        Some(rows.to_string().as_str())
    );
    foreign_reader(&weed, "one", rows);
    println!(
        "{} profiles acknowledged in 6 rounds, each stored once",
        acknowledged.len()
    );
}

/// Checks with the Python package `deltalake` that the table `profiles` in the bucket has this many rows.
fn foreign_reader(weed: &Seaweed, prefix: &str, rows: u64) {
    let python = std::env::var("ALLUVIUM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let Some(python) = other(
        &python,
        &["-c", "import deltalake, pyarrow"],
        "the Python package deltalake",
    ) else {
        return;
    };
    let program = "import os, sys, deltalake\n\
        options = {'endpoint_url': sys.argv[2], 'region': 'us-east-1', 'allow_http': 'true', \
        'access_key_id': sys.argv[3], 'secret_access_key': sys.argv[4]}\n\
        print(deltalake.DeltaTable(sys.argv[1], storage_options=options).\
        to_pyarrow_table(columns=['total']).num_rows)\n\
        sys.stdout.flush()\n\
        os._exit(0)\n";
    let output = Command::new(python)
        .args(["-c", program, &format!("s3://{BUCKET}/{prefix}/profiles")])
        .args([&format!("http://{}", weed.endpoint()), ACCESS_KEY, SECRET_KEY])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert_eq!(text, rows.to_string(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_servers_share_a_bucket_and_each_shows_everything_once() {
    let folder = tempfile::tempdir().unwrap();
    let Some(weed) = Seaweed::start(folder.path()).await else {
        return;
    };
    let storage = weed.storage("shared");
    let mut servers = Vec::new();
    for name in ["a", "b", "c"] {
        servers.push(Server::start(folder.path(), name, &storage).await);
    }
    let next = Arc::new(AtomicU64::new(1));
    let mut acknowledged = BTreeSet::new();
    for round in 0..4usize {
        let pushing: Vec<_> = servers
            .iter()
            .map(|server| {
                let (url, next) = (server.url.clone(), next.clone());
                tokio::spawn(async move { push_for(&url, &next, Duration::from_millis(1500)).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let killed = round % servers.len();
        servers[killed].process.kill();
        for pushed in pushing {
            acknowledged.extend(pushed.await.unwrap());
        }
        servers[killed].restart().await;
    }
    for server in &mut servers {
        server.flush().await;
    }
    // While all three servers merge files, each of them sees every profile exactly once, also those that the other
    // servers committed. A profile that was stored but not acknowledged may appear on one server later than on another.
    // In the end, all servers agree.
    for (table, column) in [("profiles", "total"), ("samples", "value")] {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let (mut seen, mut lost) = (BTreeSet::new(), 0);
            for server in &mut servers {
                server.process.check();
                let found = numbers(&server.url, table, column).await;
                let doubled: Vec<_> = found.iter().filter(|(_, count)| **count != 1).collect();
                assert!(doubled.is_empty(), "{table}: {doubled:?}\n{}", server.process.tail());
                lost += acknowledged.iter().filter(|number| !found.contains_key(number)).count();
                seen.insert(found.len());
            }
            if lost == 0 && seen.len() == 1 {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "{table}: {lost} profiles are missing, numbers of rows: {seen:?}\n{}",
                servers[0].process.tail()
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    for server in &mut servers {
        let status = server.process.terminate();
        assert!(status.success(), "{status}\n{}", server.process.tail());
    }
    // The program reads the tables from the bucket while no server runs.
    let data = folder.path().join("a/data").to_string_lossy().into_owned();
    let config = folder.path().join("a/server.yaml").to_string_lossy().into_owned();
    let (good, out, errors) = run(&["store", "check", &data, "--config", &config]);
    assert!(good, "{}{errors}", String::from_utf8_lossy(&out));
    let question = "SELECT count(*) AS n, count(DISTINCT total) AS m FROM profiles";
    let (good, out, errors) = run(&["sql", question, "--data", &data, "--config", &config, "--format", "csv"]);
    assert!(good, "{errors}");
    let text = String::from_utf8_lossy(&out).into_owned();
    let counts: Vec<usize> = text
        .lines()
        .nth(1)
        .unwrap()
        .split(',')
        .map(|count| count.parse().unwrap())
        .collect();
    assert_eq!(counts[0], counts[1], "a profile has several rows");
    assert!(counts[0] >= acknowledged.len());
    println!(
        "{} profiles acknowledged by three servers, each stored once",
        acknowledged.len()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_bucket_a_store_takes_profiles_up_to_its_bound_and_goes_on_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut weed) = Seaweed::start(folder.path()).await else {
        return;
    };
    let options = BucketOptions {
        prefix: "bound".to_owned(),
        ..BucketOptions::new(Provider::S3(S3Options {
            bucket: BUCKET.to_owned(),
            endpoint: Some(weed.endpoint()),
            region: Some("us-east-1".to_owned()),
            access_key_id: Some(ACCESS_KEY.to_owned()),
            secret_access_key: Some(Secret(SECRET_KEY.to_owned())),
            insecure: true,
            ..S3Options::default()
        }))
    };
    let config = StoreConfig {
        bucket: Some(options),
        flush_bytes: 20_000,
        head_limit_bytes: 60_000,
        ..StoreConfig::new(folder.path().join("data"))
    };
    let opened = config.clone();
    let store = tokio::task::spawn_blocking(move || Store::open(opened, &Scope::new()))
        .await
        .unwrap()
        .unwrap();
    assert!(store.append(&tenant("t"), vec![numbered(1, 0)]).await.is_empty());
    store.flush().await.unwrap();
    weed.kill();
    let mut taken = 1u64;
    let deadline = Instant::now() + PATIENCE;
    let refusal = loop {
        let errors = store.append(&tenant("t"), vec![numbered(taken + 1, 0)]).await;
        match errors.into_iter().next() {
            None => taken += 1,
            Some(refused) => break refused.error,
        }
        assert!(
            Instant::now() < deadline,
            "{taken} profiles were accepted without a limit"
        );
    };
    assert_eq!(refusal.kind, SinkErrorKind::Unavailable, "{refusal:?}");
    assert!(taken > 10, "only {taken} were accepted");
    // Profiles in memory can still be queried.
    assert!(!store.snapshot().heads.is_empty());
    weed.restart().await;
    let deadline = Instant::now() + PATIENCE;
    while !store
        .append(&tenant("t"), vec![numbered(taken + 1, 0)])
        .await
        .is_empty()
    {
        assert!(
            Instant::now() < deadline,
            "the store accepts nothing although its bucket is back"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    taken += 1;
    store.close(Duration::from_mins(1)).await.unwrap();
    drop(store);
    let store = tokio::task::spawn_blocking(move || Store::open(config, &Scope::new()))
        .await
        .unwrap()
        .unwrap();
    let rows: u64 = store
        .snapshot()
        .files
        .iter()
        .filter(|file| file.table == alluvium::store::common::schema::Table::Profiles)
        .map(|file| file.rows)
        .sum();
    assert_eq!(rows, taken);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bucket_that_is_not_there_is_named_without_its_secret() {
    let folder = tempfile::tempdir().unwrap();
    let Some(weed) = Seaweed::start(folder.path()).await else {
        return;
    };
    let config = folder.path().join("server.yaml");
    let storage = weed
        .storage("x")
        .replace(&format!("bucket_name: {BUCKET}"), "bucket_name: nowhere");
    std::fs::write(&config, storage.replace(SECRET_KEY, "another-secret")).unwrap();
    let data = folder.path().join("data").to_string_lossy().into_owned();
    let (good, _, errors) = run(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
        &data,
        "--config",
        &config.to_string_lossy(),
    ]);
    assert!(!good);
    assert!(errors.contains("s3://nowhere/x/"), "{errors}");
    assert!(!errors.contains("another-secret"), "{errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_push_is_acknowledged_while_the_bucket_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut weed) = Seaweed::start(folder.path()).await else {
        return;
    };
    let mut server = Server::start(folder.path(), "one", &weed.storage("away")).await;
    let pusher = PushClient::new(Caller::new(client(), server.url.parse().unwrap()).with_timeout(PATIENCE));
    pusher.push(&[numbered(1, 0)]).await.unwrap();
    server.flush().await;
    weed.kill();
    pusher.push(&[numbered(2, 0)]).await.unwrap();
    // The first profile is in the cache of recent writes, the second in memory.
    let found = numbers(&server.url, "samples", "value").await;
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), [1, 2]);
    // The server is killed while the bucket is unavailable. It recovers when the bucket is available again.
    server.process.kill();
    weed.restart().await;
    server.restart().await;
    server.flush().await;
    let found = numbers(&server.url, "samples", "value").await;
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [(1, 1), (2, 1)]);
}
