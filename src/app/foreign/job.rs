//! Converts scrape jobs. A job becomes discovery components, a `discovery.relabel` if the job has rules, and a
//! `pyroscope.scrape`.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Map, Value};

use crate::app::foreign::blocks;
use crate::app::foreign::findings::Findings;
use crate::app::foreign::format::Format;
use crate::app::foreign::kinds::Kinds;
use crate::app::foreign::text::{Writer, expression, identifier};
use alluvium_lang::literal::quote;
use alluvium_lang::schema::Schema;

/// Top-level keys of Prometheus' file that do not concern targets.
const NOT_OF_PROFILES: [&str; 9] = [
    "alerting",
    "otlp",
    "remote_read",
    "remote_write",
    "rule_files",
    "runtime",
    "scrape_failure_log_file",
    "storage",
    "tracing",
];
/// Keys of a Prometheus job that concern only metrics. Keys that begin with one of [`OF_METRICS_PREFIXES`] concern only
/// metrics too.
const OF_METRICS: [&str; 16] = [
    "always_scrape_classic_histograms",
    "body_size_limit",
    "convert_classic_histograms_to_nhcb",
    "enable_compression",
    "extra_scrape_metrics",
    "fallback_scrape_protocol",
    "honor_labels",
    "honor_timestamps",
    "keep_dropped_targets",
    "metric_relabel_configs",
    "metrics_path",
    "sample_limit",
    "scrape_failure_log_file",
    "scrape_native_histograms",
    "scrape_protocols",
    "track_timestamps_staleness",
];
const OF_METRICS_PREFIXES: [&str; 4] = ["label_", "metric_name_", "native_histogram_", "scrape_classic_"];
/// Keys of HTTP clients and discoveries that name one file. A relative path is relative to the folder of the
/// configuration.
const FILES: [&str; 9] = [
    "bearer_token_file",
    "ca_file",
    "cert_file",
    "client_secret_file",
    "credentials_file",
    "key_file",
    "kubeconfig_file",
    "password_file",
    "username_file",
];
/// Maximum size in bytes of all static targets of a file together, written as Alloy text.
const MAX_TARGET_BYTES: usize = 32 << 20;
/// Labels that conprof and Parca add to a target for each of its profiles before they apply the relabel rules.
const OF_PROFILES: [&str; 2] = ["__name__", "__profile_path__"];

/// Converts the jobs of a file.
pub(super) struct Jobs<'a> {
    format: Format,
    folder: &'a Path,
    out: &'a mut Writer,
    findings: &'a mut Findings,
    /// Names and labels of the components that have been written.
    used: BTreeSet<(String, String)>,
    /// Total size of the static targets that have been written, in bytes.
    target_bytes: usize,
    interval: String,
    timeout: Option<String>,
}

/// A mapping and its path.
type LocatedMap<'a> = (&'a str, &'a Map<String, Value>);

impl<'a> Jobs<'a> {
    pub(super) fn new(format: Format, folder: &'a Path, out: &'a mut Writer, findings: &'a mut Findings) -> Self {
        let (interval, timeout) = match format {
            Format::Conprof => ("1m", Some("1m")),
            // The default timeout is the scrape interval plus three seconds.
            Format::Parca => ("10s", None),
            _ => ("1m", Some("10s")),
        };
        Self {
            format,
            folder,
            out,
            findings,
            used: BTreeSet::new(),
            target_bytes: 0,
            interval: interval.to_owned(),
            timeout: timeout.map(str::to_owned),
        }
    }

    /// Converts the whole file.
    pub(super) fn convert(&mut self, root: &Map<String, Value>) {
        if let Some(Value::Object(global)) = root.get("global").filter(|_| self.format == Format::Prometheus) {
            self.global(global);
        }
        for (key, value) in root {
            match (&**key, value) {
                ("scrape_configs", Value::Array(jobs)) => {
                    for (index, job) in jobs.iter().enumerate() {
                        let path = format!("scrape_configs[{index}]");
                        match job {
                            Value::Object(job) => self.job((&path, job)),
                            _ => self.findings.problem(&path, "must be a mapping"),
                        }
                    }
                }
                ("scrape_configs", Value::Null) => {}
                ("scrape_configs", _) => self.findings.problem(key, "must be a list"),
                ("global", _) if self.format == Format::Prometheus => {}
                // Earlier versions of Parca have the key `debug_info`, which configures the storage of debug
                // information only.
                ("object_storage" | "debug_info", _) if self.format == Format::Parca => {
                    let message = "configures Parca's storage; here the server that receives the profiles stores them";
                    self.findings.note(key, message);
                }
                (key, _) if self.format == Format::Prometheus && NOT_OF_PROFILES.contains(&key) => {
                    self.findings.note(key, "is left out: it does not concern profiles");
                }
                (key, _) => self.findings.problem(key, "cannot be converted"),
            }
        }
    }

    fn global(&mut self, global: &Map<String, Value>) {
        for (key, value) in global {
            let path = format!("global.{key}");
            match (&**key, value) {
                ("scrape_interval", Value::String(text)) => text.clone_into(&mut self.interval),
                ("scrape_timeout", Value::String(text)) => self.timeout = Some(text.clone()),
                ("scrape_interval" | "scrape_timeout", _) => self.findings.problem(&path, "must be a duration"),
                ("external_labels", _) => {
                    let message = "are added to metrics that Prometheus sends: set them in pyroscope.write if needed";
                    self.findings.note(&path, message);
                }
                _ => self.findings.note(&path, "is left out: it does not concern profiles"),
            }
        }
    }

    fn job(&mut self, (path, job): LocatedMap<'_>) {
        let Some(Value::String(name)) = job.get("job_name") else {
            return self.findings.problem(path, "job_name is missing");
        };
        let mut lists = Vec::new();
        for (key, value) in job {
            let path = format!("{path}.{key}");
            if key == "static_configs" {
                lists.extend(self.static_targets((&path, value)));
            } else if let Some(kind) = key.strip_suffix("_sd_configs") {
                self.discoveries(kind, name, (&path, value), &mut lists);
            }
        }
        let mut targets = match &*lists {
            [] => "[]".to_owned(),
            [one] => one.clone(),
            _ => format!("array.concat({})", lists.join(", ")),
        };
        if let Some(rules) = job.get("relabel_configs").filter(|rules| !rules.is_null()) {
            targets = self.relabel(name, (&format!("{path}.relabel_configs"), rules), &targets);
        }
        self.scrape(name, (path, job), &targets);
    }

    /// Converts `static_configs` to an expression for its targets.
    fn static_targets(&mut self, (path, value): (&str, &Value)) -> Option<String> {
        let Value::Array(groups) = value else {
            self.findings.problem(path, "must be a list");
            return None;
        };
        let mut targets = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let mut labels = Map::new();
            if let Some(group_labels) = group.get("labels").and_then(Value::as_object) {
                for (name, value) in group_labels {
                    match value {
                        Value::String(_) => drop(labels.insert(name.clone(), value.clone())),
                        // A label with an empty value is the same as an absent label.
                        Value::Null => {}
                        _ => self
                            .findings
                            .problem(&format!("{path}.labels.{name}"), "must be a string"),
                    }
                }
            }
            // Each target repeats all labels of its group, so a short file can expand to a long list.
            let label_bytes = expression(&Value::Object(labels.clone())).len();
            for address in group.get("targets").and_then(Value::as_array).into_iter().flatten() {
                self.target_bytes += label_bytes + address.as_str().map_or(0, str::len);
                if self.target_bytes > MAX_TARGET_BYTES {
                    let max_mib = MAX_TARGET_BYTES >> 20;
                    self.findings
                        .problem(&path, format_args!("the targets of the file exceed {max_mib} MiB"));
                    return None;
                }
                match address.as_str() {
                    Some(address) if !address.contains('/') => {
                        let mut target = Map::from_iter([("__address__".to_owned(), address.into())]);
                        target.extend(labels.clone());
                        targets.push(expression(&Value::Object(target)));
                    }
                    _ => self
                        .findings
                        .problem(&format!("{path}.targets"), format_args!("{address} is not a HOST:PORT")),
                }
            }
        }
        let lines: String = targets.iter().map(|target| format!("{target},\n")).collect();
        (!targets.is_empty()).then(|| format!("[\n{lines}]"))
    }

    /// Writes the discovery components of one kind and appends their exports to `lists`.
    fn discoveries(&mut self, kind: &str, job: &str, (path, value): (&str, &Value), lists: &mut Vec<String>) {
        let component = format!("discovery.{kind}");
        let Some(definition) = alluvium_components::find(&component) else {
            return self
                .findings
                .problem(path, format_args!("there is no component `{component}`"));
        };
        let Value::Array(items) = value else {
            return self.findings.problem(path, "must be a list");
        };
        for (index, item) in items.iter().enumerate() {
            let path = format!("{path}[{index}]");
            let Value::Object(item) = item else {
                self.findings.problem(&path, "must be a mapping");
                continue;
            };
            let item = with_bearer_token(definition.arguments(), self.with_whole_paths(kind, item));
            let label = self.label(&component, job);
            self.out.open(&component, Some(&label));
            blocks::body(
                &component,
                definition.arguments(),
                (&path, &item),
                self.out,
                self.findings,
            );
            self.out.close();
            lists.push(format!("{component}.{label}.targets"));
        }
    }

    /// Returns the item of a discovery with relative paths resolved against the folder of the configuration, as in
    /// Prometheus.
    fn with_whole_paths(&self, kind: &str, item: &Map<String, Value>) -> Map<String, Value> {
        let mut item = item.clone();
        self.resolve_files(&mut item);
        if let Some(Value::Array(files)) = item.get_mut("files").filter(|_| kind == "file") {
            for file in files {
                if let Some(path) = file.as_str() {
                    *file = self.folder.join(path).to_string_lossy().into_owned().into();
                }
            }
        }
        item
    }

    /// Resolves the values of [`FILES`], at any depth, against the folder of the configuration.
    fn resolve_files(&self, mapping: &mut Map<String, Value>) {
        for (key, value) in mapping.iter_mut() {
            match value {
                Value::Object(inner) => self.resolve_files(inner),
                Value::String(path) if FILES.contains(&&**key) && !path.is_empty() => {
                    *path = self.folder.join(&*path).to_string_lossy().into_owned();
                }
                _ => {}
            }
        }
    }

    /// Writes a `discovery.relabel` and returns an expression for its output.
    fn relabel(&mut self, job: &str, (path, rules): (&str, &Value), targets: &str) -> String {
        let (label, schema) = (self.label("discovery.relabel", job), schema_of("discovery.relabel"));
        let sources = |rule: &Value| rule.get("source_labels").and_then(Value::as_array).cloned();
        for (index, rule) in rules.as_array().into_iter().flatten().enumerate() {
            let of_profiles = sources(rule).unwrap_or_default();
            let mut of_profiles = of_profiles
                .iter()
                .filter_map(Value::as_str)
                .filter(|name| OF_PROFILES.contains(name));
            if let Some(name) = of_profiles.next().filter(|_| self.format != Format::Prometheus) {
                let message = format!("the label {name} is not set: rules run once per target, not once per profile");
                self.findings.problem(&format!("{path}[{index}]"), message);
            }
        }
        self.out.open("discovery.relabel", Some(&label));
        self.out.attribute("targets", targets);
        let body = Map::from_iter([("rule".to_owned(), rules.clone())]);
        blocks::body("discovery.relabel", schema, (path, &body), self.out, self.findings);
        self.out.close();
        format!("discovery.relabel.{label}.output")
    }

    fn scrape(&mut self, name: &str, (path, job): LocatedMap<'_>, targets: &str) {
        let label = self.label("pyroscope.scrape", name);
        let interval = self.duration(path, job, "scrape_interval", Some(self.interval.clone()));
        let interval = interval.unwrap_or_default();
        let milliseconds = blocks::milliseconds(&interval).unwrap_or_default();
        let timeout = self.timeout.clone();
        let timeout = self.duration(path, job, "scrape_timeout", timeout);
        let timeout = timeout.unwrap_or_else(|| format!("{}ms", milliseconds + 3_000));
        let kinds_path = format!("{path}.profiling_config");
        let kinds = job
            .get("profiling_config")
            .filter(|_| self.format != Format::Prometheus);
        let kinds = Kinds::new(self.format, (&kinds_path, kinds), self.findings);
        let mut rest = self.rest(path, job);
        self.resolve_files(&mut rest);
        self.out.open("pyroscope.scrape", Some(&label));
        self.out.attribute("targets", targets);
        self.out.attribute("forward_to", "[pyroscope.write.default.receiver]");
        self.out.attribute("job_name", &quote(name));
        self.out.attribute("scrape_interval", &quote(&interval));
        self.out.attribute("scrape_timeout", &quote(&timeout));
        let schema = schema_of("pyroscope.scrape");
        // Attributes are written before blocks. `kinds` writes an attribute and a block, so it runs between the other
        // attributes and the other blocks.
        let is_attribute = |key: &String| schema.attributes.iter().any(|attribute| attribute.name == *key);
        let (attributes, inner): (Map<_, _>, Map<_, _>) = rest.into_iter().partition(|(key, _)| is_attribute(key));
        blocks::body("pyroscope.scrape", schema, (path, &attributes), self.out, self.findings);
        kinds.write(milliseconds, path, self.out, self.findings);
        blocks::body("pyroscope.scrape", schema, (path, &inner), self.out, self.findings);
        self.out.close();
    }

    /// Returns the keys of a job that the other functions do not convert. The returned keys must be arguments of
    /// `pyroscope.scrape`. Records a note for each key that is left out.
    fn rest(&mut self, path: &str, job: &Map<String, Value>) -> Map<String, Value> {
        let mut rest = Map::new();
        for (key, value) in job {
            let is_done = matches!(
                &**key,
                "job_name" | "scrape_interval" | "scrape_timeout" | "static_configs" | "relabel_configs"
            ) || key.ends_with("_sd_configs")
                || (key == "profiling_config" && self.format != Format::Prometheus);
            let is_of_metrics =
                OF_METRICS.contains(&&**key) || OF_METRICS_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
            if is_done || value.is_null() {
                continue;
            }
            if self.format == Format::Prometheus && is_of_metrics {
                self.findings
                    .note(&format!("{path}.{key}"), "concerns metrics and is left out");
            } else if self.format == Format::Parca && key == "normalized_addresses" {
                self.findings.note(
                    &format!("{path}.{key}"),
                    "addresses are kept as they are in the profile",
                );
            } else {
                rest.insert(key.clone(), value.clone());
            }
        }
        rest
    }

    fn duration(&mut self, path: &str, job: &Map<String, Value>, key: &str, default: Option<String>) -> Option<String> {
        let text = match job.get(key) {
            Some(Value::String(text)) => Some(text.clone()),
            None | Some(Value::Null) => default,
            Some(_) => Some(String::new()),
        };
        match blocks::duration(&text?) {
            Ok(text) => Some(text),
            Err(message) => {
                self.findings.problem(&format!("{path}.{key}"), message);
                None
            }
        }
    }

    /// Returns a label that is made from the name of the job and that no other component named `component` has.
    fn label(&mut self, component: &str, job: &str) -> String {
        let base = identifier(job);
        let mut label = base.clone();
        let mut number = 2;
        while !self.used.insert((component.to_owned(), label.clone())) {
            label = format!("{base}_{number}");
            number += 1;
        }
        label
    }
}

/// Returns the item of a discovery with its `authorization` as `bearer_token` or `bearer_token_file`, if the component
/// has these arguments but no block `authorization`. Prometheus sends the same header for both.
fn with_bearer_token(schema: &Schema, mut item: Map<String, Value>) -> Map<String, Value> {
    if let Some(token) = bearer_token(schema, &item) {
        item.remove("authorization");
        item.extend(token);
    }
    item
}

fn bearer_token(schema: &Schema, item: &Map<String, Value>) -> Option<Map<String, Value>> {
    let has_block = schema.blocks.iter().any(|block| block.name == "authorization");
    let has_token = schema
        .attributes
        .iter()
        .any(|attribute| attribute.name == "bearer_token");
    if has_block || !has_token {
        return None;
    }
    let mut token = Map::new();
    for (key, value) in item.get("authorization")?.as_object()? {
        let argument = match (&**key, value) {
            ("credentials", _) => "bearer_token",
            ("credentials_file", _) => "bearer_token_file",
            ("type", Value::Null) => continue,
            ("type", Value::String(scheme)) if scheme.eq_ignore_ascii_case("bearer") => continue,
            _ => return None,
        };
        if item.contains_key(argument) {
            return None;
        }
        token.insert(argument.to_owned(), value.clone());
    }
    Some(token)
}

fn schema_of(component: &str) -> &'static Schema {
    alluvium_components::find(component).map_or(&Schema::EMPTY, |component| component.arguments())
}
