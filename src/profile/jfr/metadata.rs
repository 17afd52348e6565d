//! The metadata of a chunk: a tree of elements that describes its types.
//!
//! An element has a name, attributes and children. The name, and the keys and values of the attributes, are indices of
//! strings in a table before the tree. Only the elements `class` (with `name` and `id`) and the elements
//! `field` in them are used.

use std::sync::Arc;

use crate::jfr::budget::Budget;
use crate::jfr::error::{JfrError, JfrErrorKind};
use crate::jfr::reader::Reader;
use crate::jfr::types::{Class, Count, Encoding, Field, Types};

/// Type of the metadata event.
const METADATA: u64 = 0;
/// Memory of a string beyond its characters, in bytes: its reference counts, and its pointer in a table. The pointer
/// counts twice, because a table that grows doubles its capacity.
const TEXT_BYTES: usize = 48;
/// Maximum nesting of elements. Real recordings have five levels: root, metadata, class, field, annotation.
const MAX_DEPTH: usize = 16;
/// Number of digits of the largest type number.
const MAX_DIGITS: usize = 20;

/// Reads the types from the event at the reader's position.
pub(super) fn read(mut reader: Reader<'_>, budget: &mut Budget) -> Result<Types, JfrError> {
    let origin = reader;
    let size = reader.number()?;
    let mut event = reader.with_position(origin.position()).part(size)?;
    event = event.with_position(reader.position());
    let type_id = event.number()?;
    if type_id != METADATA {
        let expected = METADATA;
        return Err(origin.error(JfrErrorKind::EventType { type_id, expected }));
    }
    for _start_duration_id in 0..3 {
        event.number()?;
    }
    let count = event.number()?;
    // Every string takes at least one byte.
    if count > event.remaining() as u64 {
        let left = event.remaining();
        return Err(event.error(JfrErrorKind::Truncated { needed: count, left }));
    }
    let mut texts: Vec<Arc<str>> = Vec::new();
    for _ in 0..count {
        let text = event.text()?.characters();
        let bytes = text.len() + TEXT_BYTES;
        budget.charge(bytes).map_err(|kind| event.error(kind))?;
        texts.push(text.into());
    }
    let mut tree = Tree {
        texts,
        empty_text: "".into(),
        budget,
        types: Types::default(),
    };
    tree.element(&mut event, 0, None)?;
    tree.types.link();
    Ok(tree.types)
}

/// The strings and the budget for reading the tree, and the types read so far.
struct Tree<'b> {
    texts: Vec<Arc<str>>,
    empty_text: Arc<str>,
    budget: &'b mut Budget,
    types: Types,
}

/// The attributes of an element that describe a type or a field, as indices of strings.
#[derive(Default)]
struct Attributes {
    id: Option<u64>,
    name: Option<u64>,
    class: Option<u64>,
    constant_pool: Option<u64>,
    dimension: Option<u64>,
}

impl Tree<'_> {
    /// Reads an element with all its contents. A field is added to `class`, the class that contains it.
    fn element(&mut self, reader: &mut Reader<'_>, depth: usize, class: Option<&mut Class>) -> Result<(), JfrError> {
        if depth > MAX_DEPTH {
            return Err(reader.error(JfrErrorKind::Nesting(MAX_DEPTH)));
        }
        let origin = *reader;
        let name = reader.number()?;
        let attributes = self.attributes(reader)?;
        let children = reader.number()?;
        let name = self.text(name, &origin)?.clone();
        match (&*name, class) {
            ("class", _) => {
                self.budget
                    .charge(2 * size_of::<(u64, Class)>())
                    .map_err(|kind| origin.error(kind))?;
                let mut class = Class {
                    name: self.text_or_empty(attributes.name, &origin)?.clone(),
                    fields: Vec::new(),
                };
                for _ in 0..children {
                    self.element(reader, depth + 1, Some(&mut class))?;
                }
                self.types.add(self.number("id", attributes.id, &origin)?, class);
            }
            ("field", Some(class)) => {
                self.budget
                    .charge(2 * size_of::<Field>())
                    .map_err(|kind| origin.error(kind))?;
                class.fields.push(Field {
                    name: self.text_or_empty(attributes.name, &origin)?.clone(),
                    type_id: self.number("class", attributes.class, &origin)?,
                    is_constant: &**self.text_or_empty(attributes.constant_pool, &origin)? == "true",
                    count: match &**self.text_or_empty(attributes.dimension, &origin)? {
                        "" | "0" => Count::One,
                        _ => Count::Array,
                    },
                    form: Encoding::Unknown,
                });
                for _ in 0..children {
                    self.element(reader, depth + 1, None)?;
                }
            }
            _ => {
                for _ in 0..children {
                    self.element(reader, depth + 1, None)?;
                }
            }
        }
        Ok(())
    }

    fn attributes(&self, reader: &mut Reader<'_>) -> Result<Attributes, JfrError> {
        let mut attributes = Attributes::default();
        for _ in 0..reader.number()? {
            let origin = *reader;
            let key = reader.number()?;
            let value = reader.number()?;
            let attribute = match &**self.text(key, &origin)? {
                "id" => &mut attributes.id,
                "name" => &mut attributes.name,
                "class" => &mut attributes.class,
                "constantPool" => &mut attributes.constant_pool,
                "dimension" => &mut attributes.dimension,
                _ => continue,
            };
            *attribute = Some(value);
        }
        Ok(attributes)
    }

    /// Returns the string with an index.
    fn text(&self, index: u64, origin: &Reader<'_>) -> Result<&Arc<str>, JfrError> {
        let text = usize::try_from(index).ok().and_then(|index| self.texts.get(index));
        text.ok_or_else(|| {
            let count = self.texts.len();
            origin.error(JfrErrorKind::TextIndex { index, count })
        })
    }

    /// Returns the value of an attribute, which is empty if the attribute is absent.
    fn text_or_empty(&self, index: Option<u64>, origin: &Reader<'_>) -> Result<&Arc<str>, JfrError> {
        index.map_or(Ok(&self.empty_text), |index| self.text(index, origin))
    }

    fn number(&self, name: &'static str, index: Option<u64>, origin: &Reader<'_>) -> Result<u64, JfrError> {
        // Long texts are not parsed, because many attributes may refer to one long text of zeros.
        let text = Some(self.text_or_empty(index, origin)?).filter(|text| text.len() <= MAX_DIGITS);
        let number = text.and_then(|text| text.parse().ok());
        number.ok_or_else(|| origin.error(JfrErrorKind::Attribute(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_more_digits_than_any_has_is_refused() {
        let classes = |id: &str| {
            let mut event = vec![0, 0, 0, 0, 4];
            for text in ["class", "name", "id", id] {
                event.extend([3, text.len() as u8]);
                event.extend(text.bytes());
            }
            // The element `class` with the attributes `name` and `id`, and without contents.
            event.extend([0, 2, 1, 1, 2, 3, 0]);
            event.insert(0, event.len() as u8 + 1);
            let types = read(Reader::new(&event, 0), &mut Budget::of_chunk(event.len()));
            types.map(|types| types.iter().count())
        };
        assert_eq!(classes("7"), Ok(1));
        assert_eq!(classes(&"0".repeat(MAX_DIGITS)), Ok(1));
        assert!(classes(&"0".repeat(MAX_DIGITS + 1)).is_err());
        assert!(classes("x").is_err());
    }
}
