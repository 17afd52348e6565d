//! The output of `perf script`.
//!
//! In: text. Out: profiles. If the request has a sample rate other than 0, or the application's name states a measured
//! quantity other than CPU time, each sample counts as 1, as in Pyroscope. Otherwise each event becomes a profile of
//! its own. In such a profile, the value of a sample is the period that the text states.

use crate::connect::ConnectError;
use crate::ingest::format::{Format, Opening, Payload, ReadError, labels, too_large};
use crate::ingest::meaning::Meaning;
use crate::ingest::query::IngestQuery;
use crate::perf_script::{self, count_samples, read_events, size};
use alluvium_profile::DecodedProfile;

/// The format of `perf script`, recognised by the first line.
pub(crate) static PERF_SCRIPT: Format = Format {
    names: &["perf_script"],
    content_type: "",
    field: "",
    opens_gzip: false,
    is_like: perf_script::is_like,
    memory,
    read,
};

fn memory(payload: &Payload, opening: Opening) -> Result<usize, ConnectError> {
    let text = &payload.content;
    if text.len() > opening.limit() {
        return Err(too_large(opening.limit()));
    }
    Ok(size(text).1)
}

fn read(payload: &Payload, query: &IngestQuery, opening: Opening) -> Result<Vec<DecodedProfile>, ReadError> {
    if payload.content.len() > opening.limit() {
        return Err(too_large(opening.limit()).into());
    }
    let unreadable = |error: &dyn std::fmt::Display| {
        ConnectError::invalid(format!("cannot read the profile as the output of perf script: {error}"))
    };
    let text = std::str::from_utf8(&payload.content).map_err(|error| unreadable(&error))?;
    let (max_size, _) = size(&payload.content);
    let meaning = Meaning::of(&query.app, query)?;
    if query.sample_rate.is_some_and(|rate| rate != 0) || !meaning.is_default() {
        let tree = count_samples(text, max_size).map_err(|error| unreadable(&error))?;
        let columns = tree.into_columns(meaning.profile(query), meaning.scale);
        let (columns, _) = columns.map_err(|error| ConnectError::too_large(error.to_string()))?;
        return Ok(columns
            .into_iter()
            .map(|columns| meaning.decoded(query, columns))
            .collect());
    }
    let events = read_events(text, max_size).map_err(|error| unreadable(&error))?;
    let profiles = events.into_iter().map(|event| DecodedProfile {
        labels: labels(query, &meaning.app, &event.name),
        id: "".into(),
        columns: event.columns(query.from_nanos, query.duration_nanos()),
        pprof: None,
    });
    Ok(profiles.collect())
}
