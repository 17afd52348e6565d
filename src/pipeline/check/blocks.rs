//! Blocks of the engine's own: their names, and the bodies of those that build modules: `argument`, `export`,
//! `foreach`.

use crate::lang::schema::{Attribute, Kind, Schema};

/// Blocks that configure the program; each at most once, in the root, without a label.
pub(crate) const SETTINGS: [&str; 5] = ["http", "livedebugging", "logging", "remotecfg", "tracing"];
/// Blocks that build modules.
pub(crate) const MODULE_BLOCKS: [&str; 4] = ["argument", "declare", "export", "foreach"];
/// Prefix of the blocks that bring declarations from elsewhere.
pub(crate) const IMPORT: &str = "import.";

/// `argument "name" { }`.
pub const ARGUMENT: Schema = Schema {
    attributes: &[
        Attribute::with_default("comment", Kind::String, "\"\"", "What the argument is for."),
        Attribute::optional(
            "default",
            Kind::Any,
            "Value when the user of the module gives none; only with `optional`.",
        ),
        Attribute::with_default(
            "optional",
            Kind::Bool,
            "false",
            "Whether the user of the module may leave the argument out.",
        ),
    ],
    blocks: &[],
};

/// `export "name" { }`.
pub const EXPORT: Schema = Schema {
    attributes: &[Attribute::required(
        "value",
        Kind::Any,
        "What users of the module read as `NAME.LABEL.EXPORT`.",
    )],
    blocks: &[],
};

/// `foreach "name" { }` without its `template`.
pub const FOREACH: Schema = Schema {
    attributes: &[
        Attribute::required("collection", Kind::List(&Kind::Any), "The items."),
        Attribute::with_default(
            "enable_metrics",
            Kind::Bool,
            "false",
            "Whether the metrics of the components inside are shown.",
        ),
        Attribute::with_default(
            "hash_string_id",
            Kind::Bool,
            "false",
            "Whether strings are hashed where they become part of a component's id.",
        ),
        Attribute::with_default(
            "id",
            Kind::String,
            "\"\"",
            "Field of an item that tells it from the others; the whole item when empty.",
        ),
        Attribute::required("var", Kind::String, "Name of the item in the template."),
    ],
    blocks: &[],
};
