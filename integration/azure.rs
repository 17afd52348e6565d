//! Tables in an Azure Blob Storage container, on Azure's emulator. Two servers, one of which is killed and restarted,
//! neither lose nor duplicate acknowledged profiles.
//!
//! `ALLUVIUM_AZURITE` names Azurite's program, which runs on Node (`make tools` sets it up). The test does not cover
//! features that only the real service has: roles, customer-managed keys, and encryption.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use crate::harness::client;
use crate::kill::check;
use crate::objects::{Server, push_for};
use crate::program::{Address, PATIENCE, Program, file_of, other, run};

/// Account of the emulator. Every installation has the same account and key:
/// <https://learn.microsoft.com/azure/storage/common/storage-connect-azurite>.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const CONTAINER: &str = "profiles";

/// Creates the container with a request signed as in "Authorize with Shared Key", and prints the status.
const CREATE: &str = r#"
import base64, email.utils, hashlib, hmac, sys, urllib.error, urllib.request
address, account, key, container = sys.argv[1:]
date = email.utils.formatdate(usegmt=True)
headers = f"x-ms-date:{date}\nx-ms-version:2021-08-06\n"
text = "PUT\n" + "\n" * 11 + headers + f"/{account}/{account}/{container}\nrestype:container"
signature = base64.b64encode(hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()).decode()
request = urllib.request.Request(f"http://{address}/{account}/{container}?restype=container", method="PUT")
request.add_header("x-ms-date", date)
request.add_header("x-ms-version", "2021-08-06")
request.add_header("Authorization", f"SharedKey {account}:{signature}")
try:
    print(urllib.request.urlopen(request, timeout=10).status)
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
except OSError as error:
    print(error)
"#;

struct Azurite {
    address: Address,
    process: Program,
}

impl Azurite {
    /// Starts the emulator in `folder` and creates the container. Returns `None` if the emulator is not installed.
    async fn start(folder: &Path) -> Option<Self> {
        let program = file_of("ALLUVIUM_AZURITE", "Azurite (the npm package azurite)")?;
        let node = other("node", &["--version"], "nodejs")?;
        let python = std::env::var("ALLUVIUM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let python = other(&python, &["--version"], "python3")?;
        let address = Address::keep();
        let (host, port) = address.split_once(':').unwrap();
        let mut command = Command::new(node);
        command
            .arg(program)
            .args([
                "--blobHost",
                host,
                "--blobPort",
                port,
                "--skipApiVersionCheck",
                "--disableTelemetry",
                "--silent",
            ])
            .arg("--location")
            .arg(folder.join("azurite"));
        let mut process = Program::start(command, &folder.join("azurite.log"));
        let deadline = Instant::now() + PATIENCE;
        loop {
            process.check();
            let output = Command::new(&python)
                .args(["-c", CREATE, &address, ACCOUNT, KEY, CONTAINER])
                .output()
                .unwrap();
            let answer = String::from_utf8_lossy(&output.stdout).into_owned();
            if answer.trim() == "201" || answer.starts_with("409") {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "no container: {answer}{}\n{}",
                String::from_utf8_lossy(&output.stderr),
                process.tail()
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        Some(Self { address, process })
    }

    /// Returns the section `storage` of a server's configuration.
    fn storage(&self) -> String {
        format!(
            "storage:\n  backend: azure\n  prefix: tables\n  sync_interval: 500ms\n  azure:\
             \n    account_name: {ACCOUNT}\n    account_key: {KEY}\n    container_name: {CONTAINER}\
             \n    endpoint: http://{}/{ACCOUNT}\n",
            self.address
        )
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_an_azure_container_and_nothing_is_lost_or_doubled() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut azurite) = Azurite::start(folder.path()).await else {
        return;
    };
    let storage = azurite.storage();
    let mut first = Server::start(folder.path(), "a", &storage).await;
    let mut second = Server::start(folder.path(), "b", &storage).await;
    let next = Arc::new(AtomicU64::new(1));
    let mut acknowledged = BTreeSet::new();
    for _ in 0..2 {
        // Both servers flush every second, so they compete for the same entry numbers of the table logs.
        let (one, other) = tokio::join!(
            push_for(&first.url, &next, Duration::from_secs(2)),
            push_for(&second.url, &next, Duration::from_secs(2))
        );
        acknowledged.extend(one);
        acknowledged.extend(other);
        first.process.kill();
        first.restart().await;
    }
    assert!(!acknowledged.is_empty(), "{}", azurite.process.tail());
    first.flush().await;
    second.flush().await;
    // Once a server has read the table logs, it sees the profiles that the other server flushed.
    for server in [&first, &second] {
        let deadline = Instant::now() + PATIENCE;
        while crate::objects::numbers(&server.url, "profiles", "total").await.len() < acknowledged.len() {
            assert!(
                Instant::now() < deadline,
                "not all profiles are visible\n{}",
                server.process.tail()
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        check(&client(), &server.url, &acknowledged, 0).await;
    }
    for server in [&mut first, &mut second] {
        let status = server.process.terminate();
        assert!(status.success(), "{status}\n{}", server.process.tail());
        let log = std::fs::read_to_string(&server.log).unwrap();
        assert!(!log.contains(KEY), "the key is in the log");
    }
    azurite.process.check();
    let data = folder.path().join("a/data").to_string_lossy().into_owned();
    let config = folder.path().join("a/server.yaml").to_string_lossy().into_owned();
    for command in ["check", "compact"] {
        let (good, out, errors) = run(&["store", command, &data, "--config", &config]);
        assert!(good, "{command}: {}{errors}", String::from_utf8_lossy(&out));
    }
    println!(
        "{} profiles acknowledged by two servers, each stored once",
        acknowledged.len()
    );
}
