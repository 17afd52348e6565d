//! The labels that come with a recording: numbered label sets. The context of a sample is the number of its label set.
//!
//! In: a protobuf message. Its field 1, `contexts`, maps the number of a label set to a message. Field 1 of that
//! message, `labels`, maps the string number of a name to the string number of a value. Field 2 of the outer message,
//! `strings`, maps string numbers to strings. Out: the label sets by number.

use hashbrown::HashMap;

use crate::jfr::budget::Budget;
use crate::jfr::error::{JfrError, JfrErrorKind};
use crate::pprof::{BYTES, DecodeError, Reader, VARINT};

/// Label sets and their strings.
#[derive(Default)]
pub(super) struct Snapshot<'a> {
    contexts: HashMap<u64, Vec<(u64, u64)>>,
    strings: HashMap<u64, &'a str>,
}

/// Memory of a map entry, in bytes. Counted twice, because a map that grows doubles its capacity.
const ENTRY_BYTES: usize = 2 * size_of::<(u64, Vec<(u64, u64)>)>() + 2;

impl<'a> Snapshot<'a> {
    /// Reads the labels. Empty input means that there are no labels.
    pub(super) fn read(data: &'a [u8], budget: &mut Budget) -> Result<Self, JfrError> {
        let mut snapshot = Self::default();
        let mut reader = Reader::new(data, 0);
        let offset = |reader: &Reader<'_>| reader.position();
        while let Some(tag) = reader.tag().map_err(labels)? {
            let position = offset(&reader);
            match (tag.field, tag.wire) {
                (1 | 2, BYTES) => {
                    budget
                        .charge(ENTRY_BYTES)
                        .map_err(|kind| JfrError { offset: position, kind })?;
                    let (key, value) = entry(reader.message().map_err(labels)?).map_err(labels)?;
                    let Some(value) = value else {
                        continue;
                    };
                    if tag.field == 1 {
                        let pairs = context(value, budget)?;
                        snapshot.contexts.insert(key, pairs);
                    } else if let Ok(text) = std::str::from_utf8(value.rest()) {
                        snapshot.strings.insert(key, text);
                    }
                }
                _ => reader.skip(tag).map_err(labels)?,
            }
        }
        Ok(snapshot)
    }

    /// Returns the labels of a context, as names and values.
    pub(super) fn labels(&self, context: u64) -> impl Iterator<Item = (&'a str, &'a str)> {
        let pairs = self.contexts.get(&context).map_or(&[][..], Vec::as_slice);
        pairs.iter().filter_map(|(name, value)| {
            let name = self.string(*name)?;
            Some((name, self.string(*value)?))
        })
    }

    /// Returns a string by its number.
    pub(super) fn string(&self, key: u64) -> Option<&'a str> {
        self.strings.get(&key).copied().filter(|text| !text.is_empty())
    }
}

fn labels(error: DecodeError) -> JfrError {
    JfrError {
        offset: error.offset,
        kind: JfrErrorKind::Labels(error),
    }
}

/// Reads key and value of a map entry. The value is a message or a string.
fn entry(mut entry: Reader<'_>) -> Result<(u64, Option<Reader<'_>>), DecodeError> {
    let (mut key, mut value) = (0, None);
    while let Some(tag) = entry.tag()? {
        match (tag.field, tag.wire) {
            (1, VARINT) => key = entry.varint()?,
            (2, BYTES) => value = Some(entry.message()?),
            _ => entry.skip(tag)?,
        }
    }
    Ok((key, value))
}

/// Reads the pairs of a label set.
fn context(mut context: Reader<'_>, budget: &mut Budget) -> Result<Vec<(u64, u64)>, JfrError> {
    let mut pairs = Vec::new();
    while let Some(tag) = context.tag().map_err(labels)? {
        let position = context.position();
        if (tag.field, tag.wire) != (1, BYTES) {
            context.skip(tag).map_err(labels)?;
            continue;
        }
        budget
            .charge(2 * size_of::<(u64, u64)>())
            .map_err(|kind| JfrError { offset: position, kind })?;
        let mut pair = context.message().map_err(labels)?;
        let mut numbers = (0, 0);
        while let Some(tag) = pair.tag().map_err(labels)? {
            match (tag.field, tag.wire) {
                (1, VARINT) => numbers.0 = pair.varint().map_err(labels)?,
                (2, VARINT) => numbers.1 = pair.varint().map_err(labels)?,
                _ => pair.skip(tag).map_err(labels)?,
            }
        }
        pairs.push(numbers);
    }
    Ok(pairs)
}
