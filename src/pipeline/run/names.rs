//! The names that expressions of a running configuration can refer to.

use std::sync::Arc;

use crate::check::graph::{CONSTANTS, Graph, MODULE_PATH, prefixes};
use crate::run::instance::{Entry, Instance};
use alluvium_lang::decode::{Defaults, Evaluate};
use alluvium_lang::eval::Scope;
use alluvium_lang::value::Value;

/// Data that expressions and bodies of all scopes share.
pub(crate) struct Common {
    /// Value of the name `constants`.
    pub(crate) constants: Value,
    /// Defaults of schemas, computed once.
    pub(crate) defaults: Defaults,
}

/// The names visible to expressions of one scope: values of its nodes, the item of a template, the enclosing scopes of
/// a template, and the constants.
pub(crate) struct Names<'a> {
    /// The graph of the scope.
    pub(crate) graph: &'a Graph,
    /// The state of each node; failed nodes are missing.
    pub(crate) entries: &'a [Option<Entry>],
    /// Name and value of the item, in a template.
    pub(crate) variable: Option<(&'a str, Value)>,
    /// The enclosing scope of a template.
    pub(crate) outer: Option<&'a Names<'a>>,
    /// The data that all scopes share.
    pub(crate) common: &'a Common,
    /// Folder of the text, for `module_path`.
    pub(crate) module_path: &'a Arc<str>,
}

impl<'a> Names<'a> {
    /// Returns the names visible in an instance. `outer` are the names of the enclosing scope of a template.
    pub(crate) fn of(instance: &'a Instance, common: &'a Common, outer: Option<&'a Names<'a>>) -> Self {
        Self {
            graph: &instance.graph,
            entries: &instance.entries,
            variable: instance
                .variable
                .as_ref()
                .map(|(name, value)| (name.as_ref(), value.lock().clone())),
            outer,
            common,
            module_path: &instance.surroundings.module_path,
        }
    }

    /// Returns the names visible in a text without nodes, such as an imported text. `graph` is empty.
    pub(crate) fn of_text(graph: &'a Graph, common: &'a Common, module_path: &'a Arc<str>) -> Self {
        Self {
            graph,
            entries: &[],
            variable: None,
            outer: None,
            common,
            module_path,
        }
    }

    /// Returns an evaluator of bodies with these names.
    pub(crate) fn evaluate(&self) -> Evaluate<'_> {
        Evaluate {
            scope: self,
            defaults: Some(&self.common.defaults),
        }
    }

    fn find(&self, path: &[&str]) -> Option<(Value, usize)> {
        for (id, length) in prefixes(path) {
            if let Some(index) = self.graph.find(&id) {
                return Some((self.entries.get(index)?.as_ref()?.value(), length));
            }
        }
        match &self.variable {
            Some((name, value)) if path.first() == Some(name) => Some((value.clone(), 1)),
            _ => self.outer.and_then(|outer| outer.find(path)),
        }
    }
}

impl Scope for Names<'_> {
    fn lookup(&self, path: &[&str]) -> Option<(Value, usize)> {
        self.find(path).or_else(|| match path.first().copied() {
            Some(CONSTANTS) => Some((self.common.constants.clone(), 1)),
            Some(MODULE_PATH) => Some((Value::String(self.module_path.clone()), 1)),
            _ => None,
        })
    }
}

/// Returns `constants.*`, with Go's names for operating systems and architectures, which Alloy configurations expect.
pub(crate) fn constants(version: &str) -> Value {
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        other => other,
    };
    let version = match version.trim_start_matches('v') {
        "" => "v0.0.0".to_owned(),
        version => format!("v{version}"),
    };
    Value::object([
        ("arch", Value::string(arch)),
        ("hostname", Value::string(alluvium_base::net::hostname())),
        ("os", Value::string(os)),
        ("version", Value::string(version)),
    ])
}
