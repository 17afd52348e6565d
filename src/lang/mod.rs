//! The configuration language: text to tokens to tree to values, and back to text.
//!
//! Owns the syntax of Alloy (River): scanner, parser, printer, evaluator, diagnostics; and [`hcl`], a second syntax for
//! the same tree. Never fails as a whole (it returns what it understood and the diagnostics), does no I/O, knows
//! nothing of components beyond their [`schema`].

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
pub mod fields;
mod format;
pub mod hcl;
mod literal;
mod meaning;
mod parser;
pub mod printer;
mod scanner;
pub mod schema;
pub mod source;
pub mod stdlib;
mod text;
pub mod token;
pub mod translate;
pub mod value;

pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use format::{fmt, fmt_named};
pub use meaning::same;
pub use parser::{MAX_DEPTH, parse_expression};
pub use scanner::{is_identifier, tokens};
pub use source::{Source, Span};
pub use text::decode_text;

/// Parses a whole file. The name of the text says which syntax it is in: HCL when it ends in `.hcl`, Alloy's otherwise.
pub fn parse(source: &Source) -> (ast::File, Diagnostics) {
    if hcl::is_hcl(source.path()) {
        hcl::parse(source)
    } else {
        parser::parse(source)
    }
}
