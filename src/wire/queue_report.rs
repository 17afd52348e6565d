//! The state of a collector's queue, sent in a header of each request with profiles. Other servers ignore the header.
//!
//! In and out: the text of the header. The collector cleans and truncates names. The server does the same again,
//! because it cannot trust the header.

use std::time::Duration;

/// Name of the header, in lower case.
pub const QUEUE_HEADER: &str = "x-alluvium-queue";
/// Maximum number of characters of a name.
const MAX_NAME_CHARS: usize = 100;

/// A collector's queue for one endpoint, at the time of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueReport {
    /// Host name of the collector's machine.
    pub host: String,
    /// Id of the component that sends the requests.
    pub component: String,
    /// Number of waiting profiles, without the profiles of the request.
    pub profiles: u64,
    /// Age of the oldest profile that waits or is in the request, in whole milliseconds.
    pub oldest_age: Duration,
    /// Number of profiles that were dropped since the collector started, and did not reach the endpoint.
    pub dropped: u64,
    /// Number of failed requests since the last successful request.
    pub failures: u64,
}

impl QueueReport {
    /// Formats the text of the header in printable ASCII.
    pub fn to_header(&self) -> String {
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

    /// Parses the text of the header. Unknown parts are ignored; a part that cannot be parsed makes the result `None`.
    pub fn of_header(text: &str) -> Option<Self> {
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

/// Truncates a name to [`MAX_NAME_CHARS`] and replaces the characters that the header does not allow.
fn clean(name: &str) -> String {
    let fits = |character: char| character.is_ascii_graphic() && !matches!(character, ';' | '=');
    let characters = name.trim().chars().take(MAX_NAME_CHARS);
    characters
        .map(|character| if fits(character) { character } else { '_' })
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
        for text in ["", "host", "profiles=-1", "oldest_ms=99999999999999999999"] {
            assert_eq!(QueueReport::of_header(text), None, "{text}");
        }
    }
}
