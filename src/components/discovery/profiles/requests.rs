//! The profiles that one pod requests, and the targets for them.
//!
//! In: kinds of profiles, ports, schemes, paths. Out: targets with the labels that `pyroscope.scrape` reads. A request
//! that cannot be met becomes a complaint, and the others still give targets.

use std::sync::Arc;

use crate::components::common::arguments::targets::Target;
use crate::components::common::discovery::meta_labels::host_port;
use crate::components::common::kubernetes::followed::wanted::Chosen;
use crate::components::common::kubernetes::pods::PREFIX;
use crate::profile::labels::SERVICE_NAME;

/// A request of a pod for profiles from one place.
pub(super) struct Request {
    /// Kinds of profiles; empty for the default of `pyroscope.scrape`.
    pub(super) kinds: Vec<Arc<str>>,
    pub(super) place: Place,
    /// Scheme; `None` for the default of `pyroscope.scrape`.
    pub(super) scheme: Option<&'static str>,
    /// Path of the profile, for a request of one kind.
    pub(super) path: Option<Arc<str>>,
    pub(super) service: Option<Arc<str>>,
}

/// The ports of a pod that a request means.
pub(super) enum Place {
    /// All ports that containers declare, or the pod without a port if they declare none.
    Declared,
    /// The port with this number, declared or not.
    Port(u16),
    /// The ports of this name. A number, if given, replaces theirs.
    Named(Arc<str>, Option<u16>),
}

impl Request {
    /// A request for the default profiles of a place.
    pub(super) fn at(place: Place) -> Self {
        Self {
            kinds: Vec::new(),
            place,
            scheme: None,
            path: None,
            service: None,
        }
    }

    /// Adds the labels of the request to the target of a port.
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

/// All requests of a pod, and what is wrong with the first that cannot be met.
#[derive(Default)]
pub(super) struct Requests {
    requests: Vec<Request>,
    complaint: Option<String>,
}

impl Requests {
    pub(super) fn one(request: Result<Request, String>) -> Self {
        let mut requests = Self::default();
        requests.add(request);
        requests
    }

    /// Adds a request, or why it cannot be met. The first such reason is kept.
    pub(super) fn add(&mut self, request: Result<Request, String>) {
        match request {
            Ok(request) => self.requests.push(request),
            Err(complaint) => drop(self.complaint.get_or_insert(complaint)),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.complaint.is_none()
    }

    /// Makes the targets, out of all targets of the pod. Requests for the same place share a target.
    pub(super) fn targets(mut self, all: &[Target]) -> Chosen {
        let mut found: Vec<(Target, Vec<Arc<str>>)> = Vec::new();
        for request in std::mem::take(&mut self.requests) {
            let ports = match ports(&request.place, all) {
                Ok(ports) => ports,
                Err(complaint) => {
                    self.add(Err(complaint));
                    continue;
                }
            };
            for port in ports {
                let target = request.target(port);
                match found.iter_mut().find(|(known, _)| *known == target) {
                    Some((_, kinds)) => kinds.extend(request.kinds.iter().cloned()),
                    None => found.push((target, request.kinds.clone())),
                }
            }
        }
        let targets = found.into_iter().map(|(mut target, kinds)| {
            if !kinds.is_empty() {
                target.insert("__profile_kinds__".into(), kinds.join(",").into());
            }
            target
        });
        Chosen {
            targets: targets.collect(),
            complaint: self.complaint,
        }
    }
}

/// The targets of a pod at a place, with the labels of the container that declares the port.
fn ports(place: &Place, all: &[Target]) -> Result<Vec<Target>, String> {
    let port = |name: &str| format!("{PREFIX}pod_container_port_{name}");
    let with = |name: &str, is_wanted: &dyn Fn(&str) -> bool| -> Vec<Target> {
        let name = port(name);
        let has = |target: &&Target| target.get(&*name).is_some_and(|value| is_wanted(value));
        all.iter().filter(has).cloned().collect()
    };
    Ok(match place {
        // HTTP needs TCP: other ports are left out.
        Place::Declared => match with("protocol", &|protocol| !matches!(protocol, "UDP" | "SCTP")) {
            none if none.is_empty() => all.iter().take(1).cloned().collect(),
            declared => declared,
        },
        Place::Port(number) => {
            let declared = with("number", &|text| text.parse() == Ok(*number)).into_iter().next();
            let first = || all.first().map(|first| undeclared(first, *number));
            declared.or_else(first).into_iter().collect()
        }
        Place::Named(name, number) => {
            let mut named = with("name", &|text| *text == **name);
            if named.is_empty() {
                return Err(format!("no container declares a port called `{name}`"));
            }
            if let Some(number) = number {
                named.iter_mut().for_each(|target| set_port(target, *number));
            }
            named
        }
    })
}

/// The target of a port that no container declares, with the labels of the pod and of its first container.
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
