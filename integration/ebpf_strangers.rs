//! The eBPF profiler beside hostile processes. The profiler skips and counts malicious files and parts of files, and
//! keeps running.
//!
//! In: running programs, and pipes, links and foreign files that replace the files of these programs. Out: output and
//! files of `record`. The tests need root.

use std::io::Read;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::ebpf::compile;
use crate::program::{PATIENCE, insist};

/// A running program that is killed on drop.
struct Running(Child);

impl Running {
    fn start(program: &Path, seconds: &str) -> Self {
        let mut command = Command::new(program);
        Self(command.arg(seconds).stdout(Stdio::null()).spawn().unwrap())
    }

    fn map(&self) -> PathBuf {
        format!("/tmp/perf-{}.map", self.0.id()).into()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The program may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = std::fs::remove_file(self.map());
    }
}

/// Waits until a condition holds.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "timed out: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Records a process for one second. Returns the output and the stacks. If the recorder does not end, kills the
/// recorder and fails.
fn record(folder: &Path, pid: u32) -> (String, String) {
    let output = folder.join("out.folded");
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args([
            "record",
            "--top",
            "0",
            "-F",
            "499",
            "-d",
            "1s",
            "--pid",
            &pid.to_string(),
            "-o",
        ])
        .arg(&output)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + PATIENCE;
    while recorder.try_wait().unwrap().is_none() {
        if Instant::now() >= deadline {
            recorder.kill().unwrap();
            recorder.wait().unwrap();
            panic!("the recorder waits for a file of the process");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut said = String::new();
    recorder.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (said, std::fs::read_to_string(output).unwrap())
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Returns whether a line of the summary counts files that were skipped for this reason.
fn counts(said: &str, reason: &str) -> bool {
    said.lines()
        .filter_map(|line| line.strip_prefix("files of processes that were not read: "))
        .any(|reasons| reasons.split(", ").any(|part| part.starts_with(&format!("{reason} "))))
}

#[test]
fn a_pipe_in_the_place_of_a_program_holds_up_nobody_and_the_program_has_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "shares", &["-O2"]);
    let running = Running::start(&program, "600");
    let maps = format!("/proc/{}/maps", running.0.id());
    until("the program is mapped", || {
        std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains("/shares"))
    });
    std::fs::remove_file(&program).unwrap();
    pipe(&program);
    insist(
        || record(folder.path(), running.0.id()),
        |(said, stacks)| {
            if stacks.contains(";main;descend;work;") {
                return Ok(());
            }
            Err(format!("no names in {stacks}\n{said}"))
        },
    );
}

/// The program's file gets 60,000 sections. All note sections cover the same 128 MiB of zeros. The loader ignores
/// sections, so the program still runs.
#[test]
fn a_program_whose_sections_are_all_the_same_endless_notes_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "shares", &["-O2"]);
    let mut bytes = std::fs::read(&program).unwrap();
    bytes.resize(bytes.len().next_multiple_of(4096), 0);
    let table = bytes.len() as u64;
    let (sections, notes) = (60_000_u16, 128_u64 << 20);
    for index in 0..u64::from(sections) {
        // The section is SHT_NOTE over a part of the file that contains only zeros: eleven million notes without a
        // name.
        let kind = if index == 0 { 0_u32 } else { 7 };
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&kind.to_le_bytes());
        for number in [0, 0, 64 << 20, notes, 0, 4, 0_u64] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    bytes[40..48].copy_from_slice(&table.to_le_bytes());
    bytes[60..62].copy_from_slice(&sections.to_le_bytes());
    bytes[62..64].copy_from_slice(&1_u16.to_le_bytes());
    std::fs::write(&program, &bytes).unwrap();
    let file = std::fs::File::options().write(true).open(&program).unwrap();
    file.set_len((64 << 20) + notes).unwrap();
    drop(file);
    let running = Running::start(&program, "600");
    insist(
        || record(folder.path(), running.0.id()),
        |(said, stacks)| {
            let is_counted = said
                .lines()
                .any(|line| line.starts_with("data left out because a limit was reached: ") && line.contains("part "));
            if stacks.contains("shares") && is_counted {
                return Ok(());
            }
            Err(format!("{stacks}\n{said}"))
        },
    );
}

/// On 64-bit Arm, the trampolines of the program have frame pointers, but the result is the same.
#[test]
fn perf_maps_of_others_links_and_pipes_give_no_names_and_hold_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "trampolines", &["-O1", "-fomit-frame-pointer"]);
    let running = Running::start(&program, "600");
    let map = running.map();
    let lines = || std::fs::read_to_string(&map).map_or(0, |text| text.lines().count());
    until("the perf map is written", || lines() == 4);
    let named = |reason: Option<&str>| {
        insist(
            || record(folder.path(), running.0.id()),
            |(said, stacks)| {
                let is_named = stacks.contains("trampolineHalf");
                let is_counted = reason.is_none_or(|reason| counts(said, reason));
                if stacks.contains("spin") && is_named == reason.is_none() && is_counted {
                    return Ok(());
                }
                Err(format!("{reason:?}: {stacks}\n{said}"))
            },
        );
    };
    named(None);
    chown(&map, Some(4711), None).unwrap();
    named(Some("owner"));
    let elsewhere = folder.path().join("elsewhere.map");
    std::fs::copy(&map, &elsewhere).unwrap();
    std::fs::remove_file(&map).unwrap();
    symlink(&elsewhere, &map).unwrap();
    named(Some("link"));
    std::fs::remove_file(&map).unwrap();
    pipe(&map);
    named(Some("not_regular"));
    // The valid file is restored.
    std::fs::remove_file(&map).unwrap();
    std::fs::copy(&elsewhere, &map).unwrap();
    named(None);
}

#[test]
fn a_debug_file_of_another_user_gives_no_names() {
    let folder = tempfile::tempdir().unwrap();
    let program = compile(folder.path(), "shares", &["-O2", "-Wl,--build-id"]);
    let debug = folder.path().join("shares.debug");
    let tool = |arguments: &[&str]| {
        let done = Command::new("objcopy").args(arguments).status().unwrap();
        assert!(done.success(), "objcopy {arguments:?} failed");
    };
    let (binary, beside) = (program.to_str().unwrap(), debug.to_str().unwrap());
    tool(&["--only-keep-debug", binary, beside]);
    tool(&["--strip-all", binary]);
    tool(&[&format!("--add-gnu-debuglink={beside}"), binary]);
    let running = Running::start(&program, "600");
    for (owner, is_named) in [(4711, false), (0, true)] {
        chown(&debug, Some(owner), None).unwrap();
        insist(
            || record(folder.path(), running.0.id()),
            |(said, stacks)| {
                if stacks.contains("half") == is_named && counts(said, "owner") != is_named {
                    return Ok(());
                }
                Err(format!("owner {owner}: {stacks}\n{said}"))
            },
        );
    }
}
