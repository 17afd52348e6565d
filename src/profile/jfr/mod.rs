//! Reads recordings of Java Flight Recorder, written by the Java Development Kit or by async-profiler.
//!
//! In: the uncompressed bytes of a recording, and the labels that may come with it. Out: a profile for each kind of
//! sample event, with Pyroscope's names of types and frames. The bytes are untrusted: the size of each part is checked
//! before memory is allocated for it, and the size of the file limits the work.
//!
//! A recording is a sequence of chunks. A chunk has a header, events, constants that events refer to by number, and
//! metadata that describes the fields of events and constants. The format is the output format of OpenJDK's recorder
//! (`jdk.jfr.internal`).

mod budget;
mod chunk;
mod constants;
mod error;
mod events;
mod generated;
mod kinds;
mod lookup;
mod metadata;
mod profiles;
mod reader;
mod samples;
mod settings;
mod snapshot;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod texts;
mod types;

pub use budget::max_bytes;
pub use error::{JfrError, JfrErrorKind};
pub use profiles::{JfrProfile, RecordingFacts};

use budget::Budget;
use chunk::Chunk;
use constants::Constants;
use events::Sums;
use profiles::Parts;
use samples::Samples;
use settings::Settings;
use snapshot::Snapshot;

/// A recording that was read completely.
pub struct Recording {
    parts: Parts,
    settings: Settings,
    start_nanos: i64,
    end_nanos: i64,
}

impl Recording {
    /// Reads a recording. `labels` is the snapshot of labels that came with the recording, or empty.
    pub fn read(file: &[u8], labels: &[u8]) -> Result<Self, JfrError> {
        let at_start = |kind| JfrError { offset: 0, kind };
        if file.is_empty() {
            return Err(at_start(JfrErrorKind::Empty));
        }
        if u32::try_from(file.len()).is_err() {
            return Err(at_start(JfrErrorKind::TooLarge(file.len())));
        }
        let mut sums = Sums {
            samples: Samples::default(),
            settings: Settings::default(),
            budget: Budget::of_recording(file.len() + labels.len()),
        };
        let snapshot = Snapshot::read(labels, &mut sums.budget)?;
        let (mut start_nanos, mut end_nanos) = (i64::MAX, i64::MIN);
        let mut chunk_start = 0;
        while chunk_start < file.len() {
            let chunk = Chunk::read(file, chunk_start)?;
            let mut chunk_budget = Budget::of_chunk(chunk.end - chunk.start);
            let types = metadata::read(chunk.reader(file, chunk.metadata), &mut chunk_budget)?;
            let constants = Constants::read(file, &chunk, &types, &mut chunk_budget)?;
            events::read(file, &chunk, &types, &constants, &mut sums, &mut chunk_budget)?;
            start_nanos = start_nanos.min(chunk.start_nanos);
            end_nanos = end_nanos.max(chunk.start_nanos.saturating_add(chunk.duration_nanos));
            chunk_start = chunk.end;
        }
        Ok(Self {
            parts: Parts::new(sums.samples, &snapshot, sums.budget, file.len())?,
            settings: sums.settings,
            start_nanos,
            end_nanos,
        })
    }

    /// Returns the start of the first chunk as Unix time in nanoseconds.
    pub fn start_nanos(&self) -> i64 {
        self.start_nanos
    }

    /// Returns the time from the start of the first chunk to the end of the last one in nanoseconds.
    pub fn duration_nanos(&self) -> i64 {
        self.end_nanos.saturating_sub(self.start_nanos).max(0)
    }

    /// Returns the interval between execution samples in nanoseconds, or `None` if the recording does not contain it.
    pub fn interval_nanos(&self) -> Option<i64> {
        self.settings.interval_nanos
    }

    /// Returns the event that async-profiler sampled (`cpu`, `itimer`, `wall`, ...), or an empty text for other
    /// recordings.
    pub fn event(&self) -> &str {
        &self.settings.event
    }

    /// Returns the number of samples without a stack. No profile contains these samples.
    pub fn lost(&self) -> u64 {
        self.settings.lost
    }

    /// Returns one profile per kind of sample in the recording, in a fixed order.
    pub fn profiles(&self, facts: &RecordingFacts) -> Vec<JfrProfile> {
        self.parts.profiles(facts)
    }
}
