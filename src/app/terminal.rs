//! Colours of diagnostics on the terminal.

use std::io::IsTerminal;

use alluvium_lang::diagnostic::Diagnostics;

/// Value of the flag `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Coloured on a terminal, unless `NO_COLOR` is non-empty or `TERM` is `dumb`.
    #[default]
    Auto,
    Always,
    Never,
}

impl Colour {
    /// Formats diagnostics for standard error.
    pub(crate) fn render(self, diagnostics: &Diagnostics) -> String {
        if self.on_stderr() {
            diagnostics.render_coloured()
        } else {
            diagnostics.render()
        }
    }

    fn on_stderr(self) -> bool {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                set("NO_COLOR").is_none()
                    && set("TERM").is_none_or(|term| term != "dumb")
                    && std::io::stderr().is_terminal()
            }
        }
    }
}

/// The error of an unknown value of `--color`.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not one of auto, always, never")]
pub(crate) struct UnknownColour(String);

impl std::str::FromStr for Colour {
    type Err = UnknownColour;

    fn from_str(text: &str) -> Result<Self, UnknownColour> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(UnknownColour(text.to_owned())),
        }
    }
}
