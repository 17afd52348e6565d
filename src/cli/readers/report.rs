//! Flags of the reports. Except for `--by`, names and meanings are the same as in `go tool pprof`.

use alluvium_base::re2::Expression;
use clap::{Args, ValueEnum};

use crate::cli::common::flag_error::FlagError;
use crate::cli::readers::source::Loaded;
use alluvium_profile::report::{Focus, Grouping, Options, Order, Report, Trim};

/// Flags that select the content of a report.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Report")]
pub struct ReportArgs {
    /// Include only samples with a frame whose function, file or binary matches REGEX.
    #[arg(long, value_name = "REGEX")]
    pub focus: Option<Expression>,
    /// Exclude samples with a frame whose function, file or binary matches REGEX.
    #[arg(long, value_name = "REGEX")]
    pub ignore: Option<Expression>,
    /// Granularity of the rows of the report, in the terms of `go tool pprof`. Defaults to `functions`.
    #[arg(long, value_enum, value_name = "GRANULARITY", conflicts_with = "by")]
    pub granularity: Option<Granularity>,
    /// Granularity of the rows of the report. Unlike --granularity, it offers whole files and packages.
    #[arg(long, value_enum, value_name = "WHAT")]
    pub by: Option<By>,
    /// Maximum number of rows to print; 0 for all.
    #[arg(short = 'n', long = "nodecount", visible_alias = "nodes", value_name = "COUNT")]
    pub node_count: Option<usize>,
    /// Omit rows whose cumulative value is less than this share of the total, from 0 to 1.
    #[arg(long = "nodefraction", value_name = "SHARE", value_parser = parse_share)]
    pub node_fraction: Option<f64>,
    /// Omit calls whose value is less than this share of the total, from 0 to 1.
    #[arg(long = "edgefraction", value_name = "SHARE", value_parser = parse_share)]
    pub edge_fraction: Option<f64>,
    /// Sort rows by their cumulative value.
    #[arg(long)]
    pub cum: bool,
    /// Unit of all values, such as ms or MB, instead of a unit that suits the smallest value.
    #[arg(long)]
    pub unit: Option<String>,
}

/// Granularity of the rows of a report, with the values of pprof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Granularity {
    /// A function by its name.
    Functions,
    /// A function by its name and file.
    Filefunctions,
    /// A source file. As in pprof, functions that start at different lines of the file have different rows.
    Files,
    /// A line in the source of a function.
    Lines,
    /// An address in the code of a binary.
    Addresses,
}

/// Granularity of the rows of a report, with the values of `--by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// A function by its name.
    Function,
    /// A source file; each file has one row.
    File,
    /// A package, module, crate or library.
    Package,
    /// A line in the source of a function.
    Line,
}

fn parse_share(text: &str) -> Result<f64, FlagError> {
    let share: f64 = text.parse().map_err(|_| FlagError::Number)?;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(FlagError::Share)
    }
}

impl ReportArgs {
    /// Combines the flags with the default limits.
    pub(in crate::cli) fn options(&self, default: Trim) -> Options {
        let grouping = match (self.granularity, self.by) {
            (Some(Granularity::Filefunctions), _) => Grouping::FileFunctions,
            (Some(Granularity::Files), _) => Grouping::Files,
            (Some(Granularity::Lines), _) | (None, Some(By::Line)) => Grouping::Lines,
            (Some(Granularity::Addresses), _) => Grouping::Addresses,
            (None, Some(By::File)) => Grouping::WholeFiles,
            (None, Some(By::Package)) => Grouping::Packages,
            _ => Grouping::Functions,
        };
        Options {
            grouping,
            order: if self.cum { Order::Cum } else { Order::Flat },
            trim: Trim {
                node_count: match self.node_count {
                    None => default.node_count,
                    Some(0) => None,
                    count => count,
                },
                node_fraction: self.node_fraction.unwrap_or(default.node_fraction),
                edge_fraction: self.edge_fraction.unwrap_or(default.edge_fraction),
            },
            focus: Focus {
                focus: self.focus.clone(),
                ignore: self.ignore.clone(),
            },
            unit: self.unit.clone(),
        }
    }

    /// Returns the report of a profile. If a filter matched no frame, prints a message to standard error.
    #[expect(clippy::print_stderr, reason = "standard output is the report")]
    pub(in crate::cli) fn report<'a>(&self, loaded: &'a Loaded, default: Trim) -> Report<'a> {
        let report = Report::new(loaded.profile().clone(), loaded.value(), &self.options(default));
        for flag in report.unmatched() {
            eprintln!("--{flag} matched no frame");
        }
        report
    }

    /// Returns true if no flags, or only `--nodecount` and `--cum`, are given.
    pub(super) fn is_plain(&self) -> bool {
        self.focus.is_none()
            && self.ignore.is_none()
            && self.granularity.is_none()
            && self.by.is_none()
            && self.node_fraction.is_none()
            && self.edge_fraction.is_none()
            && self.unit.is_none()
    }
}
