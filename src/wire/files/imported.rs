//! The format of an imported file and the profiles that it contains.

use std::fmt;

use bytes::Bytes;

use alluvium_profile::call_tree::{CallTree, LimitExceeded};
use alluvium_profile::decoded::Columns;
use alluvium_profile::pprof::{Profile, ValueType};

/// Format of an imported file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Protobuf format of `github.com/google/pprof`.
    Pprof,
    /// Text that Go's `net/http/pprof` writes with `debug=1`.
    GoText,
    /// A recording of Java Flight Recorder.
    Jfr,
    /// speedscope's JSON, which py-spy, rbspy, dotnet-trace and others also write.
    Speedscope,
    /// Output of `perf script`.
    PerfScript,
    /// JSON of V8's CPU profiler.
    CpuProfile,
    /// Events of Chrome's tracing, with CPU profiles among them.
    ChromeTrace,
    /// JSON of the Firefox Profiler, which samply also writes.
    Firefox,
    /// A .NET trace, as `dotnet-trace` writes it.
    Nettrace,
    /// XML that `xctrace export` writes from a trace of Xcode's Instruments.
    Instruments,
    /// A stack and a number on each line.
    Collapsed,
}

impl fmt::Display for FileFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Pprof => "pprof",
            Self::GoText => "text of Go's profiles",
            Self::Jfr => "JFR",
            Self::Speedscope => "speedscope",
            Self::PerfScript => "perf script",
            Self::CpuProfile => "cpuprofile",
            Self::ChromeTrace => "Chrome trace",
            Self::Firefox => "Firefox profile",
            Self::Nettrace => "nettrace",
            Self::Instruments => "Instruments",
            Self::Collapsed => "folded stacks",
        })
    }
}

/// A file whose format was recognised and whose profiles were read.
#[derive(Debug)]
pub struct Imported {
    /// The format that was recognised.
    pub format: FileFormat,
    /// Profiles of the file: at least one, and each has samples.
    pub profiles: Vec<ImportedProfile>,
}

/// One of the profiles of a file.
#[derive(Debug)]
pub struct ImportedProfile {
    /// Value of the label `__name__`. Empty if the name follows from the sample types, as with pprof.
    pub name: String,
    /// Other labels from the file.
    pub labels: Vec<(String, String)>,
    /// Samples, with the tables that they refer to.
    pub columns: Columns,
    /// The file itself, if it is a pprof.
    pub pprof: Option<Bytes>,
}

/// Kind of the values of a profile, and its times. Times are in nanoseconds; 0 means unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meaning<'a> {
    pub name: &'a str,
    pub kind: &'a str,
    pub unit: &'a str,
    pub period: i64,
    pub time_nanos: i64,
    pub duration_nanos: i64,
}

impl ImportedProfile {
    pub(super) fn new(name: &str, columns: Columns) -> Self {
        Self {
            name: name.to_owned(),
            labels: Vec::new(),
            columns,
            pprof: None,
        }
    }

    /// Converts the stacks of a tree to a profile; returns `None` when the tree has none.
    pub(super) fn of_tree(tree: CallTree, meaning: Meaning<'_>) -> Result<Option<Self>, LimitExceeded> {
        let (columns, _) = tree.into_columns(Profile::default(), 1)?;
        let Some(columns) = columns else { return Ok(None) };
        let kind = ValueType {
            kind: meaning.kind,
            unit: meaning.unit,
        };
        // Every profile gets a period type, because commands accept short names such as `cpu` for profile types. These
        // names stand for types with a period type, and would not select a profile without one.
        let period_type = match kind.kind {
            "samples" => ValueType {
                kind: "cpu",
                unit: "nanoseconds",
            },
            _ => kind,
        };
        let profile = Profile {
            sample_types: vec![kind],
            period_type,
            period: meaning.period,
            time_nanos: meaning.time_nanos,
            duration_nanos: meaning.duration_nanos,
            ..columns.get().clone()
        };
        Ok(Some(Self::new(meaning.name, Columns::copied(profile))))
    }
}
