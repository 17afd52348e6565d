//! Tests of `.ci/run` and of the targets of the `Makefile`: both must fail if something was not checked.
//!
//! In: `.ci/run` and the `Makefile`, copied into a separate repository, and short scripts that stand in for `make`,
//! `cargo`, `git`, `npm` and `df`. Out: exit status and text.

use std::path::Path;
use std::process::Command;

use crate::tidy::root;

/// Shell command that prints the last line of a successful `cargo test`.
const PASSED: &str = "echo 'test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out'";

/// A repository with `.ci` and the `Makefile`, all committed, and a folder of stand-ins.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        let scratch = Self(tempfile::tempdir().unwrap());
        let clone = scratch.clone();
        for folder in [clone.join(".ci"), clone.join("ui/dist"), scratch.stand_ins()] {
            std::fs::create_dir_all(folder).unwrap();
        }
        for file in [".ci/run", ".ci/tools", "Makefile"] {
            std::fs::copy(root().join(file), clone.join(file)).unwrap();
        }
        for arguments in [
            "init --quiet",
            "add --all",
            "-c user.name=test -c user.email=test@localhost -c core.hooksPath=/dev/null commit --quiet --message all",
        ] {
            let mut git = Command::new("git");
            let done = git.args(arguments.split(' ')).current_dir(&clone).status().unwrap();
            assert!(done.success(), "git {arguments}");
        }
        scratch.stand_in("df", "echo 60");
        scratch
    }

    fn clone(&self) -> std::path::PathBuf {
        self.0.path().join("clone")
    }

    fn stand_ins(&self) -> std::path::PathBuf {
        self.0.path().join("bin")
    }

    /// Replaces the program `name` by this script.
    fn stand_in(&self, name: &str, script: &str) -> &Self {
        let path = self.stand_ins().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        let mut permissions = std::fs::metadata(&path).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        std::fs::set_permissions(&path, permissions).unwrap();
        self
    }

    /// Runs a command line in the repository. Returns whether it succeeded, and its standard output and error as one
    /// text.
    fn run(&self, line: &str) -> (bool, String) {
        let path = std::env::var("PATH").unwrap();
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1; {line}")])
            .current_dir(self.clone())
            .env("PATH", format!("{}:{path}", self.stand_ins().display()))
            .env("ALLUVIUM_CACHE", self.0.path().join("cache"))
            .output()
            .unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    }
}

#[test]
fn a_run_tells_the_time_of_every_step_and_of_all_and_the_sum_of_the_tests() {
    let scratch = Scratch::new();
    scratch.stand_in("make", &format!("echo '== 12 s: cargo something'\n{PASSED}\n{PASSED}"));
    let (is_well, text) = scratch.run(".ci/run");
    assert!(is_well, "{text}");
    let (_, times) = text.split_once("times of the steps:\n").unwrap();
    assert!(times.starts_with("== 12 s: cargo something\n"), "{text}");
    assert!(times.contains(" s: all\n"), "{text}");
    assert!(text.ends_with("total: 6 passed, 0 failed, 0 skipped\n"), "{text}");
}

#[test]
fn no_variable_from_outside_makes_tests_write_or_do_less() {
    let scratch = Scratch::new();
    scratch.stand_in("make", &format!("env\n{PASSED}"));
    let names = [
        "UPDATE_EXPECT",
        "UPDATE_IMAGES",
        "ALLUVIUM_UPDATE_DOCS",
        "ALLUVIUM_KILLS",
        "PROPTEST_CASES",
        "BASE_URL",
    ];
    let outside: String = names.iter().map(|name| format!("{name}=outside ")).collect();
    let (is_well, text) = scratch.run(&format!("{outside} .ci/run"));
    assert!(is_well, "{text}");
    assert!(!text.contains("outside"), "{text}");
    let cache = format!("ALLUVIUM_CACHE={}\n", scratch.0.path().join("cache").display());
    assert!(text.contains("CI=true\n") && text.contains(&cache), "{text}");
}

#[test]
fn what_is_not_committed_fails_before_the_tests_and_after_them() {
    let fails = |prepare: &dyn Fn(&Path), make: &str, reason: &str| {
        let scratch = Scratch::new();
        prepare(&scratch.clone());
        scratch.stand_in("make", &format!("{make}\n{PASSED}"));
        let (is_well, text) = scratch.run(".ci/run");
        assert!(!is_well && text.contains(reason), "{text}");
    };
    let forget = |clone: &Path| std::fs::write(clone.join("forgotten.rs"), "").unwrap();
    fails(&forget, "", "before the tests:\n?? forgotten.rs\n");
    fails(&|_| (), "echo >> Makefile", "after the tests:\n M Makefile\n");
    fails(&|_| (), "touch ui/left", "after the tests:\n?? ui/left\n");
    // If git fails, the check of the clone fails.
    let lose = |clone: &Path| std::fs::remove_dir_all(clone.join(".git")).unwrap();
    fails(&lose, "", "git status failed");
}

#[test]
fn a_full_disk_costs_what_was_built_before_and_is_said_when_that_is_not_enough() {
    for (free, is_enough) in [("[ -d ../cache/target ] && echo 3 || echo 60", true), ("echo 3", false)] {
        let scratch = Scratch::new();
        let built = scratch.0.path().join("cache/target/debug");
        std::fs::create_dir_all(&built).unwrap();
        scratch.stand_in("df", free).stand_in("make", PASSED);
        let (is_well, text) = scratch.run("env -u CARGO_TARGET_DIR .ci/run");
        assert_eq!(is_well, is_enough, "{text}");
        assert!(
            !built.exists() && text.contains("deleting the earlier build output"),
            "{text}"
        );
        assert_eq!(text.contains("need 30 GB"), !is_enough, "{text}");
    }
    // The run does not delete another user's target folder.
    let scratch = Scratch::new();
    scratch.stand_in("df", "echo 3").stand_in("make", PASSED);
    let other = scratch.0.path().join("other");
    std::fs::create_dir_all(&other).unwrap();
    let (is_well, text) = scratch.run(&format!("CARGO_TARGET_DIR={} .ci/run", other.display()));
    assert!(is_well && other.exists() && text.contains("3 GB free"), "{text}");
}

#[test]
fn too_many_skips_fail_and_so_does_a_failure_that_no_step_tells() {
    for (line, reason) in [
        ("test result: ok. 3 passed; 0 failed; 90 ignored", "tests were skipped"),
        ("# pass 3\n# skipped 90", "tests were skipped"),
        ("Tests  3 passed | 90 skipped (93)", "tests were skipped"),
        ("# pass 3\n# fail 1", "a test failed or none was counted"),
        ("nothing", "a test failed or none was counted"),
    ] {
        let scratch = Scratch::new();
        scratch.stand_in("make", &format!("echo '{line}'"));
        let (is_well, text) = scratch.run(".ci/run");
        assert!(!is_well && text.contains(reason), "{line}: {text}");
    }
}

#[test]
fn a_question_that_fails_is_not_taken_for_a_good_answer() {
    let scratch = Scratch::new();
    let tree = |script: &str| {
        scratch.stand_in("cargo", &format!("if [ \"$1\" = tree ]; then {script}; fi"));
        scratch.run("make check-agent")
    };
    assert!(tree("echo tokio v1.0.0").0);
    let (is_well, text) = tree("echo parquet v59.0.0");
    assert!(!is_well && text.contains("depends on the store"), "{text}");
    assert!(!tree("exit 101").0);

    let status = |script: &str| {
        scratch.stand_in("npm", "true").stand_in("git", script);
        scratch.run("make ui-test")
    };
    assert!(status("true").0);
    let (is_well, text) = status("echo ' M ui/dist/index.html'");
    assert!(
        !is_well && text.contains("differs from the build of its sources"),
        "{text}"
    );
    assert!(!status("exit 128").0);
}
