//! Translates between the two syntaxes: Alloy text to HCL text and back, with the comments.
//!
//! Both syntaxes parse to the same tree, and each syntax has a printer. Statements keep their order, comments stay
//! before their statements or elements, and lists and objects on several lines stay on several lines. The result is
//! formatted by `fmt`, parsed again and compared: a result with another meaning is refused, never written.

mod alloy;
mod comments;
mod hcl;
#[cfg(test)]
mod tests;
mod writer;

use crate::ast::File;
use crate::codes;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::source::{Source, Span};
use crate::{format, hcl as front, meaning, parse};

/// Converts an Alloy configuration to HCL text.
pub fn to_hcl(path: &str, text: &str) -> Result<String, Diagnostics> {
    convert(path, text, crate::parser::parse, |file| {
        let output = hcl::write(file)?;
        front::fmt("out.hcl", &output).map(|text| ("out.hcl", text))
    })
}

/// Converts an HCL configuration to Alloy text.
pub fn to_alloy(path: &str, text: &str) -> Result<String, Diagnostics> {
    convert(path, text, front::parse, |file| {
        let output = alloy::write(file)?;
        format::fmt_named("out.alloy", &output).map(|text| ("out.alloy", text))
    })
}

fn convert(
    path: &str,
    text: &str,
    read: fn(&Source) -> (File, Diagnostics),
    write: impl Fn(&File) -> Result<(&'static str, String), Diagnostics>,
) -> Result<String, Diagnostics> {
    let source = Source::new(path, text);
    let (file, diagnostics) = read(&source);
    diagnostics.into_result(())?;
    let unfaithful = |detail: &str| {
        let message = format!("this configuration cannot be converted: {detail}");
        Diagnostics::from(Diagnostic::error(
            codes::HCL_WITHOUT_EQUAL,
            &source,
            Span::new(0, 0),
            message,
        ))
    };
    let (name, output) = match write(&file) {
        Ok(output) => output,
        Err(errors) if errors.iter().all(|diagnostic| diagnostic.source == source) => return Err(errors),
        Err(errors) => return Err(unfaithful(&errors.to_string())),
    };
    let (reparsed, diagnostics) = parse(&Source::new(name, output.as_str()));
    if diagnostics.has_errors() {
        return Err(unfaithful(&diagnostics.to_string()));
    }
    if !meaning::same(&file, &reparsed) {
        return Err(unfaithful("its meaning would change"));
    }
    Ok(output)
}
