//! One tenant's day in a head: stacks, series, and groups of rows by series and profile type.
//!
//! Stacks, series and groups only grow, and the rows of a profile do not change after it was applied. A reader may
//! therefore release the lock and continue later from an index.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashMap, HashSet, HashTable};

use crate::store::head::frames::{Frame, Frames};
use crate::store::head::identity::Identity;
use crate::store::head::intern::{TextId, Texts};
use crate::store::head::known::DayStacks;
use crate::store::ingest::{Prepared, Samples, Span, Symbols};
use alluvium_profile::pprof::Location;
use alluvium_profile::{Labels, SeriesId, StackId};

/// Rows of a tenant's day.
pub(crate) struct Partition {
    /// Names of functions, files, mappings and profile types, and ids of builds, profiles, spans and traces.
    pub(crate) texts: Texts,
    frames: Frames,
    /// Maps a stack id to an index in `stacks`.
    stack_index: HashMap<StackId, u32, Identity>,
    /// Distinct stacks in the order of their arrival.
    pub(crate) stacks: Vec<Stack>,
    stack_frames: Vec<u32>,
    /// The last row of each stack, by index in `stacks`.
    last_rows: Vec<LastRow>,
    /// Number of the column that is being applied: the values of one profile for one series and profile type.
    stamp: u32,
    /// Distinct series in the order of their arrival.
    pub(crate) series: Vec<(SeriesId, Labels)>,
    known_series: HashSet<SeriesId, Identity>,
    /// Rows by series and profile type, in the order of their arrival.
    pub(crate) groups: Vec<Group>,
    /// Indices in `groups` by series and profile type.
    group_index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    group_bytes: usize,
    known: DayStacks,
    scratch: Vec<u32>,
}

/// The last row that was added for a stack.
#[derive(Clone, Copy, Default)]
struct LastRow {
    /// Number of the column that contains the row.
    stamp: u32,
    /// Index of the row in the group of the column.
    row: u32,
}

#[derive(Clone, Copy)]
pub(crate) struct Stack {
    pub(crate) id: StackId,
    start: u32,
    /// Number of frames, or [`Stack::KNOWN`] if a committed file contains the frames.
    length: u32,
    /// True if the start line of any function is known.
    has_start_lines: bool,
}

impl Stack {
    const KNOWN: u32 = u32::MAX;
}

/// Rows of one series and profile type.
pub(crate) struct Group {
    pub(crate) series: SeriesId,
    pub(crate) profile_type: TextId,
    /// Profiles in the order of their arrival. The rows of a profile follow the rows of the previous profile.
    pub(crate) profiles: Vec<ProfileRow>,
    /// Stack of each row, as an index into [`Partition::stacks`].
    pub(crate) stacks: Vec<u32>,
    pub(crate) values: Vec<i64>,
    /// Indices of the rows with a span or trace id, ascending, each with these ids.
    pub(crate) links: Vec<(u32, Link)>,
}

/// Ids of the span and trace of a row, or [`TextId::NONE`] if absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) span: TextId,
    pub(crate) trace: TextId,
}

impl Link {
    pub(crate) const NONE: Self = Self {
        span: TextId::NONE,
        trace: TextId::NONE,
    };
}

/// A stored profile of one type.
#[derive(Clone, Copy)]
pub(crate) struct ProfileRow {
    /// Number of the profile in the head.
    pub(crate) number: u64,
    /// Start of the profile in microseconds since 1970.
    pub(crate) time_us: i64,
    pub(crate) total: i64,
    /// Length of the collection in nanoseconds.
    pub(crate) duration_ns: i64,
    pub(crate) period: i64,
    /// Id of the profile, chosen by its sender.
    pub(crate) id: TextId,
    /// End of the profile's rows in the group.
    pub(crate) rows_end: u32,
}

impl Partition {
    /// Creates an empty partition that omits the frames of `known` stacks.
    pub(crate) fn new(known: DayStacks) -> Self {
        Self {
            texts: Texts::default(),
            frames: Frames::default(),
            stack_index: HashMap::default(),
            stacks: Vec::new(),
            stack_frames: Vec::new(),
            last_rows: Vec::new(),
            stamp: 0,
            series: Vec::new(),
            known_series: HashSet::default(),
            groups: Vec::new(),
            group_index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            group_bytes: 0,
            known,
            scratch: Vec::new(),
        }
    }

    /// Adds profile `number`. Returns the number of sample rows.
    pub(crate) fn apply(&mut self, number: u64, profile: &Prepared) -> u64 {
        let width = profile.types.len();
        let mut stack_of = std::mem::take(&mut self.scratch);
        stack_of.clear();
        for (sample, id) in profile.stack_ids.iter().enumerate() {
            let stored = profile.values[sample * width..(sample + 1) * width]
                .iter()
                .any(|value| *value > 0);
            // A sample without a positive value has no rows, so its stack is not needed.
            stack_of.push(if stored {
                self.stack(*id, sample as u32, &profile.symbols)
            } else {
                0
            });
        }
        let id = self.texts.insert(&profile.profile_id);
        let mut rows = 0;
        for series in &profile.series {
            if self.known_series.insert(series.id) {
                self.series.push((series.id, series.labels.clone()));
            }
            for (column, profile_type) in series.columns(&profile.types) {
                let profile_type = self.texts.insert(profile_type.as_str());
                self.stamp = if let Some(stamp) = self.stamp.checked_add(1) {
                    stamp
                } else {
                    self.last_rows.fill(LastRow::default());
                    1
                };
                let group = self.group(series.id, profile_type);
                let group = &mut self.groups[group];
                let before = group.bytes();
                let first = group.values.len();
                let mut filler = Filler {
                    group,
                    last_rows: &mut self.last_rows,
                    stamp: self.stamp,
                    total: 0,
                };
                let value_of = |sample: u32| profile.values[sample as usize * width + column];
                match &series.samples {
                    Samples::All(count) if profile.links.is_empty() => {
                        for sample in 0..*count {
                            filler.add(stack_of[sample as usize], value_of(sample));
                        }
                    }
                    Samples::All(count) => {
                        filler.add_linked(0..*count, &stack_of, value_of, profile, &mut self.texts);
                    }
                    Samples::Some(samples) => {
                        filler.add_linked(samples.iter().copied(), &stack_of, value_of, profile, &mut self.texts);
                    }
                }
                let total = filler.total;
                group.profiles.push(ProfileRow {
                    number,
                    time_us: profile.time_us,
                    total,
                    duration_ns: profile.duration_ns,
                    period: profile.period,
                    id,
                    rows_end: group.values.len() as u32,
                });
                rows += (group.values.len() - first) as u64;
                self.group_bytes += group.bytes() - before;
            }
        }
        self.scratch = stack_of;
        rows
    }

    /// Returns the estimated memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.texts.bytes()
            + self.frames.bytes()
            + self.stack_index.capacity() * 17
            + self.stacks.capacity() * size_of::<Stack>()
            + self.stack_frames.capacity() * 4
            + self.last_rows.capacity() * size_of::<LastRow>()
            + self.series.capacity() * 256
            + self.groups.capacity() * size_of::<Group>()
            + self.group_index.capacity() * 5
            + self.group_bytes
    }

    /// Returns the frames of a stack, leaf first, or `None` for a stack that is in a committed file.
    pub(crate) fn frames(&self, stack: &Stack) -> Option<impl ExactSizeIterator<Item = &Frame>> {
        if stack.length == Stack::KNOWN {
            return None;
        }
        let indices = &self.stack_frames[stack.start as usize..(stack.start + stack.length) as usize];
        Some(indices.iter().map(|index| self.frames.get(*index)))
    }

    /// Returns the ids of the stacks that a flush of this partition adds to the tables. The flag is true if start lines
    /// of functions are known.
    pub(crate) fn own_stacks(&self) -> impl Iterator<Item = (StackId, bool)> {
        self.stacks
            .iter()
            .filter(|stack| stack.length != Stack::KNOWN)
            .map(|stack| (stack.id, stack.has_start_lines))
    }

    /// Returns the index of the group of a series and profile type. If the group is new, adds it.
    fn group(&mut self, series: SeriesId, profile_type: TextId) -> usize {
        let (groups, hasher) = (&self.groups, &self.hasher);
        let hash = hasher.hash_one((series, profile_type));
        let is_same = |index: &u32| groups[*index as usize].key() == (series, profile_type);
        if let Some(entry) = self.group_index.find(hash, is_same) {
            return *entry as usize;
        }
        let index = groups.len();
        self.group_index.insert_unique(hash, index as u32, |index| {
            hasher.hash_one(groups[*index as usize].key())
        });
        self.groups.push(Group::new(series, profile_type));
        index
    }

    fn stack(&mut self, id: StackId, sample: u32, symbols: &Symbols) -> u32 {
        if let Some(index) = self.stack_index.get(&id) {
            let index = *index;
            if symbols.has_start_lines && !self.stacks[index as usize].has_start_lines {
                self.learn_start_lines(index, sample, symbols);
            }
            return index;
        }
        let index = self.stacks.len() as u32;
        self.stack_index.insert(id, index);
        self.last_rows.push(LastRow::default());
        let known = self.known.read().get(id);
        let stack = match known {
            // A stack that was stored without start lines of functions is stored again with them.
            Some(has_start_lines) if has_start_lines || !symbols.has_start_lines_of(sample) => Stack {
                id,
                start: 0,
                length: Stack::KNOWN,
                has_start_lines,
            },
            _ => self.new_stack(id, sample, symbols),
        };
        self.stacks.push(stack);
        index
    }

    /// Adds the frames of a sample's stack.
    fn new_stack(&mut self, id: StackId, sample: u32, symbols: &Symbols) -> Stack {
        let start = self.stack_frames.len() as u32;
        for location in symbols.stack(sample) {
            self.push_frames(*location as usize, symbols);
        }
        Stack {
            id,
            start,
            length: self.stack_frames.len() as u32 - start,
            has_start_lines: symbols.has_start_lines_of(sample),
        }
    }

    /// Adds start lines of functions, from another profile, to a stack that arrived without them.
    fn learn_start_lines(&mut self, index: u32, sample: u32, symbols: &Symbols) {
        if symbols.has_start_lines_of(sample) {
            let id = self.stacks[index as usize].id;
            self.stacks[index as usize] = self.new_stack(id, sample, symbols);
        }
    }

    /// Adds the frames of a location: one per line, innermost first. A location without lines has one frame.
    fn push_frames(&mut self, location: usize, symbols: &Symbols) {
        let code_line = symbols.code_lines.get(location).copied().unwrap_or(0);
        let location = &symbols.locations[location];
        let (mapping, build_id) = match location.mapping {
            Location::NO_MAPPING => ("", ""),
            index => {
                let (file, build_id) = symbols.mappings[index as usize];
                (symbols.text(file), symbols.text(build_id))
            }
        };
        let mut frame = Frame {
            mapping: self.texts.insert(mapping),
            build_id: self.texts.insert(build_id),
            ..Frame::default()
        };
        let lines = &symbols.lines[location.lines_start as usize..location.lines_end as usize];
        if lines.is_empty() {
            let empty = self.texts.insert("");
            frame = Frame {
                function: empty,
                file: empty,
                address: location.address,
                line: code_line,
                ..frame
            };
            self.stack_frames.push(self.frames.insert(frame));
            return;
        }
        for (position, line) in lines.iter().enumerate() {
            let function = symbols.functions[line.function as usize];
            frame.function = self.texts.insert(symbols.text(function.name));
            frame.file = self.texts.insert(symbols.text(function.file));
            frame.start_line = function.start_line;
            frame.line = line.line;
            frame.inlined = position + 1 < lines.len();
            self.stack_frames.push(self.frames.insert(frame));
        }
    }
}

/// Adds the samples of one profile to a group.
struct Filler<'a> {
    group: &'a mut Group,
    last_rows: &'a mut [LastRow],
    stamp: u32,
    total: i64,
}

impl Filler<'_> {
    /// Adds a value to the profile's row of this stack. If there is no such row, or the sum would overflow, adds a new
    /// row. Ignores a value that is not positive.
    #[inline]
    fn add(&mut self, stack: u32, value: i64) {
        if value <= 0 {
            return;
        }
        self.total = self.total.saturating_add(value);
        let last = &mut self.last_rows[stack as usize];
        if last.stamp == self.stamp
            && let Some(sum) = self.group.values[last.row as usize].checked_add(value)
        {
            self.group.values[last.row as usize] = sum;
            return;
        }
        *last = LastRow {
            stamp: self.stamp,
            row: self.group.values.len() as u32,
        };
        self.group.stacks.push(stack);
        self.group.values.push(value);
    }

    /// Adds samples, some of which have links. Each sample with a link becomes a row of its own.
    fn add_linked(
        &mut self,
        samples: impl Iterator<Item = u32>,
        stack_of: &[u32],
        value_of: impl Fn(u32) -> i64,
        profile: &Prepared,
        texts: &mut Texts,
    ) {
        for sample in samples {
            let (stack, value) = (stack_of[sample as usize], value_of(sample));
            // With a linear search, each of thousands of series would visit the links of all series.
            let Ok(index) = profile.links.binary_search_by_key(&sample, |link| link.sample) else {
                self.add(stack, value);
                continue;
            };
            let link = profile.links[index];
            if value <= 0 {
                continue;
            }
            self.total = self.total.saturating_add(value);
            let mut text = |span: Span| {
                if span.is_empty() {
                    TextId::NONE
                } else {
                    texts.insert(profile.symbols.text(span))
                }
            };
            let (span, trace) = (text(link.span_id), text(link.trace_id));
            let row = self.group.values.len() as u32;
            self.group.links.push((row, Link { span, trace }));
            self.group.stacks.push(stack);
            self.group.values.push(value);
        }
    }
}

impl Group {
    fn new(series: SeriesId, profile_type: TextId) -> Self {
        Self {
            series,
            profile_type,
            profiles: Vec::new(),
            stacks: Vec::new(),
            values: Vec::new(),
            links: Vec::new(),
        }
    }

    fn key(&self) -> (SeriesId, TextId) {
        (self.series, self.profile_type)
    }

    fn bytes(&self) -> usize {
        self.profiles.capacity() * size_of::<ProfileRow>()
            + self.stacks.capacity() * 4
            + self.values.capacity() * 8
            + self.links.capacity() * size_of::<(u32, Link)>()
    }

    /// Returns the rows of the profile at `index`.
    pub(crate) fn rows_of(&self, index: usize) -> std::ops::Range<usize> {
        let start = match index {
            0 => 0,
            _ => self.profiles[index - 1].rows_end as usize,
        };
        start..self.profiles[index].rows_end as usize
    }
}
