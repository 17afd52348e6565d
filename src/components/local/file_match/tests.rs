//! Tests with files in a folder and the targets that the component exports.

use std::fs;
use std::time::{Duration, SystemTime};

use crate::common::testing::{Body, Recorder, Running, eventually, targets};
use crate::local::file_match::DEFINITION;
use alluvium_pipeline::component::HealthState;

#[tokio::test]
async fn files_become_targets_and_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    fs::create_dir_all(path("deep/er")).unwrap();
    for name in ["a.log", "b.log", "c.txt", "d.csv", "deep/er/e.log", ".hidden.log"] {
        fs::write(path(name), name).unwrap();
    }
    let old = fs::File::options().write(true).open(path("b.log")).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_hours(1)).unwrap();
    let recorder = Recorder::new("local.file_match.test", folder.path());
    let body = |pattern: &str, exclude: &str| {
        let target = [
            ("__path__", path(pattern)),
            ("__path_exclude__", path(exclude)),
            ("job", "x".to_owned()),
        ];
        let target: Vec<(&str, &str)> = target.iter().map(|(name, value)| (*name, value.as_str())).collect();
        Body::new()
            .with("path_targets", targets(&[&target]))
            .text("sync_period", "10ms")
    };
    let running = Running::start(&DEFINITION, &recorder, &body("*.{log,txt}", "a*"));
    let names = || -> Vec<String> {
        let targets = recorder.exported_targets("targets");
        let name = |target: &String| {
            assert!(
                target.contains("job=x") && target.contains("__path_exclude__="),
                "{target}"
            );
            let path = target.split("__path__=").nth(1).unwrap().split(',').next().unwrap();
            path.strip_prefix(&path_of(folder.path())).unwrap().to_owned()
        };
        targets.iter().map(name).collect()
    };
    eventually("the files", || names() == ["/.hidden.log", "/b.log", "/c.txt"]).await;
    fs::write(path("new.log"), "").unwrap();
    fs::remove_file(path("c.txt")).unwrap();
    eventually("the changes", || names() == ["/.hidden.log", "/b.log", "/new.log"]).await;

    for (pattern, exclude, expected) in [
        (
            "**",
            "**/*.{csv,txt}",
            vec!["/.hidden.log", "/a.log", "/b.log", "/deep/er/e.log", "/new.log"],
        ),
        ("**/e.log", "", vec!["/deep/er/e.log"]),
        ("nowhere/*", "", vec![]),
    ] {
        running
            .component
            .update(body(pattern, exclude).arguments(&DEFINITION))
            .unwrap();
        eventually(pattern, || names() == expected).await;
    }
    let recent = body("?.log", "").text("ignore_older_than", "1m");
    running.component.update(recent.arguments(&DEFINITION)).unwrap();
    eventually("the recent file", || names() == ["/a.log"]).await;
    assert_eq!(recorder.health(), (HealthState::Healthy, "1 targets found".to_owned()));

    for (invalid, reason) in [
        (body("[", ""), "path_targets[0]: __path__: "),
        (body("{a", ""), "path_targets[0]: __path__: "),
        (
            Body::new().with("path_targets", targets(&[&[("job", "x")]])),
            "path_targets[0]: the target has no label __path__",
        ),
    ] {
        let error = running.component.update(invalid.arguments(&DEFINITION)).unwrap_err();
        assert!(error.0.starts_with(reason), "{error}");
    }
    running.stop().await;
}

fn path_of(folder: &std::path::Path) -> String {
    folder.to_string_lossy().into_owned()
}
