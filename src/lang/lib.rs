//! The configuration language: from text to tokens to tree to values, and back to text.
//!
//! Contains the syntax of Alloy (River): scanner, parser, printer, evaluator, diagnostics; and [`hcl`], a second syntax
//! for the same tree. Parsing never fails as a whole: it returns the parts that it understood, and the diagnostics.
//! This layer does no I/O, and uses only the [`schema`] of components.

pub mod argument_error;
pub mod ast;
pub mod attribute;
pub mod body;
pub mod catalogue;
pub mod codes;
pub mod convert;
pub mod decode;
pub mod diagnostic;
pub mod eval;
pub(crate) mod fields;
mod format;
pub mod hcl;
pub mod literal;
mod meaning;
pub mod no_effect;
mod parser;
pub mod printer;
mod scanner;
pub mod schema;
pub(crate) mod source;
pub mod stdlib;
mod text;
pub mod token;
pub mod translate;
pub mod value;

pub use diagnostic::{Diagnostic, Diagnostics};
pub use format::{fmt, fmt_named};
pub use meaning::same;
pub use parser::parse_expression;
pub use scanner::is_identifier;
pub use scanner::tokens;
pub use source::Source;
pub use source::Span;
pub use text::decode_text;

/// Parses a whole file. Its name decides the syntax: HCL if it ends in `.hcl`, Alloy otherwise.
pub fn parse(source: &Source) -> (ast::File, Diagnostics) {
    if hcl::is_hcl(source.path()) {
        hcl::parse(source)
    } else {
        parser::parse(source)
    }
}
