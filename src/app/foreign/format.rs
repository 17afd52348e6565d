//! The formats of other programs, by their names on the command line.

use std::fmt;
use std::str::FromStr;

/// A format of configuration files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// conprof's `conprof.yaml`.
    Conprof,
    /// Parca's `parca.yaml`, whose jobs are like conprof's.
    Parca,
    /// Prometheus' `prometheus.yml`; its scrape jobs are converted to jobs for profiles.
    Prometheus,
}

impl FromStr for Format {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "conprof" => Ok(Self::Conprof),
            "parca" => Ok(Self::Parca),
            "prometheus" => Ok(Self::Prometheus),
            _ => Err(()),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Conprof => "conprof",
            Self::Parca => "parca",
            Self::Prometheus => "prometheus",
        })
    }
}
