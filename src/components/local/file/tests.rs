//! Tests with a file and the text that the component exports.

use std::fs;
use std::path::Path;

use crate::common::sources::detector::MAX_FILE;
use crate::common::testing::{Body, Recorder, Running, eventually};
use crate::local::file::{DEFINITION, FileArguments};
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;

fn body(path: &Path, detector: &str, frequency: &str) -> Body {
    Body::new()
        .text("filename", &path.to_string_lossy())
        .text("detector", detector)
        .text("poll_frequency", frequency)
}

fn start(path: &Path, detector: &str, frequency: &str) -> (Recorder, Running<FileArguments>) {
    let recorder = Recorder::new("local.file.test", path.parent().unwrap());
    let running = Running::start(&DEFINITION, &recorder, &body(path, detector, frequency));
    (recorder, running)
}

fn refused(path: &Path) -> String {
    let recorder = Recorder::new("local.file.test", path.parent().unwrap());
    let arguments = body(path, "poll", "1h").arguments(&DEFINITION);
    match DEFINITION.build.unwrap()(recorder.context, arguments) {
        Ok(_) => panic!("built"),
        Err(error) => error.to_string(),
    }
}

/// Checks one way of detecting changes. The arguments make the other way too slow to matter.
async fn follows(detector: &str, frequency: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, "first\n").unwrap();
    let (recorder, running) = start(&path, detector, frequency);
    assert_eq!(recorder.export("content"), Value::string("first\n"));
    assert_eq!(recorder.health().0, HealthState::Healthy);

    fs::write(&path, "second").unwrap();
    eventually("the new text", || recorder.export("content") == Value::string("second")).await;

    fs::remove_file(&path).unwrap();
    eventually("the loss to show", || recorder.health().0 == HealthState::Unhealthy).await;
    let (_, message) = recorder.health();
    assert!(
        message.contains("cannot read") && message.contains("token"),
        "{message}"
    );
    assert_eq!(
        recorder.export("content"),
        Value::string("second"),
        "the last text stays"
    );

    // Another file replaces the first file, as editors and Kubernetes do.
    fs::write(folder.path().join("new"), "third").unwrap();
    fs::rename(folder.path().join("new"), &path).unwrap();
    eventually("the replaced file", || {
        recorder.export("content") == Value::string("third")
    })
    .await;
    eventually("health", || recorder.health().0 == HealthState::Healthy).await;
    running.stop().await;
}

#[tokio::test]
async fn a_watched_file_is_followed_through_changes_loss_and_replacement() {
    follows("fsnotify", "1h").await;
}

#[tokio::test]
async fn a_polled_file_is_followed_through_changes_loss_and_replacement() {
    follows("poll", "20ms").await;
}

#[tokio::test]
async fn a_link_that_is_turned_to_another_folder_is_followed() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    // The layout of a mounted Secret: token -> ..data/token, ..data -> the folder of the current version.
    for (day, text) in [("one", "old"), ("two", "new")] {
        fs::create_dir(folder.path().join(day)).unwrap();
        fs::write(folder.path().join(day).join("token"), text).unwrap();
    }
    symlink("one", folder.path().join("..data")).unwrap();
    symlink("..data/token", folder.path().join("token")).unwrap();
    let (recorder, running) = start(&folder.path().join("token"), "fsnotify", "1h");
    assert_eq!(recorder.export("content"), Value::string("old"));
    symlink("two", folder.path().join("..data_tmp")).unwrap();
    fs::rename(folder.path().join("..data_tmp"), folder.path().join("..data")).unwrap();
    eventually("the new day", || recorder.export("content") == Value::string("new")).await;
    running.stop().await;
}

#[tokio::test]
async fn a_secret_is_exported_as_one_and_an_update_may_change_that_and_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    fs::write(&one, "hush").unwrap();
    fs::write(&two, "loud").unwrap();
    let recorder = Recorder::new("local.file.test", folder.path());
    let secret = body(&one, "", "1h").with("is_secret", Value::Bool(true));
    let running = Running::start(&DEFINITION, &recorder, &secret);
    assert_eq!(recorder.export("content"), Value::Secret("hush".into()));
    let update = |body: Body| running.component.update(body.arguments(&DEFINITION));
    update(body(&two, "fsnotify", "1h")).unwrap();
    assert_eq!(recorder.export("content"), Value::string("loud"));
    let error = update(body(&folder.path().join("none"), "poll", "1h")).unwrap_err();
    assert!(error.to_string().contains("cannot read"), "{error}");
    // The refused update changed nothing: the second file is still followed.
    fs::write(&two, "louder").unwrap();
    eventually("the second file", || {
        recorder.export("content") == Value::string("louder")
    })
    .await;
    running.stop().await;
}

#[test]
fn a_file_that_is_missing_too_long_or_no_text_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    assert!(refused(&path).contains("cannot read"));
    fs::write(&path, b"ab\xff").unwrap();
    assert!(refused(&path).contains("is not UTF-8 text: bad byte at offset 2"));
    fs::File::create(&path).unwrap().set_len(MAX_FILE + 1).unwrap();
    assert!(refused(&path).contains("longer than 16 MiB"));
    assert!(refused(folder.path()).contains("cannot read"));
}

#[test]
fn the_arguments_are_checked() {
    let path = Path::new("/etc/hostname");
    let check = |detector: &str, frequency: &str| {
        let error = body(path, detector, frequency).read(&DEFINITION).err()?;
        error.split_once(": ").map(|(path, _)| path.to_owned())
    };
    assert_eq!(check("fsnotify", "1m"), None);
    assert_eq!(check("", "1m"), None);
    assert_eq!(check("inotify", "1m").as_deref(), Some("detector"));
    assert_eq!(check("poll", "0s").as_deref(), Some("poll_frequency"));
}

#[tokio::test]
async fn the_time_of_the_last_read_is_a_metric() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "x").unwrap();
    let (recorder, running) = start(&path, "fsnotify", "1h");
    running
        .component
        .update(body(&path, "poll", "1h").arguments(&DEFINITION))
        .unwrap();
    let metrics = recorder.context.metrics.encode();
    let lines: Vec<&str> = metrics
        .lines()
        .filter(|line| line.starts_with("local_file_timestamp_last_accessed_unix_seconds"))
        .collect();
    let [line] = lines.as_slice() else {
        panic!("{metrics}");
    };
    let seconds: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(seconds > 1.7e9, "{line}");
    running.stop().await;
}
