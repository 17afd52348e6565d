//! Typed bodies: a macro that declares a body in one table, and the conversion of a decoded body to the declared
//! struct.
//!
//! In: [`Arguments`] that fit their schema. Out: a struct, or all errors with their paths. From one table, the macro
//! [`arguments!`] generates struct, schema, defaults, documentation and conversion. The types of single attributes are
//! in [`crate::attribute`].

use std::sync::Arc;

use crate::argument_error::ArgumentErrors;
use crate::attribute::FromValue;
use crate::schema::{ArgumentBlock, Arguments, Schema};

/// A body as a typed value. [`arguments!`] implements this trait. If the fields of a struct do not correspond to the
/// attributes and blocks of the text, the struct implements the trait by hand.
pub trait FromBody: Sized {
    /// The schema of the body.
    const SCHEMA: &'static Schema;
    /// True when the block of this body takes a label.
    const IS_LABELLED: bool = false;

    /// Converts a body that fits [`FromBody::SCHEMA`]. If an attribute is absent from `body`, its value is not known
    /// yet, and the conversion fails.
    fn from_body(body: &Arguments) -> Result<Self, ArgumentErrors>;

    /// Converts a block with this body.
    fn from_block(block: &ArgumentBlock) -> Result<Self, ArgumentErrors> {
        Self::from_body(&block.body)
    }
}

/// A block that has a label, with its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Labelled<T> {
    /// The label as written, without quotes.
    pub label: Arc<str>,
    /// The typed body of the block.
    pub body: T,
}

impl<T: FromBody> FromBody for Labelled<T> {
    const SCHEMA: &'static Schema = T::SCHEMA;
    const IS_LABELLED: bool = true;

    fn from_body(body: &Arguments) -> Result<Self, ArgumentErrors> {
        T::from_body(body).map(|body| Self {
            label: Arc::from(""),
            body,
        })
    }

    fn from_block(block: &ArgumentBlock) -> Result<Self, ArgumentErrors> {
        T::from_body(&block.body).map(|body| Self {
            label: block.label.clone().unwrap_or_default(),
            body,
        })
    }
}

/// A shared body. `PartialEq` compares its content, not its address.
impl<T: FromBody> FromBody for Arc<T> {
    const SCHEMA: &'static Schema = T::SCHEMA;

    fn from_body(body: &Arguments) -> Result<Self, ArgumentErrors> {
        T::from_body(body).map(Self::new)
    }
}

/// All blocks of a body that have the same name, as one typed value. The type determines how many blocks are allowed. A
/// body type stands for one block: if the text does not contain the block, the block exists with its defaults. `Option`
/// stands for an optional block, and `Vec` for any number of blocks.
pub trait FromBlocks: Sized {
    /// The schema of each block.
    const BODY: &'static Schema;
    /// True if each block takes a label.
    const IS_LABELLED: bool;
    /// True if several blocks are allowed.
    const IS_MANY: bool = false;
    /// True if the block exists even when it is not written.
    const IS_IMPLIED: bool = false;

    /// Converts the blocks of a body that are called `name`.
    fn from_blocks(name: &str, blocks: &[&ArgumentBlock]) -> Result<Self, ArgumentErrors>;
}

impl<T: FromBody> FromBlocks for T {
    const BODY: &'static Schema = T::SCHEMA;
    const IS_LABELLED: bool = T::IS_LABELLED;
    const IS_IMPLIED: bool = true;

    fn from_blocks(name: &str, blocks: &[&ArgumentBlock]) -> Result<Self, ArgumentErrors> {
        let block = blocks.first().ok_or_else(ArgumentErrors::default)?;
        T::from_block(block).map_err(|errors| errors.in_body(name))
    }
}

impl<T: FromBody> FromBlocks for Option<T> {
    const BODY: &'static Schema = T::SCHEMA;
    const IS_LABELLED: bool = T::IS_LABELLED;

    fn from_blocks(name: &str, blocks: &[&ArgumentBlock]) -> Result<Self, ArgumentErrors> {
        let first = blocks.first().map(|block| T::from_block(block)).transpose();
        first.map_err(|errors| errors.in_body(name))
    }
}

impl<T: FromBody> FromBlocks for Vec<T> {
    const BODY: &'static Schema = T::SCHEMA;
    const IS_LABELLED: bool = T::IS_LABELLED;
    const IS_MANY: bool = true;

    fn from_blocks(name: &str, blocks: &[&ArgumentBlock]) -> Result<Self, ArgumentErrors> {
        let mut all = Vec::with_capacity(blocks.len());
        let mut all_errors = ArgumentErrors::default();
        for (index, block) in blocks.iter().enumerate() {
            match T::from_block(block) {
                Ok(read) => all.push(read),
                Err(errors) => all_errors.0.extend(errors.in_body(&format!("{name}[{index}]")).0),
            }
        }
        if all.len() == blocks.len() {
            Ok(all)
        } else {
            Err(all_errors)
        }
    }
}

/// Converts the parts of a body and collects all errors. Used by [`arguments!`].
pub struct Reader<'a> {
    body: &'a Arguments,
    errors: ArgumentErrors,
}

impl<'a> Reader<'a> {
    /// Creates a reader of `body`, which fits its schema.
    pub fn new(body: &'a Arguments) -> Self {
        Self {
            body,
            errors: ArgumentErrors::default(),
        }
    }

    /// Converts the attribute `name`; `None` if it is invalid or not known yet.
    pub fn attribute<T: FromValue>(&mut self, name: &str) -> Option<T> {
        let value = self.body.attributes.get(name)?;
        let read = T::from_value(name, value).map_err(|error| error.in_body(name).into());
        self.keep(read)
    }

    /// Converts the blocks called `name`; `None` if a value in them is invalid or not known yet.
    pub fn blocks<T: FromBlocks>(&mut self, name: &str) -> Option<T> {
        let blocks: Vec<&ArgumentBlock> = self.body.blocks.iter().filter(|block| &*block.name == name).collect();
        let read = T::from_blocks(name, &blocks);
        self.keep(read)
    }

    /// Converts attributes and blocks that several bodies share.
    pub fn shared<T: FromBody>(&mut self) -> Option<T> {
        let read = T::from_body(self.body);
        self.keep(read)
    }

    /// Returns the finished body if the whole conversion succeeded, otherwise the errors.
    pub fn finish<T>(self, body: Option<T>) -> Result<T, ArgumentErrors> {
        body.filter(|_| self.errors.0.is_empty()).ok_or(self.errors)
    }

    fn keep<T>(&mut self, read: Result<T, ArgumentErrors>) -> Option<T> {
        read.map_err(|errors| self.errors.0.extend(errors.0)).ok()
    }
}

/// Declares a body in one table: a struct, its schema with defaults and documentation, and the conversion.
///
/// ```text
/// arguments! {
///     /// Description of the struct.
///     pub(crate) struct ExampleArguments {
///         /// The sentence for the reference page. This attribute has no default, so it is required.
///         files: Vec<Arc<str>>,
///         /// This attribute has a default, so it is optional.
///         interval: Interval = "5m",
///         /// An `Option` is optional too. `as` sets a name that is not a Rust identifier.
///         kind as "type": Option<Arc<str>>,
///         /// `no_effect` gives the reason why the program ignores the attribute.
///         #[no_effect = "files are never cached"]
///         cache_size: u64 = 64,
///     }
///     blocks {
///         /// An `Option` is an optional block, a `Vec` any number of blocks; any other block always exists.
///         memory as "profile.memory": Profile { path = "/debug/pprof/allocs" },
///     }
///     shared { client: HttpClientArguments }
///     check ExampleArguments::check;
/// }
/// ```
///
/// A default is a literal of the configuration language that is also a Rust literal. `check` names a function that
/// takes the struct and validates combinations of attributes. A configuration that sets an attribute or a block with
/// `no_effect` causes a warning (see [`crate::no_effect`]). If ignoring a value would change the results, `check`
/// refuses the value instead.
#[macro_export]
macro_rules! arguments {
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $name:ident {
            $( $(#[doc = $doc:literal])+ $(#[no_effect = $no_effect:literal])?
                $field:ident $(as $key:literal)? : $type:ty $(= $default:tt)? ),* $(,)?
        }
        $(blocks {
            $( $(#[doc = $block_doc:literal])+ $(#[no_effect = $block_no_effect:literal])?
                $block:ident $(as $block_key:literal)? : $block_type:ty
                $({ $( $override:ident = $value:tt ),* $(,)? })? ),* $(,)?
        })?
        $(shared { $( $shared:ident : $shared_type:ty ),* $(,)? })?
        $(check $check:path;)?
    ) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $( $(#[doc = $doc])+ $vis $field: $type, )*
            $($( $(#[doc = $block_doc])+ $vis $block: $block_type, )*)?
            $($( $vis $shared: $shared_type, )*)?
        }

        impl $crate::body::FromBody for $name {
            const SCHEMA: &'static $crate::schema::Schema = {
                const OWN: &[$crate::schema::Attribute] = &[ $( $crate::schema::Attribute {
                    name: $crate::body::key!($field $($key)?),
                    kind: <$type as $crate::attribute::FromValue>::KIND,
                    required: $crate::body::is_required!($type $(, $default)?),
                    default: $crate::body::default!($($default)?),
                    doc: concat!($($doc),+).trim_ascii_start(),
                    no_effect: $crate::body::reason!($($no_effect)?),
                } ),* ];
                const OWN_BLOCKS: &[$crate::schema::Block] = &[ $($( $crate::schema::Block {
                    name: $crate::body::key!($block $($block_key)?),
                    labelled: <$block_type as $crate::body::FromBlocks>::IS_LABELLED,
                    many: <$block_type as $crate::body::FromBlocks>::IS_MANY,
                    required: false,
                    implied: <$block_type as $crate::body::FromBlocks>::IS_IMPLIED,
                    schema: <$block_type as $crate::body::FromBlocks>::BODY,
                    defaults: &[ $($( (stringify!($override), stringify!($value)) ),*)? ],
                    doc: concat!($($block_doc),+).trim_ascii_start(),
                    no_effect: $crate::body::reason!($($block_no_effect)?),
                } ),*)? ];
                &$crate::schema::Schema {
                    attributes: $crate::schema::attributes!(
                        OWN $($(, <$shared_type as $crate::body::FromBody>::SCHEMA.attributes)*)?
                    ),
                    blocks: $crate::schema::blocks!(
                        OWN_BLOCKS $($(, <$shared_type as $crate::body::FromBody>::SCHEMA.blocks)*)?
                    ),
                }
            };

            fn from_body(
                body: &$crate::schema::Arguments,
            ) -> Result<Self, $crate::argument_error::ArgumentErrors> {
                #[allow(unused_mut, reason = "a body may be empty")]
                let mut reader = $crate::body::Reader::new(body);
                $( let $field = reader.attribute::<$type>($crate::body::key!($field $($key)?)); )*
                $($( let $block = reader.blocks::<$block_type>($crate::body::key!($block $($block_key)?)); )*)?
                $($( let $shared = reader.shared::<$shared_type>(); )*)?
                let arguments = || Some(Self {
                    $( $field: $field?, )*
                    $($( $block: $block?, )*)?
                    $($( $shared: $shared?, )*)?
                });
                let arguments = reader.finish(arguments())?;
                $( $check(&arguments)?; )?
                Ok(arguments)
            }
        }
    };
}
pub use arguments;

/// Evaluates to the name of a field in the configuration.
#[doc(hidden)]
#[macro_export]
macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:literal) => {
        $key
    };
}
pub use key;

/// Evaluates to true if an attribute is required: it has no default, and its type is not optional.
#[doc(hidden)]
#[macro_export]
macro_rules! is_required {
    ($type:ty) => {
        !<$type as $crate::attribute::FromValue>::IS_OPTIONAL
    };
    ($type:ty, $default:tt) => {
        false
    };
}
pub use is_required;

/// Evaluates to a default as an expression of the configuration language.
#[doc(hidden)]
#[macro_export]
macro_rules! default {
    () => {
        None
    };
    ($default:tt) => {
        Some(stringify!($default))
    };
}
pub use default;

/// Evaluates to the reason why an attribute or a block has no effect, if there is one.
#[doc(hidden)]
#[macro_export]
macro_rules! reason {
    () => {
        None
    };
    ($reason:literal) => {
        Some($reason)
    };
}
pub use reason;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::argument_error::ArgumentError;
    use crate::ast::{Expression, Statement};
    use crate::attribute::{Interval, choices};
    use crate::convert::convert;
    use crate::decode::{Resolve, decode};
    use crate::diagnostic::Diagnostic;
    use crate::eval::{NoScope, evaluate};
    use crate::schema::Kind;
    use crate::value::Value;
    use crate::{Source, parse};

    choices! {
        /// Kind of the objects in the example.
        enum Role {
            Pod = "pod",
            Node = "node",
        }
    }

    arguments! {
        /// Everything that a table can declare.
        struct Example {
            /// Names to look up,
            /// one at least.
            names: Vec<Arc<str>>,
            /// Time between two lookups.
            interval: Interval = "5m",
            /// The kind of objects to find.
            kind as "type": Role = "pod",
            /// Text that may be omitted.
            note: Option<Arc<str>>,
        }
        blocks {
            /// A block that always exists.
            inner as "inner.one": Inner { size = 7 },
            /// Any number of labelled blocks.
            more: Vec<Labelled<Inner>>,
        }
        shared { other: Other }
        check Example::check;
    }

    arguments! {
        /// The body of a block of the example.
        struct Inner {
            /// A number with a default.
            size: i64 = 1,
        }
    }

    arguments! {
        /// Attributes that several bodies have.
        struct Other {
            /// A flag that has a default.
            enabled: bool = true,
        }
    }

    impl Example {
        fn check(&self) -> Result<(), ArgumentError> {
            if self.names.len() < 2 && self.other.enabled {
                return Err(ArgumentError::new("names", "with enabled two names are needed"));
            }
            Ok(())
        }
    }

    /// Evaluates literals; names have no value yet.
    struct Partly;

    impl Resolve for Partly {
        fn resolve(&self, source: &Source, expression: &Expression, kind: &Kind) -> Result<Option<Value>, Diagnostic> {
            let Ok(value) = evaluate(source, expression, &NoScope) else {
                return Ok(None);
            };
            Ok(convert(&value, kind).ok())
        }
    }

    fn read(text: &str) -> Result<Example, String> {
        let source = Source::new("example", format!("example {{\n{text}\n}}"));
        let (file, _) = parse(&source);
        let Some(Statement::Block(block)) = file.body.first() else {
            panic!("no block");
        };
        let decoded = decode(&source, block.header(), &block.body, Example::SCHEMA, &Partly);
        assert!(!decoded.diagnostics.has_errors(), "{}", decoded.diagnostics.render());
        Example::from_body(&decoded.arguments).map_err(|ArgumentErrors(errors)| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            errors.join("; ")
        })
    }

    #[test]
    fn a_table_is_a_sorted_schema_with_defaults_and_documentation() {
        let attributes: Vec<String> = Example::SCHEMA
            .attributes
            .iter()
            .map(|attribute| {
                format!(
                    "{} {:?} {} {:?} {}",
                    attribute.name, attribute.kind, attribute.required, attribute.default, attribute.doc
                )
            })
            .collect();
        assert_eq!(
            attributes,
            [
                "enabled Bool false Some(\"true\") A flag that has a default.",
                "interval Duration false Some(\"\\\"5m\\\"\") Time between two lookups.",
                "names List(String) true None Names to look up, one at least.",
                "note String false None Text that may be omitted.",
                "type String false Some(\"\\\"pod\\\"\") The kind of objects to find.",
            ]
        );
        let [inner, repeated] = Example::SCHEMA.blocks else {
            panic!("two blocks");
        };
        assert!(inner.implied && !inner.many && repeated.many && repeated.labelled && !repeated.implied);
        assert_eq!((inner.name, inner.defaults), ("inner.one", &[("size", "7")][..]));
    }

    #[test]
    fn a_body_becomes_a_struct() {
        let example = read("names = [\"a\", \"b\"]\ntype = \"node\"\nmore \"x\" { size = 3 }").unwrap();
        assert_eq!((example.kind, example.inner.size, example.note), (Role::Node, 7, None));
        assert_eq!((&*example.more[0].label, example.more[0].body.size), ("x", 3));
        assert_eq!(example.interval.get(), std::time::Duration::from_mins(5));
    }

    #[test]
    fn every_mistake_is_told_with_its_path_and_the_check_comes_last() {
        assert_eq!(
            read("names = []\ninterval = \"0s\"\ntype = \"x\"").unwrap_err(),
            "interval: interval must be greater than 0; type: unknown type \"x\": must be one of pod, node"
        );
        assert_eq!(
            read("names = [\"a\"]").unwrap_err(),
            "names: with enabled two names are needed"
        );
    }

    #[test]
    fn what_is_not_known_yet_is_not_wrong_and_the_rest_is_judged() {
        assert_eq!(read("names = other.export").unwrap_err(), "");
        assert_eq!(
            read("names = other.export\ntype = \"x\"").unwrap_err(),
            "type: unknown type \"x\": must be one of pod, node"
        );
    }
}
