//! The front end for HCL: parses HCL text to the same tree as Alloy syntax.
//!
//! `hcl-edit` parses; [`lower`] converts the parsed tree and keeps the positions of the HCL text, so that all messages
//! point into that text. [`tokens`] finds comments and feeds the formatter in [`format`], which produces the layout of
//! `terraform fmt`. HCL constructs that Alloy does not have (conditionals, `for`, splats, directives in templates) are
//! reported as errors at their position. `docs/reference/hcl.md` describes the spelling of blocks.

mod format;
mod lower;
mod parse;
mod spelling;
pub(crate) mod tokens;

pub(crate) use format::fmt;
pub(crate) use parse::parse;
pub use spelling::is_hcl;
pub(crate) use spelling::{BlockContext, POWER_FUNCTION};
