//! The readers of the command line on files of different formats, as the whole program.
//!
//! In: the fixtures of pprof, and small files that are written here. Out: what the program prints and writes.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use alluvium::profile::pprof;

use crate::tidy::root;

const FOLDED: &str = "main;work (app.py:12) 30\nmain;rest (app.py:40) 60\nmain 10\n";
const LATER: &str = "main;work (app.py:12) 90\nmain 10\n";

fn alluvium(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(words)
        .output()
        .unwrap()
}

/// What the program prints when it succeeds.
fn printed(words: &[&str]) -> String {
    let output = alluvium(words);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{words:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// What it says when it fails.
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
    let packed = alluvium(&["profile", "--file", &file]).stdout;
    let plain = pprof::gunzip(&packed.into(), 1 << 20).unwrap();
    assert_eq!(plain, bytes);
    assert!(refused(&["top", &file]).contains(&format!("is a file: write --file {file}")));
    let error = refused(&["top", "--file", &written(folder.path(), "a.txt", "Notes")]);
    assert!(
        error.contains("this is no profile that is known (it begins with `Notes`)"),
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
    let tool = Command::new("go")
        .args(["tool", "preprofile", "-i", out, "-o", read.to_str().unwrap()])
        .output();
    match tool {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{errors}");
            let text = std::fs::read_to_string(&read).unwrap();
            assert!(text.contains("main."), "{text}");
        }
        Err(_) => println!("no go on the path: not read by the tool"),
    }
    let heap = fixture("go-allocs.pb.gz");
    assert!(refused(&["pgo", "alloc_space", "--file", &heap, "-o", out]).contains("this is no CPU profile"));
    let folded = written(folder.path(), "app.folded", FOLDED);
    let error = refused(&["pgo", "--file", &folded, "-o", out]);
    assert!(error.contains("no lines at which functions start"), "{error}");
}
