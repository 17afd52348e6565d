//! Starts and stops servers: Alluvium, or another server, which needs a command line from the user.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::process::{Server, children_cpu_seconds};
use crate::{Common, Servers, client};

/// Maximum time to wait until a server is ready, or until it has stopped.
const PATIENCE: Duration = Duration::from_mins(3);

/// Instructions for starting a server.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    /// Options of the driver. `url` and `data` are the address and the data folder of this server.
    pub common: Common,
    words: Vec<String>,
    data: PathBuf,
}

impl Launch {
    /// Prepares Alluvium with a new data folder, which is named `name` and is below `--folder`.
    pub(crate) fn ours(given: &Servers, name: &str) -> anyhow::Result<Self> {
        let program = given.program.display().to_string();
        let mut words: Vec<String> = [&program, "serve", "--listen", "127.0.0.1:{port}", "--data", "{folder}"]
            .map(str::to_owned)
            .into();
        // `cargo bench` passes `--bench` to the driver. The server must not receive it.
        words.extend(given.arguments.iter().filter(|word| *word != "--bench").cloned());
        Self::new(given, name, words)
    }

    /// Prepares another server from its command line, in which `{port}` and `{folder}` are replaced.
    pub(crate) fn other(given: &Servers, name: &str, command: &str) -> anyhow::Result<Self> {
        Self::new(given, name, command.split_whitespace().map(str::to_owned).collect())
    }

    fn new(given: &Servers, name: &str, words: Vec<String>) -> anyhow::Result<Self> {
        let data = given.folder.join(name);
        if data.exists() {
            bail!("{} exists, but a measurement needs a new folder", data.display());
        }
        std::fs::create_dir_all(&given.folder)?;
        let mut launch = Self {
            common: given.common.clone(),
            words,
            data,
        };
        launch.common.data = Some(launch.data.clone());
        Ok(launch)
    }

    /// Returns the same server with additional arguments.
    pub(crate) fn with(mut self, further: &[&str]) -> Self {
        self.words.extend(further.iter().map(|word| (*word).to_owned()));
        self
    }

    /// Returns the same server on the next port and with another folder.
    pub(crate) fn beside(&self, data: &Path) -> anyhow::Result<Self> {
        let mut url = reqwest::Url::parse(&self.common.url).context("--url")?;
        if url.set_port(Some(self.port()? + 1)).is_err() {
            bail!("--url cannot have a port");
        }
        let mut launch = self.clone();
        launch.common.url = url.to_string();
        launch.common.data = Some(data.to_owned());
        data.clone_into(&mut launch.data);
        Ok(launch)
    }

    /// Returns the folder that the server writes to.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Returns the command line with its placeholders. Each word that is an absolute path is shortened to the last part
    /// of the path.
    pub(crate) fn command(&self) -> String {
        let name = |word: &String| {
            let path = Path::new(word);
            let name = path.file_name().filter(|_| path.is_absolute());
            name.map_or(word.clone(), |name| name.to_string_lossy().into_owned())
        };
        self.words.iter().map(name).collect::<Vec<_>>().join(" ")
    }

    fn port(&self) -> anyhow::Result<u16> {
        let url = reqwest::Url::parse(&self.common.url).context("--url")?;
        Ok(url.port_or_known_default().unwrap_or(4040))
    }

    /// Starts the server and waits until `/ready` succeeds.
    pub(crate) async fn start(&self) -> anyhow::Result<Running> {
        let (port, folder) = (self.port()?.to_string(), self.data.display().to_string());
        let fill = |word: &String| word.replace("{port}", &port).replace("{folder}", &folder);
        let words: Vec<String> = self.words.iter().map(fill).collect();
        let Some((program, arguments)) = words.split_first() else {
            bail!("no command line for the server");
        };
        std::fs::create_dir_all(&self.data)?;
        let log = self.data.with_extension("log");
        let client = client()?;
        let start = Instant::now();
        let child = Command::new(program)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log)?)
            .spawn()
            .with_context(|| format!("starting {program}"))?;
        let mut common = self.common.clone();
        common.pid = Some(child.id());
        // From here on, dropping `running` stops the server.
        let mut running = Running {
            child: Some(child),
            ready: Duration::ZERO,
            server: Server::find(&common)?,
            common,
        };
        let ready = format!("{}/ready", self.common.base());
        while start.elapsed() < PATIENCE {
            if let Some(status) = running.ended()? {
                bail!("the server ended during its start with {status}, see {}", log.display());
            }
            let answer = client.get(&ready).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                running.ready = start.elapsed();
                return Ok(running);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        bail!(
            "the server was not ready within {} s, see {}",
            PATIENCE.as_secs(),
            log.display()
        );
    }

    /// Runs `alluvium store` with these arguments on the folder of the stopped server. Returns the CPU seconds that the
    /// command used.
    pub(crate) fn store(&self, arguments: &[&str]) -> anyhow::Result<f64> {
        let Some(program) = self.words.first() else {
            bail!("no command line for the server");
        };
        let before = children_cpu_seconds();
        let output = Command::new(program)
            .arg("store")
            .args(arguments)
            .arg(&self.data)
            .output();
        let output = output.with_context(|| format!("starting {program}"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("`store {}` failed with {}: {said}", arguments.join(" "), output.status);
        }
        Ok(children_cpu_seconds() - before)
    }

    /// Merges all files of the stopped server, even those of the current hour, and deletes the files that the merges
    /// replaced. Returns the CPU seconds of the merges.
    pub(crate) fn merge(&self) -> anyhow::Result<f64> {
        let cpu = self.store(&["compact"])?;
        self.store(&["vacuum", "--grace", "0s"])?;
        Ok(cpu)
    }
}

pub(crate) struct Running {
    /// `None` for a server that the driver did not start.
    child: Option<Child>,
    /// Time from the start of the process to the first successful response of `/ready`.
    pub ready: Duration,
    pub common: Common,
    pub server: Server,
}

impl Running {
    /// Refers to a server that was started elsewhere.
    pub(crate) fn elsewhere(common: Common) -> anyhow::Result<Self> {
        Ok(Self {
            child: None,
            ready: Duration::ZERO,
            server: Server::find(&common)?,
            common,
        })
    }

    /// Stops the server as an init system would.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let child = self.child.as_ref().context("the server was not started here")?;
        let told = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status()?;
        if !told.success() {
            bail!("cannot send SIGTERM to the server");
        }
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if self.ended()?.is_some() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bail!("the server did not stop within {} s", PATIENCE.as_secs());
    }

    /// Kills the server with SIGKILL and returns the signal that ended it.
    pub(crate) fn kill(mut self) -> anyhow::Result<i32> {
        let child = self.child.as_mut().context("the server was not started here")?;
        child.kill()?;
        child.wait()?.signal().context("the server ended before it was killed")
    }

    fn ended(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.child.as_mut().map_or(Ok(None), Child::try_wait)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
