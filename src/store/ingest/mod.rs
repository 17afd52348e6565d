//! Prepares profiles for the store: decompresses, decodes, checks and normalises one profile before it may enter the
//! write-ahead log.
//!
//! In: labels and pprof bytes. Out: [`Prepared`], which owns its data and can be applied to any head. Normalisation
//! matches Pyroscope: `service_name` defaults to `unknown_service`, and text labels of samples become labels of series
//! (numeric labels only if the tenant's rules name them). The tenant's relabel rules are applied, and Go's shape type
//! parameters are removed from names. The order of the steps is Pyroscope's: limits of the profile, rules for sample
//! types, limit of sessions, split by labels of samples, rules for series, limits of labels, sanitising of label names.
//! A profile with any error is refused as a whole. The size to which a profile expands has separate [`bounds`],
//! independent of the configured limits. This module accesses neither a disk nor a head.

mod bounds;
mod defaults;
mod go_names;
mod prepared;
mod reshape;
mod sessions;
mod split;
mod texts;

use std::sync::Arc;

use bytes::Bytes;
use uuid::Uuid;
use xxhash_rust::xxh3::Xxh3;

use crate::store::common::schema;
use crate::store::ingest::defaults::{default_name, stored_labels};
use crate::store::ingest::go_names::GoNames;
use crate::store::ingest::reshape::reshape;
use crate::store::ingest::sessions::limit_sessions;
use crate::store::ingest::texts::Spans;
use crate::store::rules::limits::{Limits, Rejection, exceeds};
use crate::store::rules::relabel_rules::{DefaultRules, RelabelRules};
use alluvium_base::segment::MAX_RECORD_BYTES;
use alluvium_profile::decoded::Columns;
use alluvium_profile::labels::PROFILE_NAME;
use alluvium_profile::pprof::{self, Code, GzipError, Profile};
use alluvium_profile::{Labels, ProfileType, ProfileTypeId, RawProfile, SinkErrorKind, StackId};

use prepared::Function;
pub(crate) use prepared::{Prepared, Span};
pub(in crate::store) use prepared::{Samples, Symbols};

/// Value of the metric's label `reason` for profiles that the tenant's relabel rules drop.
pub(crate) const DROPPED: &str = "dropped_by_relabel_rules";

/// Maximum size in bytes of the buffer that holds a profile's texts. The positions of texts have 32 bits.
const MAX_BUFFER_BYTES: usize = u32::MAX as usize / 2;

/// The reason why a profile was not prepared.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The profile is refused.
    Rejected(Rejection),
    /// The profile has more uncompressed bytes than it announced. It may still be within the size limit.
    LargerThanAnnounced,
    /// The tenant's relabel rules drop the whole profile. The sender receives a success response.
    Dropped,
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

/// Returns the uncompressed size in bytes that a profile announces, up to the size limit.
pub(crate) fn announced_size(raw: &RawProfile, limits: &Limits) -> usize {
    pprof::announced_size(&raw.pprof, size_limit(limits))
}

/// Returns an upper bound in bytes of the memory that [`prepare`] needs for a profile of `size` uncompressed bytes: the
/// bytes, their columns, and the result.
pub(crate) fn memory_for(size: usize) -> usize {
    size + pprof::max_column_bytes(size)
}

/// Like [`memory_for`], for a profile that arrives decoded: its columns, its bytes for the log, and the result.
pub(crate) fn memory_for_decoded(columns: &Columns) -> usize {
    2 * columns.bytes()
}

/// Returns the largest uncompressed size in bytes of a profile that may be stored.
pub(crate) fn size_limit(limits: &Limits) -> usize {
    match limits.max_profile_size_bytes {
        0 => MAX_RECORD_BYTES,
        limit => limit.min(MAX_RECORD_BYTES),
    }
}

/// Checks and normalises a profile that was received at `received_ms` (milliseconds since 1970).
pub(in crate::store) fn prepare(raw: &RawProfile, received_ms: i64, limits: &Limits) -> Result<Prepared, Rejection> {
    prepare_within(raw, received_ms, limits, usize::MAX).map_err(|refusal| match refusal {
        Refusal::Rejected(rejection) => rejection,
        Refusal::LargerThanAnnounced => too_large(raw, size_limit(limits)),
        Refusal::Dropped => Rejection::invalid(
            DROPPED,
            format!("the relabel rules drop the profile {}", raw.labels.short()),
        ),
    })
}

/// Like [`prepare`], but refuses to decompress a profile of more than `room` uncompressed bytes.
pub(crate) fn prepare_within(
    raw: &RawProfile,
    received_ms: i64,
    limits: &Limits,
    room: usize,
) -> Result<Prepared, Refusal> {
    let name = check_head(raw, limits)?;
    let buffer = open(raw, limits, room)?;
    let profile = pprof::decode(&buffer).map_err(|error| malformed(&raw.labels, error.to_string()))?;
    let source = Source {
        raw,
        name,
        size: buffer.len(),
        buffer: &buffer,
        received_ms,
    };
    prepare_columns(&source, profile, limits)
}

/// Like [`prepare`], for a profile that arrives decoded. `raw` holds its bytes for the log.
pub(crate) fn prepare_decoded(
    raw: &RawProfile,
    columns: Columns,
    received_ms: i64,
    limits: &Limits,
) -> Result<Prepared, Refusal> {
    let name = check_head(raw, limits)?;
    let (size, limit) = if pprof::is_gzip(&raw.pprof) {
        (columns.buffer().len(), size_limit(limits))
    } else {
        (raw.pprof.len(), size_limit(limits))
    };
    if size > limit || columns.buffer().len() > MAX_BUFFER_BYTES {
        return Err(too_large(raw, limit).into());
    }
    columns.take(|buffer, profile| {
        let source = Source {
            raw,
            name,
            size,
            buffer,
            received_ms,
        };
        prepare_columns(&source, profile, limits)
    })
}

/// Runs the checks that need no decoding. Returns the value of the label `__name__`, the first part of the
/// profile type.
fn check_head<'a>(raw: &'a RawProfile, limits: &Limits) -> Result<&'a str, Rejection> {
    let labels = &raw.labels;
    let name = labels.get(PROFILE_NAME).ok_or_else(|| {
        Rejection::invalid(
            "missing_labels",
            format!("profile {} has no label {PROFILE_NAME}", labels.short()),
        )
    })?;
    // If there are rules, they may still change the labels, so the labels are checked after the rules. Without rules, a
    // session id is never stored.
    if limits.rules.is_none() {
        limits.check_labels(&limit_sessions(labels, None))?;
    }
    bounds::check_id(&raw.id)?;
    Ok(name)
}

fn malformed(labels: &Labels, message: String) -> Rejection {
    Rejection::invalid("malformed_profile", format!("profile {}: {message}", labels.short()))
}

/// The origin of the decoded columns.
struct Source<'a> {
    raw: &'a RawProfile,
    /// First part of the profile type as the sender sent it, such as `process_cpu`.
    name: &'a str,
    /// Uncompressed size of the pprof in bytes.
    size: usize,
    /// The buffer that holds the texts of the columns.
    buffer: &'a Bytes,
    received_ms: i64,
}

fn prepare_columns(source: &Source<'_>, profile: Profile<'_>, limits: &Limits) -> Result<Prepared, Refusal> {
    let Source {
        raw,
        name,
        size,
        buffer,
        received_ms,
    } = *source;
    let rules = limits.rules.as_deref();
    let labels = &raw.labels;
    // The new names of functions do not live as long as the buffer, so the profile needs a shorter lifetime.
    let mut profile = profile;
    check_counts(&profile, labels, limits)?;
    bounds::check_types(name, &profile)?;
    let has_defaults = rules.is_none_or(|rules| rules.defaults() != DefaultRules::Disabled);
    let types = profile_types(name, has_defaults, &profile).map_err(|error| malformed(labels, error.to_string()))?;
    let is_dated = profile.time_nanos != 0;
    let time_ns = match profile.time_nanos {
        0 => received_ms.saturating_mul(1_000_000),
        time => time,
    };
    limits.check_time(labels, time_ns.div_euclid(1_000_000), received_ms)?;
    cut_depth(&mut profile, limits.max_profile_stacktrace_depth);
    let renamed = GoNames::of(&profile, buffer);
    rename(&mut profile, &renamed, limits.max_profile_symbol_value_length);
    bounds::check_names(&profile)?;
    let stack_ids = pprof::stack_ids(&profile);
    let frames = bounds::check_stacks(&profile, &stack_ids)?;

    let mut spans = Spans::new(buffer);
    let limited = limit_sessions(labels, rules.and_then(RelabelRules::max_sessions));
    let (mut series, links) = split::split(&profile, &stored_labels(&limited, rules), limits, &mut spans)?;
    let (zero_values, negative_values) = profile.values.iter().fold((0, 0), |(zero, negative), value| {
        (zero + u64::from(*value == 0), negative + u64::from(*value < 0))
    });
    let mut relabelled_values = 0;
    if let Some(rules) = rules {
        let reshaped = reshape(&mut profile, labels, (rules, limits), series)?.ok_or(Refusal::Dropped)?;
        (series, relabelled_values) = (reshaped.series, reshaped.dropped_values);
    }
    let (duration_ns, period) = (profile.duration_nanos, profile.period);
    let (values, symbols) = symbols(profile, spans, buffer);
    Ok(Prepared {
        time_us: time_ns.div_euclid(1_000),
        is_dated,
        duration_ns,
        period,
        profile_id: profile_id(raw, time_ns, series.len()),
        types,
        values,
        stack_ids: stack_ids.into_iter().map(|id| StackId(id as i64)).collect(),
        series,
        links,
        symbols,
        size,
        zero_values,
        negative_values,
        relabelled_values,
        frames,
    })
}

/// Returns the id of the rows of a profile. If the sender set no id and the profile becomes several series, the id is
/// made from labels, time and bytes, because queries recognise the rows of one profile by their id. A replay of the log
/// makes the same id.
fn profile_id(raw: &RawProfile, time_ns: i64, series: usize) -> Arc<str> {
    if !raw.id.is_empty() || series < 2 {
        return raw.id.clone();
    }
    let mut hasher = Xxh3::new();
    hasher.update(&raw.labels.hash64().to_le_bytes());
    hasher.update(&time_ns.to_le_bytes());
    hasher.update(&raw.pprof);
    Uuid::from_u128(hasher.digest128()).to_string().into()
}

/// Decompresses a profile within the limit and within `room`.
fn open(raw: &RawProfile, limits: &Limits, room: usize) -> Result<Bytes, Refusal> {
    let limit = size_limit(limits);
    pprof::gunzip(&raw.pprof, limit.min(room)).map_err(|error| match error {
        GzipError::TooLarge { .. } if room < limit => Refusal::LargerThanAnnounced,
        GzipError::TooLarge { limit } => Refusal::Rejected(too_large(raw, limit)),
        GzipError::Corrupt(reason) => Refusal::Rejected(malformed(&raw.labels, format!("corrupt gzip: {reason}"))),
    })
}

fn too_large(raw: &RawProfile, limit: usize) -> Rejection {
    Rejection::new(
        "profile_size_limit",
        SinkErrorKind::TooLarge,
        format!(
            "profile {} exceeds the size limit of {limit} uncompressed bytes (max_profile_size_bytes)",
            raw.labels.short()
        ),
    )
}

fn check_counts(profile: &Profile<'_>, labels: &Labels, limits: &Limits) -> Result<(), Rejection> {
    let samples = profile.sample_count();
    if exceeds(samples, limits.max_profile_stacktrace_samples) {
        let limit = limits.max_profile_stacktrace_samples;
        return Err(Rejection::new(
            "samples_limit",
            SinkErrorKind::TooLarge,
            format!(
                "profile {} has {samples} samples, but at most {limit} are allowed (max_profile_stacktrace_samples)",
                labels.short()
            ),
        ));
    }
    let max = profile
        .label_starts
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap_or(0) as usize;
    if exceeds(max, limits.max_profile_stacktrace_sample_labels) {
        let limit = limits.max_profile_stacktrace_sample_labels;
        return Err(Rejection::new(
            "sample_labels_limit",
            SinkErrorKind::TooLarge,
            format!(
                "profile {} has a sample with {max} labels, but at most {limit} are allowed \
                    (max_profile_stacktrace_sample_labels)",
                labels.short()
            ),
        ));
    }
    Ok(())
}

/// The reason why a profile type has no id.
#[derive(Debug, thiserror::Error)]
enum TypeError {
    #[error("sample type `{0}` must not contain `-`")]
    Dash(String),
    #[error("a sample type has no name")]
    NoName,
    #[error("`{0}` must not contain `:`, which separates the parts of a profile type")]
    Colon(String),
}

/// Returns the profile types of the columns, or an error if a name is invalid. If `has_defaults` is true, the default
/// rules for names are applied.
fn profile_types(name: &str, has_defaults: bool, profile: &Profile<'_>) -> Result<Vec<ProfileTypeId>, TypeError> {
    let period = profile.period_type;
    profile
        .sample_types
        .iter()
        .map(|value| {
            if value.kind.contains('-') {
                return Err(TypeError::Dash(value.kind.to_owned()));
            }
            if value.kind.is_empty() {
                return Err(TypeError::NoName);
            }
            let name = if has_defaults {
                default_name(name, value.kind)
            } else {
                name
            };
            for part in [name, value.kind, value.unit, period.kind, period.unit] {
                if part.contains(':') {
                    return Err(TypeError::Colon(part.to_owned()));
                }
            }
            let parts = ProfileType {
                name: name.to_owned(),
                sample_type: value.kind.to_owned(),
                sample_unit: value.unit.to_owned(),
                period_type: period.kind.to_owned(),
                period_unit: period.unit.to_owned(),
            };
            Ok((&parts).into())
        })
        .collect()
}

/// Removes the innermost frames of stacks with more than `limit` locations; 0 means no limit. The frames near the root
/// stay, because they show which part of the program uses the time.
fn cut_depth(profile: &mut Profile<'_>, limit: usize) {
    if limit == 0
        || !profile
            .sample_starts
            .windows(2)
            .any(|pair| (pair[1] - pair[0]) as usize > limit)
    {
        return;
    }
    let mut locations = Vec::with_capacity(profile.sample_locations.len());
    let mut starts = Vec::with_capacity(profile.sample_starts.len());
    starts.push(0);
    for sample in 0..profile.sample_count() {
        let stack = profile.stack(sample);
        locations.extend_from_slice(&stack[stack.len().saturating_sub(limit)..]);
        starts.push(locations.len() as u32);
    }
    profile.sample_locations = locations;
    profile.sample_starts = starts;
}

/// Applies the new names of functions, and keeps only the last `limit` bytes of each name. 0 means no limit.
fn rename<'a>(profile: &mut Profile<'a>, renamed: &'a GoNames, limit: usize) {
    let shorten = |text: &'a str| if limit == 0 { text } else { end_of(text, limit) };
    for function in &mut profile.functions {
        if let Some(name) = renamed.get(function.display_name()) {
            function.name = name;
        }
        function.name = shorten(function.name);
        function.system_name = shorten(function.system_name);
        function.file = shorten(function.file);
    }
    for mapping in &mut profile.mappings {
        mapping.file = shorten(mapping.file);
        mapping.build_id = shorten(mapping.build_id);
    }
}

/// Returns the end of a text, at most `limit` bytes. The cut is at a character boundary.
fn end_of(text: &str, limit: usize) -> &str {
    let mut start = text.len().saturating_sub(limit);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Converts borrowed strings to spans of the buffer, and returns the values and the symbols.
fn symbols(mut profile: Profile<'_>, mut spans: Spans<'_>, buffer: &Bytes) -> (Vec<i64>, Symbols) {
    let functions = profile
        .functions
        .iter()
        .map(|function| Function {
            name: spans.span_of(function.display_name()),
            file: spans.span_of(function.file),
            start_line: i32::try_from(function.start_line).unwrap_or(0).max(0),
        })
        .collect::<Vec<_>>();
    let mappings = profile
        .mappings
        .iter()
        .map(|mapping| (spans.span_of(mapping.file), spans.span_of(mapping.build_id)))
        .collect();
    let code_lines = locate(&mut profile);
    let symbols = Symbols {
        buffer: buffer.clone(),
        extra: spans.into_extra(),
        has_start_lines: functions.iter().any(|function| function.start_line != 0),
        functions,
        mappings,
        locations: profile.locations,
        code_lines,
        lines: profile.lines,
        sample_locations: profile.sample_locations,
        sample_starts: profile.sample_starts,
    };
    (profile.values, symbols)
}

/// If a location has no function and its code is in a file, replaces the address of the location by the offset in the
/// file. Returns the value of the column `line` for each location, or nothing if all values are 0.
fn locate(profile: &mut Profile<'_>) -> Vec<i64> {
    let mut lines = Vec::new();
    for index in 0..profile.locations.len() {
        let location = profile.locations[index];
        if location.lines_start == location.lines_end
            && let Code::InFile { offset, mapped } = profile.code_of(&location)
        {
            lines.resize(profile.locations.len(), 0);
            lines[index] = schema::in_file(mapped);
            profile.locations[index].address = offset;
        }
    }
    lines
}

#[cfg(test)]
mod tests;
