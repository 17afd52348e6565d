//! A range query for Prometheus: an expression, a time range and a step.
//!
//! In: the query part of a URL. Out: a range query within the limits, and its URL on a server; or status 400 with the
//! reason.

use url::Url;

use alluvium_wire::connect::ConnectError;

/// Maximum length of an expression in bytes.
const MAX_QUERY_BYTES: usize = 4 << 10;
/// Maximum number of steps of a range, as in Prometheus.
const MAX_STEPS: f64 = 11_000.0;

/// A range query for Prometheus.
#[derive(Debug, PartialEq)]
pub(in crate::server) struct RangeQuery {
    query: String,
    /// Unix time in seconds, like `end`.
    start: f64,
    end: f64,
    /// Seconds between two points.
    step: f64,
}

impl RangeQuery {
    /// Reads the parameters `query`, `start`, `end` and `step`, and ignores all others.
    pub(in crate::server) fn parse(query: &str) -> Result<Self, ConnectError> {
        let pairs: Vec<(String, String)> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let get = |name: &str| {
            let pair = pairs.iter().find(|(key, _)| key == name);
            pair.map_or("", |(_, value)| value.as_str())
        };
        let number = |name: &str| {
            let text = get(name);
            let number = text.parse().ok().filter(|number: &f64| number.is_finite());
            number.ok_or_else(|| ConnectError::invalid(format!("{name}: `{text}` is not a number of seconds")))
        };
        let range_query = Self {
            query: get("query").trim().to_owned(),
            start: number("start")?,
            end: number("end")?,
            step: number("step")?,
        };
        if range_query.query.is_empty() || range_query.query.len() > MAX_QUERY_BYTES {
            return Err(ConnectError::invalid(format!(
                "query: the length must be 1 to {MAX_QUERY_BYTES} bytes, but is {}",
                range_query.query.len()
            )));
        }
        if range_query.step <= 0.0 || range_query.end < range_query.start {
            return Err(ConnectError::invalid(
                "step must be greater than 0, and end must not be before start",
            ));
        }
        let steps = (range_query.end - range_query.start) / range_query.step;
        if steps > MAX_STEPS {
            return Err(ConnectError::invalid(format!(
                "the range has {steps:.0} steps, the limit is {MAX_STEPS}"
            )));
        }
        Ok(range_query)
    }

    /// Returns the URL of this query on the server at `base`.
    pub(in crate::server) fn url(&self, base: &Url) -> Url {
        let mut url = base.clone();
        url.set_path(&format!("{}/api/v1/query_range", base.path().trim_end_matches('/')));
        url.query_pairs_mut()
            .append_pair("query", &self.query)
            .append_pair("start", &self.start.to_string())
            .append_pair("end", &self.end.to_string())
            .append_pair("step", &self.step.to_string());
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_becomes_one_of_prometheus_and_nothing_else_is_passed_on() {
        let requested = "query=up%7Bjob%3D%22a%26b%22%7D&start=1700000000&end=1700003600.5&step=15&match=secret&time=1";
        let query = RangeQuery::parse(requested).unwrap();
        let base = Url::parse("http://metrics:9090/prefix/").unwrap();
        assert_eq!(
            query.url(&base).as_str(),
            "http://metrics:9090/prefix/api/v1/query_range?query=up%7Bjob%3D%22a%26b%22%7D&start=1700000000&\
             end=1700003600.5&step=15"
        );
    }

    #[test]
    fn questions_are_limited() {
        let long_query = "a".repeat(MAX_QUERY_BYTES + 1);
        for query in [
            "query=&start=1&end=2&step=1".to_owned(),
            format!("query={long_query}&start=1&end=2&step=1"),
            "query=up&start=1&end=2".to_owned(),
            "query=up&start=1&end=2&step=0".to_owned(),
            "query=up&start=1&end=2&step=NaN".to_owned(),
            "query=up&start=2&end=1&step=1".to_owned(),
            "query=up&start=0&end=11001&step=1".to_owned(),
        ] {
            assert_eq!(RangeQuery::parse(&query).unwrap_err().status, 400, "{query}");
        }
        assert!(RangeQuery::parse("query=up&start=0&end=11000&step=1").is_ok());
    }
}
