//! Recordings of Java Flight Recorder, bare or in a form with a label snapshot: one profile for each kind of event.
//!
//! Names and types are the same as in Pyroscope. If the query has no times, the times of the recording are used.

use bytes::Bytes;

use crate::connect::ConnectError;
use crate::ingest::format::{Format, Opening, Payload, ReadError, labels, too_large};
use crate::ingest::query::{DEFAULT_SAMPLE_RATE, IngestQuery};
use alluvium_profile::DecodedProfile;
use alluvium_profile::jfr::{self, Recording, RecordingFacts};
use alluvium_profile::pprof::{self, GzipError};

/// The format of JFR recordings.
pub(crate) static JFR: Format = Format {
    names: &["jfr"],
    content_type: "",
    field: "jfr",
    opens_gzip: true,
    is_like: |body| body.starts_with(b"FLR\0"),
    memory,
    read,
};

/// Form field with the label snapshot.
const LABELS: &str = "labels";

const SECOND_NANOS: i64 = 1_000_000_000;

fn memory(payload: &Payload, opening: Opening) -> Result<usize, ConnectError> {
    let parts = [Some(&payload.content), payload.field(LABELS)].into_iter().flatten();
    let mut plain: usize = 0;
    for part in parts {
        if !pprof::is_gzip(part) && part.len() > opening.limit() {
            return Err(too_large(opening.limit()));
        }
        plain = plain.saturating_add(opening.bytes(part));
    }
    Ok(plain.saturating_add(jfr::max_bytes(plain)))
}

fn read(payload: &Payload, query: &IngestQuery, opening: Opening) -> Result<Vec<DecodedProfile>, ReadError> {
    let file = open(&payload.content, opening)?;
    let snapshot = payload
        .field(LABELS)
        .map_or(Ok(Bytes::new()), |part| open(part, opening))?;
    let recording = Recording::read(&file, &snapshot)
        .map_err(|error| ConnectError::invalid(format!("cannot read the profile as JFR: {error}")).with_status(422))?;
    let period_nanos = match (query.sample_rate, recording.interval_nanos()) {
        (None, Some(interval)) => interval,
        (rate, _) => SECOND_NANOS
            .checked_div(i64::from(rate.unwrap_or(DEFAULT_SAMPLE_RATE)))
            .unwrap_or(0),
    };
    let (time_nanos, duration_nanos) = match query.duration_nanos() {
        0 => (recording.start_nanos(), recording.duration_nanos()),
        duration => (query.from_nanos, duration),
    };
    let facts = RecordingFacts {
        time_nanos,
        duration_nanos,
        period_nanos,
    };
    let profiles = recording.profiles(&facts).into_iter();
    let decoded = profiles.map(|profile| DecodedProfile {
        labels: labels(query, &query.app, profile.name).with("jfr_event", recording.event()),
        id: "".into(),
        columns: profile.columns,
        pprof: None,
    });
    Ok(decoded.collect())
}

/// Returns the bytes of a part, decompressed if necessary.
fn open(part: &Bytes, opening: Opening) -> Result<Bytes, ReadError> {
    let (room, limit) = (opening.bytes(part), opening.limit());
    pprof::gunzip(part, room).map_err(|error| match error {
        GzipError::TooLarge { .. } if room < limit => ReadError::LargerThanAnnounced,
        GzipError::TooLarge { .. } => too_large(limit).into(),
        GzipError::Corrupt(_) => ConnectError::invalid(error.to_string()).into(),
    })
}
