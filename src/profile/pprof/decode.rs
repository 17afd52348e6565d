//! Decodes pprof bytes to columns: the hot path of every ingest.
//!
//! One pass over the bytes checks the outer framing and counts the messages. Then the columns are allocated at their
//! exact size, and each kind of message is read once, strings first, so that every reference is resolved and checked
//! immediately. Nothing is allocated per sample. A message of two bytes becomes a struct of up to 64 bytes. The size of
//! the columns is therefore computed before they are allocated, and a profile is rejected if its columns are larger
//! than a small multiple of the input. This module does not handle gzip.

use hashbrown::HashMap;

use crate::pprof::error::{DecodeError, DecodeErrorKind};
use crate::pprof::model::{Function, Line, Location, Mapping, Profile, SampleLabel, ValueType};
use crate::pprof::outline::{
    FUNCTION, LOCATION, MAPPING, Number, Outline, SAMPLE, SAMPLE_TYPE, STRING_TABLE, max_column_bytes, number,
};
use crate::pprof::reader::{BYTES, Reader, Tag, VARINT};

/// Decodes an uncompressed profile. The result borrows its strings from `data`. Every index in the result is in bounds.
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
    read_scalars(&outline, &strings, &mut profile)?;
    let mut texts = Texts::of_profile(data.len());
    let mapping_ids = read_mappings(data, &outline, &strings, &mut texts, &mut profile)?;
    let function_ids = read_functions(data, &outline, &strings, &mut texts, &mut profile)?;
    let location_ids = read_locations(data, &outline, &mapping_ids, &function_ids, &mut profile)?;
    read_samples(data, &outline, &location_ids, &strings, &mut profile)?;
    Ok(profile)
}

/// The limit on texts in bytes is `FREE_TEXT_BYTES` plus `TEXT_RATIO` per byte of the profile. It applies once to
/// the texts of all functions and mappings together, and once to the texts of all labels. A text counts for each use,
/// because code that compares functions, mappings or labels reads the text at each use. The store has tighter limits.
const FREE_TEXT_BYTES: usize = 64 << 20;
const TEXT_RATIO: usize = 64;

/// The number of bytes of texts that may still follow before the limit is exceeded.
struct Texts {
    remaining: usize,
    limit: usize,
}

impl Texts {
    fn of_profile(bytes: usize) -> Self {
        let limit = bytes.saturating_mul(TEXT_RATIO).saturating_add(FREE_TEXT_BYTES);
        Self {
            remaining: limit,
            limit,
        }
    }

    /// Charges the texts of a message that starts at `offset`.
    fn take(&mut self, texts: &[&str], offset: usize) -> Result<(), DecodeError> {
        let bytes = texts.iter().map(|text| text.len()).sum();
        let limit = self.limit;
        self.remaining = self.remaining.checked_sub(bytes).ok_or(DecodeError {
            offset,
            kind: DecodeErrorKind::Texts { limit },
        })?;
        Ok(())
    }
}

/// The string table of a profile.
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

    /// Returns the string with an index. Index 0 is the empty string, even without a table.
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

/// Reads the fields that do not repeat, and the comments.
fn read_scalars<'a>(
    outline: &Outline<'a>,
    strings: &Strings<'a>,
    profile: &mut Profile<'a>,
) -> Result<(), DecodeError> {
    if let Some(mut message) = outline.period_type {
        profile.period_type = value_type(&mut message, strings)?;
    }
    profile.period = outline.period;
    profile.time_nanos = outline.time_nanos;
    profile.duration_nanos = outline.duration_nanos;
    profile.default_sample_type = strings.get(outline.default_sample_type)?;
    profile.drop_frames = strings.get(outline.drop_frames)?;
    profile.keep_frames = strings.get(outline.keep_frames)?;
    profile.comments.reserve_exact(outline.comments.len());
    for &comment in &outline.comments {
        profile.comments.push(strings.get(comment)?);
    }
    Ok(())
}

/// Maps ids to indices. Nearly all producers use ids from 1 without gaps. Such ids need no table.
struct Ids {
    message_kind: &'static str,
    count: u32,
    sparse: Option<HashMap<u64, u32>>,
}

impl Ids {
    fn new(message_kind: &'static str) -> Self {
        Self {
            message_kind,
            count: 0,
            sparse: None,
        }
    }

    /// Stores the id of the next message, which starts at `offset`.
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
        let what = self.message_kind;
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

    /// Returns the index of the message with `id`, which the message at `offset` refers to.
    #[inline]
    fn index(&self, id: u64, offset: usize) -> Result<u32, DecodeError> {
        let row = match &self.sparse {
            None => {
                let index = id.wrapping_sub(1);
                (index < u64::from(self.count)).then_some(index as u32)
            }
            Some(sparse) => sparse.get(&id).copied(),
        };
        row.ok_or_else(|| self.missing(id, offset))
    }

    #[cold]
    fn missing(&self, id: u64, offset: usize) -> DecodeError {
        let what = self.message_kind;
        let kind = match id {
            0 => DecodeErrorKind::ZeroId { what },
            _ => DecodeErrorKind::DanglingId { what, id },
        };
        DecodeError { offset, kind }
    }
}

/// Reads a message whose known fields, 1 to `N`, are all varints. If a field repeats, the last value is used.
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
    texts: &mut Texts,
    profile: &mut Profile<'a>,
) -> Result<Ids, DecodeError> {
    let run = outline.runs[MAPPING as usize];
    let mut ids = Ids::new("mapping");
    profile.mappings.reserve_exact(run.count);
    for mut message in run.messages(data, MAPPING) {
        let offset = message.position();
        let fields: [Number; 10] = numbers(&mut message, "mapping")?;
        ids.add(fields[0].value, offset)?;
        let mapping = Mapping {
            start: fields[1].value,
            limit: fields[2].value,
            offset: fields[3].value,
            file: strings.get(fields[4])?,
            build_id: strings.get(fields[5])?,
            has: [6, 7, 8, 9].map(|index: usize| fields[index].value != 0),
        };
        texts.take(&[mapping.file, mapping.build_id], offset)?;
        profile.mappings.push(mapping);
    }
    Ok(ids)
}

fn read_functions<'a>(
    data: &'a [u8],
    outline: &Outline<'a>,
    strings: &Strings<'a>,
    texts: &mut Texts,
    profile: &mut Profile<'a>,
) -> Result<Ids, DecodeError> {
    let run = outline.runs[FUNCTION as usize];
    let mut ids = Ids::new("function");
    profile.functions.reserve_exact(run.count);
    for mut message in run.messages(data, FUNCTION) {
        let offset = message.position();
        let [id, name, system_name, file, start_line] = numbers(&mut message, "function")?;
        ids.add(id.value, offset)?;
        let function = Function {
            name: strings.get(name)?,
            system_name: strings.get(system_name)?,
            file: strings.get(file)?,
            start_line: start_line.value as i64,
        };
        texts.take(&[function.name, function.system_name, function.file], offset)?;
        profile.functions.push(function);
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
    let mut texts = Texts::of_profile(data.len());
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
                    let label = sample_label(&mut label, strings)?;
                    let (SampleLabel::Text(key, text) | SampleLabel::Number(key, _, text)) = label;
                    texts.take(&[key, text], offset)?;
                    profile.labels.push(label);
                }
                _ => skip_in_sample(&mut message, tag)?,
            }
        }
        let count = profile.values.len() - values_before;
        if count != width {
            let kind = DecodeErrorKind::ValueCount { count, expected: width };
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

/// Reads a label. It is a text label if its text is not empty, and otherwise a number.
fn sample_label<'a>(label: &mut Reader<'a>, strings: &Strings<'a>) -> Result<SampleLabel<'a>, DecodeError> {
    let [key, text, value, unit] = numbers(label, "label")?;
    let key = strings.get(key)?;
    let text = strings.get(text)?;
    if !text.is_empty() {
        return Ok(SampleLabel::Text(key, text));
    }
    Ok(SampleLabel::Number(key, value.value as i64, strings.get(unit)?))
}
