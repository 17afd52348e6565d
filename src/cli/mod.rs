//! The command line: parses it, sets up logging, runs one command, and turns the result into an exit code.
//!
//! Exit codes: 0 is success. 1 means that the command failed; standard error has one clear line or the diagnostics. 2
//! means that the command line itself is wrong. Each command has its own file. Code that combines the layers below is
//! in `app`.

mod collectors;
mod common;
mod configuration;
pub mod readers;
pub mod sending;
mod services;
mod shell;
pub mod sql;
mod stored;

use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::app::fence::Fence;
use alluvium_base::descriptors::raise_limit;
use alluvium_base::file::keep_new_files_private;
use alluvium_telemetry::logs;

/// The command line of the program.
#[derive(Debug, Parser)]
#[command(
    name = "alluvium",
    version,
    about = "Continuous profiling: collector and store in one program",
    long_about = "Continuous profiling: a collector that reads Grafana Alloy configuration, and a store that speaks \
        Pyroscope's protocols, keeps profiles as Parquet in Delta tables and answers SQL.\n\n\
        Start with `alluvium demo`.",
    after_help = "Example:\n  alluvium demo --target localhost:9090",
    propagate_version = true
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub log: LogArgs,
}

/// Logging flags, which every command accepts.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Logging")]
pub struct LogArgs {
    /// Minimum severity of logged messages: debug, info, warn or error.
    #[arg(
        id = "log.level", long = "log.level", global = true, value_parser = clap::value_parser!(logs::Level),
        default_value = "info", env = "ALLUVIUM_LOG_LEVEL"
    )]
    pub level: logs::Level,
    /// Format of the log lines on standard error: logfmt or json.
    #[arg(
        id = "log.format", long = "log.format", global = true, value_parser = clap::value_parser!(logs::Format),
        default_value = "logfmt", env = "ALLUVIUM_LOG_FORMAT"
    )]
    pub format: logs::Format,
}

/// The commands. Each has its own file.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run server and collector in one process that profiles itself, and print the address of the web page.
    #[cfg(feature = "server")]
    Demo(services::demo::DemoArgs),
    /// Run the collector with a configuration file or folder.
    Run(Box<services::run::RunArgs>),
    /// Run the server: accept, store and show profiles.
    #[cfg(feature = "server")]
    Serve(Box<services::serve::ServeArgs>),
    /// Check, measure, repair and maintain a data folder.
    #[cfg(feature = "server")]
    Store(stored::store::StoreArgs),
    /// Create, list and revoke the tokens of a server.
    #[cfg(feature = "server")]
    Token(services::token::TokenArgs),
    /// Query stored profiles in SQL; without a statement, interactively.
    Sql(sql::SqlArgs),
    /// Print the functions with the largest values, as `go tool pprof -top` does.
    Top(readers::top::TopArgs),
    /// Print each function between its callers and callees, as `go tool pprof -tree` does.
    Tree(readers::tree::TreeArgs),
    /// Print the callers and callees of some functions, as `go tool pprof -peek` does.
    Peek(readers::peek::PeekArgs),
    /// Print the source of some functions with the value of each line, as `go tool pprof -list` does.
    List(readers::list::ListArgs),
    /// Show a flame graph and a table in the terminal: zoom, search, live refresh.
    Tui(Box<readers::tui::TuiArgs>),
    /// Compare two time ranges, two selections or two files.
    Diff(Box<readers::compare::DiffArgs>),
    /// Merge stored profiles, or files of any format, into one pprof profile.
    Profile(readers::profile::ProfileArgs),
    /// List the label sets of stored profiles.
    Series(stored::series::SeriesArgs),
    /// List label names, or the values of one label.
    Labels(stored::labels::LabelsArgs),
    /// Merge CPU profiles for profile-guided optimization by Go's compiler.
    Pgo(readers::pgo::PgoArgs),
    /// Draw a flame graph of stored profiles, or of files, as an SVG file.
    Flamegraph(readers::flamegraph::FlamegraphArgs),
    /// Print the stacks of all goroutines of a target that a collector scrapes.
    Goroutines(collectors::goroutines::GoroutinesArgs),
    /// Profile a command, a process or the whole machine into a file.
    Record(sending::record::RecordArgs),
    /// Send profile files, or folders of them, to a server.
    #[command(visible_alias = "import")]
    Upload(sending::upload::UploadArgs),
    /// Check configuration files without running them.
    Validate(configuration::validate::ValidateArgs),
    /// Print a configuration file in canonical form.
    #[command(alias = "format")]
    Fmt(configuration::fmt::FmtArgs),
    /// Convert a configuration from Alloy syntax to HCL or back.
    Convert(configuration::convert::ConvertArgs),
    /// Print a completion script for a shell.
    Completions(shell::completions::CompletionsArgs),
    /// Write the manual pages to a folder.
    Man(shell::man::ManArgs),
}

impl Command {
    /// Returns true for commands that store profiles or configurations on disk, which other users must not read.
    fn keeps_data(&self) -> bool {
        match self {
            #[cfg(feature = "server")]
            Self::Demo(_) | Self::Serve(_) | Self::Store(_) | Self::Token(_) => true,
            Self::Run(_) => true,
            _ => false,
        }
    }

    /// Drops the privileges that the command does not need. The process must still have a single thread, because only
    /// this thread, and the threads that it starts later, lose the privileges.
    fn give_up_rights(&self) {
        let (fence, rights, data) = match self {
            Self::Run(args) => (Fence::Collector, args.rights, Some(args.storage_path.as_path())),
            #[cfg(feature = "server")]
            Self::Demo(args) => (Fence::Collector, args.rights, Some(args.data.as_path())),
            #[cfg(feature = "server")]
            Self::Serve(args) => (Fence::Server, args.rights, args.known_data()),
            _ => return,
        };
        if !rights.keep_rights {
            fence.raise(data);
        }
    }
}

/// Parses the command line, runs the command, and turns the result into an exit code.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let logs = match logs::init(cli.log.settings()) {
        Ok(logs) => logs,
        Err(error) => return fail(&anyhow::anyhow!("cannot set up logging: {error}")),
    };
    if cli.command.keeps_data() {
        keep_new_files_private();
    }
    raise_limit();
    cli.command.give_up_rights();
    // One crypto provider serves all TLS of the process. An error means that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("alluvium")
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&anyhow::anyhow!("cannot start the async runtime: {error}")),
    };
    let result = runtime.block_on(dispatch(cli.command, logs, cli.log.settings()));
    // A blocking read of standard input (the prompt of `sql`) must not delay the exit.
    runtime.shutdown_background();
    match result {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

async fn dispatch(command: Command, logs: logs::LogHandle, flags: logs::Settings) -> anyhow::Result<ExitCode> {
    match command {
        #[cfg(feature = "server")]
        Command::Demo(args) => services::demo::run(args, logs, flags).await?,
        Command::Run(args) => services::run::run(*args, logs, flags).await?,
        #[cfg(feature = "server")]
        Command::Serve(args) => services::serve::run(*args).await?,
        #[cfg(feature = "server")]
        Command::Store(args) => return stored::store::run(args).await,
        #[cfg(feature = "server")]
        Command::Token(args) => services::token::run(args)?,
        Command::Sql(args) => sql::run(args).await?,
        Command::Top(args) => readers::top::run(args).await?,
        Command::Tree(args) => readers::tree::run(args).await?,
        Command::Peek(args) => readers::peek::run(args).await?,
        Command::List(args) => readers::list::run(args).await?,
        Command::Tui(args) => readers::tui::run(*args, logs).await?,
        Command::Diff(args) => readers::compare::run(*args).await?,
        Command::Profile(args) => readers::profile::run(args).await?,
        Command::Series(args) => stored::series::run(args).await?,
        Command::Labels(args) => stored::labels::run(args).await?,
        Command::Pgo(args) => readers::pgo::run(args).await?,
        Command::Flamegraph(args) => readers::flamegraph::run(args).await?,
        Command::Goroutines(args) => collectors::goroutines::run(args).await?,
        Command::Record(args) => sending::record::run(args).await?,
        Command::Upload(args) => sending::upload::run(args).await?,
        Command::Validate(args) => return configuration::validate::run(&args),
        Command::Fmt(args) => return configuration::fmt::run(&args),
        Command::Convert(args) => return configuration::convert::run(&args),
        Command::Completions(args) => shell::completions::run(args, &mut Cli::command())?,
        Command::Man(args) => shell::man::run(&args, Cli::command())?,
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stderr, reason = "a command reports its error on standard error")]
fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("alluvium: error: {}", common::plain::lines(&joined(error)));
    ExitCode::FAILURE
}

/// Joins the error and its causes, and omits a cause whose text the error already contains.
fn joined(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

impl LogArgs {
    /// Returns the flags as settings of the logs.
    pub fn settings(&self) -> logs::Settings {
        logs::Settings {
            level: self.level,
            format: self.format,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let error = anyhow::anyhow!("disk full")
            .context("cannot write x: disk full")
            .context("cannot stop");
        assert_eq!(joined(&error), "cannot stop: cannot write x: disk full");
    }
}
