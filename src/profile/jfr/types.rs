//! The types of a chunk: the fields of a value in order, and how to skip a value.
//!
//! In: classes as the metadata describes them. Out: some fields of a value as numbers. The other fields are skipped.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::jfr::budget::Budget;
use crate::jfr::error::{JfrError, JfrErrorKind};
use crate::jfr::reader::Reader;

/// Maximum nesting of values (stack trace, frame). Real values have three levels.
const MAX_NESTING: usize = 16;

/// A type with its fields in order.
#[derive(Debug)]
pub(super) struct Class {
    pub name: Arc<str>,
    pub fields: Vec<Field>,
}

/// A field of a type: its name and how its values are encoded.
#[derive(Debug)]
pub(super) struct Field {
    pub name: Arc<str>,
    /// Number of the type of its values.
    pub type_id: u64,
    /// Encoding of each value.
    pub form: Encoding,
    pub is_constant: bool,
    pub count: Count,
}

/// Encoding of a value in the file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// The metadata does not describe the type.
    #[default]
    Unknown,
    Byte,
    /// A compressed number, or the number of a constant.
    Number,
    /// An uncompressed value of this number of bytes.
    Fixed(u8),
    Text,
    /// The fields of the class with this index, one after the other.
    Fields(u32),
}

/// Number of values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    One,
    /// A length, followed by the values.
    Array,
}

/// The types of a chunk by their numbers.
#[derive(Default)]
pub(super) struct Types {
    classes: Vec<Class>,
    by_id: HashMap<u64, u32>,
}

/// The fields of a class to read, and for each field the index of its result.
pub(super) struct FieldSelection {
    class: u32,
    targets: Vec<Option<u8>>,
}

impl Types {
    /// Adds a class. A later class with the same number replaces it.
    pub(super) fn add(&mut self, id: u64, class: Class) {
        self.by_id.insert(id, self.classes.len() as u32);
        self.classes.push(class);
    }

    /// Resolves the encoding of each field. Must be called after all classes were added.
    pub(super) fn link(&mut self) {
        let forms: Vec<Encoding> = (0..)
            .zip(&self.classes)
            .map(|(index, class)| form(index, &class.name))
            .collect();
        for field in self.classes.iter_mut().flat_map(|class| &mut class.fields) {
            field.form = if field.is_constant {
                Encoding::Number
            } else {
                let class = self.by_id.get(&field.type_id);
                class
                    .and_then(|class| forms.get(*class as usize).copied())
                    .unwrap_or_default()
            };
        }
    }

    /// Returns the encoding of a value of a type.
    pub(super) fn form(&self, id: u64) -> Encoding {
        match self.by_id.get(&id) {
            Some(index) => form(*index, &self.classes[*index as usize].name),
            None => Encoding::Unknown,
        }
    }

    /// Iterates over all classes with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Class)> {
        self.by_id
            .iter()
            .map(|(id, index)| (*id, &self.classes[*index as usize]))
    }

    /// Selects the fields `names` of a type: field `names[i]` becomes result `i`. Reading stops after the last selected
    /// field.
    pub(super) fn select(&self, id: u64, names: &[&str]) -> Option<FieldSelection> {
        let mut selection = self.select_all(id, names)?;
        let used = selection
            .targets
            .iter()
            .rposition(Option::is_some)
            .map_or(0, |last| last + 1);
        selection.targets.truncate(used);
        Some(selection)
    }

    /// Like [`Self::select`], but reads to the end of the value, for values that are followed by other values.
    pub(super) fn select_all(&self, id: u64, names: &[&str]) -> Option<FieldSelection> {
        let class = *self.by_id.get(&id)?;
        let fields = &self.classes[class as usize].fields;
        let target = |field: &Field| {
            let position = names.iter().position(|name| **name == *field.name)?;
            u8::try_from(position).ok()
        };
        let targets = fields.iter().map(target).collect();
        Some(FieldSelection { class, targets })
    }

    /// Reads the selected fields of a value. The result for a field that is not a single number, such as a string or an
    /// array, is its position in the file. If a field is missing, its result stays unchanged.
    pub(super) fn read(
        &self,
        reader: &mut Reader<'_>,
        selection: &FieldSelection,
        budget: &mut Budget,
        numbers: &mut [u64],
    ) -> Result<(), JfrError> {
        let fields = &self.classes[selection.class as usize].fields;
        for (field, target) in fields.iter().zip(&selection.targets) {
            let number = target.and_then(|target| numbers.get_mut(usize::from(target)));
            match (number, field.form, field.count) {
                (Some(number), Encoding::Number, Count::One) => *number = reader.number()?,
                (Some(number), Encoding::Byte, Count::One) => *number = u64::from(reader.byte()?),
                (number, form, count) => {
                    if let Some(number) = number {
                        *number = reader.position() as u64;
                    }
                    self.skip(reader, form, count, budget, 0)?;
                }
            }
        }
        Ok(())
    }

    /// Skips a value of a type.
    pub(super) fn skip_one(
        &self,
        reader: &mut Reader<'_>,
        form: Encoding,
        budget: &mut Budget,
    ) -> Result<(), JfrError> {
        self.skip(reader, form, Count::One, budget, 0)
    }

    fn skip(
        &self,
        reader: &mut Reader<'_>,
        form: Encoding,
        count: Count,
        budget: &mut Budget,
        depth: usize,
    ) -> Result<(), JfrError> {
        if depth > MAX_NESTING {
            return Err(reader.error(JfrErrorKind::Nesting(MAX_NESTING)));
        }
        let count = match count {
            Count::One => 1,
            Count::Array => reader.number()?,
        };
        for _ in 0..count {
            budget.step().map_err(|kind| reader.error(kind))?;
            match form {
                Encoding::Byte => drop(reader.byte()?),
                Encoding::Number => drop(reader.number()?),
                Encoding::Fixed(length) => drop(reader.bytes(u64::from(length))?),
                Encoding::Text => drop(reader.text()?),
                Encoding::Unknown => return Err(reader.error(JfrErrorKind::UnknownType(0))),
                Encoding::Fields(class) => {
                    let fields = self.classes.get(class as usize).map(|class| class.fields.as_slice());
                    for field in fields.unwrap_or_default() {
                        self.skip(reader, field.form, field.count, budget, depth + 1)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the encoding of a value of the class `name` with this index.
fn form(index: u32, name: &str) -> Encoding {
    match name {
        "boolean" | "byte" => Encoding::Byte,
        "char" | "short" | "int" | "long" => Encoding::Number,
        "float" => Encoding::Fixed(4),
        "double" => Encoding::Fixed(8),
        "java.lang.String" => Encoding::Text,
        _ => Encoding::Fields(index),
    }
}
