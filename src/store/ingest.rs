//! From bytes to rows: opens, decodes, checks and normalises one profile, before it may enter the write-ahead log.
//!
//! In: labels and pprof bytes. Out: [`Prepared`], which owns what it needs and can be applied to any head. Normalisation follows Pyroscope's
//! facts: `service_name` falls back to `unknown_service`, text labels of samples become labels of series, Go's shape type parameters
//! leave the names. All or nothing: a profile with one fault is refused whole. Nothing here touches a disk or a head.

use std::sync::Arc;

use bytes::Bytes;

use crate::base::segment::MAX_RECORD_BYTES;
use crate::profile::labels::{PROFILE_NAME, SERVICE_NAME};
use crate::profile::pprof::{self, GzipError, Line, Location, Profile, SampleLabel};
use crate::profile::{Labels, ProfileType, RawProfile, SinkErrorKind};
use crate::store::limits::{Limits, Rejection, exceeds};
use crate::store::split;

/// `service_name` of profiles that come without.
const UNKNOWN_SERVICE: &str = "unknown_service";
/// Prefix of the names that godeltaprof gives; its values are increments like the others'.
const GODELTAPROF: &str = "godeltaprof_";
/// Start of the type parameters that the Go compiler gives to shared instantiations of generic functions.
const GO_SHAPE: &str = "[go.shape.";

/// An accepted profile: rows by series, and the symbols to name their stacks.
#[derive(Debug)]
pub struct Prepared {
    /// Start of the profile, microseconds since 1970.
    pub time_us: i64,
    /// Length of the collection in nanoseconds.
    pub duration_ns: i64,
    /// Period of the pprof.
    pub period: i64,
    /// Id that the sender gave; may be empty.
    pub profile_id: Arc<str>,
    /// Profile type ids, one a column of `values`.
    pub types: Vec<Arc<str>>,
    /// Values, row by row: sample `i` owns `values[i * types.len()..][..types.len()]`.
    pub values: Vec<i64>,
    /// Content hash of the stack of each sample.
    pub stack_ids: Vec<u64>,
    /// The series, each with its samples. At least one.
    pub series: Vec<SeriesRows>,
    /// Span and trace of samples that have them, ascending by sample.
    pub links: Vec<Link>,
    /// Names of the frames.
    pub symbols: Symbols,
    /// Uncompressed size of the pprof in bytes.
    pub size: usize,
    /// Values that are zero and are not stored.
    pub zero_values: u64,
    /// Values that are negative and are not stored.
    pub negative_values: u64,
}

/// Samples of one series.
#[derive(Debug)]
pub struct SeriesRows {
    /// Identity: the hash of `labels`, bit for bit.
    pub id: i64,
    /// Labels without those that start with `__`.
    pub labels: Labels,
    /// Indices of its samples.
    pub samples: Samples,
}

/// Which samples of a profile.
#[derive(Debug)]
pub enum Samples {
    /// All of them: no sample has a text label.
    All(u32),
    /// These.
    Some(Vec<u32>),
}

/// Span and trace of a sample.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    /// Index of the sample.
    pub sample: u32,
    /// Span id, hexadecimal.
    pub span_id: Option<Box<str>>,
    /// Trace id, hexadecimal.
    pub trace_id: Option<Box<str>>,
}

/// The stacks of a profile as indices, with the texts in one shared buffer.
#[derive(Debug)]
pub struct Symbols {
    buffer: Bytes,
    /// Texts that are not in `buffer`; their spans start behind its end.
    extra: String,
    /// Name and file of each function.
    pub functions: Vec<(Span, Span)>,
    /// File and build id of each mapping.
    pub mappings: Vec<(Span, Span)>,
    /// See [`Profile::locations`].
    pub locations: Vec<Location>,
    /// See [`Profile::lines`].
    pub lines: Vec<Line>,
    sample_locations: Vec<u32>,
    sample_starts: Vec<u32>,
}

/// A text of [`Symbols`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    start: u32,
    length: u32,
}

impl Symbols {
    /// Locations of a sample, leaf first.
    pub fn stack(&self, sample: u32) -> &[u32] {
        let sample = sample as usize;
        &self.sample_locations[self.sample_starts[sample] as usize..self.sample_starts[sample + 1] as usize]
    }

    /// The text of a span.
    pub fn text(&self, span: Span) -> &str {
        let (start, length) = (span.start as usize, span.length as usize);
        match start.checked_sub(self.buffer.len()) {
            Some(start) => self.extra.get(start..start + length).unwrap_or_default(),
            None => std::str::from_utf8(&self.buffer[start..start + length]).unwrap_or_default(),
        }
    }
}

/// Checks and normalises a profile that was received at `received_ms` (milliseconds since 1970).
pub fn prepare(raw: &RawProfile, received_ms: i64, limits: &Limits) -> Result<Prepared, Rejection> {
    let labels = &raw.labels;
    let name = labels.get(PROFILE_NAME).ok_or_else(|| {
        Rejection::invalid(
            "missing_labels",
            format!("profile {labels} has no label {PROFILE_NAME}"),
        )
    })?;
    let name = name.strip_prefix(GODELTAPROF).unwrap_or(name);
    limits.check_labels(labels)?;
    let buffer = open(raw, limits)?;
    let malformed = |message: String| Rejection::invalid("malformed_profile", format!("profile {labels}: {message}"));
    let mut profile = pprof::decode(&buffer).map_err(|error| malformed(error.to_string()))?;
    check_counts(&profile, labels, limits)?;
    let types = profile_types(name, &profile).map_err(malformed)?;
    let time_ns = match profile.time_nanos {
        0 => received_ms.saturating_mul(1_000_000),
        time => time,
    };
    limits.check_time(labels, time_ns.div_euclid(1_000_000), received_ms)?;
    cut_depth(&mut profile, limits.max_profile_stacktrace_depth);
    // One look over all bytes: hardly any profile has such names, and a search in each name costs more than the search.
    let renamed = match memchr::memmem::find(&buffer, GO_SHAPE.as_bytes()) {
        Some(_) => renamed_functions(&profile),
        None => Vec::new(),
    };
    rename(&mut profile, &renamed, limits.max_profile_symbol_value_length);
    let stack_ids = pprof::stack_ids(&profile);

    let stored = stored_labels(labels);
    let (series, links) = split::split(&profile, &stored, limits)?;
    let (zero_values, negative_values) = profile.values.iter().fold((0, 0), |(zero, negative), value| {
        (zero + u64::from(*value == 0), negative + u64::from(*value < 0))
    });
    let (duration_ns, period) = (profile.duration_nanos, profile.period);
    let (values, symbols) = symbols(profile, &buffer);
    Ok(Prepared {
        time_us: time_ns.div_euclid(1_000),
        duration_ns,
        period,
        profile_id: raw.id.clone(),
        types,
        values,
        stack_ids,
        series,
        links,
        symbols,
        size: buffer.len(),
        zero_values,
        negative_values,
    })
}

/// The uncompressed bytes, within the limit.
fn open(raw: &RawProfile, limits: &Limits) -> Result<Bytes, Rejection> {
    let labels = &raw.labels;
    let limit = match limits.max_profile_size_bytes {
        0 => MAX_RECORD_BYTES,
        limit => limit,
    };
    pprof::gunzip(&raw.pprof, limit).map_err(|error| match error {
        GzipError::TooLarge { limit } => Rejection::new(
            "profile_size_limit",
            SinkErrorKind::TooLarge,
            format!("profile {labels} exceeds the size limit of {limit} bytes uncompressed (max_profile_size_bytes)"),
        ),
        GzipError::Corrupt(reason) => {
            Rejection::invalid("malformed_profile", format!("profile {labels}: corrupt gzip: {reason}"))
        }
    })
}

fn check_counts(profile: &Profile<'_>, labels: &Labels, limits: &Limits) -> Result<(), Rejection> {
    let samples = profile.sample_count();
    if exceeds(samples, limits.max_profile_stacktrace_samples) {
        let limit = limits.max_profile_stacktrace_samples;
        return Err(Rejection::new(
            "samples_limit",
            SinkErrorKind::TooLarge,
            format!(
                "profile {labels} has {samples} samples, at most {limit} are allowed (max_profile_stacktrace_samples)"
            ),
        ));
    }
    let most = profile
        .label_starts
        .windows(2)
        .map(|pair| pair[1] - pair[0])
        .max()
        .unwrap_or(0) as usize;
    if exceeds(most, limits.max_profile_stacktrace_sample_labels) {
        let limit = limits.max_profile_stacktrace_sample_labels;
        return Err(Rejection::new(
            "sample_labels_limit",
            SinkErrorKind::TooLarge,
            format!(
                "profile {labels} has a sample with {most} labels, at most {limit} are allowed (max_profile_stacktrace_sample_labels)"
            ),
        ));
    }
    Ok(())
}

/// The type ids of the columns, or what is wrong with the names.
fn profile_types(name: &str, profile: &Profile<'_>) -> Result<Vec<Arc<str>>, String> {
    let period = profile.period_type;
    profile
        .sample_types
        .iter()
        .map(|value| {
            if value.kind.contains('-') {
                return Err(format!("sample type `{}` must not contain `-`", value.kind));
            }
            if value.kind.is_empty() {
                return Err("a sample type has no name".to_owned());
            }
            // Some profilers call a CPU profile `wall`; Pyroscope's default rules rename it.
            let name = if name == "wall" && value.kind == "cpu" {
                "process_cpu"
            } else {
                name
            };
            for part in [name, value.kind, value.unit, period.kind, period.unit] {
                if part.contains(':') {
                    return Err(format!(
                        "`{part}` must not contain `:`, which separates the parts of a profile type"
                    ));
                }
            }
            let id = ProfileType {
                name: name.to_owned(),
                sample_type: value.kind.to_owned(),
                sample_unit: value.unit.to_owned(),
                period_type: period.kind.to_owned(),
                period_unit: period.unit.to_owned(),
            };
            Ok(Arc::from(id.to_string()))
        })
        .collect()
}

/// Labels that the series table keeps: without private ones, with a service name.
fn stored_labels(labels: &Labels) -> Labels {
    let stored = labels.filtered(|name| !name.starts_with("__"));
    match stored.get(SERVICE_NAME) {
        Some(_) => stored,
        None => stored.with(SERVICE_NAME, UNKNOWN_SERVICE),
    }
}

/// Cuts stacks at the leaf: the root side says where the time belongs.
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

/// Functions whose name holds Go's shape parameters, with the name without them.
fn renamed_functions(profile: &Profile<'_>) -> Vec<(usize, String)> {
    profile
        .functions
        .iter()
        .enumerate()
        .filter_map(|(index, function)| without_go_shapes(function.display_name()).map(|name| (index, name)))
        .collect()
}

fn without_go_shapes(name: &str) -> Option<String> {
    let mut found = memchr::memmem::find(name.as_bytes(), GO_SHAPE.as_bytes())?;
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    loop {
        let (before, parameters) = rest.split_at(found);
        out.push_str(before);
        // Parameters nest: `[go.shape.struct { a []int }]`.
        let mut depth = 0usize;
        let end = parameters.bytes().position(|byte| {
            match byte {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            depth == 0
        });
        rest = match end {
            Some(end) => &parameters[end + 1..],
            // Cut off within the parameters, as very long names are.
            None => "",
        };
        match rest.find(GO_SHAPE) {
            Some(next) => found = next,
            None => {
                out.push_str(rest);
                return Some(out);
            }
        }
    }
}

fn rename<'a>(profile: &mut Profile<'a>, renamed: &'a [(usize, String)], limit: usize) {
    for (index, name) in renamed {
        profile.functions[*index].name = name;
    }
    if limit == 0 {
        return;
    }
    for function in &mut profile.functions {
        function.name = end_of(function.name, limit);
        function.system_name = end_of(function.system_name, limit);
        function.file = end_of(function.file, limit);
    }
    for mapping in &mut profile.mappings {
        mapping.file = end_of(mapping.file, limit);
        mapping.build_id = end_of(mapping.build_id, limit);
    }
}

/// The last bytes of a text, at most `limit`, cut at a character.
fn end_of(text: &str, limit: usize) -> &str {
    let mut start = text.len().saturating_sub(limit);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// Turns borrowed strings into spans of the buffer and keeps the columns.
fn symbols(profile: Profile<'_>, buffer: &Bytes) -> (Vec<i64>, Symbols) {
    let mut extra = String::new();
    let base = buffer.as_ptr() as usize;
    let mut span = |text: &str| {
        let length = text.len() as u32;
        let offset = (text.as_ptr() as usize).wrapping_sub(base);
        if text.is_empty() {
            return Span::default();
        }
        if offset < buffer.len() && buffer.len() - offset >= text.len() {
            let start = offset as u32;
            return Span { start, length };
        }
        let start = (buffer.len() + extra.len()) as u32;
        extra.push_str(text);
        Span { start, length }
    };
    let functions = profile
        .functions
        .iter()
        .map(|function| (span(function.display_name()), span(function.file)))
        .collect();
    let mappings = profile
        .mappings
        .iter()
        .map(|mapping| (span(mapping.file), span(mapping.build_id)))
        .collect();
    let symbols = Symbols {
        buffer: buffer.clone(),
        extra,
        functions,
        mappings,
        locations: profile.locations,
        lines: profile.lines,
        sample_locations: profile.sample_locations,
        sample_starts: profile.sample_starts,
    };
    (profile.values, symbols)
}

/// True for the sample labels that stay on samples.
pub(crate) fn is_link(label: &SampleLabel<'_>) -> bool {
    matches!(label, SampleLabel::Text("profile_id" | "span_id" | "trace_id", _))
}

#[cfg(test)]
#[path = "ingest_tests.rs"]
mod tests;
