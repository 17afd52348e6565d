//! The Debian package: installed, upgraded, removed and purged by dpkg below a folder.
//!
//! dpkg runs the scripts of the package without a chroot and sets `DPKG_ROOT` to the folder. The scripts create the
//! server's user in that folder. The test needs root, because dpkg sets the owners of files.

use std::path::Path;
use std::process::{Command, Stdio};

use super::files;
use crate::program::other;
use crate::tidy::root;

/// Runs dpkg on the system below `folder` and returns its output.
fn dpkg(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("dpkg")
        .arg(format!("--root={}", folder.display()))
        .args(["--force-depends", "--force-script-chrootless", "--force-confold"])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{arguments:?}: {text}");
    text
}

/// Returns the files of the system below `folder`, except dpkg's own records and the files that list users and groups.
fn left(folder: &Path) -> Vec<String> {
    let mut files = files(folder);
    let users = ["etc/group", "etc/gshadow", "etc/passwd", "etc/shadow", "etc/.pwd.lock"];
    let is_users = |file: &str| users.iter().any(|name| file.trim_end_matches('-') == *name);
    files.retain(|file| !file.starts_with("var/lib/dpkg/") && !file.starts_with("var/log/") && !is_users(file));
    files
}

#[test]
fn a_package_keeps_data_and_own_configuration_until_it_is_purged() {
    if other("dpkg-shlibdeps", &["--version"], "the Debian package dpkg-dev").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(root().join("deploy/debian/build"))
        .env("PROGRAM", env!("CARGO_BIN_EXE_alluvium"))
        .env("TO", folder.path())
        .env("COMPRESSION", "none")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let package = folder.path().join(&files(folder.path())[0]);
    let package = package.to_str().unwrap();
    let version = concat!("alluvium_", env!("CARGO_PKG_VERSION"), "_");
    assert!(package.contains(version) && package.ends_with(".deb"), "{package}");

    let system = folder.path().join("system");
    for own in ["info", "updates", "triggers"] {
        std::fs::create_dir_all(system.join("var/lib/dpkg").join(own)).unwrap();
    }
    for list in ["status", "available"] {
        std::fs::write(system.join("var/lib/dpkg").join(list), "").unwrap();
    }
    dpkg(&system, &["--install", package]);
    let users = std::fs::read_to_string(system.join("etc/passwd")).unwrap();
    assert!(users.contains(":/var/lib/alluvium:/usr/sbin/nologin"), "{users}");
    let program = Command::new(system.join("usr/bin/alluvium"))
        .arg("--version")
        .output()
        .unwrap();
    assert!(program.status.success());
    for there in [
        "usr/lib/systemd/system/alluvium-server.service",
        "usr/share/man/man1/alluvium-serve.1.gz",
    ] {
        assert!(system.join(there).exists(), "{there}");
    }

    let (data, own) = (
        system.join("var/lib/alluvium/VERSION"),
        system.join("etc/alluvium/server.yaml"),
    );
    std::fs::create_dir_all(data.parent().unwrap()).unwrap();
    std::fs::write(&data, "1").unwrap();
    std::fs::write(&own, "server: {}\n").unwrap();
    dpkg(&system, &["--install", package]);
    dpkg(&system, &["--remove", "alluvium"]);
    let kept = [
        "etc/alluvium/collector/collector.alloy",
        "etc/alluvium/server.yaml",
        "var/lib/alluvium/VERSION",
    ];
    assert_eq!(left(&system), kept);
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "server: {}\n");
    dpkg(&system, &["--purge", "alluvium"]);
    assert_eq!(left(&system), [""; 0]);
}
