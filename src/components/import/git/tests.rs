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
