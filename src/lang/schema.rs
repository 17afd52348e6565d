//! Schemas: names, types and defaults of the attributes and inner blocks of a block, as constant data.
//!
//! A component declares its arguments with these types. The language checks a body against its schema, reports errors
//! with positions, fills in defaults, and passes an [`Arguments`] to the component. The reference pages are generated
//! from the same data.

use std::sync::Arc;

use crate::value::{Fields, Value};

/// The body of a block: its attributes and inner blocks, each list sorted by name.
#[derive(Debug)]
pub struct Schema {
    /// Attributes, `name = value`.
    pub attributes: &'static [Attribute],
    /// Inner blocks, `name { ... }`; a dotted name (`profile.memory`) is one name.
    pub blocks: &'static [Block],
}

/// One attribute of a body, or one export.
#[derive(Debug, Clone, Copy)]
pub struct Attribute {
    /// Name as written in the configuration.
    pub name: &'static str,
    /// Type of the value; convertible values are converted.
    pub kind: Kind,
    /// True if the attribute must be set.
    pub required: bool,
    /// Default as an expression of the language (`"15s"`, `true`, `[]`); `None` means null ("not set").
    pub default: Option<&'static str>,
    /// One sentence for the reference page.
    pub doc: &'static str,
    /// The reason why the program ignores the value, in lower case, without a full stop. `None` if the value has an
    /// effect. A configuration that sets it causes a warning.
    pub no_effect: Option<&'static str>,
}

/// An inner block of a body.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// Name as written; may be dotted.
    pub name: &'static str,
    /// True if the block takes a label.
    pub labelled: bool,
    /// True if the block may occur more than once.
    pub many: bool,
    /// True if the block must occur at least once.
    pub required: bool,
    /// True if the block exists with its defaults even when it is not written (Alloy's non-pointer blocks).
    pub implied: bool,
    /// The schema of the block's body.
    pub schema: &'static Schema,
    /// Defaults that differ from those of `schema` for this block: attribute name and expression.
    pub defaults: &'static [(&'static str, &'static str)],
    /// One sentence for the reference page.
    pub doc: &'static str,
    /// The reason why the program ignores the block, in lower case, without a full stop. `None` if the block has an
    /// effect. A configuration that contains it causes a warning.
    pub no_effect: Option<&'static str>,
}

/// Types of attributes and exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A boolean: `true` or `false`.
    Bool,
    /// A whole number that may be negative.
    Int,
    /// A whole number that is not negative.
    Uint,
    /// A number with or without a fraction.
    Float,
    /// A string that may be shown.
    String,
    /// A string that is never shown; plain strings convert to it.
    Secret,
    /// A string, or a secret that is never shown.
    OptionalSecret,
    /// A Go duration in a string: `"1h30m"`.
    Duration,
    /// A list whose items have one type.
    List(&'static Kind),
    /// A map from strings to values of one type.
    Map(&'static Kind),
    /// A value of any type at all.
    Any,
    /// A capsule of this kind, such as [`RECEIVER`].
    Capsule(&'static str),
}

/// Capsule kind of profile receivers; the capsule wraps a profile sink.
pub const RECEIVER: &str = "pyroscope.Receiver";
/// Type of `targets` arguments and exports: list(map(string)).
pub const TARGETS: Kind = Kind::List(&Kind::Map(&Kind::String));
/// Type of `forward_to` arguments.
pub const RECEIVERS: Kind = Kind::List(&Kind::Capsule(RECEIVER));

impl Schema {
    /// The schema of an empty body.
    pub const EMPTY: Schema = Schema {
        attributes: &[],
        blocks: &[],
    };
}

impl Attribute {
    /// Creates an attribute that must be set.
    pub const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self {
            name,
            kind,
            required: true,
            default: None,
            doc,
            no_effect: None,
        }
    }

    /// Creates an attribute that is null if it is omitted.
    pub const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self {
            name,
            kind,
            required: false,
            default: None,
            doc,
            no_effect: None,
        }
    }

    /// Creates an attribute with a default, written as an expression.
    pub const fn with_default(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            kind,
            required: false,
            default: Some(default),
            doc,
            no_effect: None,
        }
    }
}

impl Block {
    /// Creates a block without a label that may occur once.
    pub const fn optional(name: &'static str, schema: &'static Schema, doc: &'static str) -> Self {
        Self {
            name,
            labelled: false,
            many: false,
            required: false,
            implied: false,
            schema,
            defaults: &[],
            doc,
            no_effect: None,
        }
    }

    /// Creates a block without a label that may occur any number of times.
    pub const fn many(name: &'static str, schema: &'static Schema, doc: &'static str) -> Self {
        Self {
            many: true,
            ..Self::optional(name, schema, doc)
        }
    }

    /// Creates a block that exists with its defaults even when it is not written.
    pub const fn implied(name: &'static str, schema: &'static Schema, doc: &'static str) -> Self {
        Self {
            implied: true,
            ..Self::optional(name, schema, doc)
        }
    }
}

/// Defines two functions for items with a `name`: one counts the items of several lists, one joins the lists.
macro_rules! joining {
    ($join:ident, $count:ident, $item:ty, $none:expr) => {
        /// Returns the total number of items of several lists.
        pub const fn $count(lists: &[&[$item]]) -> usize {
            let (mut count, mut list) = (0, 0);
            while list < lists.len() {
                count += lists[list].len();
                list += 1;
            }
            count
        }

        /// Joins lists into one, sorted by name. Evaluated at compile time; `N` is the total number of items.
        pub const fn $join<const N: usize>(lists: &[&[$item]]) -> [$item; N] {
            let mut all = [$none; N];
            let (mut count, mut list) = (0, 0);
            while list < lists.len() {
                let mut index = 0;
                while index < lists[list].len() {
                    let item = lists[list][index];
                    let mut slot = count;
                    while slot > 0 && is_before(item.name, all[slot - 1].name) {
                        all[slot] = all[slot - 1];
                        slot -= 1;
                    }
                    all[slot] = item;
                    count += 1;
                    index += 1;
                }
                list += 1;
            }
            assert!(count == N, "N is the number of all items");
            all
        }
    };
}

joining!(
    join_attributes,
    count_attributes,
    Attribute,
    Attribute::optional("", Kind::Any, "")
);
joining!(
    join_blocks,
    count_blocks,
    Block,
    Block::optional("", &Schema::EMPTY, "")
);

/// `attributes!(OWN, http_client::ATTRIBUTES)`: joins lists of attributes into one sorted list.
#[doc(hidden)]
#[macro_export]
macro_rules! attributes {
    ($($list:expr),+ $(,)?) => {{
        const LISTS: &[&[$crate::schema::Attribute]] = &[$($list),+];
        const ALL: [$crate::schema::Attribute; $crate::schema::count_attributes(LISTS)] =
            $crate::schema::join_attributes(LISTS);
        &ALL
    }};
}
pub use attributes;

/// `blocks!(OWN, http_client::BLOCKS)`: joins lists of blocks into one sorted list.
#[doc(hidden)]
#[macro_export]
macro_rules! blocks {
    ($($list:expr),+ $(,)?) => {{
        const LISTS: &[&[$crate::schema::Block]] = &[$($list),+];
        const ALL: [$crate::schema::Block; $crate::schema::count_blocks(LISTS)] =
            $crate::schema::join_blocks(LISTS);
        &ALL
    }};
}
pub use blocks;

/// Compares names by bytes, for use at compile time.
const fn is_before(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut index = 0;
    while index < left.len() && index < right.len() {
        if left[index] != right[index] {
            return left[index] < right[index];
        }
        index += 1;
    }
    left.len() < right.len()
}

/// An evaluated body that fits its schema: every attribute of the schema is present with its declared type (defaults
/// filled in, null if not set). In a check, an attribute is absent while its value is not known. Durations are kept as
/// strings that are known to parse. [`crate::body`] converts the body to a typed value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments {
    /// Attribute values by name.
    pub attributes: Fields,
    /// Inner blocks in the order written; implied blocks that were not written come last.
    pub blocks: Vec<ArgumentBlock>,
}

/// An inner block of an [`Arguments`].
#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentBlock {
    /// The whole name, with its dots.
    pub name: Arc<str>,
    /// Label, if the block takes one.
    pub label: Option<Arc<str>>,
    /// The evaluated body of the block.
    pub body: Arguments,
}

impl Arguments {
    /// Returns the value of an attribute; null if it is not set.
    pub fn value(&self, name: &str) -> &Value {
        self.attributes.get(name).unwrap_or(&Value::Null)
    }
}
