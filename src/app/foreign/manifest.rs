//! Workloads in Kubernetes manifests: the programs of their containers, and the annotations of their pods.
//!
//! In: the documents of a file. Out: workloads with their containers. Objects without pods are skipped.

use std::collections::BTreeMap;

use serde_json::Value;

/// A Kubernetes object that creates pods.
pub(super) struct Workload<'a> {
    /// Kind and name, for messages.
    pub(super) path: String,
    pub(super) namespace: Option<&'a str>,
    /// Cron expression of a CronJob.
    pub(super) schedule: Option<&'a str>,
    /// Annotations of the pods, without annotations whose value is not a string.
    pub(super) annotations: BTreeMap<&'a str, &'a str>,
    pub(super) containers: Vec<Container<'a>>,
}

/// A container, with its command line if the manifest contains one.
pub(super) struct Container<'a> {
    image: &'a str,
    /// The command line in the manifest; empty if the image's own command runs.
    words: Vec<&'a str>,
    /// Environment variables whose value is written in the manifest.
    pub(super) environment: BTreeMap<&'a str, &'a str>,
}

/// A command line, parsed into flags and arguments.
#[derive(Default)]
pub(super) struct CommandLine<'a> {
    /// Each flag without its dashes, with its value; the value of a switch is empty.
    pub(super) flags: Vec<(&'a str, &'a str)>,
    /// The arguments that are not flags.
    pub(super) words: Vec<&'a str>,
}

/// Returns the workloads of all documents. Each item of a Kubernetes `List` counts as a document.
pub(super) fn workloads(documents: &[Value]) -> Vec<Workload<'_>> {
    let items = documents.iter().flat_map(|document| match list(document, "/items") {
        [] => std::slice::from_ref(document),
        items => items,
    });
    items.filter_map(workload).collect()
}

fn workload(object: &Value) -> Option<Workload<'_>> {
    let kind = text(object, "/kind")?;
    let template = match kind {
        "Pod" => object,
        "CronJob" => object.pointer("/spec/jobTemplate/spec/template")?,
        // Coroot's operator creates both agents from one object.
        "Coroot" => {
            return Some(Workload {
                containers: [
                    ("coroot-node-agent", "/spec/nodeAgent"),
                    ("coroot-cluster-agent", "/spec/clusterAgent"),
                ]
                .into_iter()
                .map(|(image, path)| Container {
                    image,
                    words: Vec::new(),
                    environment: environment(object, &format!("{path}/env")),
                })
                .collect(),
                ..named(object, kind)
            });
        }
        _ => object.pointer("/spec/template")?,
    };
    let annotations = template.pointer("/metadata/annotations").and_then(Value::as_object);
    let annotations = annotations.into_iter().flatten();
    Some(Workload {
        schedule: text(object, "/spec/schedule"),
        annotations: annotations
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
            .collect(),
        containers: list(template, "/spec/containers").iter().map(container).collect(),
        ..named(object, kind)
    })
}

/// Returns a workload with only a name and a namespace.
fn named<'a>(object: &'a Value, kind: &str) -> Workload<'a> {
    Workload {
        path: format!("{kind} {}", text(object, "/metadata/name").unwrap_or_default()),
        namespace: text(object, "/metadata/namespace"),
        schedule: None,
        annotations: BTreeMap::new(),
        containers: Vec::new(),
    }
}

fn container(container: &Value) -> Container<'_> {
    let words = ["/command", "/args"].into_iter().flat_map(|path| list(container, path));
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    // A shell receives its command line as one argument.
    let words = match words.as_slice() {
        [shell, "-c", line, ..] if matches!(program(shell), "sh" | "bash" | "ash") => line.split_whitespace().collect(),
        _ => words,
    };
    Container {
        image: text(container, "/image").unwrap_or_default(),
        words,
        environment: environment(container, "/env"),
    }
}

impl<'a> Container<'a> {
    /// Returns true if the image or the first word of the command line has this name.
    pub(super) fn runs(&self, name: &str) -> bool {
        let image = program(self.image).split([':', '@']).next();
        image == Some(name) || self.words.first().is_some_and(|word| program(word) == name)
    }

    /// Parses the command line without the program. `switches` are the flags that take no value.
    pub(super) fn command_line(&self, switches: &[&str]) -> CommandLine<'a> {
        let mut line = CommandLine::default();
        let has_program = self.words.first().is_some_and(|word| !word.starts_with('-'));
        let mut words = self.words.iter().copied().skip(usize::from(has_program)).peekable();
        while let Some(word) = words.next() {
            let flag = word.trim_start_matches('-');
            if flag.len() == word.len() {
                line.words.push(word);
            } else if let Some((flag, value)) = flag.split_once('=') {
                line.flags.push((flag, value));
            } else {
                let value = words.next_if(|next| !switches.contains(&flag) && !next.starts_with('-'));
                line.flags.push((flag, value.unwrap_or_default()));
            }
        }
        line
    }
}

/// Returns the last part of a path or of an image's name.
fn program(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn text<'a>(value: &'a Value, path: &str) -> Option<&'a str> {
    value.pointer(path).and_then(Value::as_str)
}

fn list<'a>(value: &'a Value, path: &str) -> &'a [Value] {
    value.pointer(path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn environment<'a>(object: &'a Value, path: &str) -> BTreeMap<&'a str, &'a str> {
    let variables = list(object, path).iter();
    let variables = variables.filter_map(|variable| Some((text(variable, "/name")?, text(variable, "/value")?)));
    variables.collect()
}
