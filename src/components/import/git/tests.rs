//! Tests with the real git and with repositories on this machine.

use std::path::Path;
use std::process::Command;

use super::repository::{Auth, Repository};

fn git(folder: &Path, arguments: &[&str]) {
    let status = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@t",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(arguments)
        .current_dir(folder)
        .env_remove("GIT_DIR")
        .status()
        .expect("git is installed");
    assert!(status.success(), "git {arguments:?}");
}

fn commit(folder: &Path, name: &str, text: &str) -> String {
    std::fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
    std::fs::write(folder.join(name), text).unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "-m", "c"]);
    let output = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(folder)
        .output();
    String::from_utf8(output.unwrap().stdout).unwrap().trim().to_owned()
}

async fn pull(repository: Repository, path: &'static str) -> Result<Vec<(String, String)>, String> {
    let pulled = tokio::task::spawn_blocking(move || repository.pull(path)).await;
    pulled.unwrap().map_err(|error| error.to_string())
}

#[tokio::test]
async fn branches_commits_files_and_folders_are_read() {
    let (origin, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let url = origin.path().display().to_string();
    git(origin.path(), &["init", "--quiet"]);
    let first = commit(origin.path(), "modules/a.alloy", "one");
    let new = |revision: &str| Repository::new(data.path(), &url, revision, Auth::None);
    let texts = |pulled: Vec<(String, String)>| pulled.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    assert_eq!(texts(pull(new("main"), "modules/a.alloy").await.unwrap()), ["one"]);
    commit(origin.path(), "modules/a.alloy", "two");
    commit(origin.path(), "modules/notes.txt", "no module");
    assert_eq!(texts(pull(new("main"), "modules").await.unwrap()), ["two"]);
    assert_eq!(texts(pull(new(&first), "modules/a.alloy").await.unwrap()), ["one"]);
    // A killed git leaves this file.
    std::fs::write(new("main").folder().join(".git/shallow.lock"), "").unwrap();
    assert_eq!(texts(pull(new("main"), "modules").await.unwrap()), ["two"]);
    git(origin.path(), &["tag", "v1", &first]);
    assert_eq!(texts(pull(new("v1"), "modules/a.alloy").await.unwrap()), ["one"]);
    let error = pull(new("missing"), "modules").await.unwrap_err();
    assert!(error.contains("missing") && error.contains("git fetch"), "{error}");
    let error = pull(new("main"), "modules/b.alloy").await.unwrap_err();
    assert!(error.contains("modules/b.alloy"), "{error}");
}

#[tokio::test]
async fn secrets_stand_in_no_error_and_leave_no_file() {
    let data = tempfile::tempdir().unwrap();
    let auth = Auth::Basic {
        username: "user".into(),
        password: Some("hush".into()),
        password_file: None,
    };
    let url = "http://someone:psst@127.0.0.1:1/none.git";
    let error = pull(Repository::new(data.path(), url, "main", auth), "x")
        .await
        .unwrap_err();
    assert!(!error.contains("hush") && !error.contains("psst"), "{error}");
    let auth = Auth::Ssh {
        username: "git".into(),
        key: super::repository::Key::Text("not a key".into()),
        passphrase: Some("hush".into()),
    };
    let url = "ssh://127.0.0.1:1/none.git";
    let error = pull(Repository::new(data.path(), url, "main", auth), "x")
        .await
        .unwrap_err();
    assert!(!error.contains("hush") && !error.contains("not a key"), "{error}");
    for entry in std::fs::read_dir(data.path()).unwrap() {
        assert!(entry.unwrap().path().is_dir(), "a secret file is left over");
    }
}

#[tokio::test]
async fn a_symbolic_link_is_refused_by_name_and_never_followed() {
    let (origin, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("a.alloy"), "hush").unwrap();
    let url = origin.path().display().to_string();
    git(origin.path(), &["init", "--quiet"]);
    commit(origin.path(), "plain/a.alloy", "one");
    std::fs::create_dir(origin.path().join("mixed")).unwrap();
    let link = |target: &Path, name: &str| std::os::unix::fs::symlink(target, origin.path().join(name)).unwrap();
    link(&outside.path().join("a.alloy"), "mixed/out.alloy");
    link(Path::new("../../secret"), "mixed/notes.txt");
    link(Path::new("plain/a.alloy"), "inside.alloy");
    link(outside.path(), "folder");
    commit(origin.path(), "mixed/b.alloy", "two");
    let new = || Repository::new(data.path(), &url, "main", Auth::None);
    let outside = outside.path().display().to_string();
    for (path, name, target) in [
        ("mixed/out.alloy", "mixed/out.alloy", format!("{outside}/a.alloy")),
        ("mixed", "mixed/out.alloy", format!("{outside}/a.alloy")),
        ("./mixed/", "mixed/out.alloy", format!("{outside}/a.alloy")),
        ("folder/a.alloy", "folder", outside.clone()),
        ("folder", "folder", outside.clone()),
        (".", "inside.alloy", "plain/a.alloy".to_owned()),
        ("inside.alloy", "inside.alloy", "plain/a.alloy".to_owned()),
    ] {
        let error = pull(new(), path).await.unwrap_err();
        let expected = format!("{url}/{name} is a symbolic link to `{target}`, which import.git does not follow");
        assert!(
            error.starts_with(&expected) && !error.contains("hush"),
            "{path}: {error}"
        );
    }
    // A link that is no module does not matter.
    assert_eq!(pull(new(), "mixed/b.alloy").await.unwrap()[0].1, "two");
    assert_eq!(pull(new(), "plain").await.unwrap()[0].1, "one");
}
