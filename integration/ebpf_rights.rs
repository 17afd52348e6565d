//! The eBPF profiler when permissions or kernel features are missing, or when it is killed: its messages, the features
//! that still work, and the objects that remain in the kernel.
//!
//! In: the program behind launchers that remove permissions, and a C program that refuses system calls. Out: messages,
//! exit statuses, files, and the objects that the kernel still has. The tests need root.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::ebpf::compile;
use crate::program::{Address, PATIENCE, Program, client, other};

/// Runs `alluvium record -- true` behind a launcher. Returns whether it succeeded, its output, and whether it wrote its
/// file.
fn record_behind(launcher: &[&str]) -> (bool, String, bool) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.pb.gz");
    let output = Command::new(launcher[0])
        .args(&launcher[1..])
        .arg(env!("CARGO_BIN_EXE_alluvium"))
        .args(["record", "-o"])
        .arg(&file)
        .args(["--", "true"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), text, file.exists())
}

#[test]
fn without_a_capability_the_command_says_which_one_and_writes_nothing() {
    let Some(_) = other("setpriv", &["--version"], "util-linux") else {
        return;
    };
    for (dropped, name) in [
        ("-perfmon,-sys_admin", "missing capability CAP_PERFMON"),
        ("-bpf,-perfmon,-sys_admin", "missing capability CAP_PERFMON"),
        ("-sys_ptrace", "missing capability CAP_SYS_PTRACE"),
        ("-all", "missing capability"),
    ] {
        let (is_well, text, is_written) = record_behind(&["setpriv", &format!("--bounding-set={dropped}"), "--"]);
        assert!(!is_well && text.contains(name), "{dropped}: {text}");
        assert!(!is_written);
    }
}

#[test]
fn where_only_the_program_is_refused_perf_events_are_used_and_the_reason_is_told() {
    let Some(_) = other("setpriv", &["--version"], "util-linux") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let refuse = compile(folder.path(), "refuse", &["-O1"]);
    let refuse = refuse.to_str().unwrap();
    // bpf(2) has the number 321 on x86-64.
    for (launcher, reason) in [
        (
            vec!["setpriv", "--bounding-set=-bpf,-sys_admin", "--"],
            "missing capability CAP_BPF",
        ),
        (vec![refuse, "321"], "the kernel refuses the BPF program"),
        (
            vec![
                "unshare",
                "-m",
                "sh",
                "-c",
                "mount -t tmpfs none /sys/kernel/btf && exec \"$@\"",
                "sh",
            ],
            "the kernel has no BTF",
        ),
    ] {
        let (is_well, text, is_written) = record_behind(&launcher);
        assert!(is_well && is_written, "{launcher:?}: {text}");
        assert!(
            text.contains("by perf events without a BPF program"),
            "{launcher:?}: {text}"
        );
        assert!(text.contains(reason), "{launcher:?}: {text}");
    }
}

#[test]
fn where_both_calls_are_refused_the_command_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let refuse = compile(folder.path(), "refuse", &["-O1"]);
    // bpf(2) and perf_event_open(2).
    let (is_well, text, is_written) = record_behind(&[refuse.to_str().unwrap(), "321,298"]);
    assert!(!is_well && !is_written);
    assert!(text.contains("the kernel refuses the BPF program"), "{text}");
    let (is_well, text, _) = record_behind(&[refuse.to_str().unwrap(), "298"]);
    assert!(!is_well && text.contains("cannot open a perf event on cpu"), "{text}");
}

#[test]
fn a_pipeline_without_rights_says_what_is_missing_and_all_else_of_it_works() {
    let Some(_) = other("setpriv", &["--version"], "util-linux") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (own, nobody) = (Address::keep(), Address::keep());
    let config = folder.path().join("collector.alloy");
    let text = format!(
        "pyroscope.ebpf \"machine\" {{\n  targets_only = false\n  forward_to = [pyroscope.write.away.receiver]\n}}\n\
         pyroscope.scrape \"self\" {{\n  targets = [{{\"__address__\" = \"{own}\", \"service_name\" = \"self\"}}]\n  \
         forward_to = [pyroscope.write.away.receiver]\n  scrape_interval = \"1s\"\n  \
         profiling_config {{\n    profile.process_cpu {{\n      enabled = false\n    }}\n  }}\n}}\n\
         pyroscope.write \"away\" {{\n  endpoint {{\n    url = \"http://{nobody}\"\n  }}\n}}\n"
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new("setpriv");
    command
        .args([
            "--bounding-set=-bpf,-perfmon,-sys_admin",
            "--",
            env!("CARGO_BIN_EXE_alluvium"),
            "run",
        ])
        .arg(format!("--server.http.listen-addr={own}"))
        .arg(format!("--storage.path={}", folder.path().join("storage").display()))
        .arg(&config);
    let mut collector = Program::start(command, &folder.path().join("run.log"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let http = client();
        let get = async |path: &str| {
            let answer = http.get(format!("http://{own}{path}")).send().await.unwrap();
            answer.text().await.unwrap()
        };
        collector.ready(&http, &format!("http://{own}/-/ready")).await;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let health = get("/api/v0/web/components/pyroscope.ebpf.machine").await;
            let metrics = get("/metrics").await;
            let is_told = health.contains("missing capability CAP_PERFMON") && health.contains("unhealthy");
            let waits = metrics
                .lines()
                .filter(|line| line.starts_with("pyroscope_write_queue_profiles"))
                .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
                .sum::<f64>();
            // The scraped profiles wait in the queue, because no server listens at the address of the endpoint.
            if is_told && waits >= 2.0 {
                break;
            }
            collector.check();
            assert!(
                Instant::now() < deadline,
                "{waits} profiles wait; {health}\n{}",
                collector.tail()
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        assert!(get("/-/healthy").await.contains("pyroscope.ebpf.machine"));
    });
    assert!(collector.terminate().success());
}

/// Returns the kernel's ids of the programs and the maps that a process holds.
fn kernel_ids(pid: u32) -> (Vec<u32>, Vec<u32>) {
    let (mut programs, mut maps) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(format!("/proc/{pid}/fdinfo"))
        .into_iter()
        .flatten()
        .flatten()
    {
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        for line in text.lines() {
            let number = |prefix| {
                line.strip_prefix(prefix)
                    .and_then(|id: &str| id.trim().parse::<u32>().ok())
            };
            programs.extend(number("prog_id:"));
            maps.extend(number("map_id:"));
        }
    }
    (programs, maps)
}

#[test]
fn killed_at_any_moment_it_leaves_nothing_in_the_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for round in 0..8_u64 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_alluvium"))
            .args(["record", "--all", "-F", "499", "-o"])
            .arg(folder.path().join("never.pb.gz"))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Each round kills the process later than the previous round: first during loading, then during sampling.
        let until = Instant::now() + Duration::from_millis(round * 150);
        let (mut programs, mut maps) = (Vec::new(), Vec::new());
        while Instant::now() < until || (round > 3 && maps.len() < 4 && Instant::now() < until + PATIENCE) {
            (programs, maps) = kernel_ids(child.id());
            std::thread::sleep(Duration::from_millis(10));
        }
        seen += maps.len();
        child.kill().unwrap();
        child.wait().unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = aya::programs::loaded_programs()
                .flatten()
                .any(|info| programs.contains(&info.id()))
                || aya::maps::loaded_maps().flatten().any(|info| maps.contains(&info.id()));
            if !left {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "round {round}: something is left of {programs:?} {maps:?}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
    assert!(seen >= 12, "no maps were seen");
    assert!(!folder.path().join("never.pb.gz").exists());
}

#[test]
fn bad_requests_are_refused_in_one_line() {
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_alluvium"))
            .arg("record")
            .args(arguments)
            .output()
            .unwrap();
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(run(&[]).contains("nothing to record"));
    assert!(run(&["--pid", "4194305"]).contains("there is no process 4194305"));
    assert!(run(&["-o", "x.txt", "--", "true"]).contains("cannot determine the format of x.txt"));
    assert!(run(&["--", "/no/such/program"]).contains("cannot start /no/such/program"));
}
