//! Reads files of profilers. The contents decide the format, not the name of the file.
//!
//! In: the bytes of a file, with or without gzip compression. Out: [`Imported`] with the format and the profiles, or an
//! error, with its position in the file if it has one. Limits apply to the decompressed bytes, and to the sizes of the
//! profiles: nodes of the call tree, bytes of names, stacks and frames. The readers of `profile` and `ingest` read
//! pprof, Go's text, JFR and speedscope. Each other format has a module here.

mod collapsed;
mod cpuprofile;
mod detect;
mod durations;
mod error;
mod firefox;
mod imported;
mod instruments;
mod nettrace;
mod perf_script;
pub mod synthetic;
#[cfg(test)]
mod tests;
mod trace;
mod v8;

use bytes::Bytes;

use crate::byte_order::without_mark;
use crate::ingest;
use alluvium_profile::decoded::Columns;
use alluvium_profile::jfr::{Recording, RecordingFacts};
use alluvium_profile::{legacy, pprof};

pub use error::FileError;
pub use imported::{FileFormat, Imported, ImportedProfile};

/// Interval between samples, for a recording that does not state it: 100 Hz, the default of `/ingest`.
const RECORDING_PERIOD_NANOS: i64 = 10_000_000;

/// Parameters with which `ingest` reads a speedscope file. With a sample rate of 0, values without a unit are counts.
const SPEEDSCOPE: &str = "name=import&format=speedscope&sampleRate=0";

/// Reads a file of at most `max_bytes` bytes after decompression.
pub fn read(content: &Bytes, max_bytes: usize) -> Result<Imported, FileError> {
    let plain = without_mark(pprof::gunzip(content, max_bytes)?);
    let format = detect::format(&plain)?;
    let profiles = match format {
        FileFormat::Pprof => {
            let columns = Columns::read(plain, |plain| pprof::decode(plain));
            let columns = columns.map_err(|error| format.invalid(&error))?;
            vec![ImportedProfile {
                pprof: Some(content.clone()),
                ..ImportedProfile::new("", columns)
            }]
        }
        FileFormat::GoText => {
            let columns = Columns::read(plain, |plain| legacy::read(plain));
            let columns = columns.map_err(|error| format.invalid(&error))?;
            vec![ImportedProfile::new("", columns)]
        }
        FileFormat::Jfr => recording(&plain)?,
        FileFormat::Speedscope => speedscope(plain, max_bytes)?,
        FileFormat::PerfScript => perf_script::read(text(&plain, format)?)?,
        FileFormat::CpuProfile => cpuprofile::read(&plain)?,
        FileFormat::ChromeTrace => trace::read(&plain)?,
        FileFormat::Firefox => firefox::read(&plain)?,
        FileFormat::Nettrace => nettrace::read(&plain)?,
        FileFormat::Instruments => instruments::read(text(&plain, format)?)?,
        FileFormat::Collapsed => collapsed::read(text(&plain, format)?)?,
    };
    let profiles: Vec<ImportedProfile> = profiles
        .into_iter()
        .filter(|profile| profile.columns.get().sample_count() > 0)
        .collect();
    if profiles.is_empty() {
        return Err(format.invalid(&"it has no samples"));
    }
    Ok(Imported { format, profiles })
}

fn recording(plain: &[u8]) -> Result<Vec<ImportedProfile>, FileError> {
    let recording = Recording::read(plain, &[]).map_err(|error| FileFormat::Jfr.invalid(&error))?;
    let facts = RecordingFacts {
        time_nanos: recording.start_nanos(),
        duration_nanos: recording.duration_nanos(),
        period_nanos: recording.interval_nanos().unwrap_or(RECORDING_PERIOD_NANOS),
    };
    let label = ("jfr_event".to_owned(), recording.event().to_owned());
    let profiles = recording.profiles(&facts).into_iter().map(|profile| ImportedProfile {
        labels: Some(&label)
            .filter(|(_, event)| !event.is_empty())
            .cloned()
            .into_iter()
            .collect(),
        ..ImportedProfile::new(profile.name, profile.columns)
    });
    Ok(profiles.collect())
}

fn speedscope(plain: Bytes, max_bytes: usize) -> Result<Vec<ImportedProfile>, FileError> {
    let format = FileFormat::Speedscope;
    let decoded_profiles =
        ingest::read_columns(SPEEDSCOPE, "", plain, max_bytes).map_err(|error| format.invalid(&error.message))?;
    let profiles = decoded_profiles.into_iter().map(|decoded| {
        let label = |name: &str| decoded.labels.get(name).unwrap_or_default();
        let part = Some(label("profile_name")).filter(|part| !part.is_empty());
        ImportedProfile {
            labels: part
                .map(|part| ("profile_name".to_owned(), part.to_owned()))
                .into_iter()
                .collect(),
            ..ImportedProfile::new(label("__name__"), decoded.columns)
        }
    });
    Ok(profiles.collect())
}

fn text(plain: &Bytes, format: FileFormat) -> Result<&str, FileError> {
    std::str::from_utf8(plain).map_err(|error| format.invalid(&error))
}
