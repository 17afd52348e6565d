//! The command line.

/// Parses the command line, runs the command, and turns its end into an exit code.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
