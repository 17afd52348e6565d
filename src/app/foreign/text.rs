//! Writes Alloy text: blocks and attributes, without care for layout, which the formatter gives.

use std::fmt::Write as _;

use serde_json::Value;

use crate::components::common::meta_labels::label_name;
pub(super) use crate::lang::literal::quote;

/// A text that grows by blocks and attributes.
#[derive(Debug, Default)]
pub(super) struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    /// Begins a block; blocks at the top stand apart by an empty line.
    pub(super) fn open(&mut self, name: &str, label: Option<&str>) {
        if self.depth == 0 && !self.text.is_empty() {
            self.text.push('\n');
        }
        let label = label.map_or(String::new(), |label| format!(" {}", quote(label)));
        let _ = writeln!(self.text, "{name}{label} {{");
        self.depth += 1;
    }

    /// Ends the block that was begun last.
    pub(super) fn close(&mut self) {
        self.text.push_str("}\n");
        self.depth = self.depth.saturating_sub(1);
    }

    /// Writes an attribute, whose value is an expression.
    pub(super) fn attribute(&mut self, name: &str, expression: &str) {
        let _ = writeln!(self.text, "{name} = {expression}");
    }

    /// The text as it has grown.
    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// A value as an expression; `null` for what has no counterpart.
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

/// The text as a label of a block: letters, digits and `_`, no digit first.
pub(super) fn identifier(text: &str) -> String {
    let mut name = label_name(text);
    if name.is_empty() || name.starts_with(|letter: char| letter.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name
}
