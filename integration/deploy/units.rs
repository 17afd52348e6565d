//! The systemd units: systemd finds no error, their exposure is low, and eBPF has enough permissions.
//!
//! In: the files that `make install` installs. Out: findings of `systemd-analyze`, and a profile that the collector
//! records with only the permissions of `ebpf.conf`. The recording needs root.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::install::install;
use crate::program::other;
use crate::tidy::root;

/// Maximum exposure level that `systemd-analyze security` may report, in tenths, for the plain units and for the
/// collector with eBPF.
const EXPOSED: [(&str, &str); 3] = [
    ("alluvium-server.service", "13"),
    ("alluvium-collector.service", "13"),
    ("ebpf/alluvium-collector.service", "27"),
];

/// Installs the units, and copies them to the subfolder `ebpf`. There, the collector's unit has the drop-in for eBPF.
/// `ExecStart` of each unit names a program that exists. Returns the folder of the units.
fn units(folder: &Path) -> PathBuf {
    install(folder);
    let units = folder.join("usr/lib/systemd/system");
    let drop_in = units.join("ebpf/alluvium-collector.service.d");
    std::fs::create_dir_all(&drop_in).unwrap();
    std::fs::copy(folder.join("usr/share/alluvium/ebpf.conf"), drop_in.join("ebpf.conf")).unwrap();
    for name in ["alluvium-server.service", "alluvium-collector.service"] {
        let text = std::fs::read_to_string(units.join(name)).unwrap();
        let text = text.replace("ExecStart=/usr/bin/alluvium ", "ExecStart=/bin/true ");
        assert!(text.contains("/bin/true"), "{text}");
        std::fs::write(units.join(name), &text).unwrap();
        std::fs::write(units.join("ebpf").join(name), &text).unwrap();
    }
    units
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units_and_little_that_they_leave_open() {
    let Some(_) = other("systemd-analyze", &["--version"], "the Debian package systemd") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let units = units(folder.path());
    for (unit, exposed) in EXPOSED {
        let analyze = |arguments: &[&str]| {
            let output = Command::new("systemd-analyze")
                .args(arguments)
                .arg(units.join(unit))
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
            assert!(output.status.success(), "{unit} {arguments:?}: {text}");
            text
        };
        assert_eq!(analyze(&["verify", "--man=no"]), "", "{unit}");
        analyze(&["security", "--offline=true", &format!("--threshold={exposed}")]);
    }
}

#[test]
fn the_rights_of_the_drop_in_are_all_that_a_profile_of_the_machine_needs() {
    let text = std::fs::read_to_string(root().join("deploy/systemd/ebpf.conf")).unwrap();
    let rights = text
        .lines()
        .find_map(|line| line.strip_prefix("AmbientCapabilities="))
        .unwrap();
    assert!(text.contains(&format!("CapabilityBoundingSet={rights}\n")), "{text}");
    let rights = rights.to_lowercase().replace("cap_", "+").replace(' ', ",");

    let folder = tempfile::tempdir().unwrap();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), everybody).unwrap();
    let program = folder.path().join("alluvium");
    std::fs::copy(env!("CARGO_BIN_EXE_alluvium"), &program).unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"])
        .args(["inh", "ambient"].map(|kind| format!("--{kind}-caps=-all,{rights}")))
        .arg(format!("--bounding-set=-all,{rights}"))
        .arg("--")
        .arg(&program)
        .args(["record", "--all", "-d", "1s", "-o", "machine.pb.gz"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    assert!(
        !text.contains("without a BPF program") && !text.contains("CAP_"),
        "{text}"
    );
    assert!(folder.path().join("machine.pb.gz").exists(), "{text}");
}
