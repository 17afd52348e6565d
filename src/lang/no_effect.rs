//! Warnings about arguments that the program accepts but ignores.
//!
//! In: the body of a block as written, and its schema, which declares such arguments with a reason. Out: a warning for
//! each of them that the body sets. An argument that keeps its default causes no warning, because only the text counts.

use crate::ast::Statement;
use crate::codes;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::schema::Schema;
use crate::source::{Source, Span};

/// Returns a warning for each attribute and each inner block of `body` that has no effect according to `schema`.
/// Statements that do not belong to the schema are skipped, because decoding reports them.
pub fn ignored_arguments(source: &Source, body: &[Statement], schema: &Schema) -> Diagnostics {
    let mut warnings = Diagnostics::new();
    inspect(source, body, schema, "", &mut warnings);
    warnings
}

/// Inspects a body whose block has the path `outer`, which ends with a dot unless it is empty. The parser limits the
/// nesting of blocks, so the recursion is bounded.
fn inspect(source: &Source, body: &[Statement], schema: &Schema, outer: &str, warnings: &mut Diagnostics) {
    for statement in body {
        match statement {
            Statement::Attribute(attribute) => {
                let name = &*attribute.name.name;
                let definition = schema.attributes.iter().find(|other| other.name == name);
                if let Some(reason) = definition.and_then(|definition| definition.no_effect) {
                    let message = format!("argument `{outer}{name}` has no effect: {reason}");
                    warnings.push(warning(source, attribute.name.span, message));
                }
            }
            Statement::Block(block) => {
                let name = &*block.name.name;
                let Some(definition) = schema.blocks.iter().find(|other| other.name == name) else {
                    continue;
                };
                if let Some(reason) = definition.no_effect {
                    let message = format!("block `{outer}{name}` has no effect: {reason}");
                    warnings.push(warning(source, block.header(), message));
                } else {
                    let path = format!("{outer}{name}.");
                    inspect(source, &block.body, definition.schema, &path, warnings);
                }
            }
        }
    }
}

fn warning(source: &Source, span: Span, message: String) -> Diagnostic {
    Diagnostic::warning(codes::ARGUMENT_WITHOUT_EFFECT, source, span, message).hint("remove it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::{FromBody as _, arguments};
    use crate::parse;

    arguments! {
        /// A body with attributes and blocks that have no effect.
        struct Example {
            /// An attribute with an effect.
            size: i64 = 1,
            /// An attribute without an effect.
            #[no_effect = "files are never cached"]
            cache_size: i64 = 64,
            /// An attribute without an effect and with another name in the text.
            #[no_effect = "there is one kind"]
            kind as "type": Option<i64>,
        }
        blocks {
            /// A block with an effect.
            inner: Inner,
            /// A block without an effect.
            #[no_effect = "nothing is traced"]
            tracing: Vec<Inner>,
        }
    }

    arguments! {
        /// The body of a block of the example.
        struct Inner {
            /// An attribute with an effect.
            size: i64 = 1,
            /// An attribute without an effect.
            #[no_effect = "there is no limit"]
            limit: i64 = 0,
        }
    }

    /// Returns each warning about a body as `LINE:COLUMN MESSAGE`.
    fn warnings(body: &str) -> Vec<String> {
        let source = Source::new("main.alloy", body);
        let (file, diagnostics) = parse(&source);
        assert!(diagnostics.is_empty(), "{}", diagnostics.render());
        let found = ignored_arguments(&source, &file.body, Example::SCHEMA);
        assert!(!found.has_errors());
        found
            .iter()
            .map(|warning| {
                assert_eq!(warning.code.id, "W0007");
                let (line, column) = source.position(warning.span.start);
                format!("{line}:{column} {}", warning.message)
            })
            .collect()
    }

    #[test]
    fn a_warning_names_the_argument_its_reason_and_its_position() {
        assert_eq!(
            warnings("size = 2\n  cache_size = 64\ntype = null"),
            [
                "2:3 argument `cache_size` has no effect: files are never cached",
                "3:1 argument `type` has no effect: there is one kind",
            ]
        );
    }

    #[test]
    fn a_nested_block_causes_one_warning_however_much_it_contains() {
        assert_eq!(
            warnings("inner {\n\tlimit = 1\n}\ntracing {\n\tsize = 1\n\tlimit = 1\n}\ntracing { }"),
            [
                "2:2 argument `inner.limit` has no effect: there is no limit",
                "4:1 block `tracing` has no effect: nothing is traced",
                "8:1 block `tracing` has no effect: nothing is traced",
            ]
        );
    }

    #[test]
    fn defaults_and_unknown_names_cause_no_warning() {
        assert!(warnings("").is_empty());
        assert!(warnings("size = 2\ninner { }\nother = 1\nothers { limit = 1 }").is_empty());
    }
}
