//! What expressions can refer to in a running configuration.

use crate::lang::eval::Scope;
use crate::lang::value::Value;
use crate::pipeline::graph::{CONSTANTS, prefixes};
use crate::pipeline::plan::Nodes;

/// The names that expressions see: exports of nodes, and the constants.
pub(crate) struct Names<'a> {
    /// Nodes by id.
    pub(crate) nodes: &'a Nodes,
    /// Value of `constants`.
    pub(crate) constants: &'a Value,
}

impl Scope for Names<'_> {
    fn lookup(&self, path: &[&str]) -> Option<(Value, usize)> {
        for (id, length) in prefixes(path) {
            if let Some(node) = self.nodes.get(id.as_str()) {
                return Some((node.exports(), length));
            }
        }
        (path.first() == Some(&CONSTANTS)).then(|| (self.constants.clone(), 1))
    }
}

/// `constants.*`, with Go's names for systems and processors, as Alloy's configurations expect them.
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
        ("hostname", Value::string(crate::base::net::hostname())),
        ("os", Value::string(os)),
        ("version", Value::string(version)),
    ])
}
