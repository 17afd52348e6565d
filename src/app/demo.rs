//! The demo: a server and a collector in one process on one data folder.
//!
//! The collector runs a real configuration and pushes over the real protocol, so that the demo works in the same way as
//! `serve` and `run`. The configuration is generated for this process and kept in the data folder.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};

use crate::app::collector::{self, CollectorOptions};
use crate::app::live;
use crate::app::serve_options::ServeOptions;
use crate::app::server::{self, RunningServer};
use crate::app::web::CollectorWeb;
use crate::server::access::AccessOptions;
use crate::server::postgres::PostgresOptions;
use crate::server::{Prometheus, ServerOptions};
use alluvium_admin::browser::AllowedHosts;
use alluvium_base::Shutdown;
use alluvium_base::file::{create_folders, replace};
use alluvium_base::net::hostname;
use alluvium_cluster::Cluster;
use alluvium_pipeline::Controller;
use alluvium_telemetry::logs::{LogHandle, Settings};

/// Options of a demo: its addresses, its data folder, and the programs that it profiles.
#[derive(Debug, Clone)]
pub(crate) struct DemoOptions {
    /// `host:port` of the server.
    pub listen: String,
    /// Additional host names by which browsers may address the port. The names of this machine are always allowed.
    pub allowed_hosts: AllowedHosts,
    /// Data folder of the server; the collector keeps its files in the folder `collector` inside it.
    pub data: PathBuf,
    /// Programs to profile besides this program, `host:port`.
    pub targets: Vec<String>,
    /// `host:port` of the PostgreSQL port, if there is one.
    pub postgres: Option<String>,
    /// The Prometheus server whose metrics are shown beside profiles, if there is one.
    pub prometheus: Option<Prometheus>,
    /// If true, the other processes of this machine are not profiled.
    pub only_self: bool,
    /// If true, authentication is off even on a non-loopback address.
    pub is_open: bool,
}

/// Runs the demo until `shutdown`.
pub(crate) async fn run(
    options: DemoOptions,
    logs: LogHandle,
    flags: Settings,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    for target in &options.targets {
        check_target(target)?;
    }
    let metrics = server::process_metrics();
    let plain = ServeOptions::new(&options.listen, &options.data);
    let serve = ServeOptions {
        allowed_hosts: options.allowed_hosts.clone(),
        http: ServerOptions {
            with_collector: true,
            prometheus: options.prometheus.clone(),
            ..plain.http
        },
        postgres: options.postgres.as_deref().map(PostgresOptions::new),
        // The server reads no tokens file. With one, it would require a token, but the demo's own collector has none.
        access: AccessOptions {
            is_open: options.is_open,
            ..AccessOptions::default()
        },
        ..plain
    };
    let prefix = serve.http.prefix.clone();
    let mut server = RunningServer::start(serve, &metrics, &shutdown).await?;
    // The page and the demo's own collector connect to the loopback address if the server listens on all addresses.
    let mut address = server.local_addr();
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    let postgres = server.postgres_addr();
    let storage = options.data.join("collector");
    create_folders(&storage).with_context(|| format!("cannot create the folder {}", storage.display()))?;
    let config_path = storage.join("demo.river");
    let collector = CollectorOptions {
        shutdown_deadline: STOP,
        ..CollectorOptions::new(&config_path, storage)
    };
    let controller = collector::controller(&collector, metrics, logs, flags);
    // The page of the server also shows the collector.
    let web = CollectorWeb {
        controllers: controller.clone().into(),
        node_name: hostname(),
        address,
        cluster: Cluster::default(),
    };
    let routes = alluvium_admin::web::router(Arc::new(web)).merge(alluvium_admin::live::router(live::state(
        &controller.clone().into(),
        &shutdown,
    )));
    server.add_routes(axum::Router::new().nest(&prefix, routes.clone()));
    server.add_routes(routes);
    // The server must run longer than the collector, because the server receives the collector's last profiles.
    let server_shutdown = Shutdown::new();
    let serving = tokio::spawn(server.run(server_shutdown.clone()));
    let load = async |machine: &Machine| -> anyhow::Result<()> {
        let text = configuration(&address.to_string(), &options.targets, machine);
        replace(&config_path, text.as_bytes()).with_context(|| format!("cannot write {}", config_path.display()))?;
        let sources = vec![(config_path.display().to_string(), text)];
        if let Err(diagnostics) = controller.load(sources).await {
            bail!("the demo's own configuration has errors:\n{}", diagnostics.render());
        }
        Ok(())
    };
    let mut machine = Machine::Yes;
    if options.only_self {
        machine = Machine::No("--only-self".to_owned());
    }
    load(&machine).await?;
    if !options.only_self {
        machine = outcome(&controller, &shutdown).await;
        if matches!(machine, Machine::No(_)) {
            // The profiler does not work, so the configuration is loaded again without it. A comment in the
            // configuration contains the reason.
            load(&machine).await?;
        }
    }
    announce(&address.to_string(), postgres, &options, &machine, &config_path);
    controller.run(shutdown).await;
    server_shutdown.cancel();
    serving.await.context("the server failed")?
}

/// Time limit for components to stop. On a busy machine, the profiler needs several seconds for its last profiles.
const STOP: Duration = Duration::from_secs(15);

/// Whether the whole machine can be profiled, and the reason if it cannot.
enum Machine {
    Yes,
    No(String),
}

/// Waits until the health of the profiler component is known, or until `shutdown`. Returns `Yes` if the component is
/// healthy, and `No` with the reason otherwise.
async fn outcome(controller: &Controller, shutdown: &Shutdown) -> Machine {
    const POLL: Duration = Duration::from_millis(20);
    loop {
        let health = controller.component(PROFILER).map(|component| component.health);
        match health {
            Some(health) if health.state == "healthy" => return Machine::Yes,
            Some(health) if health.state != "unknown" => return Machine::No(health.message),
            None => return Machine::No(format!("the configuration has no {PROFILER}")),
            Some(_) => {}
        }
        tokio::select! {
            () = shutdown.cancelled() => return Machine::No("the demo was stopped".to_owned()),
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// Id of the profiler component in [`MACHINE`].
const PROFILER: &str = "pyroscope.ebpf.machine";

/// The part of the configuration that profiles all other processes. The label `service_name` of a process contains the
/// name of its program.
const MACHINE: &str = r#"discovery.process "machine" { }

discovery.relabel "programs" {
	targets = discovery.process.machine.targets

	// pyroscope.scrape.self already profiles this process.
	rule {
		source_labels = ["__process_pid__"]
		regex         = "PID"
		action        = "drop"
	}

	rule {
		source_labels = ["__meta_process_exe"]
		regex         = ".*/([^/]+?)( \\(deleted\\))?"
		target_label  = "service_name"
	}
}

pyroscope.ebpf "machine" {
	targets     = discovery.relabel.programs.output
	forward_to  = [pyroscope.write.local.receiver]
	sample_rate = 97
	demangle    = "templates"
}

"#;

/// Returns the collector's configuration. The collector profiles this process (CPU and memory), the programs in
/// `targets` (all Go profile types) and, with [`Machine::Yes`], all other processes of the machine.
fn configuration(address: &str, targets: &[String], machine: &Machine) -> String {
    let mut text = format!(
        "// Written by `alluvium demo`; a real configuration that `alluvium run` would run too.\n\
         livedebugging {{\n\tenabled = true\n}}\n\n\
         pyroscope.scrape \"self\" {{\n\
         \ttargets    = [{{\"__address__\" = \"{address}\", \"service_name\" = \"alluvium\"}}]\n\
         \tforward_to = [pyroscope.write.local.receiver]\n\n\
         \tprofiling_config {{\n\
         \t\tprofile.memory {{\n\t\t\tpath = \"/debug/pprof/heap\"\n\t\t}}\n\n\
         \t\tprofile.block {{\n\t\t\tenabled = false\n\t\t}}\n\n\
         \t\tprofile.goroutine {{\n\t\t\tenabled = false\n\t\t}}\n\n\
         \t\tprofile.mutex {{\n\t\t\tenabled = false\n\t\t}}\n\
         \t}}\n}}\n\n"
    );
    if !targets.is_empty() {
        text.push_str("pyroscope.scrape \"targets\" {\n\ttargets = [\n");
        for target in targets {
            let service = target.replace(':', "-");
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "\t\t{{\"__address__\" = \"{target}\", \"service_name\" = \"{service}\"}},"
            );
        }
        text.push_str("\t]\n\tforward_to = [pyroscope.write.local.receiver]\n}\n\n");
    }
    match machine {
        Machine::Yes => text.push_str(&MACHINE.replace("PID", &std::process::id().to_string())),
        Machine::No(reason) => {
            let reason = reason.replace('\n', " ");
            let _ = writeln!(
                text,
                "// The other processes of this machine are not profiled: {reason}\n"
            );
        }
    }
    let _ = write!(
        text,
        "pyroscope.write \"local\" {{\n\tendpoint {{\n\t\turl = \"http://{address}\"\n\t}}\n}}\n"
    );
    text
}

/// Checks a target. A target becomes a part of the configuration text, so only the characters of an address are
/// allowed.
fn check_target(target: &str) -> anyhow::Result<()> {
    let port = target
        .rsplit_once(':')
        .and_then(|(host, port)| (!host.is_empty()).then(|| port.parse::<u16>().ok()).flatten());
    let plain = target
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']'));
    if port.is_none() || !plain {
        bail!("--target {target}: expected HOST:PORT, such as localhost:9090");
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the address of the page is for people")]
fn announce(
    address: &str,
    postgres: Option<std::net::SocketAddr>,
    options: &DemoOptions,
    machine: &Machine,
    config: &std::path::Path,
) {
    let targets = if options.targets.is_empty() {
        "itself (add programs with --target HOST:PORT)".to_owned()
    } else {
        format!("itself and {}", options.targets.join(", "))
    };
    println!("\n  Alluvium is profiling {targets}.");
    match machine {
        Machine::Yes => {
            println!("  Every other process of this machine is profiled too; its service is the name of its program.");
        }
        Machine::No(why) => println!("  The other processes of this machine are not profiled: {why}"),
    }
    println!("  The first profiles arrive within 15 s; then look at\n");
    println!("      http://{address}\n");
    println!("  or run: alluvium top 'process_cpu:cpu:nanoseconds:cpu:nanoseconds{{}}'");
    if let Some(postgres) = postgres {
        println!(
            "  or connect: psql -h {} -p {} -U me alluvium",
            postgres.ip(),
            postgres.port()
        );
    }
    println!(
        "  data in {}, configuration in {}; stop with Ctrl-C\n",
        options.data.display(),
        config.display()
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_pipeline::component::Stability;

    #[test]
    fn the_configuration_is_valid_and_formatted() {
        for machine in [Machine::Yes, Machine::No("missing capability CAP_BPF".to_owned())] {
            let text = configuration("127.0.0.1:4040", &["localhost:9090".to_owned()], &machine);
            assert_eq!(alluvium_lang::fmt(&text).unwrap(), text);
            let diagnostics = alluvium_pipeline::validate(
                &[("demo".to_owned(), text)],
                alluvium_components::ALL,
                Stability::GenerallyAvailable,
            );
            assert!(diagnostics.is_empty(), "{}", diagnostics.render());
        }
    }

    #[tokio::test]
    async fn the_profiler_tells_whether_it_may_start() {
        let folder = tempfile::tempdir().unwrap();
        let options = alluvium_pipeline::Options {
            shutdown_deadline: STOP,
            ..alluvium_pipeline::Options::new(folder.path())
        };
        let controller = Controller::new(alluvium_components::ALL, options);
        let shutdown = Shutdown::new();
        let nothing = configuration("127.0.0.1:1", &[], &Machine::No("--only-self".to_owned()));
        controller.load(vec![("demo", nothing)]).await.unwrap();
        assert!(matches!(outcome(&controller, &shutdown).await, Machine::No(_)));
        let text = configuration("127.0.0.1:1", &[], &Machine::Yes);
        controller.load(vec![("demo", text)]).await.unwrap();
        let outcome = outcome(&controller, &shutdown).await;
        let direct = alluvium_ebpf::Profiler::start(alluvium_ebpf::Settings::default());
        match (outcome, direct) {
            (Machine::Yes, Ok(_)) => {}
            (Machine::No(why), Err(error)) => assert_eq!(why, error.to_string()),
            (Machine::No(why), Ok(_)) => panic!("{why}"),
            (Machine::Yes, Err(error)) => panic!("{error}"),
        }
        shutdown.cancel();
        controller.run(shutdown).await;
    }

    #[test]
    fn a_target_must_be_an_address() {
        assert!(check_target("localhost:9090").is_ok());
        assert!(check_target("[::1]:9090").is_ok());
        for target in ["localhost", ":9090", "a b:1", "x\":1", "host:99999"] {
            assert!(check_target(target).is_err(), "{target}");
        }
    }
}
