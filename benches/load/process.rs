//! What the kernel knows of the server's process: CPU time, memory; and of its data folder: bytes.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::Common;

/// Ticks of `/proc/PID/stat` in a second; the kernel's ABI on every Linux that runs this.
const TICKS: f64 = 100.0;

/// The process that is measured, if it is on this machine.
pub struct Server {
    pid: Option<u32>,
}

impl Server {
    /// The process given, or the one that listens on the port of the URL; none for a server elsewhere.
    pub fn find(common: &Common) -> anyhow::Result<Self> {
        let url = reqwest::Url::parse(&common.url).context("--url")?;
        let pid = match common.pid {
            Some(pid) => Some(pid),
            None => url.port_or_known_default().and_then(listener),
        };
        if pid.is_none() {
            eprintln!("no process here listens at {url}: CPU time and memory are not measured");
        }
        Ok(Self { pid })
    }

    /// User and system seconds so far.
    pub fn cpu_seconds(&self) -> Option<f64> {
        cpu_seconds(&format!("/proc/{}/stat", self.pid?), 11)
    }

    /// Largest resident memory so far, 10^6 bytes.
    pub fn peak_mb(&self) -> Option<f64> {
        self.status("VmHWM:")
    }

    /// Resident memory now, 10^6 bytes.
    pub fn resident_mb(&self) -> Option<f64> {
        self.status("VmRSS:")
    }

    fn status(&self, key: &str) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        let kibibytes: f64 = line.split_whitespace().next()?.parse().ok()?;
        Some((kibibytes * 1024.0 / 1e4).round() / 100.0)
    }

    /// Waits until the process used less than a fiftieth of a core for `rest` seconds, at most five minutes.
    pub async fn rest(&self, rest: u64) {
        let deadline = Instant::now() + Duration::from_secs(300);
        let mut quiet = 0;
        while quiet < rest && Instant::now() < deadline {
            let before = self.cpu_seconds();
            tokio::time::sleep(Duration::from_secs(1)).await;
            let used = self
                .cpu_seconds()
                .zip(before)
                .map_or(0.0, |(after, before)| after - before);
            quiet = if used <= 0.02 { quiet + 1 } else { 0 };
        }
    }
}

/// User and system seconds of this process' children that have ended.
pub fn children_cpu_seconds() -> f64 {
    cpu_seconds("/proc/self/stat", 13).unwrap_or(f64::NAN)
}

/// The sum of two fields of a `stat` file in seconds, counted after the name.
fn cpu_seconds(file: &str, first: usize) -> Option<f64> {
    let stat = fs::read_to_string(file).ok()?;
    // The name in parentheses may hold anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let user: f64 = fields.nth(first)?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

/// The process with a listening socket on `port`.
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

/// The machine's load averages of one, five and fifteen minutes.
pub fn load_average() -> Value {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let numbers: Vec<f64> = text.split(' ').take(3).filter_map(|part| part.parse().ok()).collect();
    json!(numbers)
}

/// Bytes of the files below a folder: of Parquet files, and of all.
pub fn folder_bytes(folder: &Path) -> (u64, u64) {
    let (mut parquet, mut all) = (0, 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(metadata) = entry.metadata() {
                all += metadata.len();
                if path.extension().is_some_and(|extension| extension == "parquet") {
                    parquet += metadata.len();
                }
            }
        }
    }
    (parquet, all)
}
