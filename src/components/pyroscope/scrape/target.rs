//! Turns the labels of a discovered target into [`ScrapeTarget`]s, one for each kind of profile.
//!
//! In: labels and settings. Out: URL, labels of the series, and identity. The module does no I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use url::Url;

use crate::common::arguments::targets::Target;
use crate::common::discovery::identity::service_name;
use crate::pyroscope::scrape::arguments::{ProfileKind, Settings};
use alluvium_profile::Labels;
use alluvium_profile::labels::{PROFILE_NAME, SERVICE_NAME};

/// One profile of one target.
#[derive(Clone, Debug)]
pub(super) struct ScrapeTarget {
    /// The kind of profile to fetch.
    pub kind: ProfileKind,
    /// The URL of the profile.
    pub url: Url,
    /// Labels of the series. They still contain reserved labels other than `__meta_*` and [`KINDS`], for use by
    /// `pyroscope.relabel`. `pyroscope.write` removes them.
    pub labels: Labels,
}

/// The reason why a target cannot be scraped.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum TargetError {
    /// The target has no label `__address__`.
    #[error("the target has no label __address__")]
    NoAddress,
    /// The labels do not form a valid URL.
    #[error("`{0}` is not a URL: {1}")]
    Url(String, String),
    /// The scheme of the target is not HTTP or HTTPS.
    #[error("scheme `{0}` of the target is not http or https")]
    Scheme(String),
    /// The target names a kind of profile that does not exist.
    #[error("`{0}` in the target's label {KINDS} is not a kind of profile")]
    Kind(String),
}

/// Label of a target that lists the kinds of profile to scrape, as block names such as `process_cpu`, separated by
/// commas. Without this label, the enabled kinds are scraped.
const KINDS: &str = "__profile_kinds__";

/// Returns the kinds of profile to scrape from a target, and an error for the first unknown name.
pub(super) fn kinds<'a>(discovered: &Target, settings: &'a Settings) -> (Vec<&'a ProfileKind>, Option<TargetError>) {
    let Some(names) = discovered.get(KINDS).filter(|names| !names.is_empty()) else {
        return (settings.kinds.iter().collect(), None);
    };
    let all = || settings.kinds.iter().chain(&settings.other_kinds);
    let names: BTreeSet<&str> = names.split(',').map(str::trim).collect();
    let unknown = names.iter().find(|name| all().all(|kind| *kind.kind != ***name));
    let named = all().filter(|kind| names.contains(&*kind.kind)).collect();
    (named, unknown.map(|name| TargetError::Kind((*name).to_owned())))
}

impl ScrapeTarget {
    /// Builds the scrape target for the profile `kind` of the target with the labels `discovered`.
    pub(super) fn new(discovered: &Target, kind: &ProfileKind, settings: &Settings) -> Result<Self, TargetError> {
        let mut labels = discovered.clone();
        labels.retain(|_, value| !value.is_empty());
        let set_default = |labels: &mut Target, name: &str, value: &str| {
            if !labels.contains_key(name) && !value.is_empty() {
                labels.insert(name.into(), value.into());
            }
        };
        set_default(&mut labels, "job", &settings.job_name);
        set_default(&mut labels, "__scheme__", settings.scheme);
        set_default(&mut labels, "__profile_path__", &kind.path);
        set_default(&mut labels, "__profile_path_prefix__", &settings.path_prefix);
        set_default(&mut labels, PROFILE_NAME, &kind.name);
        for (name, values) in &settings.params {
            if let Some(first) = values.first() {
                set_default(&mut labels, &format!("__param_{name}"), first);
            }
        }
        let scheme = value(&labels, "__scheme__").to_owned();
        if !matches!(scheme.as_str(), "http" | "https") {
            return Err(TargetError::Scheme(scheme));
        }
        let address = match labels.get("__address__") {
            Some(address) => with_port(address, &scheme),
            None => return Err(TargetError::NoAddress),
        };
        labels.insert("__address__".into(), address.as_str().into());
        set_default(&mut labels, "instance", &address);
        let service = service_name(&labels, "");
        set_default(&mut labels, SERVICE_NAME, &service);
        let url = url(&labels, &scheme, &address, kind, settings)?;
        labels.retain(|name, _| !name.starts_with("__meta_") && **name != *KINDS);
        Ok(Self {
            kind: kind.clone(),
            url,
            labels: Labels::from_pairs(labels),
        })
    }

    /// Returns the identity of the scrape loop: all labels, the kind (because two kinds may share a URL) and the URL.
    pub(super) fn identity(&self) -> Identity {
        Identity(self.labels.clone(), self.kind.clone(), self.url.clone())
    }

    /// Returns true if the profile contains all goroutines. The target can then also write them as a dump.
    pub(super) fn has_goroutines(&self) -> bool {
        &*self.kind.kind == "goroutine" || self.url.path().ends_with("/goroutine")
    }

    /// Returns a number that spreads the first scrapes of targets over the interval.
    pub(super) fn spread(&self) -> u64 {
        let text = format!("{}\0{}\0{}", self.labels, self.kind.kind, self.url);
        xxhash_rust::xxh3::xxh3_64(text.as_bytes())
    }
}

/// Distinguishes a scrape loop from all other scrape loops.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Identity(Labels, ProfileKind, Url);

fn value<'a>(labels: &'a Target, name: &str) -> &'a str {
    labels.get(name).map_or("", AsRef::as_ref)
}

fn url(
    labels: &Target,
    scheme: &str,
    address: &str,
    kind: &ProfileKind,
    settings: &Settings,
) -> Result<Url, TargetError> {
    let mut path = format!(
        "{}{}",
        value(labels, "__profile_path_prefix__"),
        value(labels, "__profile_path__")
    );
    if !path.starts_with('/') {
        path.insert(0, '/');
    }
    let text = format!("{scheme}://{address}{path}");
    let mut url: Url = text
        .parse()
        .map_err(|error: url::ParseError| TargetError::Url(text.clone(), error.to_string()))?;
    let mut params: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in url.query_pairs() {
        params.entry(name.into_owned()).or_default().push(value.into_owned());
    }
    for (name, values) in &settings.params {
        params.insert(name.to_string(), values.iter().map(ToString::to_string).collect());
    }
    if kind.delta {
        let seconds = settings.delta_duration.as_secs().max(1).to_string();
        params.insert("seconds".to_owned(), vec![seconds]);
    }
    for (name, value) in labels {
        if let Some(name) = name.strip_prefix("__param_") {
            let values = params.entry(name.to_owned()).or_default();
            match values.first_mut() {
                Some(first) => *first = value.to_string(),
                None => values.push(value.to_string()),
            }
        }
    }
    url.set_query(None);
    if !params.is_empty() {
        let pairs = params
            .iter()
            .flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
        url.query_pairs_mut().extend_pairs(pairs);
    }
    Ok(url)
}

/// Returns the address. An address without a port gets the default port of the scheme.
fn with_port(address: &str, scheme: &str) -> String {
    let port = if scheme == "https" { 443 } else { 80 };
    let colons = address.bytes().filter(|byte| *byte == b':').count();
    if address.starts_with('[') {
        return if address.contains("]:") {
            address.to_owned()
        } else {
            format!("{address}:{port}")
        };
    }
    match colons {
        0 => format!("{address}:{port}"),
        1 => address.to_owned(),
        // A bare IPv6 address.
        _ => format!("[{address}]:{port}"),
    }
}

/// Prints kind and URL, for messages.
impl fmt::Display for ScrapeTarget {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} from {}", self.kind.kind, self.url)
    }
}

/// Returns the labels that are not reserved, and the name of the profile.
pub(super) fn public_labels(labels: &Labels) -> impl Iterator<Item = (Arc<str>, Arc<str>)> {
    labels
        .iter()
        .filter(|(name, _)| !name.starts_with("__") || *name == PROFILE_NAME)
        .map(|(name, value)| (name.into(), value.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testing::{Body, receivers, targets};
    use crate::pyroscope::scrape::DEFINITION;
    use alluvium_lang::value::Value;

    fn settings(body: Body) -> Arc<Settings> {
        let body = body.with("targets", targets(&[])).with("forward_to", receivers([]));
        body.arguments(&DEFINITION).settings.clone()
    }

    fn scrape(pairs: &[(&str, &str)], kind: &str, body: Body) -> Result<ScrapeTarget, TargetError> {
        let settings = settings(body);
        let discovered: Target = pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let kind = settings.kinds.iter().find(|other| other.kind.as_ref() == kind).unwrap();
        ScrapeTarget::new(&discovered, kind, &settings)
    }

    /// Returns the kinds that are scraped from a target whose label [`KINDS`] is `names`, and the error for the label.
    fn kinds_of(names: Option<&str>) -> (String, Option<String>) {
        let custom = Body::new().with("enabled", Value::Bool(false)).text("path", "/x");
        let config = Body::new()
            .labelled("profile.custom", "mine", custom)
            .block("profile.block", Body::new().with("enabled", Value::Bool(false)));
        let settings = settings(Body::new().block("profiling_config", config));
        let labels = names.map(|names| (KINDS.into(), names.into()));
        let (kinds, error) = kinds(&labels.into_iter().collect(), &settings);
        let kinds: Vec<&str> = kinds.iter().map(|kind| &*kind.kind).collect();
        (kinds.join(" "), error.map(|error| error.to_string()))
    }

    #[test]
    fn a_target_may_name_its_kinds_enabled_or_not() {
        let enabled = "goroutine memory mutex process_cpu";
        for (names, kinds) in [
            (None, enabled),
            (Some(""), enabled),
            (Some("process_cpu"), "process_cpu"),
            (
                Some("threadcreate, memory,mine,block,memory"),
                "memory block mine threadcreate",
            ),
        ] {
            assert_eq!(kinds_of(names), (kinds.to_owned(), None));
        }
        let (kinds, error) = kinds_of(Some("memory,cpu"));
        assert_eq!(kinds, "memory");
        assert_eq!(
            error.as_deref(),
            Some("`cpu` in the target's label __profile_kinds__ is not a kind of profile")
        );
        let pairs = [("__address__", "h:1"), (KINDS, "memory")];
        assert_eq!(scrape(&pairs, "memory", Body::new()).unwrap().labels.get(KINDS), None);
    }

    fn url_of(pairs: &[(&str, &str)], kind: &str, body: Body) -> String {
        scrape(pairs, kind, body).unwrap().url.to_string()
    }

    #[test]
    fn urls_are_made_of_labels_and_settings() {
        let address = ("__address__", "host:6060");
        assert_eq!(
            url_of(&[address], "memory", Body::new()),
            "http://host:6060/debug/pprof/allocs"
        );
        assert_eq!(
            url_of(&[address], "process_cpu", Body::new().text("scrape_interval", "30s")),
            "http://host:6060/debug/pprof/profile?seconds=29"
        );
        let config = Body::new().text("path_prefix", "/app");
        assert_eq!(
            url_of(
                &[address],
                "memory",
                Body::new().block("profiling_config", config.clone())
            ),
            "http://host:6060/app/debug/pprof/allocs"
        );
        assert_eq!(
            url_of(
                &[
                    address,
                    ("__profile_path_prefix__", "/other"),
                    ("__profile_path__", "/p"),
                    ("__scheme__", "https"),
                    ("__param_debug", "0"),
                ],
                "memory",
                Body::new().block("profiling_config", config)
            ),
            "https://host:6060/other/p?debug=0"
        );
    }

    #[test]
    fn parameters_of_one_kind_do_not_leak_into_another() {
        let params = Value::object([("a", Value::array([Value::string("1"), Value::string("2")]))]);
        let body = Body::new().with("params", params);
        let pairs = [("__address__", "h:1"), ("__param_a", "x")];
        assert_eq!(
            url_of(&pairs, "process_cpu", body.clone()),
            "http://h:1/debug/pprof/profile?a=x&a=2&seconds=14"
        );
        assert_eq!(url_of(&pairs, "memory", body), "http://h:1/debug/pprof/allocs?a=x&a=2");
    }

    #[test]
    fn a_missing_port_comes_from_the_scheme() {
        for (address, scheme, expected) in [
            ("host", "http", "host:80"),
            ("host", "https", "host:443"),
            ("host:1", "http", "host:1"),
            ("[::1]", "http", "[::1]:80"),
            ("[::1]:2", "http", "[::1]:2"),
            ("::1", "https", "[::1]:443"),
        ] {
            assert_eq!(with_port(address, scheme), expected);
        }
        assert_eq!(scrape(&[], "memory", Body::new()).unwrap_err(), TargetError::NoAddress);
        assert!(matches!(
            scrape(&[("__address__", "a b")], "memory", Body::new()),
            Err(TargetError::Url(..))
        ));
    }

    #[test]
    fn labels_are_completed_and_meta_labels_go() {
        let pairs = [("__address__", "host"), ("__meta_x", "1"), ("env", "dev")];
        let target = scrape(&pairs, "process_cpu", Body::new()).unwrap();
        let public: Vec<String> = public_labels(&target.labels)
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(
            public,
            [
                "__name__=process_cpu",
                "env=dev",
                "instance=host:80",
                "service_name=unspecified"
            ]
        );
        assert_eq!(target.labels.get("__meta_x"), None);
        let target = scrape(
            &[("__address__", "h:1"), ("__name__", "mine"), ("instance", "i")],
            "memory",
            Body::new().text("job_name", "j"),
        )
        .unwrap();
        for (name, value) in [("__name__", "mine"), ("instance", "i"), ("job", "j")] {
            assert_eq!(target.labels.get(name), Some(value));
        }
    }

    #[test]
    fn the_service_name_comes_from_the_first_place_that_has_one() {
        let mut labels = Target::new();
        for (name, value, expected) in [
            ("other", "x", "unspecified"),
            ("__meta_dockerswarm_service_name", "swarm", "swarm"),
            ("__meta_dockerswarm_container_label_service_name", "label", "label"),
            ("__meta_docker_container_name", "/docker", "docker"),
            ("__meta_kubernetes_namespace", "ns", "docker"),
            ("__meta_kubernetes_pod_container_name", "container", "ns/container"),
            (
                "__meta_kubernetes_pod_annotation_pyroscope_io_service_name",
                "annotation",
                "annotation",
            ),
            ("service_name", "name", "name"),
        ] {
            labels.insert(name.into(), value.into());
            assert_eq!(service_name(&labels, ""), expected);
        }
    }

    #[test]
    fn kinds_that_share_a_url_stay_two_scrapes() {
        let pairs = [("__address__", "h:1"), ("__profile_path__", "/p"), ("__name__", "same")];
        let memory = scrape(&pairs, "memory", Body::new()).unwrap();
        let mutex = scrape(&pairs, "mutex", Body::new()).unwrap();
        assert_eq!(memory.url, mutex.url);
        assert_ne!(memory.identity(), mutex.identity());
    }
}
