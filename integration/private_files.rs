//! Permissions of the files that server and collector keep on the disk: only the user of the process may access them,
//! whatever its umask was at the start.
//!
//! In: real processes that start with `umask 022`. Out: the modes of all folders and files that they create.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::client;
use crate::known;
use crate::program::{Address, PATIENCE, Program};

/// Returns a command that runs the program with the usual umask 022.
fn behind_a_wide_mask(arguments: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 022; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_alluvium")])
        .args(arguments);
    command
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Returns the number of files and folders below a folder. Also returns mode and path of each file whose mode is not
/// 0600, and of each folder whose mode is not 0700.
fn look(folder: &Path) -> (usize, Vec<String>) {
    let (mut seen, mut open) = (0, Vec::new());
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            seen += 1;
            let wanted = if path.is_dir() { 0o700 } else { 0o600 };
            if mode(&path) != wanted {
                open.push(format!("{:o} {}", mode(&path), path.display()));
            }
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    (seen, open)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_keeps_is_for_its_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let log = folder.path().join("serve.log");
    let (address, http) = (Address::keep(), client());
    let url = format!("http://{address}");
    // The second start finds a folder of an older version. The third start finds a folder that its administrator has
    // opened to a group.
    for (start, wanted) in [(0, 0o700), (1, 0o755), (2, 0o750)] {
        if start > 0 {
            std::fs::set_permissions(&data, std::fs::Permissions::from_mode(wanted)).unwrap();
        }
        let arguments = ["serve", "--listen", &address, "--data", data.to_str().unwrap()];
        let mut server = Program::start(behind_a_wide_mask(&arguments), &log);
        server.ready(&http, &format!("{url}/ready")).await;
        known::push(&url, &[("service_name", "shop")]).await;
        assert!(server.terminate().success());
        assert_eq!(mode(&data), wanted, "the administrator's mode is kept");
        let told = std::fs::read_to_string(&log).unwrap();
        assert_eq!(
            told.matches("other users of this machine can read this folder").count(),
            usize::from(start > 0),
            "once, for the folder of the older version\n{told}"
        );
    }
    let done = behind_a_wide_mask(&["store", "compact", data.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let (seen, open) = look(&data);
    assert!(seen > 40 && open.is_empty(), "{seen}: {open:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_collector_keeps_is_for_its_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (own, nobody) = (Address::keep(), Address::keep());
    let config = folder.path().join("collector.alloy");
    let text = format!(
        "pyroscope.scrape \"self\" {{\n  targets = [{{\"__address__\" = \"{own}\", \"service_name\" = \"self\"}}]\n  \
         forward_to = [pyroscope.write.away.receiver]\n  scrape_interval = \"2s\"\n}}\n\
         pyroscope.write \"away\" {{\n  endpoint {{\n    url = \"http://{nobody}\"\n  }}\n}}\n\
         remotecfg {{\n  url = \"http://{nobody}\"\n}}\n"
    );
    std::fs::write(&config, text).unwrap();
    let storage = folder.path().join("storage");
    let arguments = [
        "run".to_owned(),
        format!("--server.http.listen-addr={own}"),
        format!("--storage.path={}", storage.display()),
        config.to_str().unwrap().to_owned(),
    ];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut collector = Program::start(behind_a_wide_mask(&arguments), &folder.path().join("run.log"));
    collector.ready(&client(), &format!("http://{own}/-/ready")).await;
    // Six entries are expected: the collector's id, the queue of the endpoint with its lock and a segment, and the
    // parent folders.
    let deadline = Instant::now() + PATIENCE;
    while look(&storage).0 < 6 {
        collector.check();
        assert!(Instant::now() < deadline, "{:?}\n{}", look(&storage), collector.tail());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    collector.kill();
    let (_, open) = look(&storage);
    assert_eq!((mode(&storage), open), (0o700, Vec::new()));
}
