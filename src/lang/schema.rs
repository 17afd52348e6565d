//! What a block may hold: names, types and defaults of its attributes and inner blocks, as constant data.
//!
//! A component declares its arguments with these types; the language checks a body against them with positions, fills in
//! defaults, and hands the component an [`Arguments`]; the reference pages are written from the same data.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::lang::value::{Fields, Number, Value};

/// The body of a block: its attributes and inner blocks, each list sorted by name.
#[derive(Debug)]
pub struct Schema {
    /// Attributes, `name = value`.
    pub attributes: &'static [Attribute],
    /// Inner blocks, `name { ... }`; a dotted name (`profile.memory`) is one name.
    pub blocks: &'static [Block],
}

/// One attribute.
#[derive(Debug, Clone, Copy)]
pub struct Attribute {
    /// Name as written in the configuration.
    pub name: &'static str,
    /// Type of the value; convertible values are converted.
    pub kind: Kind,
    /// True when the attribute must be given.
    pub required: bool,
    /// Default as an expression of the language (`"15s"`, `true`, `[]`); `None` means null ("not set").
    pub default: Option<&'static str>,
    /// One sentence for the reference page.
    pub doc: &'static str,
}

/// One kind of inner block.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// Name as written; may be dotted.
    pub name: &'static str,
    /// True when the block takes a label.
    pub labelled: bool,
    /// True when the block may stand more than once.
    pub many: bool,
    /// True when at least one must be given.
    pub required: bool,
    /// True when the block is there with its defaults even when it is not written (Alloy's non-pointer blocks).
    pub implied: bool,
    /// Its body.
    pub schema: &'static Schema,
    /// Defaults that differ from those of `schema` for this block: attribute name and expression.
    pub defaults: &'static [(&'static str, &'static str)],
    /// One sentence for the reference page.
    pub doc: &'static str,
}

/// Types of attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` / `false`.
    Bool,
    /// Signed whole number.
    Int,
    /// Unsigned whole number.
    Uint,
    /// Any number.
    Float,
    /// String.
    String,
    /// String that is never shown; plain strings convert.
    Secret,
    /// String or secret.
    OptionalSecret,
    /// Go duration in a string: `"1h30m"`.
    Duration,
    /// List of one type.
    List(&'static Kind),
    /// Map from strings to one type.
    Map(&'static Kind),
    /// Anything.
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
    /// A body that holds nothing.
    pub const EMPTY: Schema = Schema {
        attributes: &[],
        blocks: &[],
    };
}

impl Attribute {
    /// An attribute that must be given.
    pub const fn required(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self {
            name,
            kind,
            required: true,
            default: None,
            doc,
        }
    }

    /// An attribute that is null when it is not given.
    pub const fn optional(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self {
            name,
            kind,
            required: false,
            default: None,
            doc,
        }
    }

    /// An attribute with a default, written as an expression.
    pub const fn with_default(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Self {
        Self {
            name,
            kind,
            required: false,
            default: Some(default),
            doc,
        }
    }
}

impl Block {
    /// A block without a label that may stand once.
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
        }
    }

    /// A block without a label that may stand any number of times.
    pub const fn many(name: &'static str, schema: &'static Schema, doc: &'static str) -> Self {
        Self {
            many: true,
            ..Self::optional(name, schema, doc)
        }
    }

    /// A block that is there with its defaults even when it is not written.
    pub const fn implied(name: &'static str, schema: &'static Schema, doc: &'static str) -> Self {
        Self {
            implied: true,
            ..Self::optional(name, schema, doc)
        }
    }
}

/// Writes a function that joins lists of items with a `name`, sorted by it.
macro_rules! joining {
    ($join:ident, $count:ident, $item:ty, $none:expr) => {
        /// How many items several lists hold.
        pub const fn $count(lists: &[&[$item]]) -> usize {
            let (mut count, mut list) = (0, 0);
            while list < lists.len() {
                count += lists[list].len();
                list += 1;
            }
            count
        }

        /// Lists as one, sorted by name. Runs when the program is compiled; `N` is the number of all items.
        pub const fn $join<const N: usize>(lists: &[&[$item]]) -> [$item; N] {
            let mut all = [$none; N];
            let (mut count, mut list) = (0, 0);
            while list < lists.len() {
                let mut index = 0;
                while index < lists[list].len() {
                    let item = lists[list][index];
                    let mut at = count;
                    while at > 0 && is_before(item.name, all[at - 1].name) {
                        all[at] = all[at - 1];
                        at -= 1;
                    }
                    all[at] = item;
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

/// `attributes!(OWN, http_client::ATTRIBUTES)`: lists of attributes as one sorted list.
macro_rules! attributes {
    ($($list:expr),+ $(,)?) => {{
        const LISTS: &[&[$crate::lang::schema::Attribute]] = &[$($list),+];
        const ALL: [$crate::lang::schema::Attribute; $crate::lang::schema::count_attributes(LISTS)] =
            $crate::lang::schema::join_attributes(LISTS);
        &ALL
    }};
}
pub(crate) use attributes;

/// `blocks!(OWN, http_client::BLOCKS)`: lists of blocks as one sorted list.
macro_rules! blocks {
    ($($list:expr),+ $(,)?) => {{
        const LISTS: &[&[$crate::lang::schema::Block]] = &[$($list),+];
        const ALL: [$crate::lang::schema::Block; $crate::lang::schema::count_blocks(LISTS)] =
            $crate::lang::schema::join_blocks(LISTS);
        &ALL
    }};
}
pub(crate) use blocks;

/// Byte order of names, for use while compiling.
const fn is_before(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut at = 0;
    while at < left.len() && at < right.len() {
        if left[at] != right[at] {
            return left[at] < right[at];
        }
        at += 1;
    }
    left.len() < right.len()
}

/// An evaluated body that fits its schema: every attribute of the schema is present (defaults filled in, null when not set),
/// of its declared type. Durations are kept as strings that parse. The getters therefore answer with the type's zero value
/// only for names that the schema does not have, which a component's own table test catches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments {
    /// Attribute values by name.
    pub attributes: Fields,
    /// Inner blocks in the order written; implied blocks that were not written come last.
    pub blocks: Vec<ArgumentBlock>,
}

/// One inner block of an [`Arguments`].
#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentBlock {
    /// Full dotted name.
    pub name: Arc<str>,
    /// Label, if the block takes one.
    pub label: Option<Arc<str>>,
    /// Its body.
    pub body: Arguments,
}

impl Arguments {
    /// The value of an attribute; null when it is not set.
    pub fn value(&self, name: &str) -> &Value {
        self.attributes.get(name).unwrap_or(&Value::Null)
    }

    /// True when the attribute has a value other than null.
    pub fn is_set(&self, name: &str) -> bool {
        !matches!(self.value(name), Value::Null)
    }

    /// A bool attribute.
    pub fn bool(&self, name: &str) -> bool {
        matches!(self.value(name), Value::Bool(true))
    }

    /// A whole number; 0 when not set.
    pub fn int(&self, name: &str) -> i64 {
        match self.value(name) {
            Value::Number(Number::Int(value)) => *value,
            Value::Number(Number::Uint(value)) => i64::try_from(*value).unwrap_or(i64::MAX),
            Value::Number(Number::Float(value)) => *value as i64,
            _ => 0,
        }
    }

    /// A number; 0 when not set.
    pub fn float(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Number(number) => number.as_f64(),
            _ => 0.0,
        }
    }

    /// A string or the text of a secret; empty when not set.
    pub fn string(&self, name: &str) -> Arc<str> {
        text(self.value(name)).unwrap_or_default()
    }

    /// A string or the text of a secret; `None` when not set.
    pub fn optional_string(&self, name: &str) -> Option<Arc<str>> {
        text(self.value(name))
    }

    /// A duration; zero when not set.
    pub fn duration(&self, name: &str) -> Duration {
        text(self.value(name))
            .and_then(|text| crate::base::duration::parse(&text).ok())
            .unwrap_or_default()
    }

    /// A list of strings.
    pub fn strings(&self, name: &str) -> Vec<Arc<str>> {
        match self.value(name) {
            Value::Array(items) => items.iter().filter_map(text).collect(),
            _ => Vec::new(),
        }
    }

    /// A map of strings.
    pub fn string_map(&self, name: &str) -> BTreeMap<Arc<str>, Arc<str>> {
        string_map(self.value(name))
    }

    /// Targets: a list of maps of strings.
    pub fn targets(&self, name: &str) -> Vec<BTreeMap<Arc<str>, Arc<str>>> {
        match self.value(name) {
            Value::Array(items) => items.iter().map(string_map).collect(),
            _ => Vec::new(),
        }
    }

    /// The capsules of a list that wrap a `T`.
    pub fn capsules<T: Clone + Send + Sync + 'static>(&self, name: &str) -> Vec<T> {
        match self.value(name) {
            Value::Array(items) => items
                .iter()
                .filter_map(|item| match item {
                    Value::Capsule(capsule) => capsule.downcast::<T>(),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// The inner blocks of one name, in order.
    pub fn blocks<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a ArgumentBlock> {
        self.blocks.iter().filter(move |block| block.name.as_ref() == name)
    }

    /// The body of the first inner block of one name.
    pub fn block(&self, name: &str) -> Option<&Arguments> {
        self.blocks
            .iter()
            .find(|block| block.name.as_ref() == name)
            .map(|block| &block.body)
    }
}

fn text(value: &Value) -> Option<Arc<str>> {
    match value {
        Value::String(text) | Value::Secret(text) => Some(text.clone()),
        _ => None,
    }
}

fn string_map(value: &Value) -> BTreeMap<Arc<str>, Arc<str>> {
    match value {
        Value::Object(fields) => fields
            .iter()
            .filter_map(|(key, value)| text(value).map(|value| (key.clone(), value)))
            .collect(),
        _ => BTreeMap::new(),
    }
}
