//! Tests of the file watch. The watch sees the changes that editors, copies and Kubernetes make to a configuration,
//! and loads each change once.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::app::reload::{Reloader, shared};
use crate::app::sources::{self, Sources};
use alluvium_base::Shutdown;
use alluvium_components::ALL;
use alluvium_pipeline::{Controller, Options};

fn config(label: &str) -> String {
    format!("discovery.relabel \"{label}\" {{\n\ttargets = []\n}}\n")
}

struct Watched {
    controller: Controller,
    reloader: Arc<Reloader>,
    shutdown: Shutdown,
    _storage: tempfile::TempDir,
}

impl Watched {
    async fn start(path: &Path) -> Self {
        let storage = tempfile::tempdir().unwrap();
        let controller = Controller::new(ALL, Options::new(storage.path()));
        let reloader = Arc::new(Reloader::new(controller.clone(), Sources::new(path, None)));
        reloader.load(shared(sources::read(path).unwrap())).await.unwrap();
        let shutdown = Shutdown::new();
        tokio::spawn(reloader.clone().on_change(Duration::from_millis(20), shutdown.clone()));
        Self {
            controller,
            reloader,
            shutdown,
            _storage: storage,
        }
    }

    /// Waits until exactly this component runs.
    async fn runs(&self, label: &str) {
        let expected_id = format!("discovery.relabel.{label}");
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            let ids: Vec<String> = self
                .controller
                .components("")
                .unwrap()
                .into_iter()
                .map(|view| view.local_id)
                .collect();
            if ids == [expected_id.as_str()] {
                return;
            }
            assert!(Instant::now() < deadline, "{ids:?} instead of {expected_id}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_written_or_replaced_is_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.alloy");
    std::fs::write(&path, config("one")).unwrap();
    let watched = Watched::start(&path).await;
    std::fs::write(&path, config("two")).unwrap();
    watched.runs("two").await;
    // Editors write a new file beside the old file and rename the new file.
    let beside = folder.path().join(".config.alloy.swp");
    std::fs::write(&beside, config("three")).unwrap();
    std::fs::rename(&beside, &path).unwrap();
    watched.runs("three").await;
    // An invalid text changes nothing, and the next valid text is loaded.
    std::fs::write(&path, "discovery.relabel {").unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    while watched.controller.last_load().is_some_and(|load| load.error.is_none()) {
        assert!(Instant::now() < deadline, "the mistake was not seen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    watched.runs("three").await;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, config("four")).unwrap();
    watched.runs("four").await;
    // The components of the new text run a moment before `in_force` returns the text.
    let deadline = Instant::now() + Duration::from_mins(1);
    while *watched.reloader.in_force()[0].1 != *config("four") {
        assert!(Instant::now() < deadline, "{:?}", watched.reloader.in_force());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_links_of_a_configmap_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (version, label) in [("..1", "one"), ("..2", "two"), ("..3", "three")] {
        std::fs::create_dir(path(version)).unwrap();
        std::fs::write(path(version).join("config.alloy"), config(label)).unwrap();
    }
    symlink("..1", path("..data")).unwrap();
    symlink("..data/config.alloy", path("config.alloy")).unwrap();
    let watched = Watched::start(&path("config.alloy")).await;
    for (version, label) in [("..2", "two"), ("..3", "three")] {
        // The kubelet replaces links in this way.
        symlink(version, path("..data_tmp")).unwrap();
        std::fs::rename(path("..data_tmp"), path("..data")).unwrap();
        watched.runs(label).await;
    }
    // Now the path is a link to a file in another folder.
    let elsewhere = tempfile::tempdir().unwrap();
    std::fs::write(elsewhere.path().join("c.alloy"), config("four")).unwrap();
    symlink(elsewhere.path().join("c.alloy"), path("tmp")).unwrap();
    std::fs::rename(path("tmp"), path("config.alloy")).unwrap();
    watched.runs("four").await;
    std::fs::write(elsewhere.path().join("c.alloy"), config("five")).unwrap();
    watched.runs("five").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_watched_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.alloy"), config("one")).unwrap();
    let watched = Watched::start(folder.path()).await;
    std::fs::write(folder.path().join("b.alloy"), config("two")).unwrap();
    std::fs::remove_file(folder.path().join("a.alloy")).unwrap();
    watched.runs("two").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_cannot_be_read_is_a_failed_load() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.alloy");
    std::fs::write(&path, config("one")).unwrap();
    let watched = Watched::start(&path).await;
    std::fs::remove_file(&path).unwrap();
    assert!(
        watched
            .reloader
            .reload("test")
            .await
            .unwrap_err()
            .to_string()
            .contains("config.alloy")
    );
    let view = watched.controller.last_load_view().unwrap();
    assert!(
        !view.success && view.text.contains("cannot read the configuration"),
        "{view:?}"
    );
    watched.runs("one").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_of_both_languages_is_one_configuration_that_runs() {
    let folder = tempfile::tempdir().unwrap();
    // Files are replaced atomically, as editors do, because the watch may read at any moment, and an empty file is a
    // valid configuration.
    let write = |name: &str, text: &str| {
        std::fs::write(folder.path().join("new"), text).unwrap();
        std::fs::rename(folder.path().join("new"), folder.path().join(name)).unwrap();
    };
    write(
        "a.alloy",
        "discovery.relabel \"first\" {\n\ttargets = [{\"__address__\" = \"localhost:1\"}]\n}\n",
    );
    // This component refers to a component of the file in the other language.
    let second = |stage: &str| {
        format!(
            "discovery \"relabel\" \"second\" {{\n  targets = discovery.relabel.first.output\n  rule {{\
             \n    target_label = \"stage\"\n    replacement  = \"{stage}\"\n  }}\n}}\n"
        )
    };
    write("b.hcl", &second("one"));
    let watched = Watched::start(folder.path()).await;
    let output = || {
        let view = watched.controller.component("discovery.relabel.second").unwrap();
        view.exports.to_string()
    };
    assert!(
        output().contains("localhost:1") && output().contains("one"),
        "{}",
        output()
    );
    write("b.hcl", &second("two"));
    let deadline = Instant::now() + Duration::from_mins(1);
    while !output().contains("two") {
        assert!(Instant::now() < deadline, "{}", output());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // An error in one language names its file and changes nothing.
    write(
        "b.hcl",
        "discovery \"relabel\" \"second\" {\n  targets = nobody.there\n}\n",
    );
    let error = watched.reloader.reload("test").await.unwrap_err().to_string();
    assert!(error.contains("b.hcl"), "{error}");
    assert!(output().contains("two"));
    watched.shutdown.cancel();
}
