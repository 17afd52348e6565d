//! Output of diagnostics: text with excerpts for people, JSON for editors.

use std::io::Write as _;

use clap::Args;

use crate::app::terminal::Colour;
use alluvium_lang::Diagnostics;

/// Flags of commands that show diagnostics.
#[derive(Debug, Args)]
pub struct DiagnosticArgs {
    /// Format of diagnostics: text with excerpts, or one JSON array for editors.
    #[arg(long, default_value = "text", value_parser = ["text", "json"])]
    pub format: String,
    /// Colour of the text: `auto` uses it on a terminal, unless NO_COLOR is set.
    #[arg(long, default_value = "auto", value_name = "WHEN", value_parser = ["auto", "always", "never"])]
    pub color: String,
}

impl DiagnosticArgs {
    /// Returns true if the format is JSON.
    pub fn json(&self) -> bool {
        self.format == "json"
    }

    /// Formats the diagnostics as the flags request.
    pub fn show(&self, diagnostics: &Diagnostics) -> String {
        if self.json() {
            return format!("{}\n", diagnostics.to_json());
        }
        self.color.parse::<Colour>().unwrap_or_default().render(diagnostics)
    }

    /// Writes the diagnostics to standard error; a closed pipe does not fail the command.
    pub fn print(&self, diagnostics: &Diagnostics) {
        let _ = std::io::stderr().lock().write_all(self.show(diagnostics).as_bytes());
    }
}
