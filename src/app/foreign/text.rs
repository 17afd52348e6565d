//! Writes Alloy text from blocks and attributes, without layout. The formatter adds the layout afterwards.

use std::fmt::Write as _;

use serde_json::Value;

use alluvium_components::common::discovery::meta_labels::label_name;
pub(super) use alluvium_lang::literal::quote;

/// Builds a text from blocks and attributes.
#[derive(Debug, Default)]
pub(super) struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    /// Opens a block. An empty line separates blocks at the top level.
    pub(super) fn open(&mut self, name: &str, label: Option<&str>) {
        if self.depth == 0 && !self.text.is_empty() {
            self.text.push('\n');
        }
        let label = label.map_or(String::new(), |label| format!(" {}", quote(label)));
        let _ = writeln!(self.text, "{name}{label} {{");
        self.depth += 1;
    }

    /// Closes the innermost open block.
    pub(super) fn close(&mut self) {
        self.text.push_str("}\n");
        self.depth = self.depth.saturating_sub(1);
    }

    /// Writes an attribute with an expression as its value.
    pub(super) fn attribute(&mut self, name: &str, expression: &str) {
        let _ = writeln!(self.text, "{name} = {expression}");
    }

    /// Returns the text that was written.
    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// Formats a YAML value as an Alloy expression. An empty value becomes `null`.
pub(super) fn expression(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Array(items) => format!("[{}]", items.iter().map(expression).collect::<Vec<_>>().join(", ")),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("{} = {}", quote(name), expression(value));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Turns a text into the label of a block: letters, digits and `_`, without a leading digit, and not a keyword of the
/// language.
pub(super) fn identifier(text: &str) -> String {
    let mut name = label_name(text);
    let is_word = matches!(name.as_str(), "true" | "false" | "null");
    if name.is_empty() || is_word || name.starts_with(|letter: char| letter.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name
}
