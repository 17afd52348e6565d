//! The profiles that one pod requests, and the targets for them.
//!
//! In: kinds of profiles, ports, schemes, paths. Out: targets with the labels that `pyroscope.scrape` reads. An invalid
//! request becomes an error in the result, and the other requests still have targets.

use std::sync::Arc;

use crate::common::arguments::targets::Target;
use crate::common::discovery::meta_labels::host_port;
use crate::common::kubernetes::followed::wanted::Chosen;
use crate::common::kubernetes::pods::PREFIX;
use alluvium_profile::labels::SERVICE_NAME;

/// A request of a pod for profiles from one address, scheme and path.
pub(super) struct Request {
    /// Kinds of profiles. An empty list selects the default kinds of `pyroscope.scrape`.
    pub(super) kinds: Vec<Arc<str>>,
    pub(super) port_selection: PortSelection,
    /// Scheme, or `None` for the default of `pyroscope.scrape`.
    pub(super) scheme: Option<&'static str>,
    /// Path of the profile, if the request is for a single kind.
    pub(super) path: Option<Arc<str>>,
    pub(super) service: Option<Arc<str>>,
}

/// The ports of a pod that a request selects.
pub(super) enum PortSelection {
    /// All ports that containers declare, or the pod without a port if they declare no port.
    Declared,
    /// The port with this number, declared or not.
    Port(u16),
    /// The ports with this name. If a number is given, it replaces the numbers of these ports.
    Named(Arc<str>, Option<u16>),
}

/// The reason why a request of a pod is invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum Complaint {
    /// The value of an annotation for a port is not a port number.
    #[error("annotation {annotation}: `{text}` is not a port number")]
    Port {
        /// Name of the annotation.
        annotation: String,
        text: String,
    },
    /// The value of an annotation for a scheme is neither `http` nor `https`.
    #[error("annotation {annotation}: `{text}` is neither http nor https")]
    Scheme {
        /// Name of the annotation.
        annotation: String,
        text: String,
    },
    /// Coroot's annotation enables profiling, but no annotation contains a port.
    #[error("coroot.com/profile-scrape needs coroot.com/profile-port")]
    NoPort,
    /// No port has the requested name.
    #[error("no container declares a port called `{0}`")]
    NoSuchPort(Arc<str>),
}

impl Request {
    /// Creates a request for the default kinds of profiles from the ports that `port_selection` selects.
    pub(super) fn new(port_selection: PortSelection) -> Self {
        Self {
            kinds: Vec::new(),
            port_selection,
            scheme: None,
            path: None,
            service: None,
        }
    }

    /// Adds the labels of the request to the target of a port, and returns the target.
    fn target(&self, mut target: Target) -> Target {
        if let Some(scheme) = self.scheme {
            target.insert("__scheme__".into(), scheme.into());
        }
        if let Some(path) = &self.path {
            target.insert("__profile_path__".into(), path.clone());
        }
        if let Some(service) = &self.service {
            target.insert(SERVICE_NAME.into(), service.clone());
        }
        target
    }
}

/// All valid requests of a pod, and the error of the first invalid request.
#[derive(Default)]
pub(super) struct Requests {
    requests: Vec<Request>,
    complaint: Option<Complaint>,
}

impl Requests {
    pub(super) fn one(request: Result<Request, Complaint>) -> Self {
        let mut requests = Self::default();
        requests.add(request);
        requests
    }

    /// Adds a request, or its error if it is invalid. Only the first error is kept.
    pub(super) fn add(&mut self, request: Result<Request, Complaint>) {
        match request {
            Ok(request) => self.requests.push(request),
            Err(complaint) => drop(self.complaint.get_or_insert(complaint)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.complaint.is_none()
    }

    /// Returns the requested targets, built from `all`, the targets of the pod. Requests with the same address, scheme
    /// and path share a target.
    pub(super) fn targets(mut self, all: &[Target]) -> Chosen {
        let mut targets_with_kinds: Vec<(Target, Vec<Arc<str>>)> = Vec::new();
        for request in std::mem::take(&mut self.requests) {
            let ports = match select_ports(&request.port_selection, all) {
                Ok(ports) => ports,
                Err(complaint) => {
                    self.add(Err(complaint));
                    continue;
                }
            };
            for port in ports {
                let target = request.target(port);
                match targets_with_kinds.iter_mut().find(|(known, _)| *known == target) {
                    Some((_, kinds)) => kinds.extend(request.kinds.iter().cloned()),
                    None => targets_with_kinds.push((target, request.kinds.clone())),
                }
            }
        }
        let targets = targets_with_kinds.into_iter().map(|(mut target, kinds)| {
            if !kinds.is_empty() {
                target.insert("__profile_kinds__".into(), kinds.join(",").into());
            }
            target
        });
        Chosen {
            targets: targets.collect(),
            complaint: self.complaint.map(|complaint| complaint.to_string()),
        }
    }
}

/// Returns the targets of the selected ports, each with the labels of the container that declares the port.
fn select_ports(port_selection: &PortSelection, all: &[Target]) -> Result<Vec<Target>, Complaint> {
    let port = |name: &str| format!("{PREFIX}pod_container_port_{name}");
    let with = |name: &str, is_wanted: &dyn Fn(&str) -> bool| -> Vec<Target> {
        let name = port(name);
        let has = |target: &&Target| target.get(&*name).is_some_and(|value| is_wanted(value));
        all.iter().filter(has).cloned().collect()
    };
    Ok(match port_selection {
        // HTTP needs TCP, so ports with other protocols are skipped.
        PortSelection::Declared => match with("protocol", &|protocol| !matches!(protocol, "UDP" | "SCTP")) {
            declared if declared.is_empty() => all.iter().take(1).cloned().collect(),
            declared => declared,
        },
        PortSelection::Port(number) => {
            let declared = with("number", &|text| text.parse() == Ok(*number)).into_iter().next();
            let first = || all.first().map(|first| undeclared(first, *number));
            declared.or_else(first).into_iter().collect()
        }
        PortSelection::Named(name, number) => {
            let mut named = with("name", &|text| *text == **name);
            if named.is_empty() {
                return Err(Complaint::NoSuchPort(name.clone()));
            }
            if let Some(number) = number {
                named.iter_mut().for_each(|target| set_port(target, *number));
            }
            named
        }
    })
}

/// Returns the target of a port that no container declares, with the labels of the pod and of its first container.
fn undeclared(first: &Target, number: u16) -> Target {
    let mut target = first.clone();
    target.retain(|name, _| !name.starts_with(&format!("{PREFIX}pod_container_port_")));
    set_port(&mut target, number);
    target
}

fn set_port(target: &mut Target, number: u16) {
    let ip = target.get(&*format!("{PREFIX}pod_ip")).cloned().unwrap_or_default();
    target.insert("__address__".into(), host_port(&ip, number).into());
}
