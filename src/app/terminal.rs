//! Whether diagnostics are coloured.

use std::io::IsTerminal;

// The flag `--color`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Colour {
    /// On a terminal, unless `NO_COLOR` is set to something or `TERM` is `dumb`.
    #[default]
    Auto,
    Always,
    Never,
}

impl Colour {
    /// Whether to colour what goes to standard error.
    pub fn on_stderr(self) -> bool {
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

impl std::str::FromStr for Colour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(format!("`{text}` is not one of auto, always, never")),
        }
    }
}
