//! Parses the parameters of `/ingest`: `name=app{label=value}`, times, and others.
//!
//! In: the query part of a URL and the current time. Out: [`IngestQuery`].

use crate::at_time;
use crate::connect::ConnectError;

/// Sample rate in Hz for a profile without one.
pub(crate) const DEFAULT_SAMPLE_RATE: u32 = 100;

/// The parameters of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestQuery {
    /// Name of the application.
    pub app: String,
    /// Labels in the order of the query.
    pub labels: Vec<(String, String)>,
    /// Start of the profile in Unix nanoseconds.
    pub from_nanos: i64,
    /// End of the profile in Unix nanoseconds.
    pub until_nanos: i64,
    /// Agent that took the profile; `unknown` when missing.
    pub spy_name: String,
    /// Sample rate in Hz: `None` when missing, [`DEFAULT_SAMPLE_RATE`] when it is not a number.
    pub sample_rate: Option<u32>,
    /// Format of the body; empty when missing.
    pub format: String,
}

impl IngestQuery {
    /// Parses the query part of a URL. `now_nanos` replaces missing times.
    pub fn parse(query: &str, now_nanos: i64) -> Result<Self, ConnectError> {
        let mut ingest_query = Self {
            app: String::new(),
            labels: Vec::new(),
            from_nanos: now_nanos,
            until_nanos: now_nanos,
            spy_name: "unknown".to_owned(),
            sample_rate: None,
            format: String::new(),
        };
        let mut name = None;
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match key.as_ref() {
                "name" => name = Some(value.into_owned()),
                "from" => ingest_query.from_nanos = at_time::read("from", &value, now_nanos)?,
                "until" => ingest_query.until_nanos = at_time::read("until", &value, now_nanos)?,
                "spyName" if !value.is_empty() => ingest_query.spy_name = value.into_owned(),
                "sampleRate" => ingest_query.sample_rate = Some(value.parse().unwrap_or(DEFAULT_SAMPLE_RATE)),
                "format" => ingest_query.format = value.into_owned(),
                _ => {}
            }
        }
        let name = name.unwrap_or_default();
        (ingest_query.app, ingest_query.labels) =
            parse_name(&name).map_err(|error| ConnectError::invalid(format!("name: {error}")))?;
        Ok(ingest_query)
    }

    /// Returns the length of the profile in nanoseconds.
    pub(crate) fn duration_nanos(&self) -> i64 {
        self.until_nanos.saturating_sub(self.from_nanos).max(0)
    }
}

/// The reason why the parameter `name` is invalid.
#[derive(Debug, thiserror::Error)]
enum NameError {
    #[error("service name is required")]
    NoService,
    /// The name of the service or of a label contains a character that is not allowed.
    #[error("{subject} `{name}`: character is not allowed: `{character}`")]
    Character {
        subject: &'static str,
        name: String,
        character: char,
    },
    #[error("`{0}` has no closing brace")]
    OpenBrace(String),
    #[error("label `{0}` has no value")]
    NoValue(String),
    #[error("label `{0}` has no name")]
    NoLabel(String),
}

/// Parses `app{k=v,k2=v2}`, in which values have no quotes.
fn parse_name(name: &str) -> Result<(String, Vec<(String, String)>), NameError> {
    let (app, rest) = name.split_once('{').unwrap_or((name, ""));
    let app = app.trim();
    if app.is_empty() {
        return Err(NameError::NoService);
    }
    check(app, "service name", |character| {
        character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '/' | '-')
    })?;
    if app.len() == name.trim().len() {
        return Ok((app.to_owned(), Vec::new()));
    }
    let Some(pairs) = rest.trim_end().strip_suffix('}') else {
        return Err(NameError::OpenBrace(name.to_owned()));
    };
    let mut labels = Vec::new();
    for pair in pairs.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let Some((label, value)) = pair.split_once('=') else {
            return Err(NameError::NoValue(pair.to_owned()));
        };
        let (label, value) = (label.trim(), value.trim());
        if label.is_empty() {
            return Err(NameError::NoLabel(pair.to_owned()));
        }
        check(label, "label name", |character| {
            character.is_ascii_alphanumeric() || matches!(character, '_' | '.')
        })?;
        labels.push((label.to_owned(), value.to_owned()));
    }
    Ok((app.to_owned(), labels))
}

fn check(name: &str, subject: &'static str, is_allowed: impl Fn(char) -> bool) -> Result<(), NameError> {
    match name.chars().find(|character| !is_allowed(*character)) {
        None => Ok(()),
        Some(character) => Err(NameError::Character {
            subject,
            name: name.to_owned(),
            character,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;
    const NOW: i64 = 1_700_000_000 * SECOND;

    #[test]
    fn a_name_is_an_app_and_labels() {
        let ingest_query = IngestQuery::parse(
            "name=shop.api%7Bregion%3Deu-west%2C%20pod%20%3D%20a%2Fb%7D\
            &from=1699999990&until=1700000000&spyName=gospy&sampleRate=x&format=pprof",
            NOW,
        )
        .unwrap();
        assert_eq!(ingest_query.app, "shop.api");
        assert_eq!(
            ingest_query.labels,
            [
                ("region".to_owned(), "eu-west".to_owned()),
                ("pod".to_owned(), "a/b".to_owned())
            ]
        );
        assert_eq!(
            (ingest_query.from_nanos, ingest_query.until_nanos),
            (NOW - 10 * SECOND, NOW)
        );
        assert_eq!(
            (
                ingest_query.spy_name.as_str(),
                ingest_query.sample_rate,
                ingest_query.format.as_str()
            ),
            ("gospy", Some(100), "pprof")
        );
        assert_eq!(IngestQuery::parse("name=a%7B%7D", NOW).unwrap().labels, []);
    }

    #[test]
    fn wrong_names_are_refused_with_the_reason() {
        for (query, reason) in [
            ("", "name: service name is required"),
            ("name=%7Ba%3Db%7D", "name: service name is required"),
            ("name=a%20b", "name: service name `a b`: character is not allowed: ` `"),
            ("name=a%7Bb%3Dc", "name: `a{b=c` has no closing brace"),
            ("name=a%7Bb%7D", "name: label `b` has no value"),
            (
                "name=a%7Bb-%3Dc%7D",
                "name: label name `b-`: character is not allowed: `-`",
            ),
        ] {
            let error = IngestQuery::parse(query, NOW).unwrap_err();
            assert_eq!((error.status, error.message.as_str()), (400, reason));
        }
    }
}
