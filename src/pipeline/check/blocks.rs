//! Blocks of the engine's own: their names, and the bodies of those that build modules: `argument`, `export`,
//! `foreach`.

use std::sync::Arc;

use crate::lang::body::arguments;
use crate::lang::value::Value;

/// Blocks that configure the program; each at most once, in the root, without a label.
pub(crate) const SETTINGS: [&str; 5] = ["http", "livedebugging", "logging", "remotecfg", "tracing"];
/// Blocks that build modules.
pub(crate) const MODULE_BLOCKS: [&str; 4] = ["argument", "declare", "export", "foreach"];
/// Prefix of the blocks that import declarations.
pub(crate) const IMPORT: &str = "import.";

arguments! {
    /// The body of `argument "name" { }`.
    pub(crate) struct ArgumentBody {
        /// What the argument is for.
        comment: Arc<str> = "",
        /// Value when the user of the module gives none; only with `optional`.
        default: Value = null,
        /// Whether the user of the module may leave the argument out.
        optional: bool = false,
    }
}

arguments! {
    /// The body of `export "name" { }`.
    pub(crate) struct ExportBody {
        /// What users of the module read as `NAME.LABEL.EXPORT`.
        value: Value,
    }
}

arguments! {
    /// The body of `foreach "name" { }` without its `template`.
    pub(crate) struct ForeachBody {
        /// The items, of any type.
        collection: Vec<Value>,
        /// Whether the metrics of the components inside are shown.
        enable_metrics: bool = false,
        /// Whether strings are hashed where they become part of a component's id.
        hash_string_id: bool = false,
        /// Field of an item that tells it from the others; the whole item when empty.
        id: Arc<str> = "",
        /// Name of the item in the template.
        var: Arc<str>,
    }
}
