//! The privileges that collector and server drop at startup, seen from outside. The test needs root, which has all
//! privileges.
//!
//! In: `/proc/PID/task/*/status` of the running programs. Out: the capability sets of each thread (capabilities(7)),
//! whether it can gain new privileges (`NoNewPrivs`), and whether its system calls are filtered (`Seccomp`).

use std::collections::BTreeSet;
use std::path::Path;

use crate::program::{Address, Program, client};

/// Capability bits of capabilities(7).
const DAC_OVERRIDE: u64 = 1 << 1;
const FOWNER: u64 = 1 << 3;
const SYS_PTRACE: u64 = 1 << 19;
const SYS_ADMIN: u64 = 1 << 21;
const PERFMON: u64 = 1 << 38;
const BPF: u64 = 1 << 39;

/// Returns the values of a key of `/proc/PID/status` over all threads of a process.
fn of_threads(process: u32, key: &str) -> BTreeSet<String> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let value = |thread: &Path| {
        // A thread may end meanwhile.
        let status = std::fs::read_to_string(thread.join("status")).ok()?;
        let value = status
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        Some(value.trim().to_owned())
    };
    threads.filter_map(|thread| value(&thread.unwrap().path())).collect()
}

/// Returns the capability set that all threads share.
fn capabilities(process: u32, key: &str) -> u64 {
    let sets = of_threads(process, key);
    assert_eq!(sets.len(), 1, "{key} differs by thread: {sets:?}");
    u64::from_str_radix(sets.first().unwrap(), 16).unwrap()
}

fn is_root() -> bool {
    capabilities(std::process::id(), "CapPrm") & SYS_ADMIN != 0
}

/// Checks that each thread has the capabilities `wanted` and none of `given_up`, and cannot regain privileges by
/// starting a program.
fn assert_fenced(process: u32, wanted: u64, given_up: u64) {
    for key in ["CapEff", "CapPrm", "CapBnd"] {
        let held = capabilities(process, key);
        assert_eq!(held & wanted, wanted, "{key} is {held:x}");
        assert_eq!(held & given_up, 0, "{key} is {held:x}");
    }
    assert_eq!(capabilities(process, "CapInh"), 0);
    assert_eq!(capabilities(process, "CapAmb"), 0);
    assert_eq!(of_threads(process, "NoNewPrivs"), BTreeSet::from(["1".to_owned()]));
    assert_eq!(of_threads(process, "Seccomp"), BTreeSet::from(["2".to_owned()]));
}

#[tokio::test]
async fn a_collector_keeps_the_rights_of_its_profilers_and_no_others() {
    if !is_root() {
        println!("skipped: needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (config, storage) = (folder.path().join("empty.alloy"), folder.path().join("data"));
    std::fs::write(&config, "").unwrap();
    let start = |address: &str, flags: &[&str]| {
        let arguments = [
            "run",
            &config.to_string_lossy(),
            "--server.http.listen-addr",
            address,
            "--storage.path",
            &storage.to_string_lossy(),
        ];
        Program::alluvium(&[arguments.as_slice(), flags].concat(), &folder.path().join("log"))
    };
    let address = Address::keep();
    let mut collector = start(&address, &[]);
    collector.ready(&client(), &format!("http://{address}/-/ready")).await;
    assert_fenced(
        collector.id(),
        BPF | PERFMON | SYS_PTRACE,
        SYS_ADMIN | DAC_OVERRIDE | FOWNER,
    );
    assert!(
        !collector.tail().contains("cannot drop privileges"),
        "{}",
        collector.tail()
    );
    assert!(collector.terminate().success());

    let mut collector = start(&address, &["--keep-rights"]);
    collector.ready(&client(), &format!("http://{address}/-/ready")).await;
    assert_eq!(
        capabilities(collector.id(), "CapEff"),
        capabilities(std::process::id(), "CapEff")
    );
    assert_eq!(
        of_threads(collector.id(), "NoNewPrivs"),
        BTreeSet::from(["0".to_owned()])
    );
    assert!(collector.terminate().success());
}

#[cfg(feature = "server")]
#[tokio::test]
async fn a_server_keeps_the_rights_to_files_of_others_and_a_low_port() {
    if !is_root() {
        println!("skipped: needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (address, data) = (Address::keep(), folder.path().join("data"));
    let arguments = ["serve", "--listen", &address, "--data", &data.to_string_lossy()];
    let mut server = Program::alluvium(&arguments, &folder.path().join("log"));
    server.ready(&client(), &format!("http://{address}/ready")).await;
    let (dac_read_search, net_bind_service) = (1 << 2, 1 << 10);
    let wanted = dac_read_search | net_bind_service;
    assert_fenced(server.id(), wanted, !wanted);
    assert!(!server.tail().contains("cannot drop privileges"), "{}", server.tail());
    assert!(server.terminate().success());
}
