//! pprof bytes to columns: the hot path of every ingest.
//!
//! One walk over the bytes checks the outer framing and counts what is there; then the columns are allocated at their exact size and each
//! kind of message is read once, strings first, so that every reference can be resolved and checked when it is met. Nothing is
//! allocated per sample. A message of two bytes becomes a struct of up to 64: what the columns take is known before they are
//! allocated, and refused beyond [`MAX_EXPANSION`] times the input. gzip is not handled here.

use hashbrown::HashMap;

use crate::profile::pprof::error::{DecodeError, DecodeErrorKind};
use crate::profile::pprof::model::{Function, Line, Location, Mapping, Profile, SampleLabel, ValueType};
use crate::profile::pprof::reader::{BYTES, Reader, Tag, VARINT};

// Fields of `Profile` that repeat.
const SAMPLE_TYPE: u32 = 1;
const SAMPLE: u32 = 2;
const MAPPING: u32 = 3;
const LOCATION: u32 = 4;
const FUNCTION: u32 = 5;
const STRING_TABLE: u32 = 6;

/// Most bytes of columns for a byte of a profile, beyond [`FREE_BYTES`]. Profiles of real programs take 1 to 6; only runs of empty
/// messages come near to the 30 that are possible.
pub const MAX_EXPANSION: usize = 16;

/// Bytes of columns that any profile may take.
pub const FREE_BYTES: usize = 64 << 10;

/// Most comments of a profile.
const MAX_COMMENTS: usize = 4096;

/// Bytes of an entry in the table of ids that are not 1, 2, 3, ...: key, value and the room of a hash table.
const SPARSE_ID_BYTES: usize = 28;

/// Decodes an uncompressed profile. The result borrows its strings from `data`; every index in it is in bounds.
pub fn decode(data: &[u8]) -> Result<Profile<'_>, DecodeError> {
    let start = Reader::new(data, 0);
    if data.is_empty() {
        return Err(start.error(DecodeErrorKind::Empty));
    }
    if u32::try_from(data.len()).is_err() {
        return Err(start.error(DecodeErrorKind::TooLarge(data.len())));
    }
    let outline = Outline::read(data)?;
    let (bytes, limit) = (outline.column_bytes(), max_column_bytes(data.len()));
    if bytes > limit {
        return Err(start.error(DecodeErrorKind::Expansion { bytes, limit }));
    }
    let strings = Strings::read(data, &outline)?;
    let mut profile = Profile::default();
    for mut message in outline.runs[SAMPLE_TYPE as usize].messages(data, SAMPLE_TYPE) {
        profile.sample_types.push(value_type(&mut message, &strings)?);
    }
    if profile.sample_types.is_empty() {
        return Err(start.error(DecodeErrorKind::NoSampleTypes));
    }
    outline.read_scalars(&mut profile, &strings)?;
    let mapping_ids = read_mappings(data, &outline, &strings, &mut profile)?;
    let function_ids = read_functions(data, &outline, &strings, &mut profile)?;
    let location_ids = read_locations(data, &outline, &mapping_ids, &function_ids, &mut profile)?;
    read_samples(data, &outline, &location_ids, &strings, &mut profile)?;
    Ok(profile)
}

/// Most bytes that [`decode`] allocates for a profile of `size` bytes.
pub fn max_column_bytes(size: usize) -> usize {
    size.saturating_mul(MAX_EXPANSION).saturating_add(FREE_BYTES)
}

/// Where the messages of one kind are.
#[derive(Clone, Copy, Default)]
struct Run {
    count: usize,
    first: usize,
    end: usize,
}

impl Run {
    /// Readers of the messages. The framing was checked when the run was found.
    fn messages<'a>(self, data: &'a [u8], field: u32) -> impl Iterator<Item = Reader<'a>> {
        let mut reader = Reader::new(data.get(..self.end).unwrap_or_default(), self.first);
        std::iter::from_fn(move || {
            while let Ok(Some(tag)) = reader.tag() {
                if tag.field == field {
                    return reader.message().ok();
                }
                reader.skip(tag).ok()?;
            }
            None
        })
    }
}

/// What the first walk finds.
#[derive(Default)]
struct Outline<'a> {
    /// By field number; 0 is not used.
    runs: [Run; 7],
    locations_in_samples: usize,
    values: usize,
    labels: usize,
    period_type: Option<Reader<'a>>,
    comments: Vec<Number>,
    lines: usize,
    drop_frames: Number,
    keep_frames: Number,
    default_sample_type: Number,
    time_nanos: i64,
    duration_nanos: i64,
    period: i64,
}

/// An int64 and the offset at which it stands.
#[derive(Clone, Copy, Default)]
struct Number {
    value: u64,
    offset: usize,
}

impl<'a> Outline<'a> {
    fn read(data: &'a [u8]) -> Result<Self, DecodeError> {
        let mut outline = Self::default();
        let mut reader = Reader::new(data, 0);
        loop {
            let offset = reader.position();
            let Some(tag) = reader.tag()? else {
                return Ok(outline);
            };
            match (tag.field, tag.wire) {
                (SAMPLE_TYPE..=STRING_TABLE, BYTES) => {
                    let message = reader.message()?;
                    let run = &mut outline.runs[tag.field as usize];
                    if run.count == 0 {
                        run.first = offset;
                    }
                    run.count += 1;
                    run.end = reader.position();
                    match tag.field {
                        SAMPLE => outline.count_sample(message)?,
                        LOCATION => outline.count_lines(message)?,
                        _ => {}
                    }
                }
                (7, VARINT) => outline.drop_frames = number(&mut reader)?,
                (8, VARINT) => outline.keep_frames = number(&mut reader)?,
                (9, VARINT) => outline.time_nanos = reader.varint()? as i64,
                (10, VARINT) => outline.duration_nanos = reader.varint()? as i64,
                (11, BYTES) => outline.period_type = Some(reader.message()?),
                (12, VARINT) => outline.period = reader.varint()? as i64,
                (13, VARINT) => {
                    let comment = number(&mut reader)?;
                    outline.add_comment(comment)?;
                }
                (13, BYTES) => {
                    let mut packed = reader.message()?;
                    while !packed.is_at_end() {
                        outline.add_comment(number(&mut packed)?)?;
                    }
                }
                (14, VARINT) => outline.default_sample_type = number(&mut reader)?,
                (1..=14, _) => return Err(reader.wrong_wire_type("profile", tag)),
                _ => reader.skip(tag)?,
            }
        }
    }

    /// Counts what a sample holds. A packed field has as many numbers as bytes without the continuation bit.
    fn count_sample(&mut self, mut sample: Reader<'_>) -> Result<(), DecodeError> {
        let packed = |bytes: &[u8]| bytes.iter().filter(|byte| **byte < 0x80).count();
        while let Some(tag) = sample.tag()? {
            match (tag.field, tag.wire) {
                (1, BYTES) => self.locations_in_samples += packed(sample.message()?.rest()),
                (2, BYTES) => self.values += packed(sample.message()?.rest()),
                (3, BYTES) => {
                    sample.message()?;
                    self.labels += 1;
                }
                (1, VARINT) => {
                    sample.varint()?;
                    self.locations_in_samples += 1;
                }
                (2, VARINT) => {
                    sample.varint()?;
                    self.values += 1;
                }
                (1..=3, _) => return Err(sample.wrong_wire_type("sample", tag)),
                _ => sample.skip(tag)?,
            }
        }
        Ok(())
    }

    /// Notes a comment. Nobody writes many, and one byte of a packed field would become 32.
    fn add_comment(&mut self, comment: Number) -> Result<(), DecodeError> {
        if self.comments.len() == MAX_COMMENTS {
            return Err(DecodeError {
                offset: comment.offset,
                kind: DecodeErrorKind::TooManyComments { limit: MAX_COMMENTS },
            });
        }
        self.comments.push(comment);
        Ok(())
    }

    /// Bytes that the columns will take, tables of ids included.
    fn column_bytes(&self) -> usize {
        let count = |field: u32| self.runs[field as usize].count;
        let parts = [
            (count(SAMPLE_TYPE), size_of::<ValueType<'_>>()),
            // Start of its stack, start of its labels.
            (count(SAMPLE), 2 * size_of::<u32>()),
            (count(MAPPING), size_of::<Mapping<'_>>() + SPARSE_ID_BYTES),
            (count(LOCATION), size_of::<Location>() + SPARSE_ID_BYTES),
            (count(FUNCTION), size_of::<Function<'_>>() + SPARSE_ID_BYTES),
            (count(STRING_TABLE), size_of::<&str>()),
            (self.lines, size_of::<Line>()),
            (self.locations_in_samples, size_of::<u32>()),
            (self.values, size_of::<i64>()),
            (self.labels, size_of::<SampleLabel<'_>>()),
        ];
        parts.into_iter().fold(0, |sum: usize, (count, bytes)| {
            sum.saturating_add(count.saturating_mul(bytes))
        })
    }

    /// Counts the lines of a location.
    #[inline]
    fn count_lines(&mut self, mut location: Reader<'_>) -> Result<(), DecodeError> {
        while let Some(tag) = location.tag()? {
            self.lines += usize::from(tag.field == 4);
            location.skip(tag)?;
        }
        Ok(())
    }

    fn read_scalars(&self, profile: &mut Profile<'a>, strings: &Strings<'a>) -> Result<(), DecodeError> {
        if let Some(mut message) = self.period_type {
            profile.period_type = value_type(&mut message, strings)?;
        }
        profile.period = self.period;
        profile.time_nanos = self.time_nanos;
        profile.duration_nanos = self.duration_nanos;
        profile.default_sample_type = strings.get(self.default_sample_type)?;
        profile.drop_frames = strings.get(self.drop_frames)?;
        profile.keep_frames = strings.get(self.keep_frames)?;
        profile.comments.reserve_exact(self.comments.len());
        for &comment in &self.comments {
            profile.comments.push(strings.get(comment)?);
        }
        Ok(())
    }
}

/// The string table.
struct Strings<'a>(Vec<&'a str>);

impl<'a> Strings<'a> {
    fn read(data: &'a [u8], outline: &Outline<'a>) -> Result<Self, DecodeError> {
        let run = outline.runs[STRING_TABLE as usize];
        let mut strings = Vec::with_capacity(run.count);
        for message in run.messages(data, STRING_TABLE) {
            let bytes = message.rest();
            let index = strings.len();
            let text = std::str::from_utf8(bytes).map_err(|error| DecodeError {
                offset: message.position() + error.valid_up_to(),
                kind: DecodeErrorKind::Utf8 { index },
            })?;
            if index == 0 && !text.is_empty() {
                return Err(message.error(DecodeErrorKind::FirstString));
            }
            strings.push(text);
        }
        Ok(Self(strings))
    }

    /// The string of an index. Index 0 is the empty string even when there is no table.
    #[inline]
    fn get(&self, index: Number) -> Result<&'a str, DecodeError> {
        match self.0.get(index.value as usize) {
            Some(text) => Ok(text),
            None if index.value == 0 => Ok(""),
            None => Err(DecodeError {
                offset: index.offset,
                kind: DecodeErrorKind::StringIndex {
                    index: index.value as i64,
                    count: self.0.len(),
                },
            }),
        }
    }
}

/// Turns ids into indices. Nearly every producer numbers from 1 without gaps: then no table is needed.
struct Ids {
    what: &'static str,
    count: u32,
    sparse: Option<HashMap<u64, u32>>,
}

impl Ids {
    fn new(what: &'static str) -> Self {
        Self {
            what,
            count: 0,
            sparse: None,
        }
    }

    /// Notes the id of the next message, which starts at `offset`.
    #[inline]
    fn add(&mut self, id: u64, offset: usize) -> Result<(), DecodeError> {
        let index = self.count;
        self.count += 1;
        if self.sparse.is_none() && id == u64::from(index) + 1 {
            return Ok(());
        }
        self.add_sparse(id, index, offset)
    }

    #[cold]
    fn add_sparse(&mut self, id: u64, index: u32, offset: usize) -> Result<(), DecodeError> {
        let what = self.what;
        let fail = |kind| Err(DecodeError { offset, kind });
        if id == 0 {
            return fail(DecodeErrorKind::ZeroId { what });
        }
        let sparse = self
            .sparse
            .get_or_insert_with(|| (0..index).map(|earlier| (u64::from(earlier) + 1, earlier)).collect());
        match sparse.insert(id, index) {
            Some(_) => fail(DecodeErrorKind::DuplicateId { what, id }),
            None => Ok(()),
        }
    }

    /// The index of the message with `id`, referred to at `offset`.
    #[inline]
    fn index(&self, id: u64, offset: usize) -> Result<u32, DecodeError> {
        let found = match &self.sparse {
            None => {
                let index = id.wrapping_sub(1);
                (index < u64::from(self.count)).then_some(index as u32)
            }
            Some(sparse) => sparse.get(&id).copied(),
        };
        found.ok_or_else(|| self.missing(id, offset))
    }

    #[cold]
    fn missing(&self, id: u64, offset: usize) -> DecodeError {
        let what = self.what;
        let kind = match id {
            0 => DecodeErrorKind::ZeroId { what },
            _ => DecodeErrorKind::DanglingId { what, id },
        };
        DecodeError { offset, kind }
    }
}

#[inline]
fn number(reader: &mut Reader<'_>) -> Result<Number, DecodeError> {
    let offset = reader.position();
    Ok(Number {
        value: reader.varint()?,
        offset,
    })
}

/// Reads a message whose known fields, 1 to `N`, are all varints; of a field that repeats the last counts.
#[inline]
fn numbers<const N: usize>(reader: &mut Reader<'_>, message: &'static str) -> Result<[Number; N], DecodeError> {
    let mut fields = [Number::default(); N];
    while let Some(tag) = reader.tag()? {
        match fields.get_mut(tag.field as usize - 1) {
            Some(field) if tag.wire == VARINT => *field = number(reader)?,
            Some(_) => return Err(reader.wrong_wire_type(message, tag)),
            None => reader.skip(tag)?,
        }
    }
    Ok(fields)
}

fn value_type<'a>(reader: &mut Reader<'a>, strings: &Strings<'a>) -> Result<ValueType<'a>, DecodeError> {
    let [kind, unit] = numbers(reader, "value type")?;
    Ok(ValueType {
        kind: strings.get(kind)?,
        unit: strings.get(unit)?,
    })
}

fn read_mappings<'a>(
    data: &'a [u8],
    outline: &Outline<'a>,
    strings: &Strings<'a>,
    profile: &mut Profile<'a>,
) -> Result<Ids, DecodeError> {
    let run = outline.runs[MAPPING as usize];
    let mut ids = Ids::new("mapping");
    profile.mappings.reserve_exact(run.count);
    for mut message in run.messages(data, MAPPING) {
        let offset = message.position();
        let fields: [Number; 10] = numbers(&mut message, "mapping")?;
        ids.add(fields[0].value, offset)?;
        profile.mappings.push(Mapping {
            start: fields[1].value,
            limit: fields[2].value,
            offset: fields[3].value,
            file: strings.get(fields[4])?,
            build_id: strings.get(fields[5])?,
            has: [6, 7, 8, 9].map(|index: usize| fields[index].value != 0),
        });
    }
    Ok(ids)
}

fn read_functions<'a>(
    data: &'a [u8],
    outline: &Outline<'a>,
    strings: &Strings<'a>,
    profile: &mut Profile<'a>,
) -> Result<Ids, DecodeError> {
    let run = outline.runs[FUNCTION as usize];
    let mut ids = Ids::new("function");
    profile.functions.reserve_exact(run.count);
    for mut message in run.messages(data, FUNCTION) {
        let offset = message.position();
        let [id, name, system_name, file, start_line] = numbers(&mut message, "function")?;
        ids.add(id.value, offset)?;
        profile.functions.push(Function {
            name: strings.get(name)?,
            system_name: strings.get(system_name)?,
            file: strings.get(file)?,
            start_line: start_line.value as i64,
        });
    }
    Ok(ids)
}

fn read_locations<'a>(
    data: &'a [u8],
    outline: &Outline<'a>,
    mapping_ids: &Ids,
    function_ids: &Ids,
    profile: &mut Profile<'a>,
) -> Result<Ids, DecodeError> {
    let run = outline.runs[LOCATION as usize];
    let mut ids = Ids::new("location");
    profile.locations.reserve_exact(run.count);
    profile.lines.reserve_exact(outline.lines);
    for mut message in run.messages(data, LOCATION) {
        let offset = message.position();
        let mut id = 0;
        let mut location = Location {
            mapping: Location::NO_MAPPING,
            lines_start: profile.lines.len() as u32,
            ..Location::default()
        };
        while let Some(tag) = message.tag()? {
            match (tag.field, tag.wire) {
                (1, VARINT) => id = message.varint()?,
                (2, VARINT) => {
                    let mapping = number(&mut message)?;
                    location.mapping = match mapping.value {
                        0 => Location::NO_MAPPING,
                        id => mapping_ids.index(id, mapping.offset)?,
                    };
                }
                (3, VARINT) => location.address = message.varint()?,
                (4, BYTES) => {
                    let mut line = message.message()?;
                    let offset = line.position();
                    let [function, number, _column] = numbers(&mut line, "line")?;
                    profile.lines.push(Line {
                        function: function_ids.index(function.value, offset)?,
                        line: number.value as i64,
                    });
                }
                (5, VARINT) => location.is_folded = message.varint()? != 0,
                (1..=5, _) => return Err(message.wrong_wire_type("location", tag)),
                _ => message.skip(tag)?,
            }
        }
        ids.add(id, offset)?;
        location.lines_end = profile.lines.len() as u32;
        profile.locations.push(location);
    }
    Ok(ids)
}

fn read_samples<'a>(
    data: &'a [u8],
    outline: &Outline<'a>,
    location_ids: &Ids,
    strings: &Strings<'a>,
    profile: &mut Profile<'a>,
) -> Result<(), DecodeError> {
    let run = outline.runs[SAMPLE as usize];
    let width = profile.sample_types.len();
    profile.sample_locations.reserve_exact(outline.locations_in_samples);
    profile.values.reserve_exact(outline.values);
    profile.labels.reserve_exact(outline.labels);
    profile.sample_starts.reserve_exact(run.count + 1);
    profile.label_starts.reserve_exact(run.count + 1);
    profile.sample_starts.push(0);
    profile.label_starts.push(0);
    for mut message in run.messages(data, SAMPLE) {
        let offset = message.position();
        let values_before = profile.values.len();
        while let Some(tag) = message.tag()? {
            match (tag.field, tag.wire) {
                (1, BYTES) => {
                    let mut packed = message.message()?;
                    while !packed.is_at_end() {
                        let id = number(&mut packed)?;
                        profile.sample_locations.push(location_ids.index(id.value, id.offset)?);
                    }
                }
                (2, BYTES) => {
                    let mut packed = message.message()?;
                    while !packed.is_at_end() {
                        profile.values.push(packed.varint()? as i64);
                    }
                }
                (1, VARINT) => {
                    let id = number(&mut message)?;
                    profile.sample_locations.push(location_ids.index(id.value, id.offset)?);
                }
                (2, VARINT) => profile.values.push(message.varint()? as i64),
                (3, BYTES) => {
                    let mut label = message.message()?;
                    profile.labels.push(sample_label(&mut label, strings)?);
                }
                _ => skip_in_sample(&mut message, tag)?,
            }
        }
        let found = profile.values.len() - values_before;
        if found != width {
            let kind = DecodeErrorKind::ValueCount { found, expected: width };
            return Err(DecodeError { offset, kind });
        }
        profile.sample_starts.push(profile.sample_locations.len() as u32);
        profile.label_starts.push(profile.labels.len() as u32);
    }
    Ok(())
}

#[cold]
fn skip_in_sample(message: &mut Reader<'_>, tag: Tag) -> Result<(), DecodeError> {
    match tag.field {
        1..=3 => Err(message.wrong_wire_type("sample", tag)),
        _ => message.skip(tag),
    }
}

/// A label is text when it has a text that is not empty, else a number.
fn sample_label<'a>(label: &mut Reader<'a>, strings: &Strings<'a>) -> Result<SampleLabel<'a>, DecodeError> {
    let [key, text, value, unit] = numbers(label, "label")?;
    let key = strings.get(key)?;
    let text = strings.get(text)?;
    if !text.is_empty() {
        return Ok(SampleLabel::Text(key, text));
    }
    Ok(SampleLabel::Number(key, value.value as i64, strings.get(unit)?))
}
