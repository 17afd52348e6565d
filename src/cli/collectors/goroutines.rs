//! `alluvium goroutines`: prints the full goroutine dump of a target that a collector scrapes, or lists these targets.
//!
//! In: flags. Out: the text of the dump, or a table. The collector itself sends the request to the target, so the
//! command needs neither the target's address nor its credentials, and no network connection to it.

use std::path::PathBuf;

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;
use http::StatusCode;
use serde_json::Value;
use url::Url;

use crate::cli::collectors::dump_targets::{self, DumpTarget};
use crate::cli::common::remote::{base_url, client_options};
use crate::cli::common::{output, table};
use alluvium_wire::client::{Credential, HttpClient, Secret, read_body};

/// Maximum size of a response of the collector, in bytes. A dump has at most 64 MiB.
const MAX_RESPONSE_BYTES: usize = 65 << 20;

/// Maximum number of modules whose components are listed.
const MAX_MODULES: usize = 10_000;

/// Arguments of `alluvium goroutines`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:\n  alluvium goroutines\n  \
                        alluvium goroutines localhost:6060\n  \
                        alluvium goroutines checkout --collector http://collector:12345 -o goroutines.txt")]
pub struct GoroutinesArgs {
    /// The target: its address `host:port`, the URL of its goroutine profile, the value of a label, or any part of the
    /// URL or of the labels that no other target has. Without TARGET, the command lists all targets.
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,
    /// Id of a `pyroscope.scrape` component. Only its targets are considered.
    #[arg(long, value_name = "ID")]
    pub component: Option<String>,
    /// File to write the dump to, instead of standard output.
    #[arg(short, long, value_name = "FILE", requires = "target")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub collector: CollectorArgs,
}

/// Flags for the collector that a command queries.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Collector")]
pub struct CollectorArgs {
    /// URL of the collector, with the path prefix of its page if it has one.
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://localhost:12345",
        env = "ALLUVIUM_COLLECTOR"
    )]
    pub collector: String,
    /// User name, if the collector requires a password.
    #[arg(long, value_name = "NAME", requires = "password_file")]
    pub username: Option<String>,
    /// File with the password of the user.
    #[arg(long, value_name = "FILE", requires = "username")]
    pub password_file: Option<PathBuf>,
    /// PEM file of the certificate authorities to trust, instead of the system's authorities.
    #[arg(long, value_name = "FILE", env = "ALLUVIUM_CA")]
    pub ca: Option<PathBuf>,
}

#[expect(clippy::print_stderr, reason = "standard output may be the dump")]
pub(crate) async fn run(args: GoroutinesArgs) -> anyhow::Result<()> {
    let collector = Collector::new(&args.collector)?;
    let targets = match &args.component {
        Some(id) => {
            if let Some(targets) = collector.targets(id).await? {
                targets
            } else {
                collector.components().await?;
                bail!("the collector has no component `{id}`")
            }
        }
        None => collector.all_targets().await?,
    };
    if targets.is_empty() {
        bail!(
            "the collector at {} scrapes no goroutines right now",
            args.collector.collector
        );
    }
    let Some(text) = &args.target else {
        return list(&targets);
    };
    let target = dump_targets::choose(&targets, text)?;
    let dump = collector.dump(target).await?;
    match &args.output {
        Some(path) => {
            output::write_file(path, &dump)?;
            eprintln!("wrote {}", path.display());
            Ok(())
        }
        None => output::write_text(&dump),
    }
}

/// Prints the targets as a table.
fn list(targets: &[DumpTarget]) -> anyhow::Result<()> {
    let table = table::from_json(&serde_json::to_vec(targets)?)?;
    output::write_text(table.as_bytes())
}

/// Path of the list of components.
const COMPONENTS: &str = "components";

/// A client of a collector.
struct Collector {
    http: HttpClient,
    base: Url,
}

impl Collector {
    fn new(args: &CollectorArgs) -> anyhow::Result<Self> {
        let mut options = client_options(args.ca.as_deref());
        if let (Some(username), Some(password)) = (&args.username, &args.password_file) {
            options.credential = Credential::Basic {
                username: username.as_str().into(),
                password: Secret::File(password.clone()),
            };
        }
        let base = base_url("--collector", &args.collector)?;
        let http = HttpClient::new(&options)?;
        Ok(Self { http, base })
    }

    /// Returns the targets of all components.
    async fn all_targets(&self) -> anyhow::Result<Vec<DumpTarget>> {
        let mut targets = Vec::new();
        for id in self.scrape_components().await? {
            // A component may have disappeared since the request for the list that contains it.
            targets.extend(self.targets(&id).await?.unwrap_or_default());
        }
        Ok(targets)
    }

    /// Returns the targets of a component, or `None` if the component does not exist.
    async fn targets(&self, id: &str) -> anyhow::Result<Option<Vec<DumpTarget>>> {
        let component = self.get(&format!("components/{id}")).await?;
        Ok(component.map(|component| dump_targets::read(id, &component)))
    }

    /// Returns the components outside of modules. Every collector has this list, so its absence means that the URL is
    /// not that of a collector.
    async fn components(&self) -> anyhow::Result<Value> {
        let components = self.get(COMPONENTS).await?;
        components.with_context(|| {
            format!(
                "--collector `{}` is not the URL of a collector: HTTP status 404 for its list of components",
                self.base
            )
        })
    }

    /// Returns the ids of the components that may scrape goroutines, including those in modules.
    async fn scrape_components(&self) -> anyhow::Result<Vec<String>> {
        let mut ids = Vec::new();
        let mut paths = vec![COMPONENTS.to_owned(), "remotecfg/components".to_owned()];
        let mut modules = 0;
        while let Some(path) = paths.pop() {
            let components = match path.as_str() {
                COMPONENTS => Some(self.components().await?),
                _ => self.get(&path).await?,
            };
            // A module may have disappeared since the request for the list that contains it.
            let Some(components) = components else {
                continue;
            };
            for component in components.as_array().into_iter().flatten() {
                ids.extend(dump_targets::scrape_id(component));
                let created = dump_targets::modules(component);
                paths.extend(created.map(|module| format!("modules/{module}/components")));
            }
            modules += 1;
            if modules > MAX_MODULES {
                bail!("the collector has more than {MAX_MODULES} modules: name a component with --component");
            }
        }
        ids.sort();
        Ok(ids)
    }

    async fn dump(&self, target: &DumpTarget) -> anyhow::Result<Vec<u8>> {
        let mut url = self.url(&format!("goroutines/{}", target.component))?;
        url.query_pairs_mut().append_pair("target", &target.url);
        let request = self.http.client().post(url).headers(self.http.headers().await?);
        let response = self.http.client().send(request).await;
        let response = response.context("cannot reach the collector")?;
        let status = response.status();
        let body = read_body(response, MAX_RESPONSE_BYTES).await?;
        Ok(success(status, body)?.into())
    }

    /// Returns the JSON at a path below `/api/v0/web`, or `None` if it does not exist.
    async fn get(&self, path: &str) -> anyhow::Result<Option<Value>> {
        let request = self.http.get(self.url(path)?).await?;
        let response = self.http.client().send(request).await;
        let response = response.context("cannot reach the collector")?;
        let status = response.status();
        let body = read_body(response, MAX_RESPONSE_BYTES).await?;
        if status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let value = serde_json::from_slice(&success(status, body)?);
        value
            .map(Some)
            .context("the response is not JSON; is this URL that of a collector?")
    }

    /// Returns the URL of a path below `/api/v0/web`. Each part of the path is encoded.
    fn url(&self, path: &str) -> anyhow::Result<Url> {
        let mut url = self.base.clone();
        url.set_query(None);
        url.set_fragment(None);
        let Ok(mut segments) = url.path_segments_mut() else {
            bail!("--collector `{}` has no path", self.base);
        };
        segments
            .pop_if_empty()
            .extend(["api", "v0", "web"])
            .extend(path.split('/'));
        drop(segments);
        Ok(url)
    }
}

/// Returns the body of a successful response.
fn success(status: StatusCode, body: Bytes) -> anyhow::Result<Bytes> {
    if !status.is_success() {
        bail!("the collector responded with HTTP status {status}: {}", text(&body));
    }
    Ok(body)
}

/// Returns the beginning of an error response, for a message.
fn text(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(1000)]);
    text.trim().to_owned()
}
