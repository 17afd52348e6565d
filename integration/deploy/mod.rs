//! The contents of `deploy/` and their installation, checked against the program and the tools that read them.

use std::path::Path;
use std::process::Command;

use crate::tidy::root;

mod cluster;
mod install;
mod package;
mod plugin;
mod units;
mod watch;

/// Returns every file below a folder as a relative path, sorted.
fn files(folder: &Path) -> Vec<String> {
    let (mut folders, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path.strip_prefix(folder).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    files.sort();
    files
}

/// Runs `make` in the clone. Returns whether it succeeded, and the text of both outputs (stdout and stderr).
fn make(arguments: &[String]) -> (bool, String) {
    let output = Command::new("make")
        .arg("--no-print-directory")
        .args(arguments)
        .current_dir(root())
        // Removes the flags of a surrounding `make test`.
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}
