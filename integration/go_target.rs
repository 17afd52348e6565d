//! A real Go program from end to end: the collector scrapes Debian's `prometheus`, the server stores its profiles, and
//! every reader reads them back.
//!
//! Scenario: three real processes without mocks. Guarantees: every Go profile type arrives under Pyroscope's name. For
//! a profile captured from the same program, four results are equal for every sample type and every function: the sum
//! of the samples, the flame graph's total, the SQL sum and the output of `go tool pprof -top`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use alluvium_profile::pprof;
use alluvium_wire::call::Caller;
use alluvium_wire::querier::{QuerierClient, Selection};
use bytes::Bytes;

use crate::harness::client;
use crate::program::{Address, PATIENCE, Program, other, sql};

/// Profile types of a Go program under Pyroscope's names.
const GO_TYPES: [&str; 11] = [
    "block:contentions:count:contentions:count",
    "block:delay:nanoseconds:contentions:count",
    "goroutine:goroutine:count:goroutine:count",
    "memory:alloc_objects:count:space:bytes",
    "memory:alloc_space:bytes:space:bytes",
    "memory:inuse_objects:count:space:bytes",
    "memory:inuse_space:bytes:space:bytes",
    "mutex:contentions:count:contentions:count",
    "mutex:delay:nanoseconds:contentions:count",
    "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
    "process_cpu:samples:count:cpu:nanoseconds",
];

fn around_now() -> (i64, i64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_millis()).unwrap();
    (now - 3_600_000, now + 3_600_000)
}

/// Starts Prometheus, busy scraping itself, with its block and mutex profiles on.
pub(crate) fn prometheus(folder: &Path, address: &str) -> Program {
    let config = folder.join("prometheus.yml");
    let text = format!(
        "scrape_configs:\n- job_name: self\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  static_configs:\
         \n  - targets: ['{address}']\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new("prometheus");
    command
        .env("DEBUG", "1")
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", folder.join("tsdb").display()))
        .arg(format!("--web.listen-address={address}"));
    Program::start(command, &folder.join("prometheus.log"))
}

fn serve(folder: &Path, address: &str) -> Program {
    let data = folder.join("data");
    let arguments = ["serve", "--listen", address, "--data", &data.to_string_lossy()];
    Program::alluvium(&arguments, &folder.join("serve.log"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_go_type_of_a_scraped_program_arrives_as_pyroscope_names_it() {
    if other("prometheus", &["--version"], "the Debian package prometheus").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let http = client();
    let (target, server_address, own) = (Address::keep(), Address::keep(), Address::keep());
    let url = format!("http://{server_address}");
    let mut target_program = prometheus(folder.path(), &target);
    let mut server = serve(folder.path(), &server_address);
    target_program.ready(&http, &format!("http://{target}/-/ready")).await;
    server.ready(&http, &format!("{url}/ready")).await;

    let config = folder.path().join("scrape.alloy");
    let text = format!(
        "pyroscope.scrape \"default\" {{\n\
           targets = [{{\"__address__\" = \"{target}\", \"service_name\" = \"prometheus\"}}]\n\
           forward_to = [pyroscope.write.default.receiver]\n\
           scrape_interval = \"3s\"\n\
         }}\n\
         pyroscope.write \"default\" {{\n\
           endpoint {{\n\
             url = \"{url}/profile\"\n\
           }}\n\
         }}\n"
    );
    std::fs::write(&config, text).unwrap();
    let storage = folder.path().join("storage");
    let mut collector = Program::alluvium(
        &[
            "run",
            "--server.http.listen-addr",
            &own,
            "--storage.path",
            &storage.to_string_lossy(),
            &config.to_string_lossy(),
        ],
        &folder.path().join("run.log"),
    );
    collector.ready(&http, &format!("http://{own}/-/ready")).await;

    let querier = QuerierClient::new(Caller::new(http.clone(), url.parse().unwrap()));
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (start, end) = around_now();
        let found = querier.profile_types(start, end).await.unwrap();
        let mut found: Vec<_> = found.iter().map(ToString::to_string).collect();
        found.sort();
        if found == GO_TYPES {
            break;
        }
        collector.check();
        assert!(
            Instant::now() < deadline,
            "only these profile types arrived: {found:?}\n{}\n{}",
            collector.tail(),
            server.tail()
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let services = sql(&http, &url, "SELECT DISTINCT service_name FROM series").await;
    assert_eq!(services, [["prometheus"]]);
    let own_metrics = http.get(format!("http://{own}/metrics")).send().await.unwrap();
    let own_metrics = own_metrics.text().await.unwrap();
    assert!(
        own_metrics.contains("pyroscope_write_sent_profiles_total{"),
        "{own_metrics}"
    );
    let status = collector.terminate();
    assert!(status.success(), "{status}\n{}", collector.tail());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn captured_bytes_have_one_total_whoever_counts() {
    let present = other("prometheus", &["--version"], "the Debian package prometheus").is_some()
        && other("go", &["version"], "the Debian package golang-go").is_some();
    if !present {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let http = client();
    let (target, server_address) = (Address::keep(), Address::keep());
    let url = format!("http://{server_address}");
    let mut target_program = prometheus(folder.path(), &target);
    let mut server = serve(folder.path(), &server_address);
    target_program.ready(&http, &format!("http://{target}/-/ready")).await;
    server.ready(&http, &format!("{url}/ready")).await;

    for (path, name) in [
        ("profile?seconds=2", "process_cpu"),
        ("allocs", "memory"),
        ("goroutine", "goroutine"),
    ] {
        let captured = capture(&http, &target, path).await;
        let file = folder.path().join(format!("{name}.pb.gz"));
        std::fs::write(&file, &captured).unwrap();
        ingest(&http, &url, name, &captured).await;
        compare(&http, &url, name, &captured, &file).await;
    }
}

/// Captures a profile of the program while requests keep it busy.
async fn capture(http: &reqwest::Client, target: &str, path: &str) -> Bytes {
    let busy = async {
        loop {
            let _ = http.get(format!("http://{target}/metrics")).send().await;
        }
    };
    let profile = async {
        let answer = http
            .get(format!("http://{target}/debug/pprof/{path}"))
            .send()
            .await
            .unwrap();
        answer.bytes().await.unwrap()
    };
    tokio::select! {
        bytes = profile => bytes,
        () = busy => unreachable!("never ends"),
    }
}

/// Sends the bytes unchanged, as an SDK would.
async fn ingest(http: &reqwest::Client, url: &str, name: &str, captured: &Bytes) {
    let labels = [("__name__", name), ("service_name", "captured")];
    let profile = alluvium_profile::RawProfile {
        labels: alluvium_profile::Labels::from_pairs(labels),
        id: "".into(),
        pprof: captured.clone(),
    };
    let caller = Caller::new(http.clone(), url.parse().unwrap());
    alluvium_wire::push::PushClient::new(caller)
        .push(&[profile])
        .await
        .unwrap();
}

async fn compare(http: &reqwest::Client, url: &str, name: &str, captured: &Bytes, file: &Path) {
    let plain = pprof::gunzip(captured, 100 << 20).unwrap();
    let profile = pprof::decode(&plain).unwrap();
    let querier = QuerierClient::new(Caller::new(http.clone(), url.parse().unwrap()));
    for (at, of) in profile.sample_types.iter().enumerate() {
        let summed: i64 = (0..profile.sample_count())
            .map(|sample| profile.values_of(sample)[at])
            .sum();
        assert!(summed > 0, "{name}/{} is empty", of.kind);
        let period = profile.period_type;
        let profile_type = format!("{name}:{}:{}:{}:{}", of.kind, of.unit, period.kind, period.unit);

        let (start_ms, end_ms) = around_now();
        let selection = Selection {
            profile_type: profile_type.clone(),
            selector: "{service_name=\"captured\"}".to_owned(),
            start_ms,
            end_ms,
        };
        let graph = querier.merge_stacktraces(selection, 1 << 20).await.unwrap();
        assert_eq!(graph.total, summed, "flame graph of {profile_type}");

        let rows = sql(
            http,
            url,
            &format!("SELECT sum(value) FROM samples WHERE profile_type = '{profile_type}'"),
        )
        .await;
        assert_eq!(rows, [[summed.to_string()]], "SQL sum of {profile_type}");
        let rows = sql(
            http,
            url,
            &format!("SELECT sum(total) FROM profiles WHERE profile_type = '{profile_type}'"),
        )
        .await;
        assert_eq!(rows, [[summed.to_string()]], "SQL total of {profile_type}");

        let selector = format!("{profile_type}{{service_name=\"captured\"}}");
        let top = alluvium(&[
            "top", &selector, "--url", url, "--until", "now+1h", "-n", "0", "--format", "json",
        ]);
        let top: serde_json::Value = serde_json::from_str(&top).unwrap();
        assert_eq!(top["total"], summed, "`alluvium top` of {profile_type}");
        let svg = file.with_extension("svg");
        let path = svg.to_string_lossy();
        alluvium(&["flamegraph", &selector, "--url", url, "--until", "now+1h", "-o", &path]);
        let drawn = std::fs::read_to_string(&svg).unwrap();
        assert!(
            drawn.contains(&format!("data-total=\"{summed}\"")),
            "`alluvium flamegraph` of {profile_type}"
        );
        let statement =
            format!("SELECT sum(value) FROM flat WHERE profile_type = '{profile_type}' AND service_name = 'captured'");
        let answer = alluvium(&["sql", &statement, "--url", url, "--format", "csv"]);
        assert_eq!(
            answer.lines().last(),
            Some(summed.to_string().as_str()),
            "`alluvium sql` of {profile_type}"
        );

        let (total, flat) = go_tool_top(file, of.kind, of.unit);
        assert_eq!(total, summed, "`go tool pprof -top` of {profile_type}");
        let query = format!(
            "SELECT stacks.frames[1]['function'], sum(samples.value) FROM samples JOIN stacks ON samples.stack = \
             stacks.stack \
             WHERE samples.profile_type = '{profile_type}' GROUP BY 1"
        );
        let leaves: BTreeMap<String, i64> = sql(http, url, &query)
            .await
            .into_iter()
            .map(|row| {
                let value = row.last().unwrap().parse().unwrap();
                let function = row[..row.len() - 1].join(",");
                (function.trim_matches('"').to_owned(), value)
            })
            .collect();
        let rows = top["rows"].as_array().unwrap();
        let mut shown = BTreeMap::<&str, i64>::new();
        for row in rows {
            *shown.entry(row["function"].as_str().unwrap()).or_default() += row["flat"].as_i64().unwrap();
        }
        for (function, value) in &flat {
            assert_eq!(leaves.get(function), Some(value), "{function} in {profile_type}");
            assert_eq!(
                shown.get(function.as_str()),
                Some(value),
                "`alluvium top` of {function} in {profile_type}"
            );
        }
    }
}

/// Returns the program's output for these arguments.
fn alluvium(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the total and the flat value of each function, as Go's own tool counts them, in the unit of the profile.
fn go_tool_top(file: &Path, sample_type: &str, unit: &str) -> (i64, BTreeMap<String, i64>) {
    let unit = match unit {
        "bytes" => "B",
        "nanoseconds" => "ns",
        other => other,
    };
    let output = Command::new("go")
        .args([
            "tool",
            "pprof",
            "-top",
            "-nodefraction=0",
            "-edgefraction=0",
            "-nodecount=1000000",
        ])
        .args([format!("-unit={unit}"), format!("-sample_index={sample_type}")])
        .arg(file)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}{errors}");
    // The output is `Showing nodes accounting for 8941900B, 100% of 8941900B total`, a line of titles, and lines `flat
    // flat% sum% cum cum% name`.
    let number = |word: &str| word.trim_end_matches(unit).parse::<i64>();
    let mut lines = text.lines().skip_while(|line| !line.starts_with("Showing nodes"));
    let showing = lines.next().unwrap_or_else(|| panic!("{text}{errors}"));
    let total = showing.strip_suffix(" total").and_then(|rest| rest.rsplit(' ').next());
    let total = number(total.unwrap()).unwrap_or_else(|error| panic!("{error} in {showing}"));
    let mut flat = BTreeMap::new();
    for line in lines.filter(|line| !line.trim_start().starts_with("flat")) {
        let words: Vec<_> = line.split_whitespace().collect();
        let name = words[5..].join(" ");
        let name = name
            .strip_suffix(" (inline)")
            .or(name.strip_suffix(" (partial-inline)"))
            .unwrap_or(&name);
        let value = number(words[0]).unwrap_or_else(|error| panic!("{error} in {line}"));
        if value != 0 {
            flat.insert(name.to_owned(), value);
        }
    }
    (total, flat)
}
