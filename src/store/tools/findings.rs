//! The result of a check of a data folder: findings, each with a severity, and counts of the data that was read.

use std::path::Path;

/// How serious a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The finding is normal, or the server removes its cause by itself.
    Info,
    /// The finding is abnormal, but no acknowledged profile is at risk.
    Warning,
    /// Profiles, or files needed to read them, are damaged.
    Error,
}

impl Severity {
    /// Returns `info`, `warning` or `error`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One result of a check of a data folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How serious the finding is.
    pub severity: Severity,
    /// One of the kinds that `docs/commands/store.md` lists.
    pub kind: &'static str,
    /// The file or folder, relative to the data folder.
    pub path: String,
    /// Description of the fault of the file or record.
    pub detail: String,
}

/// All results of a check of a data folder.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    /// The findings in ascending order of their severity.
    pub findings: Vec<Finding>,
    /// Number of segments of the log that were read.
    pub segments: u64,
    /// Number of records of the log that were read.
    pub records: u64,
    /// Number of live Parquet files that were read.
    pub files: u64,
    /// Number of bytes of the live files.
    pub bytes: u64,
}

impl Checked {
    /// Adds a finding at `path` in the folder `dir`.
    pub(crate) fn add(&mut self, severity: Severity, kind: &'static str, dir: &Path, path: &Path, detail: String) {
        let path = path.strip_prefix(dir).unwrap_or(path).display().to_string();
        self.findings.push(Finding {
            severity,
            kind,
            path,
            detail,
        });
    }

    /// Returns true if data is damaged.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }
}
