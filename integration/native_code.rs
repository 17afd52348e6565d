//! Profiles of code without function names, from the push to the export. They contain samples of two processes of a C
//! program at different addresses, and `go tool pprof` symbolizes the profile that the server returns.
//!
//! Guarantee: one instruction of one file is one frame, wherever a process loaded the file. From the exported profile,
//! `go tool pprof` finds the function of that instruction, both for position-independent programs and for programs at a
//! fixed address.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use alluvium_profile::pprof::{self, Builder, Location, Mapping, Profile, ValueType};
use alluvium_profile::{Labels, RawProfile};
use alluvium_wire::call::Caller;
use alluvium_wire::push::PushClient;

use crate::harness::client;
use crate::program::{Address, Program, other};

/// A C program that prints the address of its function `busy_function`, and its memory map.
const SOURCE: &str = r#"
#include <stdio.h>

__attribute__((noinline)) int padding(int number) { return number * 3 + 1; }

/* The function is not on the first page of its segment. */
__asm__(".text\n.skip 20000\n");

__attribute__((noinline)) int busy_function(int number) { return number * 7 + padding(number); }

int main(void) {
	char line[4096];
	FILE *maps = fopen("/proc/self/maps", "r");
	printf("%p\n", (void *)busy_function);
	while (fgets(line, sizeof line, maps))
		fputs(line, stdout);
	return busy_function(1) == 0;
}
"#;

/// Position of an instruction of `busy_function` in a process: its address, and the mapping that contains the address.
struct Place {
    address: u64,
    mapping: (u64, u64, u64),
}

fn compile(folder: &Path, name: &str, flags: &[&str]) -> String {
    let program = folder.join(name);
    let source = folder.join("program.c");
    std::fs::write(&source, SOURCE).unwrap();
    let status = Command::new("gcc")
        .args(flags)
        .args([
            OsStr::new("-O1"),
            OsStr::new("-g"),
            OsStr::new("-o"),
            program.as_os_str(),
            source.as_os_str(),
        ])
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    program.to_string_lossy().into_owned()
}

fn run(program: &str) -> Place {
    let output = Command::new(program).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let mut lines = text.lines();
    // The address is inside of the function and not at its start, as in a sample.
    let address = number(lines.next().unwrap()) + 1;
    let mapping = lines.find_map(|line| {
        let mut cells = line.split_whitespace();
        let (start, limit) = cells.next()?.split_once('-')?;
        let (start, limit, offset) = (number(start), number(limit), number(cells.nth(1)?));
        (start..limit).contains(&address).then_some((start, limit, offset))
    });
    let mapping = mapping.unwrap();
    Place { address, mapping }
}

/// Returns a profile with one sample at this position, without functions.
fn profile(program: &str, place: &Place, value: i64) -> Vec<u8> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let cpu = ValueType {
        kind: "cpu",
        unit: "nanoseconds",
    };
    let mut builder = Builder::new(Profile {
        sample_types: vec![cpu],
        period_type: cpu,
        period: 10_000_000,
        time_nanos: now.as_nanos() as i64,
        ..Profile::default()
    });
    let (start, limit, offset) = place.mapping;
    let mapping = builder.mapping(Mapping {
        start,
        limit,
        offset,
        file: program,
        ..Mapping::default()
    });
    let location = builder.location(mapping, place.address, &[]);
    let outside = builder.location(Location::NO_MAPPING, 0x10, &[]);
    builder.sample([location, outside], [], &[value]);
    pprof::encode(&builder.finish())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_without_names_is_one_frame_in_every_process_and_go_finds_its_function() {
    let needs = [
        ("gcc", "--version", "gcc"),
        ("go", "version", "the Debian package golang-go"),
    ];
    if needs
        .iter()
        .any(|(program, probe, package)| other(program, &[probe], package).is_none())
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (http, address, data) = (client(), Address::keep(), folder.path().join("data"));
    let url = format!("http://{address}");
    let arguments = ["serve", "--listen", &address, "--data", &data.to_string_lossy()];
    let mut server = Program::alluvium(&arguments, &folder.path().join("serve.log"));
    server.ready(&http, &format!("{url}/ready")).await;
    let pusher = PushClient::new(Caller::new(http.clone(), url.parse().unwrap()));
    for (name, flags) in [("anywhere", ["-fPIE", "-pie"]), ("fixed", ["-fno-pie", "-no-pie"])] {
        let program = compile(folder.path(), name, &flags);
        for value in [1_000, 20_000] {
            let raw = RawProfile {
                labels: Labels::from_pairs([("__name__", "process_cpu"), ("service_name", name)]),
                id: "".into(),
                pprof: profile(&program, &run(&program), value).into(),
            };
            pusher.push(&[raw]).await.unwrap();
            // The first profile is in files and the second in memory.
            if value == 1_000 {
                let answer = http.post(format!("{url}/flush")).send().await.unwrap();
                assert!(answer.status().is_success(), "{}", server.tail());
            }
        }
        let (selector, exported) = (
            format!("cpu{{service_name=\"{name}\"}}"),
            folder.path().join(name).with_extension("pb.gz"),
        );
        let output = Command::new(env!("CARGO_BIN_EXE_alluvium"))
            .args([
                "profile", &selector, "--from", "now-1h", "--until", "now+1h", "--url", &url, "-o",
            ])
            .arg(&exported)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let bytes = pprof::gunzip(&std::fs::read(&exported).unwrap().into(), 1 << 20).unwrap();
        let merged = pprof::decode(&bytes).unwrap();
        assert_eq!(
            (merged.locations.len(), &merged.values[..]),
            (2, &[21_000][..]),
            "{merged:?}"
        );
        let output = Command::new("go")
            .args(["tool", "pprof", "-symbolize=local", "-top"])
            .arg(&exported)
            .env("HOME", folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let row = text.lines().find(|line| line.ends_with("  busy_function"));
        let row = row.unwrap_or_else(|| panic!("{name}: {text}{}", String::from_utf8_lossy(&output.stderr)));
        assert!(row.trim_start().starts_with("21us"), "{row}");
    }
}
