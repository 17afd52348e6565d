//! Tests of the commands that read files. They run the built program on files of different formats.
//!
//! In: the pprof fixtures, and small files that the test writes. Out: the program's output and files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use alluvium_profile::pprof;

use crate::program::other;
use crate::tidy::root;

const FOLDED: &str = "main;work (app.py:12) 30\nmain;rest (app.py:40) 60\nmain 10\n";
const LATER: &str = "main;work (app.py:12) 90\nmain 10\n";

fn alluvium(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(words)
        .output()
        .unwrap()
}

/// Returns the output of a successful run.
fn printed(words: &[&str]) -> String {
    let output = alluvium(words);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the error text of a failed run.
fn refused(words: &[&str]) -> String {
    let output = alluvium(words);
    assert_eq!(output.status.code(), Some(1), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn written(folder: &Path, name: &str, content: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

fn fixture(name: &str) -> String {
    let path: PathBuf = root().join("integration/fixtures/pprof").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn every_reader_takes_a_file_that_is_no_pprof() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "app.folded", FOLDED);
    let later = written(folder.path(), "later.folded", LATER);
    let top = printed(&["top", "--file", &file, "--by", "line"]);
    let expected = "\
Type: samples
Showing nodes accounting for 100, 100% of 100 total
      flat  flat%   sum%        cum   cum%
        60 60.00% 60.00%         60 60.00%  rest app.py:40
        30 30.00% 90.00%         30 30.00%  work app.py:12
        10 10.00%   100%        100   100%  main
";
    assert_eq!(top, expected);
    let both = printed(&["top", "--file", &file, "--file", &later, "--by", "file", "--cum"]);
    assert!(
        both.contains(" of 200 total\n") && both.contains("       180 90.00%"),
        "{both}"
    );
    let tree = printed(&["tree", "--file", &file, "--focus", "work"]);
    assert!(tree.contains("Active filters:\n   focus=work\n"), "{tree}");
    assert!(tree.contains("30   100% |   work\n"), "{tree}");
    let peek = printed(&["peek", "^work$", "--file", &file]);
    assert!(peek.contains("30   100% |   main\n"), "{peek}");
    assert!(refused(&["peek", "nobody", "--file", &file]).contains("no matches found for regexp: nobody"));
    let source: String = (1..=20).map(|line| format!("line {line}\n")).collect();
    written(folder.path(), "app.py", &source);
    let folder_name = folder.path().to_str().unwrap();
    let list = printed(&["list", "^work$", "--file", &file, "--source-path", folder_name]);
    let expected = "\
Total: 100
ROUTINE ======================== work in app.py
        30         30 (flat, cum) 30.00% of Total
         .          .      7:line 7
         .          .      8:line 8
         .          .      9:line 9
         .          .     10:line 10
         .          .     11:line 11
        30         30     12:line 12
         .          .     13:line 13
         .          .     14:line 14
         .          .     15:line 15
         .          .     16:line 16
         .          .     17:line 17
";
    assert_eq!(list, expected);
    let list = printed(&["list", "^work$", "--file", &file, "--source-path", "/none"]);
    assert!(
        list.ends_with(" Error: could not find file app.py on path /none\n"),
        "{list}"
    );
    let diff = printed(&["diff", "--file", &later, "--base-file", &file, "-n", "1"]);
    assert!(
        diff.ends_with("        60 60.00%          0     0%        -60        -60  rest\n"),
        "{diff}"
    );
    let svg = printed(&["flamegraph", "--file", &file, "-o", "-"]);
    assert!(svg.contains("data-total=\"100\""), "{svg}");
    let series = printed(&["series", "--file", &file]);
    assert_eq!(series, "{__name__=\"process_cpu\", service_name=\"app\"}\n");
}

#[test]
fn a_file_of_any_format_becomes_pprof() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "app.folded", FOLDED);
    let out = folder.path().join("out.pb");
    alluvium(&["profile", "--file", &file, "-o", out.to_str().unwrap()]);
    let bytes = std::fs::read(&out).unwrap();
    let profile = pprof::decode(&bytes).unwrap();
    assert_eq!(profile.values.iter().sum::<i64>(), 100);
    for more in [&[][..], &["-o", "-"]] {
        let packed = alluvium(&[&["profile", "--file", &file], more].concat()).stdout;
        let plain = pprof::gunzip(&packed.into(), 1 << 20).unwrap();
        assert_eq!(plain, bytes, "{more:?}");
    }
    assert!(refused(&["top", &file]).contains(&format!("is a file: write --file {file}")));
    let error = refused(&["top", "--file", &written(folder.path(), "a.txt", "Notes")]);
    assert!(
        error.contains("the format of this file is unknown (it begins with `Notes`)"),
        "{error}"
    );
}

#[test]
fn labels_of_samples_are_listed() {
    let cpu = fixture("go-cpu.pb.gz");
    assert_eq!(printed(&["labels", "--file", &cpu]), "route\n");
    let values = printed(&["labels", "route", "--file", &cpu, "--format", "json"]);
    let values: Vec<String> = serde_json::from_str(&values).unwrap();
    assert!(!values.is_empty());
}

#[test]
fn the_go_toolchain_takes_the_profile_for_its_compiler() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("default.pgo");
    let out = out.to_str().unwrap();
    let cpu = fixture("go-cpu.pb.gz");
    printed(&["pgo", "--file", &cpu, "--file", &cpu, "-o", out]);
    let read = folder.path().join("read");
    if let Some(go) = other("go", &["version"], "golang-go") {
        let output = Command::new(go)
            .args(["tool", "preprofile", "-i", out, "-o", read.to_str().unwrap()])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        let text = std::fs::read_to_string(&read).unwrap();
        assert!(text.contains("main."), "{text}");
    }
    let heap = fixture("go-allocs.pb.gz");
    assert!(refused(&["pgo", "alloc_space", "--file", &heap, "-o", out]).contains("this is not a CPU profile"));
    let folded = written(folder.path(), "app.folded", FOLDED);
    let error = refused(&["pgo", "--file", &folded, "-o", out]);
    assert!(
        error.contains("the profile lacks the start lines of functions"),
        "{error}"
    );
}

#[test]
fn on_a_terminal_a_bar_says_how_far_an_import_is() {
    // `script` from util-linux runs a command in a terminal and copies what the terminal shows.
    let Some(script) = other("script", &["--version"], "bsdutils") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        written(folder.path(), &format!("{name}.txt"), "Notes");
    }
    let import = format!(
        "'{}' import '{}'",
        env!("CARGO_BIN_EXE_alluvium"),
        folder.path().display()
    );
    let output = Command::new(script)
        .args(["--quiet", "--return", "--command", &import, "/dev/null"])
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("/3 "), "{shown:?}");
    assert!(shown.contains("uploaded 0 of 3 files"), "{shown:?}");
    // If standard error is not a terminal, there is no bar.
    let plain = alluvium(&["import", folder.path().to_str().unwrap()]);
    let errors = String::from_utf8(plain.stderr).unwrap();
    assert!(
        !errors.contains("/3 ") && errors.matches("format of this file is unknown").count() == 3,
        "{errors:?}"
    );
}

#[test]
fn an_error_does_not_command_the_terminal_and_a_closed_pipe_is_no_panic() {
    let heap = fixture("go-allocs.pb.gz");
    let error = refused(&["top", "x\u{1b}[2J", "--file", &heap]);
    assert!(error.contains("no sample type `x\u{fffd}[2J`"), "{error:?}");
    let mut upload = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(["upload", &heap, "--url", "http://127.0.0.1:1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(upload.stdout.take());
    assert_eq!(upload.wait().unwrap().code(), Some(1));
}
