//! Encodes columns as pprof bytes. Ids are indices plus one, and strings are interned in the order of first use.
//!
//! The output is uncompressed and depends only on the profile: equal profiles result in equal bytes.

use crate::pprof::model::{Location, Profile, SampleLabel, ValueType};
use crate::pprof::strings::Strings;

/// Encodes a profile. Its indices must be in bounds, as in a decoded profile.
pub fn encode(profile: &Profile<'_>) -> Vec<u8> {
    // An estimate that avoids most growth: two bytes per reference, four per value, sixteen per message.
    let guess = profile.sample_locations.len() * 2
        + profile.values.len() * 4
        + (profile.functions.len() * 4 + profile.locations.len() + profile.sample_count()) * 16;
    let mut out = Writer {
        bytes: Vec::with_capacity(guess),
    };
    let mut scratch = Writer::default();
    let mut inner = Writer::default();
    let mut strings = Strings::default();

    for value_type in &profile.sample_types {
        out.value_type(1, value_type, &mut strings, &mut scratch);
    }
    for sample in 0..profile.sample_count() {
        scratch.bytes.clear();
        let ids = profile.stack(sample).iter().map(|index| u64::from(*index) + 1);
        scratch.packed(1, ids, &mut inner);
        // Zero values are also written, because a sample needs as many values as there are sample types.
        let values = profile.values_of(sample).iter().map(|value| *value as u64);
        scratch.packed(2, values, &mut inner);
        for label in profile.labels_of(sample) {
            inner.bytes.clear();
            match *label {
                SampleLabel::Text(key, text) => {
                    inner.string(1, strings.index(key));
                    inner.string(2, strings.index(text));
                }
                SampleLabel::Number(key, value, unit) => {
                    inner.string(1, strings.index(key));
                    inner.number(3, value as u64);
                    inner.string(4, strings.index(unit));
                }
            }
            scratch.message(3, &inner);
        }
        out.message(2, &scratch);
    }
    for (index, mapping) in profile.mappings.iter().enumerate() {
        scratch.bytes.clear();
        scratch.number(1, index as u64 + 1);
        scratch.number(2, mapping.start);
        scratch.number(3, mapping.limit);
        scratch.number(4, mapping.offset);
        scratch.string(5, strings.index(mapping.file));
        scratch.string(6, strings.index(mapping.build_id));
        for (field, has) in (7..).zip(mapping.has) {
            scratch.number(field, u64::from(has));
        }
        out.message(3, &scratch);
    }
    for (index, location) in profile.locations.iter().enumerate() {
        scratch.bytes.clear();
        scratch.number(1, index as u64 + 1);
        if location.mapping != Location::NO_MAPPING {
            scratch.number(2, u64::from(location.mapping) + 1);
        }
        scratch.number(3, location.address);
        for line in profile.lines_of(location) {
            inner.bytes.clear();
            inner.number(1, u64::from(line.function) + 1);
            inner.number(2, line.line as u64);
            scratch.message(4, &inner);
        }
        scratch.number(5, u64::from(location.is_folded));
        out.message(4, &scratch);
    }
    for (index, function) in profile.functions.iter().enumerate() {
        scratch.bytes.clear();
        scratch.number(1, index as u64 + 1);
        scratch.string(2, strings.index(function.name));
        scratch.string(3, strings.index(function.system_name));
        scratch.string(4, strings.index(function.file));
        scratch.number(5, function.start_line as u64);
        out.message(5, &scratch);
    }
    let drop_frames = strings.index(profile.drop_frames);
    let keep_frames = strings.index(profile.keep_frames);
    let default_sample_type = strings.index(profile.default_sample_type);
    let comments = profile
        .comments
        .iter()
        .map(|comment| strings.index(comment) as u64)
        .collect::<Vec<_>>();
    if profile.period_type != ValueType::default() {
        out.value_type(11, &profile.period_type, &mut strings, &mut scratch);
    }
    for text in strings.texts() {
        out.bytes(6, text.as_bytes());
    }
    out.string(7, drop_frames);
    out.string(8, keep_frames);
    out.number(9, profile.time_nanos as u64);
    out.number(10, profile.duration_nanos as u64);
    out.number(12, profile.period as u64);
    out.packed(13, comments.into_iter(), &mut scratch);
    out.string(14, default_sample_type);
    out.bytes
}

/// Writes protobuf fields.
#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    #[inline]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Writes the index of a string as a varint field.
    fn string(&mut self, field: u32, index: i64) {
        self.number(field, index as u64);
    }

    /// Writes a varint field. Zero is the default and is omitted.
    fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.varint(u64::from(field) << 3);
            self.varint(value);
        }
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u32, message: &Writer) {
        self.bytes(field, &message.bytes);
    }

    fn packed(&mut self, field: u32, values: impl ExactSizeIterator<Item = u64>, scratch: &mut Writer) {
        if values.len() == 0 {
            return;
        }
        scratch.bytes.clear();
        for value in values {
            scratch.varint(value);
        }
        self.message(field, scratch);
    }

    fn value_type<'a>(
        &mut self,
        field: u32,
        value_type: &ValueType<'a>,
        strings: &mut Strings<'a>,
        scratch: &mut Writer,
    ) {
        scratch.bytes.clear();
        scratch.string(1, strings.index(value_type.kind));
        scratch.string(2, strings.index(value_type.unit));
        self.message(field, scratch);
    }
}
