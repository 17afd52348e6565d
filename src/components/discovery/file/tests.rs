//! Tests that write files and check the exported targets.

use std::fs;
use std::path::Path;

use crate::common::testing::{Body, Recorder, Running, eventually};
use crate::discovery::file::DEFINITION;
use alluvium_lang::value::Value;
use alluvium_pipeline::component::HealthState;

fn body(folder: &Path, pattern: &str) -> Body {
    let pattern = folder.join(pattern).to_string_lossy().into_owned();
    // The interval is long, so that the tests notice changes only through the watch.
    Body::new()
        .with("files", Value::array([Value::string(pattern)]))
        .text("refresh_interval", "1h")
}

fn addresses(recorder: &Recorder) -> String {
    let targets = recorder.exported_targets("targets");
    let address = |target: &String| {
        target
            .split("__address__=")
            .nth(1)
            .unwrap()
            .split(',')
            .next()
            .unwrap()
            .to_owned()
    };
    targets.iter().map(address).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn json_and_yaml_are_read_at_once_and_again_on_change() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("a.json");
    fs::write(
        &json,
        r#"[{"targets": ["one:80", "two:80"], "labels": {"env": "dev"}}, {"targets": []}]"#,
    )
    .unwrap();
    let recorder = Recorder::new("discovery.file.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(folder.path(), "*.json"));
    let path = json.display();
    assert_eq!(
        recorder.exported_targets("targets"),
        [
            format!("{{__address__=one:80,__meta_filepath={path},env=dev}}"),
            format!("{{__address__=two:80,__meta_filepath={path},env=dev}}"),
        ]
    );
    assert_eq!(recorder.health().0, HealthState::Healthy);

    running
        .component
        .update(body(folder.path(), "*.yml").arguments(&DEFINITION))
        .unwrap();
    assert!(recorder.exported_targets("targets").is_empty());
    fs::write(
        folder.path().join("b.yml"),
        "- targets: [\"three:80\"]\n  labels:\n    shard: 7\n",
    )
    .unwrap();
    eventually("the new file", || addresses(&recorder) == "three:80").await;
    assert!(recorder.exported_targets("targets")[0].ends_with("shard=7}"));
    fs::remove_file(folder.path().join("b.yml")).unwrap();
    eventually("the file to go", || addresses(&recorder).is_empty()).await;
    running.stop().await;
}

#[tokio::test]
async fn a_broken_file_keeps_its_last_good_targets_and_says_where_it_is_broken() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("a.json");
    fs::write(&json, r#"[{"targets": ["one:80"]}]"#).unwrap();
    let recorder = Recorder::new("discovery.file.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(folder.path(), "a.json"));
    fs::write(&json, "[\n  {\"targets\": [\"one:80\"], \"label\": {}}\n]").unwrap();
    eventually("the error", || recorder.health().0 == HealthState::Unhealthy).await;
    let message = recorder.health().1;
    assert!(
        message.starts_with(&format!("{}:2:", json.display())) && message.contains("unknown field `label`"),
        "{message}"
    );
    assert_eq!(addresses(&recorder), "one:80");

    fs::write(&json, r#"[{"targets": ["two:80"]}]"#).unwrap();
    eventually("the repair", || recorder.health().0 == HealthState::Healthy).await;
    assert_eq!(addresses(&recorder), "two:80");
    running.stop().await;
}

#[tokio::test]
async fn a_broken_yaml_file_is_reported_with_its_position() {
    let folder = tempfile::tempdir().unwrap();
    let yaml = folder.path().join("a.yaml");
    fs::write(&yaml, "- targets: [\"one:80\"]\n  labels: [1, 2]\n").unwrap();
    let recorder = Recorder::new("discovery.file.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(folder.path(), "a.yaml"));
    let (state, message) = recorder.health();
    assert_eq!(state, HealthState::Unhealthy);
    assert!(message.starts_with(&format!("{}:2:", yaml.display())), "{message}");
    running.stop().await;
}

#[cfg(unix)]
#[tokio::test]
async fn the_symlink_swap_of_a_config_map_is_seen() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    for (version, address) in [("..v1", "one:80"), ("..v2", "two:80")] {
        fs::create_dir(folder.path().join(version)).unwrap();
        let text = format!("- targets: [\"{address}\"]\n");
        fs::write(folder.path().join(version).join("a.yml"), text).unwrap();
    }
    symlink("..v1", folder.path().join("..data")).unwrap();
    symlink("..data/a.yml", folder.path().join("a.yml")).unwrap();
    let recorder = Recorder::new("discovery.file.test", folder.path());
    let running = Running::start(&DEFINITION, &recorder, &body(folder.path(), "*.yml"));
    assert_eq!(addresses(&recorder), "one:80");

    symlink("..v2", folder.path().join("..data_tmp")).unwrap();
    fs::rename(folder.path().join("..data_tmp"), folder.path().join("..data")).unwrap();
    eventually("the new version", || addresses(&recorder) == "two:80").await;
    running.stop().await;
}

#[test]
fn a_file_of_another_ending_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = body(folder.path(), "a.txt").read(&DEFINITION).unwrap_err();
    assert!(error.starts_with("files[0]: "), "{error}");
    assert!(error.ends_with("must end in .json, .yaml or .yml"), "{error}");
}
