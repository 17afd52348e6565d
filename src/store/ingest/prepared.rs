//! An accepted profile: rows by series, and the symbols of their stacks. The profile owns its data and can be applied
//! to any head.

use std::sync::Arc;

use bytes::Bytes;

use alluvium_profile::pprof::{Line, Location};
use alluvium_profile::{Labels, ProfileTypeId, SeriesId, StackId};

/// An accepted profile: rows by series, and symbols.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Start of the profile in microseconds since 1970.
    pub time_us: i64,
    /// True if the profile contains its start, false if the start is the time of receipt.
    pub is_dated: bool,
    /// Length of the collection in nanoseconds.
    pub duration_ns: i64,
    /// Period of the pprof profile: the amount that one recorded event stands for.
    pub period: i64,
    /// Id of the profile, chosen by its sender. If the sender chose none, the id is empty for a profile of one series,
    /// and made by the store for a profile of several series.
    pub profile_id: Arc<str>,
    /// The profile types, one per column of `values`. Pyroscope's default rules for names are applied unless the
    /// tenant's relabel rules disable them.
    pub types: Vec<ProfileTypeId>,
    /// Values, row by row: sample `i` owns `values[i * types.len()..][..types.len()]`.
    pub values: Vec<i64>,
    /// Content hash of the stack of each sample.
    pub stack_ids: Vec<StackId>,
    /// The series, each with its samples. There is at least one.
    pub series: Vec<SeriesRows>,
    /// Span and trace ids of the samples that have any, ascending by sample.
    pub links: Vec<Link>,
    /// Names of the frames of the stacks.
    pub symbols: Symbols,
    /// Uncompressed size of the pprof in bytes.
    pub size: usize,
    /// Number of values that are zero and therefore not stored.
    pub zero_values: u64,
    /// Number of values that are negative and therefore not stored.
    pub negative_values: u64,
    /// Number of values that the tenant's relabel rules drop.
    pub relabelled_values: u64,
    /// Upper bound of the number of frames of the stacks.
    pub frames: usize,
}

/// The samples of a profile that belong to one series.
#[derive(Debug)]
pub(crate) struct SeriesRows {
    /// Identity of the series: the hash of `labels`.
    pub id: SeriesId,
    /// Labels with names that do not start with `__`.
    pub labels: Labels,
    /// Indices of the samples.
    pub samples: Samples,
    /// The columns of values of the series with their types; `None` for all columns of the profile.
    pub columns: Option<Vec<(u32, ProfileTypeId)>>,
}

/// The samples of a profile that belong to a series.
#[derive(Debug, Clone)]
pub(crate) enum Samples {
    /// All samples, because no label of a sample becomes a label of a series. The value is the number of samples.
    All(u32),
    /// The samples with these indices.
    Some(Vec<u32>),
}

impl Samples {
    /// Calls `visit` with the index of each sample in ascending order.
    pub(super) fn for_each(&self, mut visit: impl FnMut(u32)) {
        match self {
            Self::All(count) => (0..*count).for_each(visit),
            Self::Some(samples) => samples.iter().for_each(|sample| visit(*sample)),
        }
    }
}

/// The span and trace of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// Index of the sample in the profile.
    pub sample: u32,
    /// Hexadecimal span id, a text of [`Symbols`]. It is empty if there is none.
    pub span_id: Span,
    /// Hexadecimal trace id, a text of [`Symbols`]. It is empty if there is none.
    pub trace_id: Span,
}

/// The stacks of a profile as indices, with the texts in one shared buffer.
#[derive(Debug)]
pub(crate) struct Symbols {
    /// The uncompressed bytes of the profile, or the buffer of its columns if it arrived decoded.
    pub(super) buffer: Bytes,
    /// Texts that are not in `buffer`. Their spans start after the end of `buffer`.
    pub(super) extra: String,
    /// Name, file and start line of each function.
    pub functions: Vec<Function>,
    /// True if the start line of any function is known.
    pub has_start_lines: bool,
    /// File and build id of each mapping.
    pub mappings: Vec<(Span, Span)>,
    /// See [`alluvium_profile::pprof::Profile::locations`].
    pub locations: Vec<Location>,
    /// One value per location, or empty if all are 0. If a location has no function and its code is in a file, the
    /// value is the `line` of its frame, from [`in_file`](crate::store::common::schema::in_file); otherwise it is 0.
    pub code_lines: Vec<i64>,
    /// See [`alluvium_profile::pprof::Profile::lines`].
    pub lines: Vec<Line>,
    pub(super) sample_locations: Vec<u32>,
    pub(super) sample_starts: Vec<u32>,
}

/// A function of [`Symbols`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    pub name: Span,
    pub file: Span,
    /// Line at which the function starts, or 0 if unknown.
    pub start_line: i32,
}

/// Position and length of a text of [`Symbols`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(super) start: u32,
    pub(super) length: u32,
}

impl Span {
    /// Returns true for the empty text.
    pub(crate) fn is_empty(self) -> bool {
        self.length == 0
    }
}

impl Symbols {
    /// Returns the locations of a sample, leaf first.
    pub(crate) fn stack(&self, sample: u32) -> &[u32] {
        let sample = sample as usize;
        &self.sample_locations[self.sample_starts[sample] as usize..self.sample_starts[sample + 1] as usize]
    }

    /// Returns true if the start line of any function of the sample's stack is known.
    pub(crate) fn has_start_lines_of(&self, sample: u32) -> bool {
        self.has_start_lines
            && self.stack(sample).iter().any(|location| {
                let location = &self.locations[*location as usize];
                let lines = &self.lines[location.lines_start as usize..location.lines_end as usize];
                lines
                    .iter()
                    .any(|line| self.functions[line.function as usize].start_line != 0)
            })
    }

    /// Returns the text at a span.
    pub(crate) fn text(&self, span: Span) -> &str {
        let (start, length) = (span.start as usize, span.length as usize);
        match start.checked_sub(self.buffer.len()) {
            Some(start) => self.extra.get(start..start + length).unwrap_or_default(),
            None => std::str::from_utf8(&self.buffer[start..start + length]).unwrap_or_default(),
        }
    }

    fn bytes(&self) -> usize {
        self.buffer.len()
            + self.extra.capacity()
            + self.functions.capacity() * size_of::<Function>()
            + self.mappings.capacity() * size_of::<(Span, Span)>()
            + self.locations.capacity() * size_of::<Location>()
            + self.code_lines.capacity() * size_of::<i64>()
            + self.lines.capacity() * size_of::<Line>()
            + (self.sample_locations.capacity() + self.sample_starts.capacity()) * size_of::<u32>()
    }
}

impl Prepared {
    /// Returns the estimated memory in bytes that the profile needs until the head contains it.
    pub(crate) fn bytes(&self) -> usize {
        let series: usize = self.series.iter().map(SeriesRows::bytes).sum();
        self.symbols.bytes()
            + series
            + self.values.capacity() * size_of::<i64>()
            + self.stack_ids.capacity() * size_of::<StackId>()
            + self.links.capacity() * size_of::<Link>()
    }

    /// Returns an upper bound in bytes of the growth of a head that applies the profile. The bound is twice the size of
    /// the added data, because columns and tables double when they are full.
    pub(crate) fn growth(&self) -> usize {
        /// Bytes of a sample row: stack and value.
        const SAMPLE_ROW_BYTES: usize = 12;
        /// Bytes of a profile row and its group.
        const GROUP: usize = 512;
        /// Bytes of a distinct frame and its entry in the table.
        const FRAME: usize = 64;
        /// Bytes of a distinct stack: its entry, its index entry and its last row.
        const STACK: usize = 48;
        let distinct = self.symbols.lines.len() + self.symbols.locations.len();
        let bytes = self.values.len() * SAMPLE_ROW_BYTES
            + self.links.len() * size_of::<Link>()
            + self.series.len() * self.types.len() * GROUP
            + distinct.min(self.frames) * FRAME
            + self.frames * size_of::<u32>()
            + self.stack_ids.len() * STACK
            + self.symbols.extra.len().min(self.size)
            + self.size;
        bytes * 2
    }
}

impl SeriesRows {
    /// Returns the columns of the series with their types. `all` contains the types of the whole profile.
    pub(crate) fn columns<'a>(&'a self, all: &'a [ProfileTypeId]) -> impl Iterator<Item = (usize, &'a ProfileTypeId)> {
        let all: &[ProfileTypeId] = if self.columns.is_some() { &[] } else { all };
        let own = self.columns.as_deref().unwrap_or_default();
        let own = own
            .iter()
            .map(|(column, profile_type)| (*column as usize, profile_type));
        own.chain(all.iter().enumerate())
    }

    fn bytes(&self) -> usize {
        let samples = match &self.samples {
            Samples::All(_) => 0,
            Samples::Some(samples) => samples.capacity() * size_of::<u32>(),
        };
        let columns = self.columns.as_ref().map_or(0, Vec::capacity);
        // Each label has two shared texts with reference counts, and each type has one.
        samples + columns * 96 + self.labels.len() * 96 + size_of::<Self>()
    }
}
