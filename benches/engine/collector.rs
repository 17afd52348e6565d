//! Runs the program as a collector with a temporary folder, and reads its CPU time and memory from `/proc`.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Clock ticks per second in `/proc`, which are the same on every Linux.
const TICKS: f64 = 100.0;

pub(crate) struct Collector {
    child: Child,
    folder: PathBuf,
    address: String,
    /// Seconds from the start to the first successful response of `/-/ready`.
    pub ready_after: f64,
}

/// Resident memory in units of 10^6 bytes.
pub(crate) struct Resident {
    pub all: f64,
    /// Pages that belong only to this process.
    pub anon: f64,
    /// Pages of files that the process has mapped, most of them its own code.
    pub file: f64,
    /// The largest resident memory since the start.
    pub peak: f64,
}

impl Collector {
    pub(crate) fn start(program: &Path, text: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let folder = std::env::temp_dir().join(format!("alluvium-bench-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let config = folder.join("bench.alloy");
        std::fs::write(&config, text).unwrap();
        let log = std::fs::File::create(folder.join("log")).unwrap();
        let started = Instant::now();
        let child = Command::new(program)
            .arg("run")
            .arg(&config)
            .arg("--server.http.listen-addr")
            .arg(&address)
            .arg("--storage.path")
            .arg(folder.join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut collector = Self {
            child,
            folder,
            address,
            ready_after: 0.0,
        };
        while !collector.get("/-/ready").starts_with("HTTP/1.1 200") {
            assert!(started.elapsed() < Duration::from_mins(1), "{}", collector.log());
            std::thread::sleep(Duration::from_millis(1));
        }
        collector.ready_after = started.elapsed().as_secs_f64();
        collector
    }

    /// Reloads the configuration and returns the seconds that the reload took.
    pub(crate) fn reload(&self) -> f64 {
        let started = Instant::now();
        let answer = self.get("/-/reload");
        assert!(answer.ends_with("config reloaded\n"), "{}", self.log());
        started.elapsed().as_secs_f64()
    }

    /// Writes another configuration without loading it.
    pub(crate) fn write(&self, text: &str) {
        std::fs::write(self.folder.join("bench.alloy"), text).unwrap();
    }

    /// Returns the whole response, or an empty text if the request fails.
    pub(crate) fn get(&self, path: &str) -> String {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(&self.address)?;
            stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().unwrap_or_default()
    }

    fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap()
    }

    pub(crate) fn resident(&self) -> Resident {
        let status = self.proc("status");
        let megabytes = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            line.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1024.0 / 1e6
        };
        Resident {
            all: megabytes("VmRSS:"),
            anon: megabytes("RssAnon:"),
            file: megabytes("RssFile:"),
            peak: megabytes("VmHWM:"),
        }
    }

    pub(crate) fn cpu_seconds(&self) -> f64 {
        let stat = self.proc("stat");
        // The process name may contain spaces. Of the fields after it, utime and stime are the 12th and 13th.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / TICKS
    }

    /// Returns the CPU time that the process uses in the given time, in percent of one processor.
    pub(crate) fn cpu_percent(&self, length: Duration) -> f64 {
        let before = self.cpu_seconds();
        std::thread::sleep(length);
        (self.cpu_seconds() - before) / length.as_secs_f64() * 100.0
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
