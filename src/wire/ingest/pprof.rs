//! pprof, bare or in a form. The bytes are passed on unchanged unless the profile has no time or its agent deviates
//! from the format.
//!
//! The name of a profile follows from its sample types, or from the display names that the SDK sends for the types.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;

use crate::connect::ConnectError;
use crate::ingest::format::{Format, Opening, Payload, ReadError, labels, too_large};
use crate::ingest::query::IngestQuery;
use crate::ingest::spies::Spy;
use alluvium_profile::DecodedProfile;
use alluvium_profile::decoded::Columns;
use alluvium_profile::pprof::{self, GzipError};

/// The format of pprof profiles.
pub(crate) static PPROF: Format = Format {
    names: &["pprof"],
    content_type: "",
    field: "profile",
    opens_gzip: true,
    is_like: |body| pprof::is_gzip(body) || starts_as_pprof(body),
    memory,
    read,
};

/// Unix nanoseconds of 1971. A profile with an earlier time is treated as a profile without a time.
const FIRST_CREDIBLE_NANOS: i64 = 365 * 86_400 * 1_000_000_000;

/// Form field with the settings of sample types.
const CONFIG: &str = "sample_type_config";

/// Maximum size of the field [`CONFIG`] in bytes. SDKs send some hundred bytes.
const MAX_CONFIG_BYTES: usize = 64 << 10;

/// Memory in bytes for each byte of [`CONFIG`]. In the worst case, a setting of eight bytes becomes two strings in
/// a table.
const CONFIG_FACTOR: usize = 32;

/// Settings by sample type.
type Config = HashMap<String, SampleTypeConfig>;

/// Settings of a sample type, as SDKs send them. Only the display name is used.
#[derive(Deserialize)]
struct SampleTypeConfig {
    #[serde(rename = "display-name", default)]
    display_name: String,
}

/// Returns true for the start of a profile: a sample type (field 1, length-delimited) of at most 22 bytes. A sample
/// type consists of two numbers, each of at most 10 bytes after a tag of one byte. The first byte of a profile, 0x0a,
/// would be a line end in a text, and no text starts with a line end.
fn starts_as_pprof(body: &[u8]) -> bool {
    matches!(body, [0x0a, 0..=22, ..])
}

fn memory(payload: &Payload, opening: Opening) -> Result<usize, ConnectError> {
    if payload.field("prev_profile").is_some() {
        return Err(ConnectError::invalid(
            "the form has a `prev_profile`: this SDK is too old, upgrade pyroscope-go, which computes differences \
                itself",
        )
        .with_status(422));
    }
    let config = payload.field(CONFIG).map_or(0, bytes::Bytes::len);
    if config > MAX_CONFIG_BYTES {
        return Err(ConnectError::too_large(format!(
            "the form has a `{CONFIG}` of {config} bytes, the limit is {MAX_CONFIG_BYTES}"
        )));
    }
    let content = &payload.content;
    if !pprof::is_gzip(content) && content.len() > opening.limit() {
        return Err(too_large(opening.limit()));
    }
    let plain = opening.bytes(content);
    Ok(plain
        .saturating_add(pprof::max_column_bytes(plain))
        .saturating_add(config * CONFIG_FACTOR))
}

fn read(payload: &Payload, query: &IngestQuery, opening: Opening) -> Result<Vec<DecodedProfile>, ReadError> {
    let config: Config = match payload.field(CONFIG) {
        None => Config::new(),
        Some(config) => serde_json::from_slice(config)
            .map_err(|error| ConnectError::invalid(format!("cannot read `{CONFIG}` of the form: {error}")))?,
    };
    let (room, limit) = (opening.bytes(&payload.content), opening.limit());
    let plain = pprof::gunzip(&payload.content, room).map_err(|error| match error {
        GzipError::TooLarge { .. } if room < limit => ReadError::LargerThanAnnounced,
        GzipError::TooLarge { .. } => too_large(limit).into(),
        GzipError::Corrupt(_) => ConnectError::invalid(error.to_string()).into(),
    })?;
    let spy = Spy::of(&query.spy_name, || config.contains_key("inuse-space"));
    let decodable = spy.map_or(plain.clone(), |spy| spy.decodable(&plain));
    let mut columns = Columns::read(decodable, |plain| pprof::decode(plain))
        .map_err(|error| ConnectError::invalid(format!("cannot read the profile as pprof: {error}")))?;
    let kinds: Vec<&str> = columns.get().sample_types.iter().map(|kind| kind.kind).collect();
    let labels = labels(query, &query.app, &profile_name(&kinds, &config, spy));
    if let Some(spy) = spy {
        columns = spy.renamed(columns)?;
    }
    let is_unchanged = columns.buffer().as_ptr() == plain.as_ptr();
    let has_time = columns.get().time_nanos >= FIRST_CREDIBLE_NANOS;
    if !has_time {
        columns.change(|profile| {
            profile.time_nanos = query.from_nanos;
            if profile.duration_nanos == 0 {
                profile.duration_nanos = query.duration_nanos();
            }
        });
    }
    Ok(vec![DecodedProfile {
        labels,
        id: "".into(),
        columns,
        pprof: (has_time && is_unchanged).then(|| payload.content.clone()),
    }])
}

/// Returns the label `__name__` of a profile with these sample types. If one of the types is `wall`, the label is
/// `wall`, regardless of display names.
fn profile_name(kinds: &[&str], config: &Config, spy: Option<Spy>) -> String {
    if kinds.contains(&"wall") {
        return "wall".to_owned();
    }
    let shown_names = kinds.iter().map(|kind| shown_name(kind, config));
    let shown_names: Vec<Cow<'_, str>> = shown_names
        .map(|name| spy.map_or(Cow::Borrowed(name), |spy| spy.kind(name)))
        .collect();
    let name = shown_names.iter().find_map(|name| known_name(name));
    name.or(shown_names.last().map(Cow::as_ref))
        .unwrap_or_default()
        .to_owned()
}

fn shown_name<'a>(kind: &'a str, config: &'a Config) -> &'a str {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_follows_from_the_sample_types() {
        for (kinds, name) in [
            (&["samples", "cpu"][..], "process_cpu"),
            (&["cpu", "wall"], "wall"),
            (&["alloc_objects", "alloc_space"], "memory"),
            (&["inuse_space"], "memory"),
            (&["space"], "memory"),
            (&["contentions", "delay"], "mutex"),
            (&["goroutine"], "goroutines"),
            (&["exceptions"], "exceptions"),
            (&["a", "b"], "b"),
        ] {
            assert_eq!(profile_name(kinds, &Config::new(), None), name, "{kinds:?}");
        }
    }

    #[test]
    fn wall_time_is_wall_whatever_it_is_shown_as() {
        let shown_as = |kind: &str, name: &str| {
            let display_name = name.to_owned();
            Config::from([(kind.to_owned(), SampleTypeConfig { display_name })])
        };
        assert_eq!(profile_name(&["wall"], &shown_as("wall", "renamed"), None), "wall");
        assert_eq!(
            profile_name(&["goroutine"], &shown_as("goroutine", "renamed"), None),
            "renamed"
        );
        assert_eq!(
            profile_name(&["ticks"], &shown_as("ticks", "cpu_ticks"), None),
            "process_cpu"
        );
    }
}
