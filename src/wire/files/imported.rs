//! What a file was recognised as, and the profiles that were in it.

use std::fmt;

use bytes::Bytes;

use crate::profile::call_tree::{CallTree, TooMany};
use crate::profile::decoded::Columns;
use crate::profile::pprof::{Profile, ValueType};

/// A format that is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Protobuf of `github.com/google/pprof`.
    Pprof,
    /// What Go's `net/http/pprof` says with `debug=1`.
    GoText,
    /// A recording of Java Flight Recorder.
    Jfr,
    /// JSON of speedscope, which py-spy, rbspy, dotnet-trace and others write, too.
    Speedscope,
    /// What `perf script` prints.
    PerfScript,
    /// JSON of V8's CPU profiler.
    CpuProfile,
    /// Events of Chrome's tracing, with the CPU profiles among them.
    ChromeTrace,
    /// JSON of the Firefox Profiler, which samply writes, too.
    Firefox,
    /// A trace of .NET, as `dotnet-trace` writes it.
    Nettrace,
    /// XML that `xctrace export` writes of Xcode's Instruments.
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

/// A file that was recognised and read.
#[derive(Debug)]
pub struct Imported {
    /// What it was recognised as.
    pub format: FileFormat,
    /// Its profiles, at least one, each with samples.
    pub profiles: Vec<ImportedProfile>,
}

/// One of the profiles of a file.
#[derive(Debug)]
pub struct ImportedProfile {
    /// Value of the label `__name__`; empty where it follows from the sample types, as that of pprof does.
    pub name: String,
    /// Other labels that the file says.
    pub labels: Vec<(String, String)>,
    /// The samples with all that they refer to.
    pub columns: Columns,
    /// The file itself, where it is pprof.
    pub pprof: Option<Bytes>,
}

/// What the values of a profile count, and when they were taken. Times are nanoseconds; 0 is unknown.
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

    /// The stacks of a tree as a profile; `None` when it has none.
    pub(super) fn of_tree(tree: CallTree, meaning: Meaning<'_>) -> Result<Option<Self>, TooMany> {
        let (columns, _) = tree.into_columns(Profile::default(), 1)?;
        let Some(columns) = columns else { return Ok(None) };
        let kind = ValueType {
            kind: meaning.kind,
            unit: meaning.unit,
        };
        // What a sample stands for: without it, the short names of profile types would not find the profile.
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
