//! Modules, with cases as text. A case lists files, loads, and changes of files while the configuration runs.
//!
//! The test processes the sections of a case in order. If the name of a section begins with `main.alloy`, the test
//! loads its text; the rest of the name is a comment. `update/NAME` and `remove/NAME` change a file while the
//! configuration runs. `commit/NAME` commits a file to the repository `$DIR/repository`. Any other section becomes a
//! file. `$DIR` is the folder of the files, `$HTTP` the URL of a server that serves them.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use alluvium_pipeline::component::Stability;
use alluvium_pipeline::{Controller, Options};

use super::components::definitions;
use super::{Section, Watch, check_running, short, state};

#[test]
fn modules_are_run_reloaded_and_updated() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    check_running("modules", 38, |sections, expected| {
        runtime.block_on(run(sections, expected))
    });
}

async fn run(sections: &[Section], expected: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let files = tempfile::tempdir().unwrap();
    let place = files.path().display().to_string();
    let server = sections
        .iter()
        .any(|(_, text)| text.contains("$HTTP"))
        .then(|| Server::start(files.path()));
    let address = server.as_ref().map(|server| server.url.clone()).unwrap_or_default();
    let plain = |text: &str| {
        let text = sorted_stops(&text.replace(&place, "$DIR"));
        match address.as_str() {
            "" => text,
            address => text.replace(address, "$HTTP"),
        }
    };
    let mut options = Options::new(folder.path());
    options.stability = if sections.iter().any(|(_, text)| text.contains("foreach")) {
        Stability::Experimental
    } else {
        Stability::PublicPreview
    };
    let controller = Controller::new(&definitions(), options);
    let stop = alluvium_base::Shutdown::new();
    let running = tokio::spawn({
        let (controller, stop) = (controller.clone(), stop.clone());
        async move { controller.run(stop).await }
    });
    let mut out = String::new();
    let mut watch = Watch::new(folder.path(), expected);
    for (name, text) in sections {
        let text = text.replace("$DIR", &place).replace("$HTTP", &address);
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
        } else if let Some(name) = name.strip_prefix("commit/") {
            commit(&files.path().join("repository"), name, &text);
            continue;
        } else {
            write(files.path(), name, &text);
            continue;
        }
        watch.settle(&controller, &mut out, &plain).await;
    }
    stop.cancel();
    running.await.unwrap();
    out.push_str("# stop\n");
    out.push_str(&watch.events());
    plain(&out)
}

/// Serves the files of a case over HTTP.
struct Server {
    url: String,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Server {
    fn start(folder: &Path) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        let folder = folder.to_owned();
        let routes = axum::Router::new().fallback(async move |uri: axum::http::Uri| {
            std::fs::read(folder.join(uri.path().trim_start_matches('/')))
                .map_err(|_| axum::http::StatusCode::NOT_FOUND)
        });
        let task = tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, task }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Commits a file to the branch `main` of a repository. The first commit creates the repository. Each commit gets a
/// tag: `v1`, `v2` and so on.
fn commit(repository: &Path, name: &str, text: &str) {
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git")
            .arg("-C")
            .arg(repository)
            .args([
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@t",
                "-c",
                "commit.gpgsign=false",
            ])
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    if !repository.exists() {
        std::fs::create_dir_all(repository).unwrap();
        git(&["init", "--quiet", "--initial-branch=main"]);
    }
    write(repository, name, text);
    git(&["add", name]);
    git(&["commit", "--quiet", "-m", "m"]);
    let count = git(&["rev-list", "--count", "HEAD"]);
    git(&["tag", &format!("v{}", count.trim())]);
}

/// Sorts consecutive `stop` lines of a text, because independent components stop concurrently and in any order.
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

/// Replaces a file in one step, as editors and deployments do.
fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let next = folder.join(".next");
    std::fs::write(&next, text).unwrap();
    std::fs::rename(next, path).unwrap();
}

/// Makes a change and waits until the state of the components changes. A change may have no effect, so the function
/// waits for at most two seconds.
async fn change(controller: &Controller, act: impl FnOnce()) {
    let before = state(controller);
    act();
    let deadline = Instant::now() + Duration::from_secs(2);
    while state(controller) == before && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
