//! Modules as text: archives of files, loads, and changes of files while the configuration runs.
//!
//! Sections of a case, in order: `main.alloy` (perhaps with words after it) is loaded; any other name is a file that is written before; `update/NAME`
//! and `remove/NAME` change a file while the configuration runs. `$DIR` is the folder of the files.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use alluvium::pipeline::component::Stability;
use alluvium::pipeline::{Controller, Options};

use super::components::DEFINITIONS;
use super::{Section, check, events, settled, short, state};

#[test]
fn modules_are_run_reloaded_and_updated() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    check("modules", 36, |sections| runtime.block_on(run(sections)));
}

async fn run(sections: &[Section]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let place = files.path().display().to_string();
    let mut options = Options::new(folder.path());
    options.stability = match sections.iter().any(|(_, text)| text.contains("foreach")) {
        true => Stability::Experimental,
        false => Stability::PublicPreview,
    };
    let controller = Controller::new(DEFINITIONS, options);
    let stop = alluvium::base::Shutdown::new();
    let running = tokio::spawn({
        let (controller, stop) = (controller.clone(), stop.clone());
        async move { controller.run(stop).await }
    });
    let mut out = String::new();
    for (name, text) in sections {
        let text = text.replace("$DIR", &place);
        if let Some(name) = name.strip_prefix("update/") {
            let _ = writeln!(out, "# {name} changes");
            change(&controller, || write(files.path(), name, &text)).await;
        } else if let Some(name) = name.strip_prefix("remove/") {
            let _ = writeln!(out, "# {name} goes");
            change(&controller, || std::fs::remove_file(files.path().join(name)).unwrap()).await;
        } else if name.starts_with("main.alloy") {
            let _ = writeln!(out, "# {name}");
            match controller.load(vec![(format!("{place}/main.alloy"), text)]).await {
                Ok(warnings) if warnings.is_empty() => out.push_str("loaded\n"),
                Ok(warnings) => out.push_str(&format!("loaded, {}\n", short(&warnings))),
                Err(diagnostics) => {
                    for diagnostic in diagnostics.iter() {
                        let _ = writeln!(out, "{} {diagnostic}", diagnostic.code.id);
                    }
                }
            }
        } else {
            write(files.path(), name, &text);
            continue;
        }
        out.push_str(&settled(&controller, folder.path()).await);
    }
    stop.cancel();
    running.await.unwrap();
    out.push_str("# stop\n");
    out.push_str(&events(folder.path()));
    sorted_stops(&out.replace(&place, "$DIR"))
}

/// What does not depend on each other stops at the same time: lines about it come sorted.
fn sorted_stops(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    for run in lines.chunk_by_mut(|left, right| left.starts_with("  stop ") && right.starts_with("  stop ")) {
        run.sort_unstable();
    }
    lines.into_iter().fold(String::new(), |mut out, line| {
        let _ = writeln!(out, "{line}");
        out
    })
}

/// Replaces the file in one step, as editors and deployments do.
fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let next = folder.join(".next");
    std::fs::write(&next, text).unwrap();
    std::fs::rename(next, path).unwrap();
}

/// Changes something and waits until it shows; not for ever, for it may show nothing.
async fn change(controller: &Controller, act: impl FnOnce()) {
    let before = state(controller);
    act();
    let deadline = Instant::now() + Duration::from_secs(2);
    while state(controller) == before && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
