//! The API of profefe: its names for profile types, the parameters of its requests, and its responses as JSON.
//!
//! In: the query part of a URL. Out: the parsed request, or a [`Refusal`] with profefe's messages. Times are whole
//! seconds in UTC; a request may omit the `Z` at the end. Labels are `name=value,name=value`; names and values are
//! escaped as in a URL.

use chrono::{DateTime, Datelike, NaiveDateTime, SecondsFormat};
use percent_encoding::percent_decode_str;
use serde::Serialize;

use crate::connect::ConnectError;
use alluvium_profile::Labels;
use alluvium_profile::labels::SERVICE_NAME;

/// A profile type under its name in profefe.
#[derive(Debug, PartialEq, Eq)]
pub struct TypeWord {
    /// Value of the parameter `type`.
    pub word: &'static str,
    /// Names (values of the label `__name__`) of its profiles in Alluvium. A profile that a client sends with this
    /// type gets the first name.
    pub names: &'static [&'static str],
    /// The sample type that a viewer shows first.
    pub shown: &'static str,
}

/// All types that are stored. If a profile name belongs to two types, responses state the first type.
pub(crate) static TYPES: [TypeWord; 9] = [
    word("cpu", &["process_cpu"], "cpu"),
    word("heap", &["memory"], "inuse_space"),
    word("allocs", &["memory"], "alloc_space"),
    word("block", &["block"], "delay"),
    word("mutex", &["mutex"], "delay"),
    word("goroutine", &["goroutine", "goroutines"], "goroutine"),
    word("threadcreate", &["threadcreate"], "threadcreate"),
    word("wall", &["wall"], "wall"),
    word(OTHER, &[OTHER], ""),
];

/// Type of all profiles whose name belongs to no other type.
pub const OTHER: &str = "other";

/// Profile names of all types except [`OTHER`].
pub static NAMED: [&str; 8] = [
    "process_cpu",
    "memory",
    "block",
    "mutex",
    "goroutine",
    "goroutines",
    "threadcreate",
    "wall",
];

/// Sample types in the order of Go's profiles.
const SAMPLE_TYPES: [&str; 8] = [
    "samples",
    "cpu",
    "alloc_objects",
    "alloc_space",
    "inuse_objects",
    "inuse_space",
    "contentions",
    "delay",
];

const fn word(word: &'static str, names: &'static [&'static str], shown: &'static str) -> TypeWord {
    TypeWord { word, names, shown }
}

impl TypeWord {
    /// Returns the type with this name in profefe.
    fn of(text: &str) -> Option<&'static Self> {
        TYPES.iter().find(|type_word| type_word.word == text)
    }

    /// Returns the type of profiles with this name.
    pub fn of_name(name: &str) -> &'static Self {
        let entry = TYPES.iter().find(|type_word| type_word.names.contains(&name));
        entry.unwrap_or(&TYPES[TYPES.len() - 1])
    }
}

/// Returns the position of a sample type in Go's profiles, for sorting. An unknown type is `None`, which comes first.
pub fn sample_type_place(kind: &str) -> Option<usize> {
    SAMPLE_TYPES.iter().position(|name| *name == kind)
}

/// The reason why a request is refused: HTTP status and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    pub message: String,
}

impl Refusal {
    /// Creates the refusal for a request without matching profiles: status 404.
    pub fn nothing() -> Self {
        Self {
            status: 404,
            message: "nothing found".to_owned(),
        }
    }

    /// Creates the refusal for an invalid request: status 400.
    pub fn bad(reason: &str) -> Self {
        Self {
            status: 400,
            message: format!("bad request: {reason}"),
        }
    }

    /// Returns `{"code":400,"error":"..."}`.
    pub fn to_json(&self) -> String {
        serde_json::json!({"code": self.status, "error": self.message}).to_string()
    }
}

impl From<ConnectError> for Refusal {
    fn from(error: ConnectError) -> Self {
        Self {
            status: error.status,
            message: error.message,
        }
    }
}

/// A profile that a client sends, without its bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct NewProfile {
    pub service: String,
    pub word: &'static TypeWord,
    pub labels: Vec<(String, String)>,
    /// Time for a profile that has none, in Unix nanoseconds.
    pub created_nanos: i64,
}

/// The profiles that a client requests.
#[derive(Debug, PartialEq, Eq)]
pub struct ProfileSelection {
    pub service: String,
    /// `None` selects profiles of all types.
    pub word: Option<&'static TypeWord>,
    pub labels: Vec<(String, String)>,
    /// First and last second in Unix time; the range includes both.
    pub from: i64,
    pub to: i64,
    /// Maximum number of profiles; 0 for all.
    pub limit: usize,
}

impl NewProfile {
    /// Parses the parameters of a sent profile. `now_nanos` replaces a missing time.
    pub fn parse(query: &str, now_nanos: i64) -> Result<Self, Refusal> {
        let parameters = Parameters::parse(query);
        let service = parameters.service()?;
        let created_nanos = match parameters.get("created_at") {
            "" => now_nanos,
            text => seconds("created_at", text)?.saturating_mul(1_000_000_000),
        };
        match parameters.get("type") {
            "trace" => Err(Refusal::bad(
                "profiles of the type trace are execution traces, which are not stored: use go tool trace",
            )),
            text => Ok(Self {
                service,
                word: TypeWord::of(text).ok_or_else(|| Refusal::bad("unknown profile type"))?,
                labels: parameters.labels(),
                created_nanos,
            }),
        }
    }
}

impl ProfileSelection {
    /// Parses the parameters of a list request.
    pub fn parse(query: &str) -> Result<Self, Refusal> {
        let parameters = Parameters::parse(query);
        let word = match parameters.get("type") {
            "" => None,
            text => Some(TypeWord::of(text).ok_or_else(|| Refusal::bad("unknown profile type"))?),
        };
        parameters.selection(word)
    }

    /// Parses the parameters of a merge request, which requires a type.
    pub fn parse_merge(query: &str) -> Result<Self, Refusal> {
        let parameters = Parameters::parse(query);
        let text = parameters.get("type");
        let word = TypeWord::of(text).ok_or_else(|| Refusal {
            status: 405,
            message: format!(
                "can't merge profiles of {} type",
                if text.is_empty() { "unknown" } else { text }
            ),
        })?;
        parameters.selection(Some(word))
    }
}

/// Parameters as names and values, in their order.
struct Parameters(Vec<(String, String)>);

impl Parameters {
    fn parse(query: &str) -> Self {
        Self(url::form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// Returns the first value with this name, or an empty text.
    fn get(&self, name: &str) -> &str {
        let pair = self.0.iter().find(|(key, _)| key == name);
        pair.map_or("", |(_, value)| value.as_str())
    }

    fn service(&self) -> Result<String, Refusal> {
        Ok(self.required("service")?.to_owned())
    }

    fn required(&self, name: &str) -> Result<&str, Refusal> {
        match self.get(name) {
            "" => Err(Refusal::bad(&format!("missing \"{name}\""))),
            text => Ok(text),
        }
    }

    /// Returns the labels, sorted by name. Labels without a name are omitted, so that the list may begin with a comma.
    fn labels(&self) -> Vec<(String, String)> {
        let decode = |text: &str| {
            let text = text.replace('+', " ");
            percent_decode_str(text.trim()).decode_utf8_lossy().trim().to_owned()
        };
        let pairs = self
            .get("labels")
            .split(',')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let mut labels: Vec<(String, String)> = pairs
            .map(|(name, value)| (decode(name), decode(value)))
            .filter(|(name, _)| !name.is_empty())
            .collect();
        labels.sort_by(|left, right| left.0.cmp(&right.0));
        labels
    }

    fn selection(&self, word: Option<&'static TypeWord>) -> Result<ProfileSelection, Refusal> {
        let service = self.service()?;
        let (from, to) = (
            seconds("from", self.required("from")?)?,
            seconds("to", self.required("to")?)?,
        );
        if from > to {
            return Err(Refusal::bad("\"from\" is after \"to\""));
        }
        let limit = match self.get("limit") {
            "" => 0,
            text => text.parse().map_err(|_| Refusal::bad("\"limit\" is not a number"))?,
        };
        Ok(ProfileSelection {
            service,
            word,
            labels: self.labels(),
            from,
            to,
            limit,
        })
    }
}

/// Parses a UTC time such as `2006-01-02T15:04:05` to Unix seconds.
fn seconds(parameter: &str, text: &str) -> Result<i64, Refusal> {
    let time = NaiveDateTime::parse_from_str(text.strip_suffix('Z').unwrap_or(text), "%Y-%m-%dT%H:%M:%S");
    let time = time.ok().filter(|time| (1..=9999).contains(&time.year()));
    let time = time.ok_or_else(|| {
        let text: String = text.chars().take(100).collect();
        Refusal::bad(&format!(
            "\"{parameter}\": `{text}` is not a time such as 2006-01-02T15:04:05"
        ))
    })?;
    Ok(time.and_utc().timestamp())
}

/// A stored profile in a response.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub struct ProfileAnswer {
    id: String,
    #[serde(rename = "type")]
    word: &'static str,
    service: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    labels: Vec<Label>,
    created_at: String,
}

#[derive(Debug, Serialize, PartialEq, Eq)]
struct Label {
    key: String,
    value: String,
}

impl ProfileAnswer {
    /// Describes a profile that started at `time_us`, in Unix microseconds.
    pub fn new(id: &str, word: &TypeWord, labels: &Labels, time_us: i64) -> Self {
        let public_labels = labels
            .iter()
            .filter(|(name, _)| *name != SERVICE_NAME && !name.starts_with("__"))
            .map(|(name, value)| Label {
                key: name.to_owned(),
                value: value.to_owned(),
            });
        let time = DateTime::from_timestamp(time_us.div_euclid(1_000_000), 0).unwrap_or_default();
        Self {
            id: id.to_owned(),
            word: word.word,
            service: labels.get(SERVICE_NAME).unwrap_or_default().to_owned(),
            labels: public_labels.collect(),
            created_at: time.to_rfc3339_opts(SecondsFormat::Secs, true),
        }
    }
}

/// Response body `{"code":200,"body":...}`.
#[derive(Serialize)]
pub struct Envelope<Body> {
    code: u16,
    body: Body,
}

impl<Body> Envelope<Body> {
    /// Wraps a body with status 200.
    pub fn new(body: Body) -> Self {
        Self { code: 200, body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_700_000_000_000_000_000;

    #[test]
    fn a_sent_profile_has_a_service_a_type_labels_and_perhaps_a_time() {
        let profile = NewProfile::parse(
            "service=shop%2Fapi&type=heap&labels=,version=1.0.0,%20region%20=eu%2Cwest,b%252Cc=a%2520b&instance_id=x\
             &created_at=2019-05-30T11:49:01",
            NOW,
        )
        .unwrap();
        assert_eq!((profile.service.as_str(), profile.word.word), ("shop/api", "heap"));
        let labels: Vec<(&str, &str)> = profile
            .labels
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            labels,
            [("b,c", "a b"), ("region", "eu"), ("version", "1.0.0"), ("west", "")]
        );
        assert_eq!(profile.created_nanos, 1_559_216_941_000_000_000);
        assert_eq!(NewProfile::parse("service=a&type=cpu", NOW).unwrap().created_nanos, NOW);
    }

    #[test]
    fn wrong_requests_are_refused_in_profefes_words() {
        let range = "from=2019-05-30T11:49:00&to=2019-05-30T12:49:00";
        for (result, status, message) in [
            (
                NewProfile::parse("type=cpu", NOW).err(),
                400,
                "bad request: missing \"service\"",
            ),
            (
                NewProfile::parse("service=a", NOW).err(),
                400,
                "bad request: unknown profile type",
            ),
            (
                NewProfile::parse("service=a&type=trace", NOW).err(),
                400,
                "bad request: profiles of the type trace",
            ),
            (
                NewProfile::parse("service=a&type=cpu&created_at=now", NOW).err(),
                400,
                "bad request: \"created_at\": `now` is not a time",
            ),
            (
                ProfileSelection::parse(range).err(),
                400,
                "bad request: missing \"service\"",
            ),
            (
                ProfileSelection::parse("service=a").err(),
                400,
                "bad request: missing \"from\"",
            ),
            (
                ProfileSelection::parse(&format!("service=a&type=x&{range}")).err(),
                400,
                "bad request: unknown profile type",
            ),
            (
                ProfileSelection::parse(&format!("service=a&limit=-1&{range}")).err(),
                400,
                "bad request: \"limit\"",
            ),
            (
                ProfileSelection::parse("service=a&from=2019-05-30T11:49:00&to=2019-05-30T11:48:00").err(),
                400,
                "bad request: \"from\" is after \"to\"",
            ),
            (
                ProfileSelection::parse_merge(&format!("service=a&{range}")).err(),
                405,
                "can't merge profiles of unknown type",
            ),
            (
                ProfileSelection::parse_merge(&format!("service=a&type=trace&{range}")).err(),
                405,
                "can't merge profiles of trace type",
            ),
        ] {
            let refusal = result.unwrap();
            assert_eq!(refusal.status, status, "{}", refusal.message);
            assert!(refusal.message.starts_with(message), "{} {message}", refusal.message);
        }
        let json = Refusal::nothing().to_json();
        assert_eq!(json, "{\"code\":404,\"error\":\"nothing found\"}");
    }

    #[test]
    fn a_list_is_of_one_service_and_whole_seconds() {
        let range = "from=2019-05-30T11:49:00&to=2019-05-30T12:49:00Z";
        let selection = ProfileSelection::parse(&format!("service=a&{range}&labels=version=1.0.0&limit=5")).unwrap();
        assert_eq!(
            (selection.from, selection.to, selection.limit),
            (1_559_216_940, 1_559_220_540, 5)
        );
        assert_eq!(selection.word, None);
        assert_eq!(selection.labels, [("version".to_owned(), "1.0.0".to_owned())]);
        let merge = ProfileSelection::parse_merge(&format!("service=a&type=allocs&{range}")).unwrap();
        assert_eq!(merge.word.unwrap().shown, "alloc_space");
    }

    #[test]
    fn names_and_words_go_both_ways() {
        for type_word in &TYPES {
            for name in type_word.names {
                let back = TypeWord::of_name(name);
                assert_eq!(back.names, type_word.names, "{name}");
                assert_eq!(NAMED.contains(name), type_word.word != OTHER, "{name}");
            }
        }
        assert_eq!(TypeWord::of_name("memory").word, "heap");
        assert_eq!(TypeWord::of_name("off_cpu").word, OTHER);
        let mut kinds = ["cpu", "inuse_space", "lost", "samples", "alloc_space"];
        kinds.sort_by_key(|kind| sample_type_place(kind));
        assert_eq!(kinds, ["lost", "samples", "cpu", "alloc_space", "inuse_space"]);
    }

    #[test]
    fn an_answer_has_labels_as_pairs_and_the_second() {
        let labels = Labels::from_pairs([("service_name", "shop"), ("b", "2"), ("a", "1"), ("__name__", "memory")]);
        let answer = Envelope::new(ProfileAnswer::new("x", &TYPES[1], &labels, 1_559_216_941_999_999));
        assert_eq!(
            serde_json::to_string(&answer).unwrap(),
            "{\"code\":200,\"body\":{\"id\":\"x\",\"type\":\"heap\",\"service\":\"shop\",\"labels\":[{\"key\":\"a\",\
             \"value\":\"1\"},{\"key\":\"b\",\"value\":\"2\"}],\"created_at\":\"2019-05-30T11:49:01Z\"}}"
        );
        let bare = ProfileAnswer::new("x", &TYPES[0], &Labels::default(), 0);
        assert!(!serde_json::to_string(&bare).unwrap().contains("labels"));
    }
}
