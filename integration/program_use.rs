//! The program as its user sees it: a mistake causes one clear message, a failed reload changes nothing, and while an
//! endpoint is unavailable, no profile is lost.
//!
//! Scenario: real processes with real mistakes. Guarantee: exit codes, texts and continued operation as
//! `docs/operations.md` and the pages of the commands promise.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::harness::client;
use crate::known;
use crate::program::{Address, PATIENCE, Program, run, sql};

#[test]
fn three_mistakes_get_three_diagnostics_and_exit_code_one() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.alloy");
    let text = "pyroscope.scrape \"a\" {\n\ttargets = [1]\n\tforward_to = [pyroscope.write.nobody.receiver]\n}\n\n\
                pyroscope.wrote \"b\" { }\n\npyroscope.write \"c\" {\n\tendpoint {\n\t\turll = \"x\"\n\t}\n}\n";
    std::fs::write(&file, text).unwrap();
    let (ok, _, errors) = run(&["validate", &file.to_string_lossy()]);
    assert!(!ok);
    for part in [
        "wrong.alloy:3:",
        "wrong.alloy:6:",
        "wrong.alloy:10:",
        "did you mean",
        "urll",
    ] {
        assert!(errors.contains(part), "no `{part}` in\n{errors}");
    }
    assert!(errors.matches("error[E").count() >= 3, "{errors}");

    let (ok, output, errors) = run(&["validate", "config/local.alloy"]);
    assert!(ok && output.is_empty() && errors.is_empty(), "{errors}");
    // The only warnings name the deprecated function of the sample.
    let (ok, _, errors) = run(&["validate", "config/alloy-like.river"]);
    let counts = ["warning[", "warning[W0001]", "error["].map(|part| errors.matches(part).count());
    assert!(ok && counts == [2, 2, 0], "{errors}");
}

#[test]
fn a_server_that_cannot_start_says_why_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data").to_string_lossy().into_owned();
    let one_line = |arguments: &[&str], part: &str| {
        let (ok, _, errors) = run(arguments);
        let lines: Vec<_> = errors.lines().filter(|line| !line.contains("level=info")).collect();
        assert!(
            !ok && lines.len() == 1 && lines[0].contains(part),
            "{arguments:?}: {errors}"
        );
    };
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    one_line(
        &["serve", "--listen", &address, "--data", &data],
        "another program uses the port",
    );
    assert!(
        !Path::new(&data).exists(),
        "the server checks the port before it creates the data folder"
    );

    std::fs::create_dir_all(&data).unwrap();
    std::fs::write(Path::new(&data).join("VERSION"), "99\n").unwrap();
    one_line(
        &["serve", "--listen", "127.0.0.1:0", "--data", &data],
        "use a newer program",
    );

    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let below = file.join("data").to_string_lossy().into_owned();
    one_line(
        &["serve", "--listen", "127.0.0.1:0", "--data", &below],
        "cannot create the data folder",
    );
    one_line(&["sql", "SELECT 1", "--url", "http://127.0.0.1:1"], "cannot");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_reload_changes_nothing_and_a_dead_endpoint_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let http = client();
    let (own, dead) = (Address::keep(), Address::keep());
    let target = serve_known_profiles().await;
    let config = folder.path().join("collector.alloy");
    let good = format!(
        "pyroscope.scrape \"default\" {{\n\
           targets = [{{\"__address__\" = \"{target}\", \"service_name\" = \"known\"}}]\n\
           forward_to = [pyroscope.write.default.receiver]\n\
           scrape_interval = \"1s\"\n\
           profiling_config {{\n\
             profile.process_cpu {{\n enabled = false\n }}\n\
             profile.memory {{\n enabled = false\n }}\n\
             profile.block {{\n enabled = false\n }}\n\
             profile.mutex {{\n enabled = false\n }}\n\
           }}\n\
         }}\n\
         pyroscope.write \"default\" {{\n endpoint {{\n url = \"http://{dead}\"\n min_backoff_period = \"100ms\"\
             \n max_backoff_period = \"1s\"\n }}\n}}\n"
    );
    std::fs::write(&config, &good).unwrap();
    let arguments = [
        "run".to_owned(),
        format!("--server.http.listen-addr={own}"),
        format!("--storage.path={}", folder.path().join("storage").display()),
        config.to_string_lossy().into_owned(),
    ];
    let mut collector = Program::alluvium(&arguments, &folder.path().join("run.log"));
    collector.ready(&http, &format!("http://{own}/-/ready")).await;

    std::fs::write(&config, good.replace("forward_to", "forward_too")).unwrap();
    let answer = http.post(format!("http://{own}/-/reload")).send().await.unwrap();
    assert_eq!(answer.status(), 400);
    let text = answer.text().await.unwrap();
    assert!(
        text.contains("collector.alloy:3:") && text.contains("forward_too"),
        "{text}"
    );

    // No server listens at the endpoint, so profiles accumulate in the queue, and a metric shows their number.
    let metrics = format!("http://{own}/metrics");
    wait(&mut collector, async || {
        metric(&http, &metrics, "pyroscope_write_queue_profiles").await >= 3.0
    })
    .await;
    // The profiles survive a restart of the collector.
    collector.kill();
    std::fs::write(&config, &good).unwrap();
    let mut collector = Program::alluvium(&arguments, &folder.path().join("run.log"));
    collector.ready(&http, &format!("http://{own}/-/ready")).await;
    let waiting = metric(&http, &metrics, "pyroscope_write_queue_profiles").await;
    assert!(waiting >= 3.0, "{waiting}");

    let data = folder.path().join("data").to_string_lossy().into_owned();
    let mut server = Program::alluvium(
        &["serve", "--listen", &dead, "--data", &data],
        &folder.path().join("serve.log"),
    );
    server.ready(&http, &format!("http://{dead}/ready")).await;
    wait(&mut collector, async || {
        metric(&http, &metrics, "pyroscope_write_queue_profiles").await == 0.0
    })
    .await;
    assert_eq!(
        metric(&http, &metrics, "pyroscope_write_dropped_profiles_total").await,
        0.0
    );
    let rows = sql(
        &http,
        &format!("http://{dead}"),
        "SELECT count(*), count(DISTINCT profile_id) FROM profiles",
    )
    .await;
    let stored: f64 = rows[0][0].parse().unwrap();
    assert!(stored >= waiting, "{stored} of {waiting}");
    assert_eq!(rows[0][0], rows[0][1], "no duplicates");
    assert!(collector.terminate().success());
    assert!(server.terminate().success());
}

/// Starts a target that responds to every path with the known profile. Returns its address.
async fn serve_known_profiles() -> String {
    let answer = async || ([("content-type", "application/octet-stream")], known::bytes());
    let routes = axum::Router::new().fallback(answer);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

async fn wait(program: &mut Program, mut done: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done().await {
        program.check();
        assert!(Instant::now() < deadline, "timed out\n{}", program.tail());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Returns the sum of a metric over its series.
async fn metric(http: &reqwest::Client, url: &str, name: &str) -> f64 {
    let text = http.get(url).send().await.unwrap().text().await.unwrap();
    let lines = text.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
    lines
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum()
}
