//! Blocks of the engine itself: their names, and the bodies of the blocks that build modules: `argument`, `export`,
//! `foreach`.

use std::sync::Arc;

use alluvium_lang::body::arguments;
use alluvium_lang::value::Value;

/// Blocks that configure the program. Each may occur once, in the root scope, without a label.
pub(crate) const SETTINGS: [&str; 5] = ["http", "livedebugging", "logging", "remotecfg", "tracing"];
/// Blocks that build modules.
pub(crate) const MODULE_BLOCKS: [&str; 4] = ["argument", "declare", "export", "foreach"];
/// Prefix of the blocks that import declarations.
pub(crate) const IMPORT: &str = "import.";

arguments! {
    /// The body of `argument "name" { }`.
    pub(crate) struct ArgumentBody {
        /// Description of the argument.
        comment: Arc<str> = "",
        /// Value that applies if the user of the module sets none; used only if `optional` is true.
        default: Value = null,
        /// If true, the user of the module may omit the argument.
        optional: bool = false,
    }
}

arguments! {
    /// The body of `export "name" { }`.
    pub(crate) struct ExportBody {
        /// The value that users of the module read as `NAME.LABEL.EXPORT`.
        value: Value,
    }
}

arguments! {
    /// The body of `foreach "name" { }` without its `template`.
    pub(crate) struct ForeachBody {
        /// The items, of any type.
        collection: Vec<Value>,
        /// If true, the metrics of the components in the template are exported.
        enable_metrics: bool = false,
        /// If true, and a string identifies an item, component ids contain a hash of that string, not the string.
        hash_string_id: bool = false,
        /// Field that identifies an item. If empty, the whole item is used instead.
        id: Arc<str> = "",
        /// Name of the item in the template.
        var: Arc<str>,
    }
}
