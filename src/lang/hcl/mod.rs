//! The second front end: HCL text to the same tree that Alloy syntax gives.
//!
//! `hcl-edit` parses; [`lower`] maps its tree to ours with the places of the HCL text, so that every later message
//! points there; [`tokens`] finds comments and feeds the formatter in [`format`], which lays a text out as `terraform
//! fmt` does. What HCL has and Alloy has not (conditionals, `for`, splats, directives in templates) is refused with its
//! place. How blocks are spelled is in `docs/reference/hcl.md`.

mod format;
mod lower;
mod parse;
mod spelling;
pub(crate) mod tokens;

pub(crate) use format::fmt;
pub(crate) use parse::parse;
pub(crate) use spelling::is_hcl;
pub(crate) use spelling::{POWER, Place};
