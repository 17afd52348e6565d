//! Counts the data that is left out because a file of a process exceeds a bound. Each kind of data is logged once
//! per file.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use alluvium_base::log_throttle::LogThrottle;

/// The kind of data that was left out. Metrics and logs show it by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omission {
    /// A file, because too many are open.
    File,
    /// A part of a file, because its headers, tables or sections are too long, alone or together.
    Part,
    /// The unwind table of a file.
    Table,
    /// Names of a file or of a process.
    Names,
    /// Mappings of a process that has too many.
    Mappings,
}

impl Omission {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::File, Self::Part, Self::Table, Self::Names, Self::Mappings];

    /// Returns the name in metrics and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Part => "part",
            Self::Table => "table",
            Self::Names => "names",
            Self::Mappings => "mappings",
        }
    }
}

/// Number of omissions of each kind, in the order of [`Omission::ALL`].
pub type OmissionCounts = [u64; Omission::ALL.len()];

/// Counts and logs omissions. Clones share the counts.
#[derive(Debug, Clone)]
pub struct Bounds {
    counts: Arc<[AtomicU64; Omission::ALL.len()]>,
    warning: Arc<Mutex<LogThrottle>>,
}

/// The kinds of omissions that were already logged for a file or process.
#[derive(Debug, Default)]
pub(crate) struct LoggedOmissions(AtomicU8);

impl Default for Bounds {
    fn default() -> Self {
        Self {
            counts: Arc::default(),
            // Untrusted processes decide how many files exceed a bound, so the number of warnings is limited.
            warning: Arc::new(Mutex::new(LogThrottle::new(Duration::from_mins(1)))),
        }
    }
}

impl LoggedOmissions {
    /// Returns true if nothing was left out.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

impl Bounds {
    /// Returns the number of omissions of each kind so far.
    pub fn omission_counts(&self) -> OmissionCounts {
        std::array::from_fn(|index| self.counts[index].load(Ordering::Relaxed))
    }

    /// Counts an omission, and logs it once per file and kind. At most once a minute over all files, the message is a
    /// warning. Otherwise it is a debug message.
    pub(crate) fn count_omission(&self, omission: Omission, logged: &LoggedOmissions, path: &str) {
        self.counts[omission as usize].fetch_add(1, Ordering::Relaxed);
        let bit = 1_u8 << (omission as u8);
        if logged.0.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return;
        }
        let name = omission.name();
        let others = self.warning.lock().try_log();
        if let Some(others) = others {
            tracing::warn!(what = name, path, others, "a file of a process exceeds a bound");
        } else {
            tracing::debug!(what = name, path, "a file of a process exceeds a bound");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_excess_is_counted_and_said_once_a_file() {
        let bounds = Bounds::default();
        let (one, other) = (LoggedOmissions::default(), LoggedOmissions::default());
        assert!(one.is_empty());
        for _ in 0..3 {
            bounds.count_omission(Omission::Names, &one, "/one");
            bounds.clone().count_omission(Omission::File, &other, "/other");
        }
        bounds.count_omission(Omission::Part, &one, "/one");
        assert_eq!(bounds.omission_counts(), [3, 1, 0, 3, 0]);
        let logged = [&one, &other].map(|logged| logged.0.load(Ordering::Relaxed));
        assert_eq!(logged, [0b1010, 0b1]);
        assert_eq!(
            bounds.warning.lock().try_log(),
            None,
            "the second and third are for the level debug"
        );
    }
}
