//! Converts Kubernetes manifests that run kube-profefe's or Coroot's agents, or that annotate pods for these agents.
//!
//! In: manifests. Out: components that collect the same profiles. `discovery.profiles` reads the annotations of pods,
//! so they stay in the manifests.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::app::foreign::blocks::{duration, milliseconds};
use crate::app::foreign::findings::Findings;
use crate::app::foreign::manifest::{Workload, workloads};
use crate::app::foreign::text::Writer;
use alluvium_lang::literal::quote;

/// Value of `forward_to` in every component that collects profiles.
const FORWARD_TO: &str = "[pyroscope.write.default.receiver]";
/// Scrape interval in milliseconds if the schedule of kprofefe cannot be read. It is the interval in kprofefe's own
/// manifest.
const PROFEFE_EVERY: u64 = 10 * MINUTE;
/// Duration of a CPU profile of kprofefe, in milliseconds.
const PROFEFE_CPU: u64 = 30_000;
/// Duration of a CPU profile of Coroot's agent, in milliseconds.
const COROOT_CPU: u64 = 10_000;
/// Interval at which Coroot's agents collect profiles.
const COROOT_EVERY: &str = "60s";
/// One minute in milliseconds.
const MINUTE: u64 = 60_000;

/// The pods to discover, and how to scrape them.
#[derive(Default)]
struct Pods {
    /// Names of namespaces; empty for all.
    namespaces: BTreeSet<String>,
    own_namespace: bool,
    label: Option<String>,
    field: Option<String>,
    kubeconfig: Option<String>,
    interval: String,
    timeout: Option<String>,
    /// Duration of a CPU profile in milliseconds.
    cpu: u64,
    threads: bool,
}

/// Converts manifests that run kprofefe, or pods that are annotated for it.
pub(super) fn kube_profefe(documents: &[Value], out: &mut Writer, findings: &mut Findings) {
    let all = workloads(documents);
    annotations(&all, "profefe.com/", &["enable", "path", "port", "service"], findings);
    let mut number = 0;
    for workload in &all {
        for container in workload
            .containers
            .iter()
            .filter(|container| container.runs("kprofefe"))
        {
            number += 1;
            let line = container.command_line(&["A", "all-namespaces"]);
            let mut pods = Pods {
                own_namespace: true,
                interval: schedule(workload, findings),
                cpu: PROFEFE_CPU,
                threads: true,
                ..Pods::default()
            };
            for (flag, value) in line.flags {
                let path = format!("{}: --{flag}", workload.path);
                match flag {
                    "A" | "all-namespaces" => pods.own_namespace = false,
                    "n" | "namespace" => drop(pods.namespaces.insert(value.to_owned())),
                    "l" | "selector" => pods.label = Some(value.to_owned()),
                    "kubeconfig" => pods.kubeconfig = Some(value.to_owned()),
                    "profefe-hostport" => findings.note(
                        &path,
                        "is left out: profiles go to push-url, not to profefe's collector",
                    ),
                    "tracer" | "tracer.jaeger-address" => {
                        findings.note(&path, "is left out: it configures traces of kprofefe itself");
                    }
                    _ => findings.problem(&path, "cannot be converted"),
                }
            }
            match line.words.as_slice() {
                [] => {}
                [pod] => pods.field = Some(format!("metadata.name={pod}")),
                _ => findings.problem(&workload.path, "names several pods: use a label selector"),
            }
            pods.write(number, out);
        }
    }
    if number == 0 {
        let annotated = annotated(&all, "profefe.com/enable");
        if annotated.is_empty() {
            return findings.problem(
                "the file",
                "has neither kprofefe nor a pod with the annotation profefe.com/enable",
            );
        }
        let pods = Pods {
            namespaces: namespaces(&annotated),
            interval: go(PROFEFE_EVERY),
            cpu: PROFEFE_CPU,
            threads: true,
            ..Pods::default()
        };
        pods.write(1, out);
    }
}

/// Converts manifests that run Coroot's agents, or pods that are annotated for them.
pub(super) fn coroot(documents: &[Value], out: &mut Writer, findings: &mut Findings) {
    let all = workloads(documents);
    annotations(&all, "coroot.com/profile-", &["port", "scrape"], findings);
    let agent = |name: &str| {
        all.iter().find_map(|workload| {
            let container = workload.containers.iter().find(|container| container.runs(name))?;
            let flags = container.command_line(&[]).flags;
            let flags = flags
                .into_iter()
                .map(|(flag, value)| (flag.to_owned(), value.to_owned()));
            let environment = container.environment.iter();
            let environment =
                environment.map(|(name, value)| (name.to_lowercase().replace('_', "-"), (*value).to_owned()));
            // A flag overrides an environment variable.
            Some((workload, environment.chain(flags).collect::<BTreeMap<String, String>>()))
        })
    };
    let (cluster, node) = (agent("coroot-cluster-agent"), agent("coroot-node-agent"));
    let annotated = annotated(&all, "coroot.com/profile-scrape");
    if let Some((workload, settings)) = &cluster {
        cluster_agent(workload, settings, out, findings);
    } else if !annotated.is_empty() {
        let pods = Pods {
            namespaces: namespaces(&annotated),
            ..of_coroot(COROOT_EVERY.to_owned())
        };
        pods.write(1, out);
    }
    if let Some((workload, settings)) = &node {
        node_agent(workload, settings, out, findings);
    }
    if cluster.is_none() && node.is_none() && annotated.is_empty() {
        let message = "has neither an agent of Coroot nor a pod with the annotation coroot.com/profile-scrape";
        findings.problem("the file", message);
    }
    let refusing = all.iter().filter(|workload| {
        let mut environments = workload.containers.iter().map(|container| &container.environment);
        environments.any(|environment| environment.get("COROOT_EBPF_PROFILING") == Some(&"disabled"))
    });
    for workload in refusing {
        let message = "has no counterpart: drop the targets of the workload's pods with a rule of discovery.relabel";
        findings.note(&format!("{}: COROOT_EBPF_PROFILING", workload.path), message);
    }
}

/// Converts the agent that scrapes annotated pods.
fn cluster_agent(
    workload: &Workload<'_>,
    settings: &BTreeMap<String, String>,
    out: &mut Writer,
    findings: &mut Findings,
) {
    let mut pods = of_coroot(COROOT_EVERY.to_owned());
    for (name, value) in settings {
        let path = format!("{}: {name}", workload.path);
        match name.as_str() {
            "profiles-scrape-interval" => pods.interval = go_duration(&path, value, findings),
            "profiles-scrape-timeout" => pods.timeout = Some(go_duration(&path, value, findings)),
            name => left_out(&path, name, findings),
        }
    }
    if milliseconds(&pods.interval) == Some(0) {
        return findings.note(
            &workload.path,
            "has the scrape interval 0, so annotated pods are not scraped",
        );
    }
    pods.write(1, out);
}

/// Converts the agent that profiles the processes of a node.
fn node_agent(workload: &Workload<'_>, settings: &BTreeMap<String, String>, out: &mut Writer, findings: &mut Findings) {
    let mut is_java_on = false;
    for (name, value) in settings {
        let path = format!("{}: {name}", workload.path);
        match (name.as_str(), value.as_str()) {
            ("enable-java-async-profiler", value) => is_java_on = matches!(value, "" | "true" | "1"),
            ("java-async-profiler-delay", _) => {
                findings.note(&path, "has no counterpart: profiling starts without delay");
            }
            ("go-heap-profiler", "disabled") => {}
            ("go-heap-profiler", _) => {
                let message = "has no counterpart: to get Go heap profiles, annotate pods that serve them over HTTP";
                findings.note(&path, message);
            }
            ("profiles-prune-fraction", _) => findings.note(&path, "has no counterpart: no stacks are pruned"),
            (name, _) => left_out(&path, name, findings),
        }
    }
    out.open("discovery.kubernetes", Some("node"));
    out.attribute("role", "\"pod\"");
    out.open("selectors", None);
    out.attribute("role", "\"pod\"");
    out.attribute("field", "\"spec.nodeName=\" + sys.env(\"NODE_NAME\")");
    out.close();
    out.close();
    out.open("discovery.relabel", Some("node"));
    out.attribute("targets", "discovery.kubernetes.node.targets");
    for (from, to) in [
        ("namespace", "namespace"),
        ("pod_name", "pod"),
        ("pod_container_name", "container"),
    ] {
        rule(
            &[
                ("source_labels", &format!("[\"__meta_kubernetes_{from}\"]")),
                ("target_label", &quote(to)),
            ],
            out,
        );
    }
    rule(
        &[
            ("source_labels", "[\"namespace\", \"container\"]"),
            ("separator", "\"/\""),
            ("target_label", "\"service_name\""),
        ],
        out,
    );
    out.close();
    out.open("pyroscope.ebpf", Some("node"));
    out.attribute("targets", "discovery.relabel.node.output");
    out.attribute("forward_to", FORWARD_TO);
    out.attribute("collect_interval", &quote(COROOT_EVERY));
    out.attribute("sample_rate", "100");
    out.attribute("kernel_frames", "false");
    out.attribute("demangle", "\"full\"");
    out.attribute("targets_only", "false");
    out.close();
    if is_java_on {
        java(out);
    }
}

/// Writes the components that profile the Java processes of a node.
fn java(out: &mut Writer) {
    out.open("discovery.process", Some("node"));
    out.attribute("join", "discovery.relabel.node.output");
    out.close();
    out.open("discovery.relabel", Some("java"));
    out.attribute("targets", "discovery.process.node.targets");
    let of_java = [
        ("source_labels", "[\"__meta_process_exe\"]"),
        ("regex", "\".*/java\""),
        ("action", "\"keep\""),
    ];
    rule(&of_java, out);
    out.close();
    out.open("pyroscope.java", Some("node"));
    out.attribute("targets", "discovery.relabel.java.output");
    out.attribute("forward_to", FORWARD_TO);
    out.close();
}

fn rule(attributes: &[(&str, &str)], out: &mut Writer) {
    out.open("rule", None);
    for (name, value) in attributes {
        out.attribute(name, value);
    }
    out.close();
}

/// Records a note for a Coroot setting that has no effect here.
fn left_out(path: &str, name: &str, findings: &mut Findings) {
    let names_coroot = matches!(
        name,
        "api-key" | "collector-endpoint" | "coroot-url" | "insecure-skip-verify" | "profiles-endpoint"
    );
    findings.note(
        path,
        if names_coroot {
            "is left out: profiles go to push-url, not to Coroot"
        } else {
            "is left out: it does not concern profiles"
        },
    );
}

fn of_coroot(interval: String) -> Pods {
    Pods {
        interval,
        cpu: COROOT_CPU,
        ..Pods::default()
    }
}

impl Pods {
    /// Writes the components that discover and scrape the pods. If `number` is 2 or more, the names of the components
    /// contain it.
    fn write(&self, number: usize, out: &mut Writer) {
        let name = match number {
            0 | 1 => "pods".to_owned(),
            number => format!("pods_{number}"),
        };
        out.open("discovery.profiles", Some(&name));
        if let Some(file) = &self.kubeconfig {
            out.attribute("kubeconfig_file", &quote(file));
        }
        if self.own_namespace || !self.namespaces.is_empty() {
            out.open("namespaces", None);
            if self.namespaces.is_empty() {
                out.attribute("own_namespace", "true");
            } else {
                let names: Vec<String> = self.namespaces.iter().map(|name| quote(name)).collect();
                out.attribute("names", &format!("[{}]", names.join(", ")));
            }
            out.close();
        }
        if self.label.is_some() || self.field.is_some() {
            out.open("selectors", None);
            out.attribute("role", "\"pod\"");
            for (name, value) in [("label", &self.label), ("field", &self.field)] {
                if let Some(value) = value {
                    out.attribute(name, &quote(value));
                }
            }
            out.close();
        }
        out.close();
        out.open("pyroscope.scrape", Some(&name));
        out.attribute("targets", &format!("discovery.profiles.{name}.targets"));
        out.attribute("forward_to", FORWARD_TO);
        out.attribute("scrape_interval", &quote(&self.interval));
        if let Some(timeout) = &self.timeout {
            out.attribute("scrape_timeout", &quote(timeout));
        }
        // A profile must end before the next scrape begins.
        if milliseconds(&self.interval).is_some_and(|interval| interval > self.cpu + 1_000) {
            out.attribute("delta_profiling_duration", &quote(&go(self.cpu)));
        }
        if self.threads {
            out.open("profiling_config", None);
            out.open("profile.threadcreate", None);
            out.attribute("enabled", "true");
            out.close();
            out.close();
        }
        out.close();
    }
}

/// Records a note for each annotation that the agent does not support, and for each annotation that would enable
/// profiling but has a value other than `true`.
fn annotations(all: &[Workload<'_>], prefix: &str, known: &[&str], findings: &mut Findings) {
    for workload in all {
        for (name, value) in &workload.annotations {
            let Some(rest) = name.strip_prefix(prefix) else {
                continue;
            };
            let path = format!("{}: {name}", workload.path);
            if !known.contains(&rest) {
                findings.note(&path, "is left out: the agent does not support this annotation");
            } else if matches!(rest, "enable" | "scrape") && *value != "true" {
                findings.note(&path, format_args!("is `{value}`, but only `true` enables profiling"));
            }
        }
    }
}

/// Returns the workloads whose pods have this annotation with the value `true`.
fn annotated<'a>(all: &'a [Workload<'a>], name: &str) -> Vec<&'a Workload<'a>> {
    let is_on = |workload: &&Workload<'_>| workload.annotations.get(name) == Some(&"true");
    all.iter().filter(is_on).collect()
}

/// Returns the namespaces of the workloads, or an empty set if one of the workloads names no namespace.
fn namespaces(workloads: &[&Workload<'_>]) -> BTreeSet<String> {
    let names: Option<BTreeSet<String>> = workloads
        .iter()
        .map(|workload| workload.namespace.map(str::to_owned))
        .collect();
    names.unwrap_or_default()
}

/// Returns the interval of a CronJob. If the job does not run every N minutes or every hour, records a note and returns
/// the default.
fn schedule(workload: &Workload<'_>, findings: &mut Findings) -> String {
    let Some(schedule) = workload.schedule else {
        return go(PROFEFE_EVERY);
    };
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    let minutes = match fields.as_slice() {
        ["*", "*", "*", "*", "*"] => Some(1),
        [minute, "*", "*", "*", "*"] if minute.parse::<u8>().is_ok() => Some(60),
        [minute, "*", "*", "*", "*"] => minute.strip_prefix("*/").and_then(|every| every.parse().ok()),
        ["@hourly"] => Some(60),
        _ => None,
    };
    let minutes = minutes.filter(|minutes| (1..=60).contains(minutes));
    minutes.map_or_else(
        || {
            let message = format!("`{schedule}` does not mean every N minutes or every hour: scrape_interval is 10m");
            findings.note(&format!("{}: schedule", workload.path), message);
            go(PROFEFE_EVERY)
        },
        |minutes: u64| go(minutes * MINUTE),
    )
}

/// Parses the duration of a flag. Records an invalid duration as a problem, and returns Coroot's default instead.
fn go_duration(path: &str, text: &str, findings: &mut Findings) -> String {
    duration(text).unwrap_or_else(|message| {
        findings.problem(path, message);
        COROOT_EVERY.to_owned()
    })
}

/// Formats milliseconds as a Go duration.
fn go(milliseconds: u64) -> String {
    match milliseconds {
        total if total % MINUTE == 0 => format!("{}m", total / MINUTE),
        other => format!("{}s", other / 1_000),
    }
}
