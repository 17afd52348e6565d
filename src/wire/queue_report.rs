//! What a collector says of its queue beside each request with profiles: a header of ours, which other servers ignore.
//!
//! In and out: the text of the header. Names are cleaned and cut on both sides, since the reader has not chosen them.

use std::time::Duration;

/// Name of the header, in lower case.
pub(crate) const QUEUE_HEADER: &str = "x-alluvium-queue";
/// Maximum number of characters of a name.
const MAX_NAME_CHARS: usize = 100;

/// A collector's queue for one endpoint, at the moment of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueReport {
    /// Name of the collector's machine.
    pub host: String,
    /// Id of the component that sends.
    pub component: String,
    /// Profiles that wait besides those of the request.
    pub profiles: u64,
    /// Age of the oldest profile that waits or is in the request, to the millisecond.
    pub oldest_age: Duration,
    /// Profiles that did not reach the endpoint since the collector began.
    pub dropped: u64,
    /// Requests that failed since one passed.
    pub failures: u64,
}

impl QueueReport {
    /// The text of the header: printable ASCII.
    pub(crate) fn to_header(&self) -> String {
        format!(
            "host={};component={};profiles={};oldest_ms={};dropped={};failures={}",
            clean(&self.host),
            clean(&self.component),
            self.profiles,
            self.oldest_age.as_millis(),
            self.dropped,
            self.failures,
        )
    }

    /// Reads the text of the header; parts that are not known are passed over, one that cannot be read makes it `None`.
    pub(crate) fn of_header(text: &str) -> Option<Self> {
        let mut report = Self::default();
        for part in text.split(';') {
            let (name, value) = part.split_once('=')?;
            match name.trim() {
                "host" => report.host = clean(value),
                "component" => report.component = clean(value),
                "profiles" => report.profiles = value.parse().ok()?,
                "oldest_ms" => report.oldest_age = Duration::from_millis(value.parse().ok()?),
                "dropped" => report.dropped = value.parse().ok()?,
                "failures" => report.failures = value.parse().ok()?,
                _ => {}
            }
        }
        Some(report)
    }
}

/// A name without what a header, or a part of this one, cannot hold.
fn clean(name: &str) -> String {
    let fits = |character: char| character.is_ascii_graphic() && !matches!(character, ';' | '=');
    let kept = name.trim().chars().take(MAX_NAME_CHARS);
    kept.map(|character| if fits(character) { character } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> QueueReport {
        QueueReport {
            host: "web-1".to_owned(),
            component: "pyroscope.write.default".to_owned(),
            profiles: 12,
            oldest_age: Duration::from_millis(1500),
            dropped: 3,
            failures: 2,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let text = report().to_header();
        assert_eq!(
            text,
            "host=web-1;component=pyroscope.write.default;profiles=12;oldest_ms=1500;dropped=3;failures=2"
        );
        assert_eq!(QueueReport::of_header(&text), Some(report()));
    }

    #[test]
    fn a_name_is_cut_and_cannot_add_a_part() {
        let sent = QueueReport {
            host: "a;dropped=9\r\nx: \u{fc}".to_owned(),
            component: "c".repeat(1000),
            ..report()
        };
        let read = QueueReport::of_header(&sent.to_header()).unwrap();
        assert_eq!(read.host, "a_dropped_9__x:__");
        assert_eq!(read.component.len(), MAX_NAME_CHARS);
        assert_eq!(read.dropped, 3);
    }

    #[test]
    fn parts_of_a_later_version_are_passed_over_and_wrong_ones_refused() {
        let later = format!("{};sent=7", report().to_header());
        assert_eq!(QueueReport::of_header(&later), Some(report()));
        for wrong in ["", "host", "profiles=-1", "oldest_ms=99999999999999999999"] {
            assert_eq!(QueueReport::of_header(wrong), None, "{wrong}");
        }
    }
}
