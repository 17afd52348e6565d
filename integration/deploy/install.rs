//! `make install` and `make uninstall`: what lies where, and what stays.

use std::path::Path;
use std::process::Command;

use alluvium::cli::Cli;
use clap::CommandFactory as _;

use super::{files, make};

fn arguments(target: &str, folder: &Path) -> Vec<String> {
    vec![
        target.to_owned(),
        format!("DESTDIR={}", folder.display()),
        "PREFIX=/usr".to_owned(),
        format!("PROGRAM={}", env!("CARGO_BIN_EXE_alluvium")),
    ]
}

#[test]
fn what_make_install_puts_down_works_and_make_uninstall_takes_away_all_but_data() {
    let folder = tempfile::tempdir().unwrap();
    let (is_well, text) = make(&arguments("install", folder.path()));
    assert!(is_well, "{text}");

    let program = folder.path().join("usr/bin/alluvium");
    let version = Command::new(&program).arg("--version").output().unwrap();
    assert!(version.status.success());
    let pages = folder.path().join("usr/share/man/man1");
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let page = std::fs::read_to_string(pages.join(format!("alluvium-{name}.1"))).unwrap();
        for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
            // Hyphens are escaped there, so that they stay what is typed.
            let written = format!("\\-\\-{}", flag.replace('-', "\\-"));
            assert!(page.contains(&written), "alluvium-{name}.1 has no --{flag}");
        }
    }
    let bash = folder.path().join("usr/share/bash-completion/completions/alluvium");
    assert!(Command::new("bash").arg("-n").arg(&bash).status().unwrap().success());
    for (place, what) in [
        ("zsh/site-functions/_alluvium", "#compdef alluvium"),
        ("fish/vendor_completions.d/alluvium.fish", "complete -c alluvium"),
    ] {
        let text = std::fs::read_to_string(folder.path().join("usr/share").join(place)).unwrap();
        assert!(text.contains(what), "{place}");
    }

    let data = folder.path().join("var/lib/alluvium/VERSION");
    std::fs::create_dir_all(data.parent().unwrap()).unwrap();
    std::fs::write(&data, "1").unwrap();
    let (is_well, text) = make(&arguments("uninstall", folder.path()));
    assert!(is_well, "{text}");
    assert_eq!(files(folder.path()), ["var/lib/alluvium/VERSION"]);
}

#[test]
fn without_a_program_make_install_says_how_to_build_it_and_installs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = arguments("install", folder.path());
    arguments[3] = "PROGRAM=/no/such/program".to_owned();
    let (is_well, text) = make(&arguments);
    assert!(!is_well && text.contains("make release"), "{text}");
    assert_eq!(files(folder.path()), [] as [&str; 0]);
}
