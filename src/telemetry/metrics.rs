//! Metric handles: one tree of registries for the process, accessed through scopes.
//!
//! In: handles of `prometheus-client`, registered under a name without the `_total` of counters. Out: Prometheus text
//! of all scopes together, each family once. Metrics are visible until the owner of their scope drops the scope. A
//! component keeps its scope in its context, so its metrics disappear with the component. No metric is a process-wide
//! static.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Metric, Registry};

/// The `Content-Type` of the text that [`Scope::encode`] returns.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

type Label = (&'static str, Arc<str>);

/// A registry with labels that all its metrics carry. Clones share the registry. When the last clone of a scope made by
/// [`Scope::child`] is dropped, its metrics are removed.
#[derive(Clone)]
pub struct Scope {
    tree: Arc<Tree>,
    state: Arc<ScopeState>,
}

struct ScopeState {
    labels: Box<[Label]>,
    /// Created at the first registration: most components of a large configuration have no metrics of their own.
    registry: OnceLock<Arc<Mutex<Registry>>>,
}

/// Name, type and help of metrics in the order of their registration.
type MetricDescriptions = Mutex<Vec<(&'static str, MetricType, &'static str)>>;

/// State that all scopes of one root share. The root's registry lives as long as any scope, and a child's registry
/// lives as long as the child.
struct Tree {
    root: Arc<Mutex<Registry>>,
    children: Mutex<Children>,
    /// Name, type and help of every registered metric, if the root records them. The encoded text does not list all of
    /// them, because it omits metrics without a value.
    described: Option<MetricDescriptions>,
}

#[derive(Default)]
struct Children {
    list: Vec<Weak<Mutex<Registry>>>,
    /// Length at which dropped children are removed from the list.
    sweep_at: usize,
}

impl Children {
    fn add(&mut self, child: Weak<Mutex<Registry>>) {
        // Sweeping for every child would take quadratic time.
        if self.list.len() >= self.sweep_at {
            self.list.retain(|child| child.strong_count() > 0);
            self.sweep_at = (self.list.len() * 2).max(64);
        }
        self.list.push(child);
    }
}

impl Default for Scope {
    fn default() -> Self {
        Self::new()
    }
}

impl Scope {
    pub fn new() -> Self {
        Self::root(None)
    }

    /// Creates a scope that records which metrics are registered. The reference documentation is written from the
    /// record.
    pub fn recording() -> Self {
        Self::root(Some(Mutex::default()))
    }

    fn root(described: Option<MetricDescriptions>) -> Self {
        let own = Arc::new(Mutex::new(Registry::default()));
        let tree = Tree {
            root: own.clone(),
            children: Mutex::default(),
            described,
        };
        Self {
            tree: Arc::new(tree),
            state: Arc::new(ScopeState {
                labels: Box::new([]),
                registry: OnceLock::from(own),
            }),
        }
    }

    /// Creates a child scope whose metrics carry the labels of this scope and `labels`.
    pub fn child(&self, labels: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        self.child_of(labels.into_iter().map(|(name, value)| (name, Arc::from(value))))
    }

    /// Like [`Scope::child`], with shared label values.
    pub fn child_of(&self, labels: impl IntoIterator<Item = (&'static str, Arc<str>)>) -> Self {
        Self {
            tree: self.tree.clone(),
            state: Arc::new(ScopeState {
                labels: self.state.labels.iter().cloned().chain(labels).collect(),
                registry: OnceLock::new(),
            }),
        }
    }

    fn registry(&self) -> &Mutex<Registry> {
        self.state.registry.get_or_init(|| {
            let labels = self.state.labels.iter();
            let labels = labels.map(|(name, value)| (Cow::Borrowed(*name), Cow::Owned(value.to_string())));
            let own = Arc::new(Mutex::new(Registry::with_labels(labels)));
            self.tree.children.lock().add(Arc::downgrade(&own));
            own
        })
    }

    /// Registers a metric. `name` is without the `_total` suffix of counters, which the text format adds. `help` is a
    /// sentence; its full stop is added if it is missing.
    pub fn register(&self, name: &'static str, help: &'static str, metric: impl Metric) {
        if let Some(described) = &self.tree.described {
            described.lock().push((name, metric.metric_type(), help));
        }
        self.registry()
            .lock()
            .register(name, help.trim_end_matches('.'), metric);
    }

    /// Returns every registered metric of a [`Scope::recording`]: its name in the text format, its type and its help.
    pub fn described(&self) -> Vec<(String, String, &'static str)> {
        let Some(described) = &self.tree.described else {
            return Vec::new();
        };
        let described = described.lock();
        let documented = described.iter().map(|(name, kind, help)| {
            let kind = kind.as_str();
            let suffix = if kind == "counter" { "_total" } else { "" };
            (format!("{name}{suffix}"), kind.to_owned(), *help)
        });
        documented.collect()
    }

    /// Registers a source of metrics that are computed at every scrape.
    pub fn register_collector(&self, collector: impl Collector) {
        self.registry().lock().register_collector(Box::new(collector));
    }

    /// Writes the metrics of every living scope of this root in Prometheus' text format 0.0.4. Families are sorted by
    /// name, each under one `HELP` and `TYPE`. If two metrics have the same name and labels, only the metric of the
    /// younger scope is written.
    pub fn encode(&self) -> String {
        let mut merged = MergedFamilies::default();
        merged.add(&self.tree.root);
        let children: Vec<_> = self
            .tree
            .children
            .lock()
            .list
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for child in &children {
            merged.add(child);
        }
        merged.render()
    }
}

/// Families of several registries, merged by name.
#[derive(Default)]
struct MergedFamilies {
    families: BTreeMap<String, Family>,
}

#[derive(Default)]
struct Family {
    help: String,
    kind: String,
    lines: Vec<String>,
    /// Maps a series (name and labels) to its index in `lines`.
    line_indexes: HashMap<String, usize>,
}

impl MergedFamilies {
    fn add(&mut self, registry: &Mutex<Registry>) {
        let mut text = String::new();
        if let Err(error) = encode_registry(&mut text, &registry.lock()) {
            tracing::error!(%error, "cannot encode metrics");
            return;
        }
        self.parse(&text);
    }

    /// Parses OpenMetrics text as written by `prometheus-client`: `HELP`, `TYPE`, optionally `UNIT`, then the samples
    /// of one family.
    fn parse(&mut self, text: &str) {
        let mut help = "";
        let mut current: Option<String> = None;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                help = rest.split_once(' ').map_or("", |(_, help)| help);
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap_or((rest, "unknown"));
                current = self.family(name, kind, help);
            } else if line.starts_with('#') || line.is_empty() {
                // Prometheus' text format has neither UNIT nor EOF.
            } else if let Some(family) = current.as_ref().and_then(|name| self.families.get_mut(name)) {
                family.add(line);
            }
        }
    }

    /// Returns the key of the family to which the next samples belong. Returns `None` if a family of that name has
    /// another type, because readers reject a text with two types for one name.
    fn family(&mut self, name: &str, kind: &str, help: &str) -> Option<String> {
        // In Prometheus' text format, a family has the name of its samples, and there are fewer types than in
        // OpenMetrics.
        let (name, kind) = match kind {
            "counter" => (format!("{name}_total"), "counter"),
            "info" => (format!("{name}_info"), "gauge"),
            "stateset" => (name.to_owned(), "gauge"),
            "unknown" => (name.to_owned(), "untyped"),
            other => (name.to_owned(), other),
        };
        let family = self.families.entry(name.clone()).or_insert_with(|| Family {
            help: help.to_owned(),
            kind: kind.to_owned(),
            ..Family::default()
        });
        if family.kind != kind {
            tracing::error!(metric = %name, first = %family.kind, second = %kind, "metric registered with two types");
            return None;
        }
        Some(name)
    }

    fn render(self) -> String {
        let mut text = String::new();
        for (name, family) in self.families {
            if family.lines.is_empty() {
                continue;
            }
            let Family { help, kind, lines, .. } = family;
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
            for line in lines {
                text.push_str(&line);
                text.push('\n');
            }
        }
        text
    }
}

impl Family {
    fn add(&mut self, line: &str) {
        // A label value may hold ` # ` or `} `, so the series ends at the first space outside quotes.
        let end = series_end(line);
        let (series, rest) = line.split_at(end);
        // Exemplars after ` # ` exist only in OpenMetrics, so they are dropped.
        let value = rest.split(" # ").next().unwrap_or(rest);
        let line = format!("{series}{value}");
        if let Some(&index) = self.line_indexes.get(series) {
            self.lines[index] = line;
        } else {
            self.line_indexes.insert(series.to_owned(), self.lines.len());
            self.lines.push(line);
        }
    }
}

/// Returns the offset where the name and labels of a sample line end and ` value` begins.
fn series_end(line: &str) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (offset, byte) in line.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b' ' if !quoted => return offset,
            _ => {}
        }
    }
    line.len()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::family::Family;
    use prometheus_client::metrics::gauge::Gauge;
    use prometheus_client::metrics::histogram::Histogram;
    use prometheus_client::metrics::info::Info;

    use super::Scope;

    fn counter(scope: &Scope, value: u64) -> Counter {
        let counter = Counter::default();
        counter.inc_by(value);
        scope.register("alluvium_test_things", "Things", counter.clone());
        counter
    }

    #[test]
    fn a_family_of_two_scopes_has_one_header_and_a_line_each() {
        let root = Scope::new();
        let (one, two) = (root.child([("id", "a".into())]), root.child([("id", "b".into())]));
        counter(&one, 1);
        counter(&two, 2);
        let expected = "# HELP alluvium_test_things_total Things.\n# TYPE alluvium_test_things_total counter\n\
                        alluvium_test_things_total{id=\"a\"} 1\nalluvium_test_things_total{id=\"b\"} 2\n";
        assert_eq!(root.encode(), expected);
        assert_eq!(two.encode(), expected, "every scope shows the whole tree");
    }

    #[test]
    fn metrics_leave_with_the_last_clone_of_their_scope() {
        let root = Scope::new();
        let child = root.child([("id", "a".into())]);
        let clone = child.clone();
        let handle = counter(&child, 1);
        drop(child);
        assert!(root.encode().contains("id=\"a\""));
        drop(clone);
        handle.inc();
        assert_eq!(root.encode(), "");
    }

    #[test]
    fn a_child_of_a_child_carries_the_labels_of_both() {
        let root = Scope::new();
        let child = root.child([("component_id", "x".into())]);
        let grandchild = child.child([("endpoint", "a \"b\" # } \\ c".into())]);
        counter(&grandchild, 3);
        let text = root.encode();
        assert!(
            text.contains("{component_id=\"x\",endpoint=\"a \\\"b\\\" # } \\\\ c\"} 3\n"),
            "{text}"
        );
    }

    #[test]
    fn the_same_series_twice_shows_the_younger() {
        let root = Scope::new();
        let old = root.child([("id", "a".into())]);
        let new = root.child([("id", "a".into())]);
        counter(&old, 1);
        counter(&new, 7);
        assert_eq!(root.encode().lines().filter(|line| !line.starts_with('#')).count(), 1);
        assert!(root.encode().ends_with("{id=\"a\"} 7\n"));
    }

    #[test]
    fn the_prometheus_tool_accepts_every_kind_of_metric() {
        let root = Scope::new();
        root.register_collector(crate::process::ProcessMetrics::new());
        for id in ["a", "b"] {
            let child = Box::leak(Box::new(root.child([("id", id.to_owned())])));
            counter(child, 5);
            let gauge: Gauge = Gauge::default();
            child.register("alluvium_test_queue_bytes", "Bytes in the queue", gauge);
            let histogram = Histogram::new([0.1, 1.0]);
            histogram.observe(0.5);
            child.register("alluvium_test_wait_seconds", "Time waited", histogram);
            let family: Family<Vec<(String, String)>, Counter> = Family::default();
            family
                .get_or_create(&vec![("reason".to_owned(), "too large".to_owned())])
                .inc();
            child.register("alluvium_test_refused", "Refused requests", family);
            child.register("alluvium_test", "About this test", Info::new(vec![("version", "1")]));
        }
        let text = root.encode();
        let tool = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut tool = match tool {
            Ok(tool) => tool,
            Err(error) if std::env::var_os("CI").is_some() => panic!("promtool is missing: {error}"),
            Err(_) => {
                println!("skipped: promtool (Debian package `prometheus`) is not here");
                return;
            }
        };
        tool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = tool.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stderr.is_empty(), "{stderr}\n{text}");
    }
}
