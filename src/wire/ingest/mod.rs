//! `/ingest`, the protocol of Pyroscope's older SDKs: parameters in the query, one profile in the body.
//!
//! In: query text, content type, body. Out: one [`RawProfile`]. Read are pprof, raw or in a form, and folded stacks as
//! text; other formats are refused by name (422). The head of a pprof is read here because its name follows from its
//! sample types; its bytes go on as they came unless their time is missing. What is in the rest is the store's
//! business.

mod form;
mod query;
mod text;

use std::collections::HashMap;

use bytes::Bytes;
use serde::Deserialize;

pub use query::IngestQuery;

use crate::profile::labels::{PROFILE_NAME, SERVICE_NAME};
use crate::profile::pprof::{self, GzipError};
use crate::profile::{Labels, RawProfile};
use crate::wire::connect::ConnectError;
use crate::wire::ingest::text::TextType;

/// Profiles that say they were taken before this (a year after 1970) do not know their time: 1971 in nanoseconds.
const FIRST_CREDIBLE_NANOS: i64 = 365 * 86_400 * 1_000_000_000;

/// Formats of the protocol that are not read, with their content types.
const OTHER_FORMATS: [(&str, &str); 4] = [
    ("trie", "binary/octet-stream+trie"),
    ("tree", "binary/octet-stream+tree"),
    ("jfr", ""),
    ("speedscope", ""),
];

/// Settings of a sample type, as SDKs send them. Only the name matters to us.
#[derive(Deserialize)]
struct SampleTypeConfig {
    #[serde(rename = "display-name", default)]
    display_name: String,
}

/// Most bytes of the part `sample_type_config` of a form: SDKs send some hundred.
const MAX_CONFIG_BYTES: usize = 64 << 10;

/// Bytes in memory for one byte of it: the worst is a setting of eight bytes, which has two texts in a table.
const CONFIG_FACTOR: usize = 32;

/// How many bytes the work on a body may touch: a profile in it may be compressed.
pub fn work_bytes(body_bytes: usize, max_bytes: usize) -> usize {
    body_bytes.max(body_bytes.saturating_mul(pprof::MAX_RATIO).min(max_bytes))
}

/// One request, taken apart but not opened.
pub struct Upload {
    content: Content,
    /// Bytes of memory that the settings of sample types take.
    config_weight: usize,
}

enum Content {
    Pprof {
        profile: Bytes,
        config: HashMap<String, SampleTypeConfig>,
    },
    /// Folded stacks; `counted`: each with its count.
    Text { body: Bytes, counted: bool },
}

impl Upload {
    /// Finds out what a body holds. A format that is not read is 422.
    pub fn new(query: &IngestQuery, content_type: &str, body: Bytes) -> Result<Self, ConnectError> {
        if query.format.is_empty() || query.format == "pprof" {
            let is_form = content_type.contains("multipart/form-data");
            if is_form && other_format(query, content_type).is_none() {
                return form_upload(content_type, body);
            }
        }
        Ok(Self {
            content: content(query, content_type, body)?,
            config_weight: 0,
        })
    }

    /// How many bytes of memory [`Upload::profile`] takes at most. What is too large is refused here.
    pub fn weight(&self, max_bytes: usize) -> Result<usize, ConnectError> {
        let content = match &self.content {
            // Uncompressed, with its time, and compressed again.
            Content::Pprof { profile, .. } => 3 * pprof::plain_length(profile, max_bytes).map_err(unopened)?,
            Content::Text { body, .. } if body.len() > max_bytes => return Err(too_large(max_bytes)),
            Content::Text { body, counted } => {
                text::weight(body, *counted).map_err(|reason| ConnectError::too_large(reason.to_string()))?
            }
        };
        Ok(content.saturating_add(self.config_weight))
    }

    /// Reads the profile. `max_bytes` limits it uncompressed (413). A profile that is no pprof is 400.
    pub fn profile(self, query: &IngestQuery, max_bytes: usize) -> Result<RawProfile, ConnectError> {
        match self.content {
            Content::Pprof { profile, config } => read_pprof(query, profile, &config, max_bytes),
            Content::Text { body, counted } => read_text(query, &body, counted, max_bytes),
        }
    }
}

fn read_pprof(
    query: &IngestQuery,
    body: Bytes,
    config: &HashMap<String, SampleTypeConfig>,
    max_bytes: usize,
) -> Result<RawProfile, ConnectError> {
    let plain = pprof::gunzip(&body, max_bytes).map_err(unopened)?;
    let head = pprof::head(&plain)
        .map_err(|error| ConnectError::invalid(format!("cannot read the profile as pprof: {error}")))?;
    let name = profile_name(&head.kinds, config);
    let pprof = if head.time_nanos < FIRST_CREDIBLE_NANOS {
        let asked = query.until_nanos.saturating_sub(query.from_nanos).max(0);
        let duration = if head.duration_nanos == 0 {
            asked
        } else {
            head.duration_nanos
        };
        Bytes::from(pprof::gzip(&pprof::with_time(&plain, query.from_nanos, duration)))
    } else {
        body
    };
    Ok(RawProfile {
        labels: labels(query, &query.app, name),
        id: "".into(),
        pprof,
    })
}

fn read_text(query: &IngestQuery, body: &[u8], counted: bool, max_bytes: usize) -> Result<RawProfile, ConnectError> {
    if body.len() > max_bytes {
        return Err(too_large(max_bytes));
    }
    let kind = TextType::of(query).map_err(|reason| ConnectError::invalid(reason).with_status(422))?;
    let invalid = |reason| ConnectError::invalid(format!("cannot read the profile as folded stacks: {reason}"));
    let text = std::str::from_utf8(body).map_err(|error| invalid(error.to_string()))?;
    let profile = kind.profile(text, counted, query).map_err(invalid)?;
    if profile.sample_count() == 0 {
        return Err(invalid("no line is a stack and a count".to_owned()));
    }
    Ok(RawProfile {
        labels: labels(query, &kind.app, kind.name.to_owned()),
        id: "".into(),
        pprof: pprof::gzip(&pprof::encode(&profile)).into(),
    })
}

fn unopened(error: GzipError) -> ConnectError {
    match error {
        GzipError::TooLarge { .. } => ConnectError::too_large(error.to_string()),
        GzipError::Corrupt(_) => ConnectError::invalid(error.to_string()),
    }
}

fn too_large(max_bytes: usize) -> ConnectError {
    ConnectError::too_large(format!("profile exceeds {max_bytes} bytes"))
}

/// Name of the format when it is one that is not read.
fn other_format(query: &IngestQuery, content_type: &str) -> Option<&'static str> {
    let named = OTHER_FORMATS
        .iter()
        .find(|(name, kind)| *name == query.format || (!kind.is_empty() && content_type.contains(kind)));
    named.map(|(name, _)| *name)
}

fn content(query: &IngestQuery, content_type: &str, body: Bytes) -> Result<Content, ConnectError> {
    if let Some(name) = other_format(query, content_type) {
        return Err(unreadable(name));
    }
    let format = query.format.as_str();
    match format {
        "lines" => return Ok(Content::Text { body, counted: false }),
        "groups" | "collapsed" => return Ok(Content::Text { body, counted: true }),
        "" | "pprof" => {}
        _ => return Err(ConnectError::invalid(format!("format `{format}` is unknown")).with_status(422)),
    }
    // Without a format the protocol means folded stacks; SDKs that post bare pprof bytes are told by the bytes.
    if format.is_empty() && !pprof::is_gzip(&body) && !looks_like_pprof(&body) {
        return Ok(Content::Text { body, counted: true });
    }
    Ok(Content::Pprof {
        profile: body,
        config: HashMap::new(),
    })
}

fn unreadable(format: &str) -> ConnectError {
    ConnectError::invalid(format!("format `{format}` is not read yet, send pprof")).with_status(422)
}

/// A profile starts with a sample type (field 1, length-delimited) of at most four bytes of fields; text does not start with a line end.
fn looks_like_pprof(body: &[u8]) -> bool {
    matches!(body, [0x0a, 0..=22, ..])
}

fn form_upload(content_type: &str, body: Bytes) -> Result<Upload, ConnectError> {
    let parts = form::parse(content_type, &body)
        .map_err(|reason| ConnectError::invalid(format!("cannot read the form: {reason}")))?;
    let mut profile = None;
    let (mut config, mut config_weight) = (HashMap::new(), 0);
    for part in parts {
        match part.name.as_str() {
            "profile" => profile = Some(part.content),
            "prev_profile" => {
                return Err(ConnectError::invalid(
                    "the form has a `prev_profile`: this SDK is too old, upgrade pyroscope-go, which computes differences itself",
                )
                .with_status(422));
            }
            "sample_type_config" if part.content.len() > MAX_CONFIG_BYTES => {
                return Err(ConnectError::too_large(format!(
                    "the form has a `sample_type_config` of {} bytes, the limit is {MAX_CONFIG_BYTES}",
                    part.content.len()
                )));
            }
            "sample_type_config" => {
                config_weight = part.content.len() * CONFIG_FACTOR;
                config = serde_json::from_slice(&part.content).map_err(|error| {
                    ConnectError::invalid(format!("cannot read `sample_type_config` of the form: {error}"))
                })?;
            }
            "jfr" => return Err(unreadable("jfr")),
            _ => {}
        }
    }
    let profile = profile.ok_or_else(|| ConnectError::invalid("the form has no field `profile`"))?;
    Ok(Upload {
        content: Content::Pprof { profile, config },
        config_weight,
    })
}

/// `__name__` of a profile, from its sample types under the names that the SDK wants them shown.
fn profile_name(kinds: &[&str], config: &HashMap<String, SampleTypeConfig>) -> String {
    let shown: Vec<&str> = kinds.iter().map(|kind| shown_name(kind, config)).collect();
    if shown.contains(&"wall") {
        return "wall".to_owned();
    }
    shown
        .iter()
        .find_map(|name| known_name(name))
        .or(shown.last().copied())
        .unwrap_or_default()
        .to_owned()
}

fn shown_name<'a>(kind: &'a str, config: &'a HashMap<String, SampleTypeConfig>) -> &'a str {
    if let Some(config) = config.get(kind)
        && !config.display_name.is_empty()
    {
        return &config.display_name;
    }
    match kind {
        "samples" => "cpu",
        "goroutine" => "goroutines",
        "contentions" => "mutex_count",
        "delay" => "mutex_duration",
        kind => kind,
    }
}

fn known_name(shown: &str) -> Option<&'static str> {
    let has = |text: &str| shown.contains(text);
    if has("cpu") {
        Some("process_cpu")
    } else if has("alloc_") || has("inuse_") || matches!(shown, "space" | "objects") {
        Some("memory")
    } else if has("mutex_") {
        Some("mutex")
    } else if has("block_") {
        Some("block")
    } else if has("goroutines") {
        Some("goroutines")
    } else {
        None
    }
}

fn labels(query: &IngestQuery, app: &str, name: String) -> Labels {
    let is_kept = |name: &str| !name.starts_with("__") || name == "__session_id__";
    let has_service = query.labels.iter().any(|(name, _)| name == SERVICE_NAME);
    let app_label = if has_service { "app_name" } else { SERVICE_NAME };
    let own = [
        (app_label.to_owned(), app.to_owned()),
        (PROFILE_NAME.to_owned(), name),
        ("__delta__".to_owned(), "false".to_owned()),
        ("pyroscope_spy".to_owned(), query.spy_name.clone()),
    ];
    let given = query.labels.iter().filter(|(name, _)| is_kept(name)).cloned();
    Labels::from_pairs(given.chain(own))
}

#[cfg(test)]
mod tests;
