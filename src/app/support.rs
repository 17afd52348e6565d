//! The support bundle: a zip file with diagnostic data of the collector.
//!
//! In: the running collector. Out: its configuration without secrets, its components, flags and environment variables,
//! metrics at the start and the end of the requested period, the log lines and a CPU profile of that period, and a heap
//! profile. The layout is the same as in Alloy, with `alluvium` in the names. The bundle contains no secrets.
//! [`alluvium_pipeline::redact`] removes them from the configuration, and component values show them as `(secret)`.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::app::reload::Reloader;
use crate::app::remote::{MODULE, Remote};
use crate::app::web::Controllers;
use alluvium_admin::SupportError;
use alluvium_admin::profiling::Profiling;
use alluvium_admin::web::Web;
use alluvium_admin::zip::{ZipError, ZipWriter};
use alluvium_pipeline::redact;
use alluvium_telemetry::logs::{LogHandle, without_userinfo};
use alluvium_telemetry::metrics::Scope;

/// Maximum size of the log lines in bytes, 16 MiB.
const MAX_LOG_BYTES: usize = 16 << 20;

/// Environment variables that influence the collector.
const ENVIRONMENT: [&str; 13] = [
    "ALLOY_DEPLOY_MODE",
    "ALLUVIUM_LOG_FORMAT",
    "ALLUVIUM_LOG_LEVEL",
    "GOMEMLIMIT",
    "HOSTNAME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "TOKIO_WORKER_THREADS",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];

/// Builds support bundles, one at a time.
pub(crate) struct SupportBundle {
    pub controllers: Controllers,
    /// Source of the remote configuration text.
    pub remote: Remote,
    pub reloader: Arc<Reloader>,
    /// Provides peers and components in the form of the API.
    pub web: Arc<dyn Web>,
    pub metrics: Scope,
    /// Profiles of this process.
    pub profiling: Profiling,
    /// Source of the log lines.
    pub logs: LogHandle,
    pub flags: Vec<String>,
    /// Time at which the collector started.
    pub started: Instant,
    /// Held while a bundle is built.
    pub taking: tokio::sync::Mutex<()>,
}

impl SupportBundle {
    /// Builds a bundle with the log lines and the CPU profile of `duration`.
    pub(crate) async fn take(&self, duration: Duration) -> Result<Vec<u8>, SupportError> {
        let _taking = self.taking.try_lock().map_err(|_| SupportError::Busy)?;
        let tap = self.logs.tap(MAX_LOG_BYTES);
        tracing::info!(seconds = duration.as_secs(), "taking a support bundle");
        let before = self.metrics.encode();
        let (cpu, ()) = tokio::join!(self.profiling.cpu(duration), tokio::time::sleep(duration));
        let heap = self.profiling.heap().await;
        let mut files = vec![
            ("alluvium-metadata.yaml".to_owned(), self.metadata().into_bytes()),
            ("alluvium-components.json".to_owned(), pretty(&self.components())),
            ("alluvium-peers.json".to_owned(), pretty(&self.web.peers())),
            ("alluvium-last-load.json".to_owned(), pretty(&self.web.last_load())),
            ("alluvium-metrics-sample-start.txt".to_owned(), before.into_bytes()),
            (
                "alluvium-metrics-sample-end.txt".to_owned(),
                self.metrics.encode().into_bytes(),
            ),
            (
                "alluvium-runtime-flags.txt".to_owned(),
                self.flags.join("\n").into_bytes(),
            ),
            ("alluvium-environment.txt".to_owned(), environment().into_bytes()),
            ("alluvium-logs.txt".to_owned(), tap.text().into_bytes()),
        ];
        for (name, profile) in [("cpu", cpu), ("heap", heap)] {
            files.push(match profile {
                Ok(bytes) => (format!("pprof/{name}.pprof"), bytes),
                Err(error) => (format!("pprof/{name}.txt"), error.to_string().into_bytes()),
            });
        }
        let texts = self.reloader.in_force().into_iter();
        let texts = texts.map(|(path, text)| {
            let name = Path::new(&*path).file_name().unwrap_or_default().to_string_lossy();
            (format!("sources/{name}"), path, text)
        });
        let remote = self.remote.in_force();
        // The path is the same as in Alloy's bundle.
        let remote = remote.map(|(path, text)| ("sources/remote-config/remote.alloy".to_owned(), path, text));
        for (name, path, text) in texts.chain(remote) {
            files.push((name, redact(&path, &text, alluvium_components::ALL).into_bytes()));
        }
        let packed = tokio::task::spawn_blocking(move || pack(&files)).await;
        packed
            .map_err(|error| SupportError::Failed(error.to_string()))?
            .map_err(|error| SupportError::Failed(error.to_string()))
    }

    fn metadata(&self) -> String {
        let cpus = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
        let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
        format!(
            "build_version: v{}\nos: {}\narchitecture: {}\nuptime: {}\nprocess_uptime: {:.1}\ncpus: {cpus}\n",
            env!("CARGO_PKG_VERSION"),
            std::env::consts::OS,
            std::env::consts::ARCH,
            uptime.split(' ').next().filter(|text| !text.is_empty()).unwrap_or("0"),
            self.started.elapsed().as_secs_f64(),
        )
    }

    /// Returns all components with their values. The components of a module come after the component that created it.
    fn components(&self) -> serde_json::Value {
        let mut all = Vec::new();
        let mut modules = vec![MODULE.to_owned(), String::new()];
        while let Some(module) = modules.pop() {
            let controller = self.controllers.controller(&module);
            for view in controller.components(&module).unwrap_or_default() {
                let id = match module.as_str() {
                    "" => view.local_id.clone(),
                    module => format!("{module}/{}", view.local_id),
                };
                modules.extend(view.created_module_ids.iter().cloned());
                all.extend(self.web.component(&id));
            }
        }
        all.into()
    }
}

fn pretty(value: &serde_json::Value) -> Vec<u8> {
    serde_json::to_vec_pretty(value).unwrap_or_default()
}

fn environment() -> String {
    let line = |name: &&str| {
        let value = std::env::var(name).unwrap_or_default();
        format!("{name}={}\n", without_userinfo(value))
    };
    ENVIRONMENT.iter().map(line).collect()
}

fn pack(files: &[(String, Vec<u8>)]) -> Result<Vec<u8>, ZipError> {
    let mut zip = ZipWriter::default();
    for (name, content) in files {
        zip.add(&format!("alluvium-support-bundle/{name}"), content)?;
    }
    zip.finish()
}
