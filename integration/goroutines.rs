//! Goroutine dumps of a real Go program: over HTTP and by `alluvium goroutines`, through a collector that requires a
//! password and has a path prefix.
//!
//! In: Debian's `prometheus`, scraped by a component in a module, and a target that does not run. Guarantees: the dump
//! is that of the program, and requests of strangers, of foreign web pages and for other URLs are refused.

use std::path::Path;
use std::time::Duration;

use crate::go_target::prometheus;
use crate::program::{Address, Program, client, other, run};

/// The component that scrapes the Go program.
const COMPONENT: &str = "pipe.one/pyroscope.scrape.inner";

fn configuration(target: &str, dead: &str) -> String {
    let scrape = |label: &str, address: &str, service: &str, receiver: &str| {
        format!(
            "pyroscope.scrape \"{label}\" {{\n\
               targets = [{{\"__address__\" = \"{address}\", \"service_name\" = \"{service}\"}}]\n\
               forward_to = [{receiver}]\n\
               scrape_interval = \"1h\"\n\
             }}\n"
        )
    };
    let inner = scrape("inner", target, "prometheus", "argument.receiver.value");
    let outer = scrape("outer", dead, "dead", "pyroscope.write.default.receiver");
    format!(
        "http {{\n  auth {{\n    basic {{\n      username = \"u\"\n      password = \"p\"\n    }}\n  }}\n}}\n\
         declare \"pipe\" {{\n  argument \"receiver\" {{ }}\n  {inner}}}\n\
         pipe \"one\" {{\n  receiver = pyroscope.write.default.receiver\n}}\n\
         {outer}\
         pyroscope.write \"default\" {{\n  endpoint {{\n    url = \"http://{dead}\"\n  }}\n}}\n"
    )
}

fn collector(folder: &Path, address: &str, config: &str) -> Program {
    let path = folder.join("config.alloy");
    std::fs::write(&path, config).unwrap();
    let storage = folder.join("storage");
    let arguments = [
        "run",
        "--server.http.listen-addr",
        address,
        "--server.http.ui-path-prefix",
        "/agent",
        "--storage.path",
        &storage.to_string_lossy(),
        &path.to_string_lossy(),
    ];
    Program::alluvium(&arguments, &folder.join("run.log"))
}

/// Waits until the collector responds to requests with the password.
async fn ready(collector: &mut Program, http: &reqwest::Client, url: &str) {
    let deadline = std::time::Instant::now() + crate::program::PATIENCE;
    loop {
        collector.check();
        let answer = http
            .get(format!("{url}/-/ready"))
            .basic_auth("u", Some("p"))
            .send()
            .await;
        if answer.is_ok_and(|answer| answer.status().is_success()) {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "{}", collector.tail());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_go_program_dumps_its_goroutines_for_those_who_may_ask() {
    if other("prometheus", &["--version"], "the Debian package prometheus").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let http = client();
    let (target, own, dead) = (Address::keep(), Address::keep(), Address::keep());
    let url = format!("http://{own}");
    let mut program = prometheus(folder.path(), &target);
    let mut collector = collector(folder.path(), &own, &configuration(&target, &dead));
    program.ready(&http, &format!("http://{target}/-/ready")).await;
    ready(&mut collector, &http, &url).await;

    let profile = format!("http://{target}/debug/pprof/goroutine");
    let password = folder.path().join("password");
    std::fs::write(&password, "p\n").unwrap();
    let (page, password) = (format!("{url}/agent"), password.to_string_lossy().into_owned());
    let goroutines = |arguments: &[&str]| {
        let collector = ["goroutines", "--collector", &page];
        let known = ["--username", "u", "--password-file", &password];
        run(&[&collector[..], &known, arguments].concat())
    };

    let (success, list, errors) = goroutines(&[]);
    let list = String::from_utf8(list).unwrap();
    assert!(success, "{errors}");
    for part in [
        COMPONENT,
        "pyroscope.scrape.outer",
        &profile,
        "service_name=\"prometheus\"",
        "(2 rows)",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let file = folder.path().join("dump.txt");
    let (success, printed, errors) = goroutines(&["prometheus", "-o", &file.to_string_lossy()]);
    assert!(success && printed.is_empty(), "{errors}");
    let saved = std::fs::read_to_string(&file).unwrap();
    let (success, printed, errors) = goroutines(&[&target, "--component", COMPONENT]);
    assert!(success, "{errors}");
    for dump in [saved, String::from_utf8(printed).unwrap()] {
        assert!(dump.starts_with("goroutine "), "{dump}");
        let main = dump.split("\n\n").find(|stack| stack.starts_with("goroutine 1 ["));
        assert!(main.is_some_and(|stack| stack.contains("main.main()")), "{dump}");
        assert!(dump.contains("net/http/pprof."), "{dump}");
    }
    for (arguments, reason) in [
        (&["dead"][..], "HTTP status 502 Bad Gateway: cannot reach the target"),
        (&["nobody"], "no target has `nobody` in its URL or labels"),
        (&["debug/pprof"], "`debug/pprof` stands for 2 targets"),
        (
            &["x", "--component", "pyroscope.scrape.none"],
            "the collector has no component `pyroscope.scrape.none`",
        ),
        (
            &["x", "--component", "pyroscope.write.default"],
            "scrapes no goroutines right now",
        ),
    ] {
        let (success, _, errors) = goroutines(arguments);
        assert!(!success && errors.contains(reason), "{arguments:?}: {errors}");
    }
    let (success, _, errors) = run(&["goroutines", "prometheus", "--collector", &page]);
    assert!(!success && errors.contains("HTTP status 401"), "{errors}");
    let wrong_path = format!("{url}/nowhere");
    for arguments in [&[][..], &["x", "--component", COMPONENT]] {
        let collector = ["goroutines", "--collector", &wrong_path];
        let known = ["--username", "u", "--password-file", &password];
        let (success, _, errors) = run(&[&collector[..], &known, arguments].concat());
        assert!(!success && errors.contains("is not the URL of a collector"), "{errors}");
    }

    let request = async |method: &str, path: &str, target: &str, headers: &[(&str, &str)]| {
        let query: String = url::form_urlencoded::byte_serialize(target.as_bytes()).collect();
        let mut request = http.request(method.parse().unwrap(), format!("{url}{path}?target={query}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        (status, answer.text().await.unwrap())
    };
    let known = ("authorization", "Basic dTpw");
    let dump = format!("/agent/api/v0/web/goroutines/{COMPONENT}");
    let direct = format!("/api/v0/component/{COMPONENT}/goroutines");
    for (method, path, target, headers, status) in [
        ("POST", dump.as_str(), profile.as_str(), &[known][..], 200),
        ("POST", &direct, &profile, &[known], 200),
        ("POST", &dump, &profile, &[], 401),
        ("POST", &direct, &profile, &[], 401),
        (
            "POST",
            &dump,
            &profile,
            &[known, ("origin", "http://evil.example")],
            403,
        ),
        ("POST", &dump, &profile, &[known, ("sec-fetch-site", "cross-site")], 403),
        ("GET", &dump, &profile, &[known], 405),
        ("GET", &direct, &profile, &[known], 405),
        ("POST", &dump, &format!("{url}/metrics"), &[known], 404),
        ("POST", &dump, &profile.replace("goroutine", "allocs"), &[known], 404),
        (
            "POST",
            "/agent/api/v0/web/goroutines/pyroscope.scrape.outer",
            &profile,
            &[known],
            404,
        ),
        (
            "POST",
            "/agent/api/v0/web/goroutines/pyroscope.scrape.none",
            &profile,
            &[known],
            404,
        ),
        (
            "POST",
            "/agent/api/v0/web/goroutines/pyroscope.write.default",
            &profile,
            &[known],
            404,
        ),
    ] {
        let (answered, text) = request(method, path, target, headers).await;
        assert_eq!(answered, status, "{method} {path} {target} {headers:?}: {text}");
        assert_eq!(text.starts_with("goroutine "), status == 200, "{text}");
    }
    assert!(collector.terminate().success(), "{}", collector.tail());
}
