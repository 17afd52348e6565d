//! SIGKILL under load: after the restart, the server has every acknowledged profile exactly once.
//!
//! Scenario: the real program, 8 clients that push small distinct profiles, and 25 kills. A third of the kills come at
//! different moments, a third while memory is flushed to the tables, and a third while files are merged. Before a kill
//! of the last two kinds, the test waits for a new file of a flush or merge. A kill has interrupted a flush or merge if
//! it leaves a file that no table lists. Guarantee: after every restart, `profiles` and `samples` contain each
//! acknowledged profile of a tenant exactly once. They may contain profiles that were not acknowledged, each at most
//! once. Each profile has its service in `series` and its function in `stacks`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use alluvium::store::tools::inspect;
use alluvium_base::Shutdown;
use alluvium_profile::pprof::{self, Function, Line, Location, Profile, ValueType};
use alluvium_profile::{Labels, RawProfile};
use alluvium_wire::call::Caller;
use alluvium_wire::push::PushClient;

use crate::harness::client;
use crate::program::{Address, PATIENCE, Program, sql};

const ROUNDS: u64 = 25;
const CLIENTS: u64 = 8;
/// Tenants, assigned to the clients in turn.
const TENANTS: [&str; 2] = ["shop", "desk"];

/// Returns a profile with one sample. The value of the sample is `number`, so that a query can find the profile.
pub(crate) fn numbered(number: u64, client: u64) -> RawProfile {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    numbered_at(number, &format!("client-{client}"), now)
}

/// Returns a profile like [`numbered`], for any service and any time since 1970.
pub(crate) fn numbered_at(number: u64, service: &str, time: Duration) -> RawProfile {
    let function = format!("work_{}", number % 50);
    let profile = Profile {
        sample_types: vec![ValueType {
            kind: "cpu",
            unit: "nanoseconds",
        }],
        period_type: ValueType {
            kind: "cpu",
            unit: "nanoseconds",
        },
        period: 10_000_000,
        time_nanos: i64::try_from(time.as_nanos()).unwrap(),
        functions: vec![Function {
            name: &function,
            ..Function::default()
        }],
        lines: vec![Line {
            function: 0,
            ..Line::default()
        }],
        locations: vec![Location {
            mapping: Location::NO_MAPPING,
            address: 0,
            lines_start: 0,
            lines_end: 1,
            is_folded: false,
        }],
        sample_locations: vec![0],
        sample_starts: vec![0, 1],
        values: vec![i64::try_from(number).unwrap()],
        label_starts: vec![0, 0],
        ..Profile::default()
    };
    RawProfile {
        labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", service)]),
        id: "".into(),
        pprof: pprof::gzip(&pprof::encode(&profile)).into(),
    }
}

/// Pushes until `stop` is cancelled, but at least once, because on a busy machine `stop` may be cancelled before the
/// first push. Returns the acknowledged numbers.
pub(crate) async fn push_until_gone(url: String, client_number: u64, next: Arc<AtomicU64>, stop: Shutdown) -> Vec<u64> {
    let caller = Caller::new(client(), url.parse().unwrap());
    push_by(caller, client_number, next, stop).await
}

/// Pushes like [`push_until_gone`], with a caller that may name a tenant.
async fn push_by(caller: Caller, client_number: u64, next: Arc<AtomicU64>, stop: Shutdown) -> Vec<u64> {
    let pusher = PushClient::new(caller.with_timeout(Duration::from_secs(30)));
    let mut acknowledged = Vec::new();
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        match pusher.push(&[numbered(number, client_number)]).await {
            Ok(()) => acknowledged.push(number),
            // A push that was refused or cut off may or may not be stored.
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
        if stop.is_cancelled() {
            return acknowledged;
        }
    }
}

/// Returns the paths of the Parquet files of all tables.
fn files(tables: &Path) -> BTreeSet<PathBuf> {
    let mut open = vec![tables.to_owned()];
    let mut found = BTreeSet::new();
    while let Some(folder) = open.pop() {
        // The server may remove a folder or a file meanwhile.
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "parquet") {
                found.insert(path);
            } else if path.is_dir() && !path.ends_with("_delta_log") {
                open.push(path);
            }
        }
    }
    found
}

/// The operation that wrote a file. The names of merged files begin with `c` and the level of the merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    Flush,
    Merge,
}

impl Work {
    fn of(path: &Path) -> Self {
        let name = path.file_name().unwrap().to_string_lossy();
        if name.starts_with('c') {
            Self::Merge
        } else {
            Self::Flush
        }
    }
}

/// Requests flushes, one after the other, until the operation `work` has written `count` new files. At this moment, the
/// operation is under way. A flush writes four files, one per table.
async fn until_under_way(
    work: Work,
    count: usize,
    server: &mut Program,
    http: &reqwest::Client,
    url: &str,
    tables: &Path,
) {
    let before = files(tables);
    let flushes = {
        let flush = http.post(format!("{url}/flush"));
        tokio::spawn(async move { while flush.try_clone().unwrap().send().await.is_ok() {} })
    };
    let deadline = Instant::now() + PATIENCE;
    let new = || {
        files(tables)
            .difference(&before)
            .filter(|path| Work::of(path) == work)
            .count()
    };
    while new() < count {
        server.check();
        assert!(Instant::now() < deadline, "no {work:?} wrote files\n{}", server.tail());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    flushes.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_or_doubled_by_25_kills() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let data = folder.path().join("data");
    let yaml = folder.path().join("server.yaml");
    let text = "multitenancy_enabled: true\nmaintenance:\n  interval: 20ms\n  cpu_share: 1\n";
    std::fs::write(&yaml, text).unwrap();
    let address = Address::keep();
    let url = format!("http://{address}");
    let http = client();
    let next = Arc::new(AtomicU64::new(1));
    let mut acknowledged = Acknowledged::default();
    let mut hits: BTreeMap<Work, u64> = BTreeMap::new();
    let arguments = [
        "serve",
        "--listen",
        &address,
        "--data",
        &data.to_string_lossy(),
        "--config",
        &yaml.to_string_lossy(),
        "--flush-age",
        "1s",
        "--log.level",
        "warn",
    ];

    for round in 0..=ROUNDS {
        let mut server = Program::alluvium(&arguments, &log);
        server.ready(&http, &format!("{url}/ready")).await;
        acknowledged.check(&http, &url, round).await;
        if round == ROUNDS {
            let status = server.terminate();
            assert!(status.success(), "{status}\n{}", server.tail());
            break;
        }

        let stop = Shutdown::new();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let caller = Caller::new(client(), url.parse().unwrap()).with_tenant(tenant_of(number));
                tokio::spawn(push_by(caller, number, next.clone(), stop.clone()))
            })
            .collect();
        let tables = data.join("tables");
        match round % 3 {
            // A third of the kills come at different moments after the first writes.
            0 => tokio::time::sleep(Duration::from_millis(60 + round * 83 % 500)).await,
            kind => {
                let work = if kind == 1 { Work::Flush } else { Work::Merge };
                let count = 1 + (round / 3 % 4) as usize;
                until_under_way(work, count, &mut server, &http, &url, &tables).await;
            }
        }
        server.kill();
        stop.cancel();
        for (number, client) in (0..).zip(clients) {
            acknowledged.add(number, client.await.unwrap());
        }
        let dir = data.clone();
        let checked = tokio::task::spawn_blocking(move || inspect::check(&dir).unwrap())
            .await
            .unwrap();
        assert!(!checked.has_errors(), "round {round}: {:?}", checked.findings);
        let unnamed = checked.findings.iter().filter(|finding| finding.kind == "uncommitted");
        for work in unnamed
            .map(|finding| Work::of(Path::new(&finding.path)))
            .collect::<BTreeSet<_>>()
        {
            *hits.entry(work).or_default() += 1;
        }
    }

    // The shutdown has flushed all profiles to files. The last check shows that this flush duplicated no profile.
    let mut server = Program::alluvium(&arguments, &log);
    server.ready(&http, &format!("{url}/ready")).await;
    acknowledged.check(&http, &url, ROUNDS + 1).await;
    assert!(
        acknowledged.len() as u64 > ROUNDS,
        "only {} profiles were acknowledged",
        acknowledged.len()
    );
    println!(
        "{} profiles acknowledged in {ROUNDS} rounds, each stored once; kills during a flush or merge: {hits:?}",
        acknowledged.len()
    );
    for work in [Work::Flush, Work::Merge] {
        assert!(
            hits.get(&work).is_some_and(|count| *count >= 2),
            "fewer than 2 kills interrupted a {work:?}: {hits:?}"
        );
    }
}

/// Returns the tenant for which a client pushes.
fn tenant_of(client: u64) -> &'static str {
    TENANTS[(client % TENANTS.len() as u64) as usize]
}

/// Acknowledged numbers by tenant, with the client that pushed each.
#[derive(Default)]
struct Acknowledged(BTreeMap<&'static str, BTreeMap<u64, u64>>);

impl Acknowledged {
    fn add(&mut self, client: u64, numbers: Vec<u64>) {
        let of_tenant = self.0.entry(tenant_of(client)).or_default();
        of_tenant.extend(numbers.into_iter().map(|number| (number, client)));
    }

    fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// Fails if a profile is missing, has wrong names, belongs to another tenant, or occurs more than once.
    async fn check(&self, http: &reqwest::Client, url: &str, round: u64) {
        let all: BTreeSet<u64> = self.0.values().flat_map(|numbers| numbers.keys().copied()).collect();
        let mut tenants = sql_of(http, url, &TENANTS.join("|"), "SELECT DISTINCT tenant FROM profiles").await;
        tenants.retain(|row| !TENANTS.contains(&row[0].as_str()));
        assert!(tenants.is_empty(), "round {round}: unknown tenants {tenants:?}");
        let nothing = BTreeMap::new();
        for tenant in TENANTS {
            let own = self.0.get(tenant).unwrap_or(&nothing);
            let others: BTreeSet<u64> = all.iter().copied().filter(|number| !own.contains_key(number)).collect();
            for (table, column) in [("profiles", "total"), ("samples", "value")] {
                let rows = sql_of(
                    http,
                    url,
                    tenant,
                    &format!("SELECT {column}, count(*) FROM {table} GROUP BY 1"),
                )
                .await;
                let found: BTreeMap<u64, u64> = rows
                    .iter()
                    .map(|row| (row[0].parse().unwrap(), row[1].parse().unwrap()))
                    .collect();
                let lost: Vec<_> = own.keys().filter(|number| !found.contains_key(number)).collect();
                let doubled: Vec<_> = found.iter().filter(|(_, count)| **count != 1).collect();
                let strange: Vec<_> = found.keys().filter(|number| others.contains(number)).collect();
                assert!(
                    lost.is_empty() && doubled.is_empty() && strange.is_empty(),
                    "round {round}, {table} of {tenant}: lost {lost:?}, more than once {doubled:?}, of another \
                     tenant {strange:?}"
                );
                // `series` has one service and `stacks` one function for each number.
                let mut names = vec![("series", "series", "service_name")];
                if table == "samples" {
                    names.push(("stacks", "stack", "frames[1]['function']"));
                }
                for (by, key, name) in names {
                    let query =
                        format!("SELECT DISTINCT {column}, {name} FROM {table} r JOIN {by} n ON r.{key} = n.{key}");
                    let rows = sql_of(http, url, tenant, &query).await;
                    let mut named: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
                    for row in &rows {
                        named.entry(row[0].parse().unwrap()).or_default().push(&row[1]);
                    }
                    assert!(
                        named.keys().eq(found.keys()),
                        "round {round}: rows in {table} of {tenant} have no row in {by}"
                    );
                    for (number, texts) in named {
                        let function = format!("work_{}", number % 50);
                        let expected = match (by, own.get(&number)) {
                            ("stacks", _) => function,
                            (_, Some(client)) => format!("client-{client}"),
                            // If the profile was not acknowledged, any client of the tenant may have pushed it.
                            (_, None) => texts[0].to_owned(),
                        };
                        assert_eq!(texts, [expected], "round {round}: {by} of {number}");
                    }
                }
            }
        }
    }
}

/// Runs SQL for the tenants in `tenants`, a list separated by `|`.
async fn sql_of(http: &reqwest::Client, url: &str, tenants: &str, query: &str) -> Vec<Vec<String>> {
    let request = http
        .post(format!("{url}/api/v1/sql?format=csv"))
        .header("x-scope-orgid", tenants);
    let answer = request
        .header("content-type", "text/plain")
        .body(query.to_owned())
        .send()
        .await
        .unwrap();
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert!(status.is_success(), "{query}: {status} {text}");
    let rows = text.lines().skip(1);
    rows.map(|row| row.split(',').map(str::to_owned).collect()).collect()
}

/// Fails if an acknowledged number is missing in the tables, or if any number occurs more than once.
pub(crate) async fn check(http: &reqwest::Client, url: &str, acknowledged: &BTreeSet<u64>, round: u64) {
    for (table, column) in [("profiles", "total"), ("samples", "value")] {
        let rows = sql(http, url, &format!("SELECT {column}, count(*) FROM {table} GROUP BY 1")).await;
        let found: BTreeMap<u64, u64> = rows
            .iter()
            .map(|row| (row[0].parse().unwrap(), row[1].parse().unwrap()))
            .collect();
        let lost: Vec<_> = acknowledged
            .iter()
            .filter(|number| !found.contains_key(number))
            .collect();
        let doubled: Vec<_> = found.iter().filter(|(_, count)| **count != 1).collect();
        assert!(
            lost.is_empty() && doubled.is_empty(),
            "round {round}, {table}: lost {lost:?}, more than once {doubled:?}"
        );
    }
}
