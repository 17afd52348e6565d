//! Compares the flags of `run` with Alloy's: names, defaults, syntax, and refused flags.

use std::time::Duration;

use clap::{CommandFactory as _, Parser as _};

use crate::app::foreign::{Format, Problems};
use crate::cli::services::run::{RunArgs, check, conversion, shown, user_agent};
use crate::cli::{Cli, Command};

/// Alloy 1.18's flags and defaults.
const ALLOY: [(&str, &str); 33] = [
    ("cluster.advertise-address", ""),
    ("cluster.advertise-interfaces", "eth0,en0"),
    ("cluster.discover-peers", ""),
    ("cluster.enable-tls", "false"),
    ("cluster.enabled", "false"),
    ("cluster.join-addresses", ""),
    ("cluster.max-join-peers", "5"),
    ("cluster.name", ""),
    ("cluster.node-name", ""),
    ("cluster.rejoin-interval", "1m0s"),
    ("cluster.tls-ca-path", ""),
    ("cluster.tls-cert-path", ""),
    ("cluster.tls-key-path", ""),
    ("cluster.tls-server-name", ""),
    ("cluster.wait-for-size", "0"),
    ("cluster.wait-timeout", "0s"),
    ("config.bypass-conversion-errors", "false"),
    ("config.extra-args", ""),
    ("config.format", "alloy"),
    ("disable-reporting", "false"),
    ("feature.community-components.enabled", "false"),
    ("feature.component-shutdown-deadline", "10m0s"),
    ("feature.prometheus.direct-fanout.enabled", "false"),
    ("feature.prometheus.metric-validation-scheme", "legacy"),
    ("server.http.disable-support-bundle", "false"),
    ("server.http.enable-graphql", "false"),
    ("server.http.enable-graphql-playground", "false"),
    ("server.http.enable-pprof", "true"),
    ("server.http.listen-addr", "127.0.0.1:12345"),
    ("server.http.memory-addr", "alloy.internal:12345"),
    ("server.http.ui-path-prefix", "/"),
    ("stability.level", "generally-available"),
    ("storage.path", "data-alloy/"),
];

fn parse(flags: &[&str]) -> Result<RunArgs, clap::Error> {
    let words = ["alluvium", "run"].iter().chain(flags).chain(&["c.alloy"]);
    match Cli::try_parse_from(words)?.command {
        Command::Run(args) => Ok(*args),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_flag_of_alloy_is_there_with_its_default() {
    let defaults = shown(&parse(&[]).unwrap());
    for (name, value) in ALLOY {
        assert!(defaults.contains(&format!("{name}={value}")), "{name}={value}");
    }
    assert!(check(&parse(&[]).unwrap()).is_ok());
}

#[test]
fn every_flag_is_in_the_support_bundle() {
    let shown = shown(&parse(&[]).unwrap());
    let command = Cli::command();
    let run = command.find_subcommand("run").unwrap();
    for flag in run.get_arguments().filter_map(clap::Arg::get_long) {
        let is_shown = shown.iter().any(|line| line.starts_with(&format!("{flag}=")));
        assert!(is_shown || flag.starts_with("log."), "{flag}");
    }
}

#[test]
fn a_switch_alone_is_true_and_never_swallows_the_path() {
    let args = parse(&["--disable-reporting", "--cluster.enabled", "--config.watch"]).unwrap();
    assert!(args.disable_reporting && args.cluster.enabled && args.config.watch);
    assert_eq!(args.path.to_str(), Some("c.alloy"));
    let args = parse(&["--server.http.enable-pprof=false", "--cluster.enabled=T"]).unwrap();
    assert!(!args.server.enable_pprof && args.cluster.enabled);
    assert!(parse(&["--cluster.enabled=yes"]).is_err());
    assert!(parse(&["--server.http.memory-addr=me.internal:1"]).is_ok());
    assert!(parse(&["--server.http.memory-addr=me"]).is_err());
    let args = parse(&["--feature.component-shutdown-deadline", "1h30m"]).unwrap();
    assert_eq!(args.feature.shutdown_deadline, Duration::from_mins(90));
    assert!(parse(&["--feature.component-shutdown-deadline=5"]).is_err());
    assert!(parse(&["--cluster.join-addresses=a", "--cluster.discover-peers=b"]).is_err());
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    for flag in [
        "--server.http.enable-graphql",
        "--server.http.enable-graphql-playground",
        "--feature.community-components.enabled",
        "--feature.prometheus.direct-fanout.enabled",
        "--windows.priority=high",
    ] {
        let error = check(&parse(&[flag]).unwrap()).unwrap_err().to_string();
        let name = flag.split('=').next().unwrap();
        assert!(error.starts_with(name) && !error.contains('\n'), "{flag}: {error}");
    }
    for flag in ["--cluster.discover-peers=provider=x", "--cluster.enable-tls"] {
        assert!(
            check(&parse(&[flag]).unwrap()).is_ok(),
            "{flag} means nothing without a cluster"
        );
        let error = check(&parse(&["--cluster.enabled", flag]).unwrap()).unwrap_err();
        assert!(
            error.to_string().starts_with(flag.split('=').next().unwrap()),
            "{error}"
        );
    }
}

#[test]
fn a_cluster_is_what_its_flags_say_and_nothing_without_the_first_of_them() {
    let flags = [
        "--cluster.node-name=a",
        "--cluster.join-addresses=dns+b:7000,c",
        "--cluster.wait-for-size=3",
        "--cluster.wait-timeout=1m",
        "--cluster.secret-file=/etc/secret",
        "--cluster.listen-addr=0.0.0.0:7000",
        "--cluster.tls-ca-path=/etc/ca",
    ];
    assert!(parse(&flags).unwrap().cluster.options().is_none());
    let args = parse(&[&["--cluster.enabled"], &flags[..]].concat()).unwrap();
    assert!(check(&args).is_ok());
    let options = args.cluster.options().unwrap();
    assert_eq!((options.name.as_str(), options.listen.as_str()), ("a", "0.0.0.0:7000"));
    assert_eq!(
        (options.wait_for_size, options.wait_timeout),
        (3, Duration::from_mins(1))
    );
    assert_eq!(options.join, "dns+b:7000,c");
    assert_eq!((options.interfaces.as_str(), options.most_joined), ("eth0,en0", 5));
    assert_eq!(options.secret.unwrap().to_str(), Some("/etc/secret"));
    let nameless = parse(&["--cluster.enabled"]).unwrap().cluster.options().unwrap();
    assert_eq!(nameless.name, alluvium_base::net::hostname());
}

#[test]
fn a_configuration_of_another_program_is_converted() {
    let convert = |flags: &[&str]| conversion(&parse(flags).unwrap().config);
    assert!(convert(&[]).unwrap().is_none());
    let parca = convert(&["--config.format=parca", "--config.extra-args=push-url=http://there:1"]).unwrap();
    let parca = parca.unwrap();
    assert_eq!((parca.format, &*parca.push_url), (Format::Parca, "http://there:1"));
    assert_eq!(parca.problems, Problems::Refuse);
    let all = convert(&["--config.format=conprof", "--config.bypass-conversion-errors"]).unwrap();
    assert_eq!(all.unwrap().problems, Problems::Note);
    let error = convert(&["--config.format=toml"]).unwrap_err().to_string();
    assert!(
        error.ends_with("the formats are alloy, conprof, coroot, kube-profefe, parca, prometheus"),
        "{error}"
    );
    let error = convert(&["--config.format=conprof", "--config.extra-args=-x"]).unwrap_err();
    let error = format!("{error:#}");
    assert!(
        error.starts_with("--config.extra-args: invalid converter argument `-x`"),
        "{error}"
    );
}

#[test]
fn the_deploy_mode_is_in_the_user_agent() {
    assert_eq!(user_agent(None), crate::app::USER_AGENT);
    assert_eq!(user_agent(Some("nonsense")), crate::app::USER_AGENT);
    assert!(user_agent(Some("helm")).ends_with("; helm)"));
}
