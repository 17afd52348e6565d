//! The tables that the profiles of a request share, and the meaning of their indices.
//!
//! In: the dictionary of a request. Out: its entries, converted to the types of the columns, or an error that names
//! table and index. The first entry of a table stands for "none". A table may be missing if profiles refer only to its
//! first entry.

use crate::otlp::attributes::{Attribute, BUILD_ID, SERVICE, Value};
use crate::otlp::budget::Budget;
use crate::otlp::error::ExportError;
use crate::otlp::messages::{AnyValue, KeyValue, Link, Location, ProfilesDictionary, ValueType, any_value};
use alluvium_profile::pprof::{Function, Mapping};

/// Memory in bytes of an attribute and of a link, with their texts.
const ATTRIBUTE_BYTES: usize = size_of::<Attribute<'_>>() + 32;
const LINK_BYTES: usize = size_of::<LinkIds>() + 80;

/// The dictionary of a request.
pub(super) struct Dictionary<'m> {
    tables: &'m ProfilesDictionary,
    attributes: Vec<Attribute<'m>>,
    links: Vec<LinkIds>,
    has_services: bool,
}

/// Ids of a link in hexadecimal. An id that the link does not have is empty.
#[derive(Default)]
pub(super) struct LinkIds {
    /// Id of the trace that the sample belongs to.
    pub trace: String,
    /// Id of the span in which the sample was taken.
    pub span: String,
}

impl<'m> Dictionary<'m> {
    /// Reads attributes and links. Other tables are read on demand.
    pub(super) fn new(tables: &'m ProfilesDictionary, budget: &mut Budget) -> Result<Self, ExportError> {
        budget.take(tables.attribute_table.len(), ATTRIBUTE_BYTES)?;
        budget.take(tables.link_table.len(), LINK_BYTES)?;
        let mut dictionary = Self {
            tables,
            attributes: Vec::new(),
            links: tables.link_table.iter().map(LinkIds::of).collect(),
            has_services: false,
        };
        let attributes = tables.attribute_table.iter().map(|attribute| {
            let name = dictionary.string("key_strindex", attribute.key_strindex)?;
            let unit = dictionary.string("unit_strindex", attribute.unit_strindex)?;
            Ok(Attribute::new(name, dictionary.value(attribute.value.as_ref())?, unit))
        });
        let attributes = attributes.collect::<Result<Vec<_>, _>>()?;
        dictionary.has_services = attributes.iter().any(|attribute| attribute.name == SERVICE);
        dictionary.attributes = attributes;
        Ok(dictionary)
    }

    /// Returns true when samples may name the service that they belong to.
    pub(super) fn has_services(&self) -> bool {
        self.has_services
    }

    /// Returns the text that a field refers to.
    pub(super) fn string(&self, field: &'static str, index: i32) -> Result<&'m str, ExportError> {
        let text = entry(&self.tables.string_table, field, index, "string_table")?;
        Ok(text.map_or("", String::as_str))
    }

    /// Returns type and unit of values; both are empty when there is no type.
    pub(super) fn value_type(&self, value_type: Option<&ValueType>) -> Result<[&'m str; 2], ExportError> {
        let Some(value_type) = value_type else {
            return Ok([""; 2]);
        };
        Ok([
            self.string("type_strindex", value_type.type_strindex)?,
            self.string("unit_strindex", value_type.unit_strindex)?,
        ])
    }

    /// Returns the location indices of a stack, leaf first.
    pub(super) fn stack(&self, index: i32) -> Result<&'m [i32], ExportError> {
        let stack = entry(&self.tables.stack_table, "stack_index", index, "stack_table")?;
        Ok(stack.map_or(&[], |stack| stack.location_indices.as_slice()))
    }

    /// Returns the sizes of the tables of locations, functions, mappings and attributes. A table without entries has
    /// size 1, because it implicitly has the empty entry.
    pub(super) fn sizes(&self) -> [usize; 4] {
        [
            self.tables.location_table.len(),
            self.tables.function_table.len(),
            self.tables.mapping_table.len(),
            self.attributes.len(),
        ]
        .map(|size| size.max(1))
    }

    /// Returns a location, or `None` for the empty one.
    pub(super) fn location(&self, index: i32) -> Result<Option<&'m Location>, ExportError> {
        let location = entry(&self.tables.location_table, "location_indices", index, "location_table")?;
        Ok(location.filter(|location| **location != Location::default()))
    }

    /// Returns a function, or `None` for the empty one.
    pub(super) fn function(&self, index: i32) -> Result<Option<Function<'m>>, ExportError> {
        let function = entry(&self.tables.function_table, "function_index", index, "function_table")?;
        let Some(function) = function else { return Ok(None) };
        let function = Function {
            name: self.string("name_strindex", function.name_strindex)?,
            system_name: self.string("system_name_strindex", function.system_name_strindex)?,
            file: self.string("filename_strindex", function.filename_strindex)?,
            start_line: function.start_line,
        };
        Ok((function != Function::default()).then_some(function))
    }

    /// Returns a mapping with its build id, or `None` for the empty one.
    pub(super) fn mapping(&self, index: i32, budget: &mut Budget) -> Result<Option<Mapping<'_>>, ExportError> {
        let mapping = entry(&self.tables.mapping_table, "mapping_index", index, "mapping_table")?;
        let Some(mapping) = mapping else { return Ok(None) };
        // The search for the build id needs no memory. It is charged to limit the work, as each profile repeats it.
        budget.take(mapping.attribute_indices.len(), size_of::<i32>())?;
        let mut build_id = "";
        for index in &mapping.attribute_indices {
            let attribute = self.attribute(*index)?;
            if attribute.name == BUILD_ID
                && let Value::Text(text) = attribute.value
            {
                build_id = text;
            }
        }
        let mapping = Mapping {
            start: mapping.memory_start,
            limit: mapping.memory_limit,
            offset: mapping.file_offset,
            file: self.string("filename_strindex", mapping.filename_strindex)?,
            build_id,
            has: [false; 4],
        };
        Ok((mapping != Mapping::default()).then_some(mapping))
    }

    /// Returns an attribute of a sample or a mapping.
    pub(super) fn attribute(&self, index: i32) -> Result<&Attribute<'m>, ExportError> {
        static NONE: Attribute<'static> = Attribute::NONE;
        Ok(entry(&self.attributes, "attribute_indices", index, "attribute_table")?.unwrap_or(&NONE))
    }

    /// Returns the link of a sample, or `None` for the empty one.
    pub(super) fn link(&self, index: i32) -> Result<Option<&LinkIds>, ExportError> {
        entry(&self.links, "link_index", index, "link_table")
    }

    /// Returns an attribute of a resource or a scope. Its key and value may be in the table of texts.
    pub(super) fn key_value(&self, pair: &'m KeyValue) -> Result<Attribute<'m>, ExportError> {
        let name = match pair.key.as_str() {
            "" => self.string("key_strindex", pair.key_strindex)?,
            key => key,
        };
        Ok(Attribute::new(name, self.value(pair.value.as_ref())?, ""))
    }

    /// Returns the value of an attribute. A list with one value is treated as that value.
    fn value(&self, value: Option<&'m AnyValue>) -> Result<Value<'m>, ExportError> {
        let mut value = value.and_then(|value| value.value.as_ref());
        while let Some(any_value::Value::ArrayValue(list)) = value {
            value = match list.values.as_slice() {
                [element] => element.value.as_ref(),
                _ => None,
            };
        }
        Ok(match value {
            Some(any_value::Value::StringValue(text)) => Value::Text(text),
            Some(any_value::Value::StringValueStrindex(index)) => {
                Value::Text(self.string("string_value_strindex", *index)?)
            }
            Some(any_value::Value::IntValue(number)) => Value::Number(*number),
            _ => Value::None,
        })
    }
}

impl LinkIds {
    fn of(link: &Link) -> Self {
        // If an id consists of zeros or has another length, it is treated as missing.
        let trace = link.trace_id.as_slice().try_into().map_or(0, u128::from_be_bytes);
        let span = link.span_id.as_slice().try_into().map_or(0, u64::from_be_bytes);
        Self {
            trace: if trace == 0 {
                String::new()
            } else {
                format!("{trace:032x}")
            },
            span: if span == 0 {
                String::new()
            } else {
                format!("{span:016x}")
            },
        }
    }
}

/// Returns an entry of a table. In an empty table, index 0 yields `None`. Any other missing index is an error.
fn entry<'t, T>(
    table: &'t [T],
    field: &'static str,
    index: i32,
    name: &'static str,
) -> Result<Option<&'t T>, ExportError> {
    let row = usize::try_from(index).ok().and_then(|index| table.get(index));
    if row.is_none() && !(index == 0 && table.is_empty()) {
        return Err(ExportError::Index {
            field,
            index,
            table: name,
            count: table.len(),
        });
    }
    Ok(row)
}
