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
    /// Kubernetes manifests that run kube-profefe, or that annotate pods for it.
    KubeProfefe,
    /// Kubernetes manifests that run Coroot's agents, or that annotate pods for them.
    Coroot,
}

/// Each format with its name, in alphabetical order.
const FORMATS: [(&str, Format); 5] = [
    ("conprof", Format::Conprof),
    ("coroot", Format::Coroot),
    ("kube-profefe", Format::KubeProfefe),
    ("parca", Format::Parca),
    ("prometheus", Format::Prometheus),
];

impl Format {
    /// The names of all formats.
    pub(crate) fn names() -> [&'static str; 5] {
        FORMATS.map(|(name, _)| name)
    }
}

impl FromStr for Format {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let named = FORMATS.iter().find(|(name, _)| *name == text);
        named.map(|(_, format)| *format).ok_or(())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = FORMATS.iter().find(|(_, format)| format == self);
        out.write_str(named.map_or("", |(name, _)| name))
    }
}
