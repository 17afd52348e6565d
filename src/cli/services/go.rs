//! Flags in the syntax of Go's `flag` package, which Alloy uses.

use std::time::Duration;

use clap::{Arg, ArgAction};

use crate::cli::common::flag_error::FlagError;

/// Extends [`Arg`] with a method that `#[arg(...)]` of clap's derive can call.
pub(super) trait GoFlag {
    /// Makes the flag a boolean with a default. The name alone means true, and a value needs `=`.
    fn go_bool(self, default: bool) -> Self;
}

impl GoFlag for Arg {
    fn go_bool(self, default: bool) -> Self {
        self.default_value(if default { "true" } else { "false" })
            .default_missing_value("true")
            .num_args(0..=1)
            .require_equals(true)
            .value_parser(go_bool)
            .action(ArgAction::Set)
    }
}

/// Parses a boolean as Go's flags do.
fn go_bool(text: &str) -> Result<bool, FlagError> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(FlagError::Boolean),
    }
}

/// Parses a duration such as `1h30m`.
pub(super) fn go_duration(text: &str) -> Result<Duration, FlagError> {
    Ok(alluvium_base::duration::parse(text)?)
}
