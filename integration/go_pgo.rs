//! Profile-guided optimization from end to end. A Go program's profiles are pushed in pieces to a real server, merged
//! by `alluvium pgo`, and used by Go's compiler.
//!
//! Scenario: a program that spends its time in one call of an interface, which mostly reaches the same implementation.
//! Guarantee: with the merged profile, the compiler reports that it devirtualises this call. Without the profile, it
//! does not. For this, the compiler needs the line of each call relative to the start of its function. The test prints
//! the gain.

use std::path::Path;
use std::process::Command;

use alluvium_profile::{Labels, RawProfile};
use alluvium_wire::call::Caller;
use alluvium_wire::push::PushClient;

use crate::harness::client;
use crate::program::{Address, Program, other};

/// Number of profiles that the program records of itself, each for half a second.
const PIECES: usize = 3;

/// Without arguments, the program prints the nanoseconds of a fixed piece of work. With a folder and a number, it
/// writes that many profiles there.
const PROGRAM: &str = r#"package main

import (
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"time"
)

type shape interface {
	area(scale int) int
}

type square struct{ side int }

type circle struct{ radius int }

func (s *square) area(scale int) int { return s.side*scale ^ scale }

func (c *circle) area(scale int) int { return 3*c.radius*scale ^ scale }

// total calls an implementation that nobody knows when it is compiled.
//
//go:noinline
func total(shapes []shape, scale int) int {
	sum := 0
	for _, s := range shapes {
		sum += s.area(scale)
	}
	return sum
}

var result int

func work(shapes []shape, rounds int) {
	for round := range rounds {
		result += total(shapes, round)
	}
}

func main() {
	shapes := make([]shape, 1000)
	for at := range shapes {
		shapes[at] = &square{at}
		if at%100 == 7 {
			shapes[at] = &circle{at}
		}
	}
	if len(os.Args) < 2 {
		start := time.Now()
		work(shapes, 300_000)
		os.Stdout.WriteString(strconv.FormatInt(time.Since(start).Nanoseconds(), 10))
		return
	}
	pieces, _ := strconv.Atoi(os.Args[2])
	for piece := range pieces {
		file, err := os.Create(filepath.Join(os.Args[1], strconv.Itoa(piece)+".pb.gz"))
		if err != nil {
			panic(err)
		}
		if err := pprof.StartCPUProfile(file); err != nil {
			panic(err)
		}
		for start := time.Now(); time.Since(start) < 500*time.Millisecond; {
			work(shapes, 100)
		}
		pprof.StopCPUProfile()
		file.Close()
	}
}
"#;

/// Builds the program and returns the compiler's output about its decisions.
fn build(folder: &Path, name: &str, pgo: &str) -> String {
    let output = Command::new("go")
        .args(["build", "-gcflags=-m", &format!("-pgo={pgo}"), "-o", name, "."])
        .current_dir(folder)
        .env("GOFLAGS", "-mod=mod")
        .env("GOTOOLCHAIN", "local")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

/// Returns the nanoseconds of the program's fixed work, the best of three runs.
fn time(folder: &Path, name: &str) -> u64 {
    let once = |_| {
        let output = Command::new(folder.join(name)).output().unwrap();
        String::from_utf8_lossy(&output.stdout).parse::<u64>().unwrap()
    };
    (0..3).map(once).min().unwrap()
}

fn alluvium(folder: &Path, arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {errors}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_go_program_is_built_with_the_profiles_that_the_server_keeps_of_it() {
    if other("go", &["version"], "the Debian package golang-go").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("source");
    let pieces = folder.path().join("pieces");
    std::fs::create_dir_all(&source).unwrap();
    std::fs::create_dir_all(&pieces).unwrap();
    std::fs::write(source.join("go.mod"), "module example.test/pgo\n\ngo 1.22\n").unwrap();
    std::fs::write(source.join("main.go"), PROGRAM).unwrap();
    let said = "PGO devirtualizing interface call s.area";
    let before = build(&source, "before", "off");
    assert!(!before.contains(said), "{before}");
    let status = Command::new(source.join("before"))
        .arg(&pieces)
        .arg(PIECES.to_string())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");

    let (http, address, data) = (client(), Address::keep(), folder.path().join("data"));
    let url = format!("http://{address}");
    let arguments = ["serve", "--listen", &address, "--data", &data.to_string_lossy()];
    let mut server = Program::alluvium(&arguments, &folder.path().join("serve.log"));
    server.ready(&http, &format!("{url}/ready")).await;
    let pusher = PushClient::new(Caller::new(http.clone(), url.parse().unwrap()));
    for piece in 0..PIECES {
        let labels = [
            ("__name__", "process_cpu"),
            ("service_name", "pgo"),
            ("pod", ["one", "two"][piece % 2]),
        ];
        let profile = RawProfile {
            labels: Labels::from_pairs(labels),
            id: "".into(),
            pprof: std::fs::read(pieces.join(format!("{piece}.pb.gz"))).unwrap().into(),
        };
        pusher.push(&[profile]).await.unwrap();
        // The first piece is in files, and the others are in memory.
        if piece == 0 {
            let answer = http.post(format!("{url}/flush")).send().await.unwrap();
            assert!(answer.status().is_success(), "{}", server.tail());
        }
    }
    let asked = ["pgo", "{service_name=\"pgo\"}", "--from", "now-1h", "--until", "now+1h"];
    let from_server = [&asked[..], &["--url", &url, "-o", "default.pgo"]].concat();
    alluvium(&source, &from_server);
    let after = build(&source, "after", "default.pgo");
    assert!(after.contains(said), "{after}");
    let version = Command::new("go")
        .args(["version", "-m", "after"])
        .current_dir(&source)
        .output()
        .unwrap();
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    assert!(version.contains("-pgo="), "{version}");

    // The command also reads the same profile from the data folder.
    let data_name = data.to_string_lossy();
    let from_folder = [&asked[..], &["--data", &data_name, "-o", "folder.pgo"]].concat();
    alluvium(&source, &from_folder);
    let read = |name: &str| {
        let bytes = std::fs::read(source.join(name)).unwrap().into();
        alluvium_profile::pprof::gunzip(&bytes, 64 << 20).unwrap()
    };
    let [one, other] = ["default.pgo", "folder.pgo"].map(read);
    let [one, other] = [&one, &other].map(|bytes| alluvium_profile::pprof::decode(bytes).unwrap());
    assert_eq!(one.values.iter().sum::<i64>(), other.values.iter().sum::<i64>());
    assert!(one.functions.iter().any(|function| function.start_line > 1));

    let (slow, fast) = (time(&source, "before"), time(&source, "after"));
    println!(
        "fixed work: {slow} ns without the profile, {fast} ns with it ({:+.1} %)",
        (fast as f64 / slow as f64 - 1.0) * 100.0
    );
}
