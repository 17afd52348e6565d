//! The files that `make install` installs, and the files that remain after `make uninstall`.

use std::path::Path;
use std::process::Command;

use alluvium::cli::Cli;
use clap::CommandFactory as _;

use super::{files, make};
use crate::harness::client;
use crate::program::{Address, Program, run};

fn arguments(target: &str, folder: &Path) -> Vec<String> {
    vec![
        target.to_owned(),
        format!("DESTDIR={}", folder.display()),
        "PREFIX=/usr".to_owned(),
        format!("PROGRAM={}", env!("CARGO_BIN_EXE_alluvium")),
    ]
}

/// Installs the program below `folder`, as a package would.
pub(super) fn install(folder: &Path) {
    let (is_well, text) = make(&arguments("install", folder));
    assert!(is_well, "{text}");
}

#[test]
fn what_make_install_puts_down_works_and_make_uninstall_takes_away_all_but_data() {
    let folder = tempfile::tempdir().unwrap();
    install(folder.path());
    let program = folder.path().join("usr/bin/alluvium");
    let version = Command::new(&program).arg("--version").output().unwrap();
    assert!(version.status.success());
    let pages = folder.path().join("usr/share/man/man1");
    for command in Cli::command().get_subcommands() {
        let name = command.get_name();
        let page = std::fs::read_to_string(pages.join(format!("alluvium-{name}.1"))).unwrap();
        for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
            // The page escapes its hyphens, so that `man` prints the characters that the user types.
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

    let unit = std::fs::read_to_string(folder.path().join("usr/lib/systemd/system/alluvium-server.service")).unwrap();
    assert!(unit.contains("ExecStart=/usr/bin/alluvium serve"), "{unit}");

    let data = folder.path().join("var/lib/alluvium/VERSION");
    std::fs::create_dir_all(data.parent().unwrap()).unwrap();
    std::fs::write(&data, "1").unwrap();
    let (is_well, text) = make(&arguments("uninstall", folder.path()));
    assert!(is_well, "{text}");
    assert_eq!(files(folder.path()), ["var/lib/alluvium/VERSION"]);
}

#[test]
fn configuration_that_somebody_has_changed_is_neither_overwritten_nor_removed() {
    let folder = tempfile::tempdir().unwrap();
    install(folder.path());
    let own = folder.path().join("etc/alluvium/server.yaml");
    std::fs::write(&own, "server: {}\n").unwrap();
    install(folder.path());
    assert!(make(&arguments("uninstall", folder.path())).0);
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "server: {}\n");
    assert_eq!(files(folder.path()), ["etc/alluvium/server.yaml"]);
}

#[test]
fn the_installed_configuration_starts_both_services() {
    let folder = tempfile::tempdir().unwrap();
    install(folder.path());
    let own = folder.path().join("etc/alluvium");
    // The collector's folder also gets the file for eBPF, which refers to the receiver in the installed configuration.
    std::fs::copy(
        folder.path().join("usr/share/alluvium/ebpf.alloy"),
        own.join("collector/ebpf.alloy"),
    )
    .unwrap();
    let (is_well, _, errors) = run(&["validate", "--strict", &own.join("collector").to_string_lossy()]);
    assert!(is_well, "{errors}");

    let (address, data) = (Address::keep(), folder.path().join("data"));
    let (settings, data) = (own.join("server.yaml"), data.to_string_lossy().into_owned());
    let arguments = [
        "serve",
        "--config",
        &settings.to_string_lossy(),
        "--data",
        &data,
        "--listen",
        &address,
    ];
    let mut server = Program::alluvium(&arguments, &folder.path().join("log"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(server.ready(&client(), &format!("http://{address}/ready")));
    assert!(server.terminate().success());
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
