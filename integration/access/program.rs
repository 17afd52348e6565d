//! Tests access control with whole programs: the addresses on which the server agrees to listen, the requests of
//! Alluvium's clients and of a collector with tokens, and the token commands.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harness::client;
use crate::program::{Address, PATIENCE, Program, run, sql};

/// Runs the program with a text on standard input. Returns whether it succeeded, its standard output and its standard
/// error.
fn run_with(arguments: &[&str], input: &str) -> (bool, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// Creates a token of the server with this data folder.
fn token(data: &str, name: &str, role: &str) -> String {
    let (is_well, output, errors) = run(&["token", "new", name, "--role", role, "--data", data]);
    assert!(is_well, "{errors}");
    String::from_utf8(output).unwrap().trim().to_owned()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

#[test]
fn an_address_of_other_machines_is_not_listened_on_without_a_word_about_who_may_come() {
    let folder = tempfile::tempdir().unwrap();
    let data = path(folder.path(), "data");
    let serve = ["serve", "--listen", "0.0.0.0:0", "--data", &data];
    let (is_well, _, errors) = run(&serve);
    assert!(!is_well);
    for way_out in ["alluvium token new", "--auth FILE", "--auth none"] {
        assert!(errors.contains(way_out), "{errors}");
    }
    // The server has not touched the data folder.
    assert!(!folder.path().join("data/wal").exists());
    let (is_well, _, errors) = run(&["demo", "--only-self", "--listen", "0.0.0.0:0", "--data", &data]);
    assert!(!is_well && errors.contains("--auth none"), "{errors}");
    let users = path(folder.path(), "users");
    let (is_well, _, errors) = run(&["serve", "--listen", "127.0.0.1:0", "--auth", &users, "--data", &data]);
    assert!(!is_well && errors.contains("there is no such file"), "{errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_of_the_three_ways_lets_the_server_listen_for_other_machines() {
    let folder = tempfile::tempdir().unwrap();
    let (is_well, line, _) = run_with(
        &["token", "password", "ada", "--role", "admin"],
        "correct horse battery\n",
    );
    assert!(is_well && line.starts_with("ada:$argon2id$v=19$"), "{line}");
    let users = path(folder.path(), "people");
    std::fs::write(&users, line).unwrap();
    for (name, auth, told) in [
        ("open", Some("none"), "can reach this port without a password"),
        ("token", None, "in the clear"),
        ("users", Some(users.as_str()), "in the clear"),
    ] {
        let data = path(folder.path(), name);
        if name == "token" {
            token(&data, "me", "admin");
        }
        let log = folder.path().join(format!("{name}.log"));
        let mut arguments = vec!["serve", "--listen", "0.0.0.0:0", "--data", &data];
        arguments.extend(auth.into_iter().flat_map(|auth| ["--auth", auth]));
        let mut server = Program::alluvium(&arguments, &log);
        let deadline = Instant::now() + PATIENCE;
        let text = || std::fs::read_to_string(&log).unwrap();
        while !text().contains("msg=serving") {
            server.check();
            assert!(Instant::now() < deadline, "timed out\n{}", text());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(server.terminate().success());
        assert_eq!(text().matches(told).count(), 1, "{}", text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_clients_and_a_collector_come_in_with_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let data = path(folder.path(), "data");
    let (reader, writer) = (token(&data, "reader", "read"), token(&data, "writer", "write"));
    let (address, own) = (Address::keep(), Address::keep());
    let url = format!("http://{address}");
    let log = folder.path().join("serve.log");
    let mut server = Program::alluvium(&["serve", "--listen", &address, "--data", &data], &log);
    server.ready(&client(), &format!("{url}/ready")).await;

    let file = path(folder.path(), "writer.token");
    std::fs::write(&file, format!("{writer}\n")).unwrap();
    let profile = concat!(env!("CARGO_MANIFEST_DIR"), "/integration/fixtures/pprof/go-cpu.pb.gz");
    let upload = ["upload", profile, "--override-timestamp", "now", "--url", &url];
    let (is_well, _, errors) = run(&upload);
    assert!(!is_well && errors.contains("authentication required"), "{errors}");
    let (is_well, _, errors) = run(&[&upload[..], &["--token-file", &file]].concat());
    assert!(is_well, "{errors}");
    let query = ["sql", "SELECT count(*) FROM profiles", "--url", &url, "--token"];
    let (is_well, _, errors) = run(&[&query[..], &[&writer]].concat());
    assert!(!is_well && errors.contains("lacks the role `read`"), "{errors}");
    let (is_well, output, errors) = run(&[&query[..], &[&reader]].concat());
    assert!(is_well && String::from_utf8(output).unwrap().contains('1'), "{errors}");

    // The collector scrapes itself. Its profiles are found under its name.
    let config = path(folder.path(), "collector.alloy");
    let text = format!(
        "pyroscope.scrape \"self\" {{\n  targets = [{{\"__address__\" = \"{own}\", \"service_name\" = \"collector\"}}]\
         \n  forward_to = [pyroscope.write.server.receiver]\n  scrape_interval = \"2s\"\n}}\n\
         pyroscope.write \"server\" {{\n  endpoint {{\n    url = \"{url}\"\n    bearer_token_file = \"{file}\"\n  }}\n\
         }}\n"
    );
    std::fs::write(&config, text).unwrap();
    let storage = path(folder.path(), "collector");
    let arguments = [
        "run",
        &config,
        "--storage.path",
        &storage,
        "--server.http.listen-addr",
        &own,
    ];
    let mut collector = Program::alluvium(&arguments, &folder.path().join("run.log"));
    let mut headers = http::HeaderMap::new();
    headers.insert("authorization", format!("Bearer {reader}").parse().unwrap());
    let asking = reqwest::Client::builder()
        .no_proxy()
        .default_headers(headers)
        .build()
        .unwrap();
    let deadline = Instant::now() + PATIENCE;
    let found = "SELECT count(*) > 0 FROM series WHERE service_name = 'collector'";
    while sql(&asking, &url, found).await[0][0] != "true" {
        collector.check();
        assert!(Instant::now() < deadline, "nothing arrives\n{}", collector.tail());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(collector.terminate().success() && server.terminate().success());
}

#[test]
fn tokens_are_made_listed_and_revoked_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let file = path(folder.path(), "tokens.json");
    let with = |words: &[&str]| {
        let (is_well, output, errors) = run(&[&["token"], words, &["--tokens", &file]].concat());
        (is_well, String::from_utf8(output).unwrap(), errors)
    };
    let (is_well, token, told) = with(&["new", "shop", "--role", "read", "--role", "write", "--tenant", "team-a"]);
    assert!(
        is_well && token.starts_with("allu_") && told.contains("not shown again"),
        "{told}"
    );
    let (_, list, _) = with(&["list"]);
    assert!(
        list.contains("shop") && list.contains("read,write") && list.contains("team-a"),
        "{list}"
    );
    assert!(!list.contains(token.trim()));
    let (is_well, _, errors) = with(&["new", "shop"]);
    assert!(!is_well && errors.contains("revoke it first"), "{errors}");
    assert!(with(&["revoke", "shop"]).0);
    let (is_well, _, errors) = with(&["revoke", "shop"]);
    assert!(!is_well && errors.contains("there is no token `shop`"), "{errors}");
    let (is_well, _, errors) = with(&["new", "desk", "--role", "root"]);
    assert!(!is_well && errors.contains("`root` is not a role"), "{errors}");
    assert!(!run_with(&["token", "password", "ada"], "short\n").0);
}
