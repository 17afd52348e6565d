//! The plugin `kubectl alluvium`: its calls of `kubectl`, and the files that it writes.
//!
//! In: a stand-in for `kubectl` with two pods, which responds with the requested path.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::files;
use crate::tidy::root;

const KUBECTL: &str = r#"#!/bin/sh
namespace=default
case $1 in --namespace=*) namespace=${1#*=}; shift ;; esac
case "$1 $2 $3" in
"get pod cart-1") printf '%s\npyroscope.io/scrape=true\npyroscope.io/port=8080\n' "$namespace" ;;
"get pod cart-2")
    printf '%s\nprofefe.com/port=9090\n' "$namespace"
    printf 'profefe.com/path=/own/\npyroscope.io/scheme=https\n' ;;
"get pods --selector=app=cart") printf 'cart-1 cart-2' ;;
"get --raw "*/mutex) echo "no such path" >&2; exit 1 ;;
"get --raw "*) printf %s "$3" ;;
*) echo "what is $*?" >&2; exit 1 ;;
esac
"#;

/// Runs the plugin in a folder. Returns its status, its output, and each file with its text.
fn plugin(arguments: &[&str]) -> (i32, String, Vec<(String, String)>) {
    let folder = tempfile::tempdir().unwrap();
    let (programs, here) = (folder.path().join("bin"), folder.path().join("here"));
    std::fs::create_dir(&programs).unwrap();
    std::fs::create_dir(&here).unwrap();
    std::fs::write(programs.join("kubectl"), KUBECTL).unwrap();
    std::fs::set_permissions(programs.join("kubectl"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let output = Command::new(root().join("deploy/kubectl/kubectl-alluvium"))
        .args(arguments)
        .current_dir(&here)
        .env("PATH", path)
        .output()
        .unwrap();
    let read = |path: &Path, name: String| {
        let text = std::fs::read_to_string(path.join(&name)).unwrap();
        // Removes the digits, because the file name contains the time.
        let plain: String = name
            .chars()
            .filter(|c| !c.is_ascii_digit() || name.starts_with("out"))
            .collect();
        (plain, text)
    };
    let files = files(&here).into_iter().map(|name| read(&here, name)).collect();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (output.status.code().unwrap(), said, files)
}

#[test]
fn a_capture_asks_the_pod_by_its_annotations_and_writes_a_file() {
    let (status, said, files) = plugin(&["capture", "cart-1", "-n", "shop", "--seconds=3", "-o", "out.pb.gz"]);
    assert_eq!(status, 0, "{said}");
    assert_eq!(said, "out.pb.gz\n");
    let asked = "/api/v1/namespaces/shop/pods/cart-1:8080/proxy/debug/pprof/profile?seconds=3";
    assert_eq!(files, [("out.pb.gz".to_owned(), asked.to_owned())]);

    let (status, said, files) = plugin(&["capture", "cart-2", "--type", "heap"]);
    assert_eq!(status, 0, "{said}");
    let asked = "/api/v1/namespaces/default/pods/https:cart-2:9090/proxy/own/heap";
    assert_eq!(files, [("cart--heap-.pb.gz".to_owned(), asked.to_owned())]);

    let flags = [
        "--port", "1", "--path", "/x/pprof", "--scheme", "http", "--type", "fgprof",
    ];
    let (_, _, files) = plugin(&[&["capture", "cart-2"][..], &flags].concat());
    let asked = "/api/v1/namespaces/default/pods/cart-2:1/proxy/x/fgprof?seconds=10";
    assert_eq!(files[0].1, asked);
}

#[test]
fn all_types_of_several_pods_are_files_of_a_folder_and_one_that_fails_leaves_none() {
    let (status, said, files) = plugin(&["capture", "-l", "app=cart", "--all", "-o", "folder"]);
    assert_eq!(status, 1);
    assert!(
        said.contains("cannot capture mutex of cart-1") && said.contains("cannot capture mutex of cart-2"),
        "{said}"
    );
    assert_eq!(files.len(), 12, "{files:?}");
    assert!(
        files
            .iter()
            .all(|(name, _)| name.starts_with("folder/cart-") && name.ends_with(".pb.gz")),
        "{files:?}"
    );
}

#[test]
fn what_is_misspelt_is_refused_before_anything_is_asked() {
    for (arguments, reason) in [
        (&["capture"][..], "name a pod or use --selector"),
        (&["capture", "cart-1", "--type", "cpus"], "unknown type cpus"),
        (&["capture", "cart-1", "--seconds", "1s"], "is not a number of seconds"),
        (&["capture", "cart-1", "--nonsense", "1"], "unknown flag --nonsense"),
        (&["capture", "cart-1", "-n"], "-n needs a value"),
        (&["capsule"], "unknown command capsule"),
    ] {
        let (status, said, files) = plugin(arguments);
        assert!(
            status == 2 && said.contains(reason) && files.is_empty(),
            "{arguments:?}: {status} {said}"
        );
    }
}
