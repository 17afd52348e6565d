//! The parameters of Pyroscope's plain routes.
//!
//! In: the query part of a URL, and the current time. Out: the request, with selectors still as text, or status 400
//! with the name of the parameter. As in Pyroscope, the first of several parameters with the same name applies, and
//! unknown parameters are ignored. An invalid node limit or aggregation is treated as absent.

use crate::query::{Aggregation, TimeRange};
use alluvium_wire::at_time;
use alluvium_wire::connect::ConnectError;

/// Selector and time range of a flame graph, or of the left or right side of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Side {
    /// Name of the parameter that contains `text`, for errors.
    pub parameter: &'static str,
    /// `TYPE{selector}`. It is never empty.
    pub text: String,
    /// Time range from `from` up to but not including `until`.
    pub range: TimeRange,
}

/// Format of a response of `/pyroscope/render`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RenderFormat {
    /// A flame graph and a time line.
    Json,
    /// A call graph as text for Graphviz.
    Dot,
    /// The merged profile, gzip-compressed.
    Pprof,
}

/// A request to `/pyroscope/render`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RenderQuery {
    /// Selector and time range of the profiles.
    pub side: Side,
    /// Maximum number of nodes of the response. `None` means the default of its format.
    pub max_nodes: Option<i64>,
    /// The label by which time lines are grouped.
    pub group_by: Option<String>,
    /// Function that combines the profiles in one step of a time line.
    pub aggregation: Aggregation,
    pub format: RenderFormat,
}

/// A request to `/pyroscope/render-diff`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DiffQuery {
    pub left: Side,
    pub right: Side,
    /// Maximum number of nodes of the response. `None` means the default.
    pub max_nodes: Option<i64>,
}

/// A request to `/pyroscope/label-values`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LabelQuery {
    /// Name of the label. It is never empty.
    pub label: String,
    /// Start in Unix milliseconds, if given. The end is `until_ms`.
    pub from_ms: Option<i64>,
    pub until_ms: Option<i64>,
}

impl RenderQuery {
    /// Parses the query part of a URL. A missing time is the current time.
    pub(super) fn parse(query: &str, now_nanos: i64) -> Result<Self, ConnectError> {
        let read = Parameters::parse(query);
        Ok(Self {
            side: read.side(["query", "from", "until"], now_nanos)?,
            max_nodes: read.max_nodes(),
            group_by: Some(read.get("groupBy").to_owned()).filter(|label| !label.is_empty()),
            aggregation: match read.get("aggregation") {
                "avg" => Aggregation::Average,
                _ => Aggregation::Sum,
            },
            format: match read.get("format") {
                "dot" => RenderFormat::Dot,
                "pprof" => RenderFormat::Pprof,
                _ => RenderFormat::Json,
            },
        })
    }
}

impl DiffQuery {
    /// Parses the query part of a URL. A missing time is the current time.
    pub(super) fn parse(query: &str, now_nanos: i64) -> Result<Self, ConnectError> {
        let read = Parameters::parse(query);
        Ok(Self {
            left: read.side(["leftQuery", "leftFrom", "leftUntil"], now_nanos)?,
            right: read.side(["rightQuery", "rightFrom", "rightUntil"], now_nanos)?,
            max_nodes: read.max_nodes(),
        })
    }
}

impl LabelQuery {
    /// Parses the query part of a URL.
    pub(super) fn parse(query: &str, now_nanos: i64) -> Result<Self, ConnectError> {
        let read = Parameters::parse(query);
        let time = |name| match read.get(name) {
            "" => Ok(None),
            _ => read.time_ms(name, now_nanos).map(Some),
        };
        let label = read.get("label");
        if label.is_empty() {
            return Err(ConnectError::invalid(
                "label: a name is required, such as `service_name`",
            ));
        }
        Ok(Self {
            label: label.to_owned(),
            from_ms: time("from")?,
            until_ms: time("until")?,
        })
    }
}

/// Names and values of parameters, in the order of the URL.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn parse(query: &str) -> Self {
        Self(url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// Returns the first value of this name, or an empty text if there is none.
    fn get(&self, name: &str) -> &str {
        let pair = self.0.iter().find(|(key, _)| key == name);
        pair.map_or("", |(_, value)| value.as_str())
    }

    fn side(&self, [query, from, until]: [&'static str; 3], now_nanos: i64) -> Result<Side, ConnectError> {
        let text = self.get(query).trim();
        if text.is_empty() {
            return Err(ConnectError::invalid(format!(
                "{query}: a profile type and a selector are required, such as \
                 `process_cpu:cpu:nanoseconds:cpu:nanoseconds{{service_name=\"shop\"}}`"
            )));
        }
        let range = TimeRange::new(self.time_ms(from, now_nanos)?, self.time_ms(until, now_nanos)?);
        // A client without a time range sends 0, which would mean 1970.
        if range.start_ms == 0 || range.end_ms == 0 {
            return Err(ConnectError::invalid(format!(
                "missing time range in the query: {from} and {until} must not be 0"
            )));
        }
        Ok(Side {
            parameter: query,
            text: text.to_owned(),
            range,
        })
    }

    fn time_ms(&self, name: &str, now_nanos: i64) -> Result<i64, ConnectError> {
        Ok(at_time::read(name, self.get(name), now_nanos)?.div_euclid(1_000_000))
    }

    fn max_nodes(&self) -> Option<i64> {
        let number = |name| self.get(name).parse().ok().filter(|number| *number != 0);
        number("maxNodes").or_else(|| number("max-nodes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000_000_000;
    const NOW_MS: i64 = 1_700_000_000_000;

    fn render(query: &str) -> RenderQuery {
        RenderQuery::parse(query, NOW).unwrap()
    }

    #[test]
    fn a_question_for_a_flame_graph_has_defaults() {
        let read = render("query=cpu%7Ba%3D%22b%22%7D&from=now-1h&unknown=1");
        let side = Side {
            parameter: "query",
            text: "cpu{a=\"b\"}".to_owned(),
            range: TimeRange::new(NOW_MS - 3_600_000, NOW_MS),
        };
        let expected = RenderQuery {
            side,
            max_nodes: None,
            group_by: None,
            aggregation: Aggregation::Sum,
            format: RenderFormat::Json,
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn all_that_may_be_asked_is_read_and_the_first_of_each_counts() {
        let read = render(
            "query=cpu&from=1699999000&until=1699999500123&groupBy=region&groupBy=pod&aggregation=avg&format=dot",
        );
        assert_eq!(read.side.range, TimeRange::new(1_699_999_000_000, 1_699_999_500_123));
        assert_eq!(read.group_by.as_deref(), Some("region"));
        assert_eq!(
            (read.aggregation, read.format),
            (Aggregation::Average, RenderFormat::Dot)
        );
        let fallback = render("query=cpu&aggregation=median&format=collapsed");
        assert_eq!(
            (fallback.aggregation, fallback.format),
            (Aggregation::Sum, RenderFormat::Json)
        );
    }

    #[test]
    fn node_limits_have_two_names_and_what_is_no_number_is_none() {
        for (parameters, limit) in [
            ("", None),
            ("&maxNodes=7", Some(7)),
            ("&max-nodes=8", Some(8)),
            ("&max-nodes=8&maxNodes=7", Some(7)),
            ("&max-nodes=8&maxNodes=0", Some(8)),
            ("&maxNodes=0", None),
            ("&maxNodes=many", None),
            ("&maxNodes=-1", Some(-1)),
        ] {
            assert_eq!(
                render(&format!("query=cpu{parameters}")).max_nodes,
                limit,
                "{parameters}"
            );
        }
    }

    #[test]
    fn what_is_missing_or_no_time_is_named() {
        for (query, reason) in [
            ("", "query: a profile type"),
            ("query=+", "query: a profile type"),
            ("query=cpu&from=yesterday", "from: `yesterday` is not a time"),
            ("query=cpu&from=now-1h&until=0", "missing time range"),
            ("query=cpu&from=0", "missing time range"),
        ] {
            let error = RenderQuery::parse(query, NOW).unwrap_err();
            assert_eq!(error.status, 400, "{query}");
            assert!(error.message.starts_with(reason), "{query}: {error}");
        }
        let error = DiffQuery::parse("leftQuery=cpu&rightQuery=cpu&rightFrom=x", NOW).unwrap_err();
        assert!(error.message.starts_with("rightFrom: `x`"), "{error}");
        let error = LabelQuery::parse("from=now", NOW).unwrap_err();
        assert!(error.message.starts_with("label: a name"), "{error}");
    }

    #[test]
    fn a_difference_has_two_sides_and_labels_need_no_times() {
        let read = DiffQuery::parse("leftQuery=a&leftFrom=now-2h&leftUntil=now-1h&rightQuery=b", NOW).unwrap();
        assert_eq!(read.left.range, TimeRange::new(NOW_MS - 7_200_000, NOW_MS - 3_600_000));
        assert_eq!((read.right.text.as_str(), read.right.parameter), ("b", "rightQuery"));
        let read = LabelQuery::parse("label=region&until=now-1h", NOW).unwrap();
        assert_eq!((read.from_ms, read.until_ms), (None, Some(NOW_MS - 3_600_000)));
    }
}
