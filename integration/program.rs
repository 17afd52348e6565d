//! Real processes for tests. This module starts Alluvium and other programs, reserves their ports, stores their logs,
//! and ends them.
//!
//! In: a command line. Out: a running process that is killed on drop, its log for the report when something fails, and
//! HTTP helpers that wait for a condition with a deadline. Other programs may be missing: see [`other`].

use std::fmt::{Display, Formatter};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::net::TcpSocket;

/// Timeout for a condition that a test waits for, such as the start of a program. A debug build on a busy machine with
/// two cores starts within seconds.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// Allows one test at a time to keep all CPUs busy, such as a test that records programs with the profiler. Other
/// callers wait until the returned guard is dropped.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static RECORDING: Mutex<()> = Mutex::new(());
    RECORDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a client that uses no proxy.
pub(crate) fn client() -> reqwest::Client {
    // Only the first test installs the provider.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Repeats a measurement until `claims` accepts its result, at most three times. This is necessary because samples are
/// lost or late on a machine with more work than CPUs. Panics with the last error.
pub(crate) fn insist<T>(measure: impl Fn() -> T, claims: impl Fn(&mut T) -> Result<(), String>) {
    let mut last = String::new();
    for _ in 0..3 {
        match claims(&mut measure()) {
            Ok(()) => return,
            Err(error) => last = error,
        }
        println!("measuring again: {last}");
    }
    panic!("{last}");
}

/// A process that is killed on drop.
pub(crate) struct Program {
    child: Child,
    log: PathBuf,
    name: String,
}

impl Program {
    /// Starts Alluvium with its output in `log`.
    pub(crate) fn alluvium<S: AsRef<str>>(arguments: &[S], log: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_alluvium"));
        command.args(arguments.iter().map(AsRef::as_ref));
        Self::start(command, log)
    }

    /// Starts a process and appends both its outputs to `log`.
    pub(crate) fn start(mut command: Command, log: &Path) -> Self {
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

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGKILL and waits until the process has ended.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM and returns the exit status.
    pub(crate) fn terminate(&mut self) -> ExitStatus {
        let status = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(status.success(), "kill failed");
        self.wait()
    }

    /// Waits until the process has ended and returns its exit status.
    pub(crate) fn wait(&mut self) -> ExitStatus {
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

    /// Panics with the end of the log if the process has ended.
    pub(crate) fn check(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("{} ended with {status}\n{}", self.name, self.tail());
        }
    }

    /// Returns the current anonymous memory of the process in bytes, without the pages of mapped files.
    pub(crate) fn own_memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
        kib.unwrap_or(0) << 10
    }

    /// Returns the peak memory of the process in bytes.
    pub(crate) fn peak_memory(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
    }

    pub(crate) fn tail(&self) -> String {
        let text = std::fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// Waits until a GET of `url` succeeds.
    pub(crate) async fn ready(&mut self, client: &reqwest::Client, url: &str) {
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

/// An address of 127.0.0.1 reserved for one program, which may be started there repeatedly. While the program does not
/// run, connections are refused.
///
/// The socket is bound but does not listen. A server that sets SO_REUSEADDR as well may listen beside it (socket(7)).
/// Linux does not assign the port to other programs that request any free port, or to outgoing connections.
pub(crate) struct Address {
    text: String,
    _kept: TcpSocket,
}

impl Address {
    pub(crate) fn keep() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        Self {
            text: socket.local_addr().unwrap().to_string(),
            _kept: socket,
        }
    }

    /// Returns the part after the colon.
    pub(crate) fn port(&self) -> &str {
        self.text.rsplit(':').next().unwrap()
    }
}

impl Deref for Address {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Display for Address {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.text)
    }
}

#[test]
fn an_address_that_is_kept_is_given_to_nobody_and_its_program_may_start_again() {
    let kept: Vec<Address> = (0..16).map(|_| Address::keep()).collect();
    // Each listener gets one of fewer than 30,000 ports. So if an address were released, some listeners would get its
    // port.
    for _ in 0..20_000 {
        let other = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .to_string();
        assert!(kept.iter().all(|address| **address != other), "{other}");
    }
    for _ in 0..2 {
        let own = TcpListener::bind(&*kept[0]).unwrap();
        assert!(TcpStream::connect(&*kept[0]).is_ok());
        drop(own);
        assert!(TcpStream::connect(&*kept[0]).is_err());
    }
}

/// Runs Alluvium to its end. Returns whether it succeeded, its standard output and its standard error.
pub(crate) fn run<S: AsRef<str>>(arguments: &[S]) -> (bool, Vec<u8>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(arguments.iter().map(AsRef::as_ref))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), output.stdout, errors)
}

/// Returns the path of another program if it works. Otherwise prints a line and returns `None`, or panics if `CI` is
/// set.
pub(crate) fn other(program: &str, probe: &[&str], package: &str) -> Option<PathBuf> {
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

/// Returns the file that a variable names (`make tools` sets the variable). If there is no such file, prints a line and
/// returns `None`, or panics if `CI` is set.
pub(crate) fn file_of(variable: &str, what: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(variable)
        .map(PathBuf::from)
        .filter(|path| path.is_file())
    {
        return Some(path);
    }
    let text = format!("{variable} names no file: `make tools` installs {what}");
    assert!(std::env::var_os("CI").is_none(), "{text}");
    println!("skipped: {text}");
    None
}

/// Queries the server in SQL. Returns the cells of each row, without the header line.
pub(crate) async fn sql(client: &reqwest::Client, url: &str, query: &str) -> Vec<Vec<String>> {
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
