//! The section `disk` of the server's configuration, and the flags `--disk.*`: timeouts for a disk that does not
//! respond.

use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use serde::Deserialize;

use crate::app::limits::parsed;
use crate::store::StoreConfig;

/// Minimum value of both timeouts, because a sync of a slow disk can take this long.
const SHORTEST: Duration = Duration::from_millis(100);

/// Timeouts for a disk that does not respond, as written in the flags or the file.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiskSection {
    /// Time after which an unfinished write or sync makes the server unhealthy. Defaults to 15 s.
    #[arg(
        long = "disk.stuck-after",
        value_name = "DURATION",
        help = "Time after which an unfinished write or sync makes the server refuse pushes and report itself \
                unhealthy [default: 15s]"
    )]
    pub stuck_after: Option<String>,
    /// Maximum time that a push waits for the disk before it is refused. Defaults to 30 s.
    #[arg(
        long = "disk.answer-after",
        value_name = "DURATION",
        help = "Maximum time that a push waits for the disk before it is refused [default: 30s]"
    )]
    pub answer_after: Option<String>,
}

/// Timeouts for a disk that does not respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DiskLimits {
    /// See [`StoreConfig::stuck_after`].
    pub stuck_after: Duration,
    /// See [`StoreConfig::answer_after`].
    pub answer_after: Duration,
}

impl Default for DiskLimits {
    fn default() -> Self {
        let store = StoreConfig::new("");
        Self {
            stuck_after: store.stuck_after,
            answer_after: store.answer_after,
        }
    }
}

impl DiskSection {
    /// Resolves the timeouts: flags override the file, and the file overrides the defaults.
    pub(crate) fn over(self, file: Self) -> anyhow::Result<DiskLimits> {
        let mut limits = DiskLimits::default();
        let keys = [
            (
                "stuck-after",
                self.stuck_after,
                file.stuck_after,
                &mut limits.stuck_after,
            ),
            (
                "answer-after",
                self.answer_after,
                file.answer_after,
                &mut limits.answer_after,
            ),
        ];
        for (key, flag, of_file, limit) in keys {
            let (name, text) = match (flag, of_file) {
                (Some(text), _) => (format!("--disk.{key}"), text),
                (None, Some(text)) => (format!("disk.{}", key.replace('-', "_")), text),
                (None, None) => continue,
            };
            *limit = parsed(&name, &text)?;
            ensure!(
                *limit >= SHORTEST,
                "{name}: `{text}` is too short, the minimum is 100ms"
            );
        }
        Ok(limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_the_file_and_both_name_what_is_wrong() {
        let read_limits = |flag: &[&str; 2], file: &str| {
            let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let flags = DiskSection {
                stuck_after: text(flag[0]),
                answer_after: text(flag[1]),
            };
            flags
                .over(serde_saphyr::from_str(file).unwrap())
                .map_err(|error| error.to_string())
        };
        assert_eq!(read_limits(&["", ""], "{}"), Ok(DiskLimits::default()));
        let limits = DiskLimits {
            stuck_after: Duration::from_secs(2),
            answer_after: Duration::from_mins(3),
        };
        assert_eq!(
            read_limits(&["2s", ""], "{stuck_after: 9s, answer_after: 3m}"),
            Ok(limits)
        );
        let cases = [
            (["soon", ""], "{}", "--disk.stuck-after"),
            (["", ""], "{answer_after: 0s}", "disk.answer_after: `0s` is too short"),
        ];
        for (flags, file, part) in cases {
            let error = read_limits(&flags, file).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
