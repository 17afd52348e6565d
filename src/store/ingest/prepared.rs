//! An accepted profile: rows by series, and the symbols of their stacks. It owns its data and can be applied to any
//! head.

use std::sync::Arc;

use bytes::Bytes;

use crate::profile::pprof::{Line, Location};
use crate::profile::{Labels, ProfileTypeId, SeriesId, StackId};

/// An accepted profile: rows by series, and names.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Start of the profile, microseconds since 1970.
    pub time_us: i64,
    /// True when the profile says so itself, false when it is the time of receipt.
    pub is_dated: bool,
    /// Length of the collection in nanoseconds.
    pub duration_ns: i64,
    /// Period of the pprof: units between two samples.
    pub period: i64,
    /// Id that the sender gave; may be empty.
    pub profile_id: Arc<str>,
    /// Profile types, one per column of `values`, by Pyroscope's default rules.
    pub types: Vec<ProfileTypeId>,
    /// Values, row by row: sample `i` owns `values[i * types.len()..][..types.len()]`.
    pub values: Vec<i64>,
    /// Content hash of the stack of each sample.
    pub stack_ids: Vec<StackId>,
    /// The series, each with its samples. At least one.
    pub series: Vec<SeriesRows>,
    /// Span and trace of samples that have them, ascending by sample.
    pub links: Vec<Link>,
    /// Names of the frames of its stacks.
    pub symbols: Symbols,
    /// Uncompressed size of the pprof in bytes.
    pub size: usize,
    /// Number of values that are zero and therefore not stored.
    pub zero_values: u64,
    /// Number of values that are negative and therefore not stored.
    pub negative_values: u64,
    /// Number of values that the tenant's relabel rules drop.
    pub relabelled_values: u64,
    /// Upper bound of the number of frames of its stacks.
    pub frames: usize,
}

/// The samples of a profile that belong to one series.
#[derive(Debug)]
pub(crate) struct SeriesRows {
    /// Identity: the hash of `labels`.
    pub id: SeriesId,
    /// Labels without those that start with `__`.
    pub labels: Labels,
    /// Indices of its samples.
    pub samples: Samples,
    /// Its columns of values with their types; `None` for all that the profile has.
    pub columns: Option<Vec<(u32, ProfileTypeId)>>,
}

/// The samples of a profile that belong to a series.
#[derive(Debug, Clone)]
pub(crate) enum Samples {
    /// All of them: no sample has a text label.
    All(u32),
    /// The samples with these indices.
    Some(Vec<u32>),
}

impl Samples {
    /// Calls `visit` with the index of each sample, ascending.
    pub(super) fn for_each(&self, mut visit: impl FnMut(u32)) {
        match self {
            Self::All(count) => (0..*count).for_each(visit),
            Self::Some(samples) => samples.iter().for_each(|sample| visit(*sample)),
        }
    }
}

/// Span and trace of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// Index of the sample in the profile.
    pub sample: u32,
    /// Span id, hexadecimal, a text of [`Symbols`]; empty for none.
    pub span_id: Span,
    /// Trace id, hexadecimal, a text of [`Symbols`]; empty for none.
    pub trace_id: Span,
}

/// The stacks of a profile as indices, with the texts in one shared buffer.
#[derive(Debug)]
pub(crate) struct Symbols {
    /// The bytes of the uncompressed profile.
    pub(super) buffer: Bytes,
    /// Texts that are not in `buffer`; their spans start behind its end.
    pub(super) extra: String,
    /// Name, file and first line of each function.
    pub functions: Vec<Function>,
    /// True when the first line of any function is known.
    pub has_start_lines: bool,
    /// File and build id of each mapping.
    pub mappings: Vec<(Span, Span)>,
    /// See [`crate::profile::pprof::Profile::locations`].
    pub locations: Vec<Location>,
    /// By location, `line` of its frame when it has no function: see
    /// [`in_file`](crate::store::common::schema::in_file). Empty when all are 0.
    pub code_lines: Vec<i64>,
    /// See [`crate::profile::pprof::Profile::lines`].
    pub lines: Vec<Line>,
    pub(super) sample_locations: Vec<u32>,
    pub(super) sample_starts: Vec<u32>,
}

/// A function of [`Symbols`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    pub name: Span,
    pub file: Span,
    /// Line at which it starts; 0 when unknown.
    pub start_line: i32,
}

/// Position and length of a text of [`Symbols`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(super) start: u32,
    pub(super) length: u32,
}

impl Span {
    /// True for the empty text.
    pub(crate) fn is_empty(self) -> bool {
        self.length == 0
    }
}

impl Symbols {
    /// Locations of a sample, leaf first.
    pub(crate) fn stack(&self, sample: u32) -> &[u32] {
        let sample = sample as usize;
        &self.sample_locations[self.sample_starts[sample] as usize..self.sample_starts[sample + 1] as usize]
    }

    /// True when the first line of any function of the sample's stack is known.
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

    /// The text that stands at a span.
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
    /// Memory that the profile takes until the head has it, estimated.
    pub(crate) fn bytes(&self) -> usize {
        let series: usize = self.series.iter().map(SeriesRows::bytes).sum();
        self.symbols.bytes()
            + series
            + self.values.capacity() * size_of::<i64>()
            + self.stack_ids.capacity() * size_of::<StackId>()
            + self.links.capacity() * size_of::<Link>()
    }

    /// Upper bound in bytes of the growth of a head that applies the profile: columns and tables double when they are
    /// full.
    pub(crate) fn growth(&self) -> usize {
        /// A row of a sample: stack and value.
        const ROW: usize = 12;
        /// Row of a profile and its group.
        const GROUP: usize = 512;
        /// A distinct frame and its entry in the table.
        const FRAME: usize = 64;
        /// A distinct stack: its entry, its index entry and its last row.
        const STACK: usize = 48;
        let distinct = self.symbols.lines.len() + self.symbols.locations.len();
        let held = self.values.len() * ROW
            + self.links.len() * size_of::<Link>()
            + self.series.len() * self.types.len() * GROUP
            + distinct.min(self.frames) * FRAME
            + self.frames * size_of::<u32>()
            + self.stack_ids.len() * STACK
            + self.symbols.extra.len().min(self.size)
            + self.size;
        held * 2
    }
}

impl SeriesRows {
    /// The columns of a profile with the types `all` that the series has.
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
        // Each label has two shared texts with their reference counts, each type one.
        samples + columns * 96 + self.labels.len() * 96 + size_of::<Self>()
    }
}
