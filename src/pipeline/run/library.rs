//! Lookup of declarations for running scopes, in the enclosing scopes and in imported libraries.
//!
//! In: the exports of an import's component, [`CONTENT`] and [`FOLDER`]. Out: a [`Library`], kept as long as the
//! content stays the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::check::library::Parsed;
use crate::component::import::{CONTENT, FOLDER};
use alluvium_lang::value::Value;

/// The imported declarations in force.
pub(crate) struct Library {
    /// The texts of the library.
    pub content: Value,
    /// The declarations of the texts, parsed.
    pub parsed: Arc<Parsed>,
    /// The folder and the nested imports of the library.
    pub surroundings: Arc<RuntimeEnv>,
}

/// The environment in which a scope looks up declarations at run time; the counterpart of `check::env::Env`.
#[derive(Default)]
pub(crate) struct RuntimeEnv {
    /// The environment of the enclosing scope.
    pub parent: Option<Arc<RuntimeEnv>>,
    /// Folder of the text, the value of `module_path`.
    pub module_path: Arc<str>,
    /// Imported libraries by namespace.
    pub libraries: Mutex<BTreeMap<Arc<str>, Arc<Library>>>,
}

impl RuntimeEnv {
    /// Creates the environment of a text in this folder.
    pub(crate) fn new(parent: Option<Arc<RuntimeEnv>>, module_path: Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            parent,
            module_path,
            libraries: Mutex::default(),
        })
    }

    /// Returns the environment `level` scopes further out.
    pub(crate) fn ancestor(self: &Arc<Self>, level: usize) -> Option<Arc<Self>> {
        let mut current = self.clone();
        for _ in 0..level {
            current = current.parent.clone()?;
        }
        Some(current)
    }
}

/// Returns the texts among the exports of an import.
pub(crate) fn content(exports: &Value) -> Value {
    match exports {
        Value::Object(fields) => fields.get(CONTENT).cloned().unwrap_or_default(),
        _ => Value::Null,
    }
}

/// Returns the folder among the exports of an import.
pub(crate) fn folder(exports: &Value) -> Option<Arc<str>> {
    match exports {
        Value::Object(fields) => match fields.get(FOLDER) {
            Some(Value::String(folder)) => Some(folder.clone()),
            _ => None,
        },
        _ => None,
    }
}
