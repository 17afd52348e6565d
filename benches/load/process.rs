//! The kernel's measurements of the server's process (CPU time and memory) and of its data folder (bytes).

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::{Common, rounded};

/// Ticks of `/proc/PID/stat` per second, fixed by the kernel's ABI on every supported Linux.
const TICKS: f64 = 100.0;

/// The measured process, if it is on this machine.
pub(crate) struct Server {
    pid: Option<u32>,
    /// CPU seconds per second that the idle server uses. [`Server::used_since`] subtracts them.
    idle: f64,
}

/// CPU time of a process at a moment.
pub(crate) struct Mark {
    at: Instant,
    cpu: Option<f64>,
}

impl Server {
    /// Finds the process that `--pid` names, or else the process that listens on the port of `--url`. If the server is
    /// remote, the result has no process.
    pub(crate) fn find(common: &Common) -> anyhow::Result<Self> {
        let url = reqwest::Url::parse(&common.url).context("--url")?;
        let pid = match common.pid {
            Some(pid) => Some(pid),
            None => url.port_or_known_default().and_then(listener),
        };
        if pid.is_none() {
            eprintln!("no process here listens at {url}: CPU time and memory are not measured");
        }
        Ok(Self { pid, idle: 0.0 })
    }

    /// Observes the idle server for this time and returns its CPU seconds per second. Later results exclude this idle
    /// use.
    pub(crate) async fn watch_idle(&mut self, length: Duration) -> f64 {
        let mark = self.mark();
        tokio::time::sleep(length).await;
        self.idle = self.used_since(&mark).unwrap_or_default() / length.as_secs_f64();
        self.idle
    }

    /// Returns the CPU time until this moment.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            at: Instant::now(),
            cpu: self.cpu_seconds(),
        }
    }

    /// Returns the CPU seconds since a mark, without the idle use.
    pub(crate) fn used_since(&self, mark: &Mark) -> Option<f64> {
        let used = self.cpu_seconds()? - mark.cpu?;
        Some((used - self.idle * mark.at.elapsed().as_secs_f64()).max(0.0))
    }

    /// Returns user and system seconds so far.
    fn cpu_seconds(&self) -> Option<f64> {
        cpu_seconds(&format!("/proc/{}/stat", self.pid?), 11)
    }

    /// Returns memory in units of 10^6 bytes: resident size and its peak, private pages (`anon`), and mapped file pages
    /// (`file`).
    pub(crate) fn memory(&self) -> Value {
        json!({
            "resident_mb": self.status("VmRSS:"),
            "peak_mb": self.status("VmHWM:"),
            "anon_mb": self.status("RssAnon:"),
            "file_mb": self.status("RssFile:"),
        })
    }

    fn status(&self, key: &str) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        let kibibytes: f64 = line.split_whitespace().next()?.parse().ok()?;
        Some((kibibytes * 1024.0 / 1e4).round() / 100.0)
    }

    /// Waits at most ten minutes until the process has used less than a fiftieth of a core above its idle use for
    /// `rest` seconds in a row. Returns whether it became idle.
    pub(crate) async fn rest(&self, rest: u64) -> bool {
        let deadline = Instant::now() + Duration::from_mins(10);
        let mut quiet = 0;
        while quiet < rest && Instant::now() < deadline {
            let mark = self.mark();
            tokio::time::sleep(Duration::from_secs(1)).await;
            let used = self.used_since(&mark).unwrap_or_default();
            quiet = if used <= 0.02 { quiet + 1 } else { 0 };
        }
        quiet >= rest
    }
}

/// Returns user and system seconds of this process' children that have ended.
pub(crate) fn children_cpu_seconds() -> f64 {
    cpu_seconds("/proc/self/stat", 13).unwrap_or(f64::NAN)
}

/// Returns the sum of two fields of a `stat` file in seconds. Fields are counted after the name.
fn cpu_seconds(file: &str, first: usize) -> Option<f64> {
    let stat = fs::read_to_string(file).ok()?;
    // The name in parentheses may contain any characters.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let user: f64 = fields.nth(first)?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

/// Returns the process with a listening socket on `port`.
fn listener(port: u16) -> Option<u32> {
    let wanted = format!(":{port:04X}");
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|file| {
        let table = fs::read_to_string(file).ok()?;
        table.lines().skip(1).find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let listens = fields.get(3) == Some(&"0A") && fields.get(1)?.ends_with(&wanted);
            listens.then(|| format!("socket:[{}]", fields.get(9).unwrap_or(&"")))
        })
    })?;
    let pids = fs::read_dir("/proc").ok()?.flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .find(|pid| {
            fs::read_dir(format!("/proc/{pid}/fd")).is_ok_and(|files| {
                files
                    .flatten()
                    .any(|file| fs::read_link(file.path()).is_ok_and(|to| to.as_os_str() == inode.as_str()))
            })
        })
}

/// Writes dirty pages and empties the system's page cache, which requires root. Returns whether it succeeded.
pub(crate) fn drop_page_cache() -> bool {
    let synced = std::process::Command::new("sync").status();
    synced.is_ok_and(|status| status.success()) && fs::write("/proc/sys/vm/drop_caches", "1").is_ok()
}

/// Returns the machine's load averages of one, five and fifteen minutes.
pub(crate) fn load_average() -> Value {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let numbers: Vec<f64> = text.split(' ').take(3).filter_map(|part| part.parse().ok()).collect();
    json!(numbers)
}

/// Returns the type of a folder's file system, as `/proc/mounts` names it.
pub(crate) fn file_system(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let holding = fields.filter(|fields| fields.get(1).is_some_and(|place| folder.starts_with(place)));
    let nearest = holding.max_by_key(|fields| fields[1].len())?;
    Some((*nearest.get(2)?).to_owned())
}

/// Number of bytes in the files below a folder: in Parquet files, and in all files.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct FolderBytes {
    pub parquet: u64,
    pub all: u64,
}

impl FolderBytes {
    pub(crate) fn of(folder: &Path) -> Self {
        let mut bytes = Self::default();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(metadata) = entry.metadata() {
                    bytes.all += metadata.len();
                    if path.extension().is_some_and(|extension| extension == "parquet") {
                        bytes.parquet += metadata.len();
                    }
                }
            }
        }
        bytes
    }

    /// Returns the sizes in units of 10^6 bytes, and the bytes per value if the folder stores this number of values.
    pub(crate) fn json(self, values: f64) -> Value {
        json!({
            "parquet_mb": rounded(self.parquet as f64 / 1e6, 2),
            "folder_mb": rounded(self.all as f64 / 1e6, 2),
            "parquet_bytes_per_value": rounded(self.parquet as f64 / values, 3),
            "folder_bytes_per_value": rounded(self.all as f64 / values, 3),
        })
    }
}
