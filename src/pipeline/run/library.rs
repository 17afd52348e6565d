//! Where a scope that runs finds its declarations: in the scopes around it, and in what its imports brought.
//!
//! In: the exports of an import's component, [`CONTENT`] and [`FOLDER`]. Out: a [`Library`], kept for as long as the
//! content is the same.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::lang::value::Value;
use crate::pipeline::check::library::Parsed;
use crate::pipeline::component::import::{CONTENT, FOLDER};

/// What an import has brought, as it is in force.
pub(crate) struct Library {
    /// The texts that it is made of.
    pub content: Value,
    /// The declarations of the texts, parsed.
    pub parsed: Arc<Parsed>,
    /// Its folder, and what it imports itself.
    pub surroundings: Arc<Surroundings>,
}

/// Where a scope finds declarations at run time: as `check::env::Env` does in the text.
#[derive(Default)]
pub(crate) struct Surroundings {
    /// The scope around this one.
    pub parent: Option<Arc<Surroundings>>,
    /// Folder of the text, for `module_path`.
    pub module_path: Arc<str>,
    /// What its imports brought, by namespace.
    pub libraries: Mutex<BTreeMap<Arc<str>, Arc<Library>>>,
}

impl Surroundings {
    /// A scope in this folder.
    pub(crate) fn new(parent: Option<Arc<Surroundings>>, module_path: Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            parent,
            module_path,
            libraries: Mutex::default(),
        })
    }

    /// The scope that is `level` further out.
    pub(crate) fn ancestor(self: &Arc<Self>, level: usize) -> Option<Arc<Self>> {
        let mut current = self.clone();
        for _ in 0..level {
            current = current.parent.clone()?;
        }
        Some(current)
    }
}

/// The texts among the exports of an import.
pub(crate) fn content(exports: &Value) -> Value {
    match exports {
        Value::Object(fields) => fields.get(CONTENT).cloned().unwrap_or_default(),
        _ => Value::Null,
    }
}

/// The folder among the exports of an import.
pub(crate) fn folder(exports: &Value) -> Option<Arc<str>> {
    match exports {
        Value::Object(fields) => match fields.get(FOLDER) {
            Some(Value::String(folder)) => Some(folder.clone()),
            _ => None,
        },
        _ => None,
    }
}
