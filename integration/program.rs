//! Real processes for tests: our own program and those of others, with their ports, files and ends.
//!
//! In: a command line. Out: a running process that is killed with its value, its log for the report when something fails, and HTTP helpers that wait for a condition
//! with a deadline. Programs of others may be absent: see [`other`].

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A debug build on a busy machine with two cores starts within seconds; this is for the worst day.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// One recording of whole programs at a time: each alone keeps both CPUs busy.
pub static RECORDING: Mutex<()> = Mutex::new(());

/// Takes a measure until what it is to show holds, three times at most: on a machine with more work than CPUs samples are lost and come late.
pub fn insist<T>(measure: impl Fn() -> T, claims: impl Fn(&mut T) -> Result<(), String>) {
    let mut last = String::new();
    for _ in 0..3 {
        match claims(&mut measure()) {
            Ok(()) => return,
            Err(error) => last = error,
        }
        println!("once more: {last}");
    }
    panic!("{last}");
}

/// A process that ends with its value.
pub struct Program {
    child: Child,
    log: PathBuf,
    name: String,
}

impl Program {
    /// Starts our own program; its output goes to `log`.
    pub fn alluvium<S: AsRef<str>>(arguments: &[S], log: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_alluvium"));
        command.args(arguments.iter().map(AsRef::as_ref));
        Self::start(command, log)
    }

    /// Starts a process; both its outputs go to the end of `log`.
    pub fn start(mut command: Command, log: &Path) -> Self {
        let file = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        Self {
            child,
            log: log.to_owned(),
            name,
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, and gone when this returns.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// SIGTERM; the status with which it ended.
    pub fn terminate(&mut self) -> ExitStatus {
        let status = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(status.success(), "kill failed");
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "{} does not stop\n{}",
                self.name,
                self.tail()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Fails with the log when the process has ended.
    pub fn check(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("{} ended with {status}\n{}", self.name, self.tail());
        }
    }

    /// The most memory that the process ever had, in bytes.
    pub fn peak_memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }

    /// The end of the log.
    pub fn tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Waits until a GET of `url` is answered with 200.
    pub async fn ready(&mut self, client: &reqwest::Client, url: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.check();
            if let Ok(answer) = client.get(url).timeout(Duration::from_secs(5)).send().await
                && answer.status().is_success()
            {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{} is not ready at {url}\n{}",
                self.name,
                self.tail()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An address that nobody listened on a moment ago, for programs that cannot be asked which port they took.
pub fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Runs our own program to its end: whether it ended well, standard output, standard error.
pub fn run<S: AsRef<str>>(arguments: &[S]) -> (bool, Vec<u8>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(arguments.iter().map(AsRef::as_ref))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), output.stdout, errors)
}

/// A program of someone else: its path when it works. When it does not, a line and `None`; with `CI` set a failure.
pub fn other(program: &str, probe: &[&str], package: &str) -> Option<PathBuf> {
    let works = Command::new(program)
        .args(probe)
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success());
    if works {
        return Some(PathBuf::from(program));
    }
    let text = format!("`{program}` does not work here: `make tools` installs {package}");
    assert!(std::env::var_os("CI").is_none(), "{text}");
    println!("skipped: {text}");
    None
}

/// The file that a variable names (`make tools` sets it). When there is none, a line and `None`; with `CI` set a failure.
pub fn file_of(variable: &str, what: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_file())
    {
        return Some(path);
    }
    let text = format!("{variable} names no file: `make tools` gets {what}");
    assert!(std::env::var_os("CI").is_none(), "{text}");
    println!("skipped: {text}");
    None
}

/// Asks the server in SQL; the answer's rows as CSV, without the line of names.
pub async fn sql(client: &reqwest::Client, url: &str, query: &str) -> Vec<Vec<String>> {
    let answer = client
        .post(format!("{url}/api/v1/sql?format=csv"))
        .header("content-type", "text/plain")
        .body(query.to_owned())
        .send()
        .await
        .unwrap();
    let status = answer.status();
    let text = answer.text().await.unwrap();
    assert!(status.is_success(), "{query}: {status} {text}");
    let rows = text.lines().skip(1);
    rows.map(|row| row.split(',').map(str::to_owned).collect()).collect()
}
