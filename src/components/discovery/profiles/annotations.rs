//! Determines from the annotations of a pod which profiles to scrape. Four programs have conventions for such
//! annotations.
//!
//! In: the targets of a pod, one for each port, with the labels of `discovery.kubernetes`. Out: targets for
//! `pyroscope.scrape`, which need no relabeling. If a pod follows several conventions, the first of [`CONVENTIONS`]
//! applies.

use std::sync::Arc;

use crate::common::arguments::targets::Target;
use crate::common::discovery::meta_labels::label_name;
use crate::common::kubernetes::followed::wanted::Chosen;
use crate::common::kubernetes::pods::PREFIX;
use crate::discovery::profiles::requests::{Complaint, PortSelection, Request, Requests};
use alluvium_profile::labels::SERVICE_NAME;

/// Reads the annotations of one program. Returns `None` if these annotations do not enable profiling.
type Convention = fn(&Pod) -> Option<Requests>;

/// The conventions in order of precedence, the most detailed first. Coroot's own scraper also prefers Coroot's
/// annotations to Pyroscope's annotations.
const CONVENTIONS: [Convention; 4] = [grafana, coroot, pyroscope, profefe];

/// Annotations that name the service. If a pod has several of them, the first in this list applies.
const SERVICES: [&str; 4] = [
    "pyroscope.io/application-name",
    "pyroscope.io/service_name",
    "profiles.grafana.com/service_name",
    "profefe.com/service",
];

/// Kinds of profiles that `pyroscope.scrape` scrapes by default.
const USUAL: [&str; 5] = ["block", "goroutine", "memory", "mutex", "process_cpu"];

/// Kinds of profiles, each with the path from which kube-profefe scrapes it, relative to `profefe.com/path`.
const OF_PROFEFE: [(&str, &str); 5] = [
    ("block", "block"),
    ("goroutine", "goroutine"),
    ("memory", "heap"),
    ("mutex", "mutex"),
    ("process_cpu", "profile"),
];
/// The base path of the default paths of `pyroscope.scrape`. A target with this base path needs no path label.
const USUAL_BASE: &str = "/debug/pprof";
/// The port that kube-profefe uses if the annotation `profefe.com/port` is missing or is not a port.
const PROFEFE_PORT: u16 = 6060;

/// Returns the targets that the annotations of a pod request.
pub(super) fn choose(targets: Vec<Target>) -> Chosen {
    let Some(pod) = Pod::new(&targets) else {
        return Chosen::default();
    };
    if pod.label("pod_phase") != "Running" {
        return Chosen::default();
    }
    let Some(requests) = CONVENTIONS.iter().find_map(|convention| convention(&pod)) else {
        return Chosen::default();
    };
    let mut chosen = requests.targets(&targets);
    let service = SERVICES
        .iter()
        .map(|name| pod.annotation(name))
        .find(|name| !name.is_empty());
    for target in &mut chosen.targets {
        set_labels(target, service);
    }
    chosen
}

/// Sets the labels that identify the target, as Grafana's charts do, and the service name if an annotation names it.
fn set_labels(target: &mut Target, service: Option<&str>) {
    for (name, from) in [
        ("namespace", "namespace"),
        ("pod", "pod_name"),
        ("container", "pod_container_name"),
        ("node", "pod_node_name"),
    ] {
        let value = target
            .get(&*format!("{PREFIX}{from}"))
            .filter(|value| !value.is_empty());
        if let Some(value) = value.cloned() {
            target.insert(name.into(), value);
        }
    }
    if let Some(service) = service {
        target.insert(SERVICE_NAME.into(), service.into());
    }
}

/// A pod, represented by the labels of one of its targets.
struct Pod<'a>(&'a Target);

impl<'a> Pod<'a> {
    fn new(targets: &'a [Target]) -> Option<Self> {
        targets.first().map(Self)
    }

    fn label(&self, name: &str) -> &'a str {
        self.0.get(&*format!("{PREFIX}{name}")).map_or("", AsRef::as_ref)
    }

    /// Returns the value of an annotation, or an empty text if the pod does not have it.
    fn annotation(&self, name: &str) -> &'a str {
        self.label(&format!("pod_annotation_{}", label_name(name)))
    }

    fn is_true(&self, name: &str) -> bool {
        self.annotation(name) == "true"
    }

    /// Returns NAME and value of each annotation `{prefix}NAME{suffix}` that is set to `true` or `false`.
    fn switches(&self, prefix: &str, suffix: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let prefix = format!("{PREFIX}pod_annotation_{}", label_name(prefix));
        let suffix = label_name(suffix);
        self.0.iter().filter_map(move |(name, value)| {
            let name = name.strip_prefix(&*prefix)?.strip_suffix(&*suffix)?;
            Some((name, &**value)).filter(|(_, value)| matches!(*value, "true" | "false"))
        })
    }
}

/// Reads `profiles.grafana.com/TYPE.scrape`. Each type has its own annotations for port, scheme and path.
fn grafana(pod: &Pod) -> Option<Requests> {
    let types = pod
        .switches("profiles.grafana.com/", ".scrape")
        .filter(|(_, value)| *value == "true");
    let mut requests = Requests::default();
    for (type_name, _) in types {
        let name = |field: &str| format!("profiles.grafana.com/{type_name}.{field}");
        let annotation = |field: &str| pod.annotation(&name(field));
        let port = |text: &str| number(&name("port"), text);
        let port_selection = match (annotation("port_name"), annotation("port")) {
            ("", "") => Ok(PortSelection::Declared),
            ("", text) => port(text).map(PortSelection::Port),
            (called, "") => Ok(PortSelection::Named(called.into(), None)),
            (called, text) => port(text).map(|number| PortSelection::Named(called.into(), Some(number))),
        };
        let request = port_selection.and_then(|port_selection| {
            Ok(Request {
                kinds: vec![kind(type_name).into()],
                scheme: scheme(&name("scheme"), annotation("scheme"))?,
                path: Some(annotation("path")).filter(|path| !path.is_empty()).map(Into::into),
                ..Request::new(port_selection)
            })
        });
        requests.add(request);
    }
    (!requests.is_empty()).then_some(requests)
}

/// Reads `coroot.com/profile-scrape`, which needs a port. If Coroot's annotation for the port is missing, the port
/// comes from Pyroscope's annotation, as in Coroot.
fn coroot(pod: &Pod) -> Option<Requests> {
    if !pod.is_true("coroot.com/profile-scrape") {
        return None;
    }
    let port = match pod.annotation("coroot.com/profile-port") {
        "" => number("pyroscope.io/port", pod.annotation("pyroscope.io/port")).map_err(|_| Complaint::NoPort),
        port => number("coroot.com/profile-port", port),
    };
    Some(Requests::one(port.map(|port| Request::new(PortSelection::Port(port)))))
}

/// Reads `pyroscope.io/scrape`. If no annotation contains a port, the request selects all declared ports.
fn pyroscope(pod: &Pod) -> Option<Requests> {
    if !pod.is_true("pyroscope.io/scrape") {
        return None;
    }
    let port_selection = match pod.annotation("pyroscope.io/port") {
        "" => Ok(PortSelection::Declared),
        port => number("pyroscope.io/port", port).map(PortSelection::Port),
    };
    let request = port_selection.and_then(|port_selection| {
        Ok(Request {
            kinds: switched(pod),
            scheme: scheme("pyroscope.io/scheme", pod.annotation("pyroscope.io/scheme"))?,
            ..Request::new(port_selection)
        })
    });
    Some(Requests::one(request))
}

/// Reads `profefe.com/enable`. If no annotation names the service, the service has the name of the pod.
fn profefe(pod: &Pod) -> Option<Requests> {
    if !pod.is_true("profefe.com/enable") {
        return None;
    }
    let port = pod.annotation("profefe.com/port").parse().ok();
    let base_request = || {
        let mut request = Request::new(PortSelection::Port(
            port.filter(|port| *port > 0).unwrap_or(PROFEFE_PORT),
        ));
        request.service = Some(pod.label("pod_name").into());
        request
    };
    let base = pod.annotation("profefe.com/path").trim_end_matches('/');
    if matches!(base, "" | USUAL_BASE) {
        return Some(Requests::one(Ok(base_request())));
    }
    let mut requests = Requests::default();
    for (kind, name) in OF_PROFEFE {
        requests.add(Ok(Request {
            kinds: vec![kind.into()],
            path: Some(format!("{base}/{name}").into()),
            ..base_request()
        }));
    }
    Some(requests)
}

/// Returns the kinds that the annotations `pyroscope.io/profile-NAME-enabled` select: the kinds with `true` or, if
/// there are none, the default kinds except the kinds with `false`. Returns no kinds if the pod has no such annotation.
fn switched(pod: &Pod) -> Vec<Arc<str>> {
    let (mut enabled, mut disabled) = (Vec::new(), Vec::new());
    for (name, value) in pod.switches("pyroscope.io/profile-", "-enabled") {
        let list = if value == "true" { &mut enabled } else { &mut disabled };
        list.push(kind(name));
    }
    match (enabled.is_empty(), disabled.is_empty()) {
        (false, _) => enabled.into_iter().map(Into::into).collect(),
        (true, true) => Vec::new(),
        (true, false) => USUAL
            .iter()
            .filter(|kind| !disabled.contains(kind))
            .map(|kind| (*kind).into())
            .collect(),
    }
}

/// Returns the kind in `pyroscope.scrape` for a name in an annotation.
fn kind(name: &str) -> &str {
    match name {
        "cpu" => "process_cpu",
        "mem" => "memory",
        name => name,
    }
}

fn number(annotation: &str, text: &str) -> Result<u16, Complaint> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| Complaint::Port {
        annotation: annotation.to_owned(),
        text: text.to_owned(),
    })
}

fn scheme(annotation: &str, text: &str) -> Result<Option<&'static str>, Complaint> {
    match text {
        "" => Ok(None),
        "http" => Ok(Some("http")),
        "https" => Ok(Some("https")),
        _ => Err(Complaint::Scheme {
            annotation: annotation.to_owned(),
            text: text.to_owned(),
        }),
    }
}
