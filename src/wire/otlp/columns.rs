//! Converts the samples of one service to columns.
//!
//! In: samples that refer to the dictionary. Out: a profile that contains only the functions, locations and mappings
//! that its samples use. The texts of the profile are copies. Memory is charged before it is used.

use crate::otlp::attributes::{SERVICE, Value};
use crate::otlp::budget::Budget;
use crate::otlp::dictionary::Dictionary;
use crate::otlp::error::ExportError;
use crate::otlp::groups::Group;
use crate::otlp::messages::Sample;
use alluvium_profile::decoded::Columns;
use alluvium_profile::pprof::{Builder, Function, Line, Location, MAX_SHORT_BYTES, Mapping, Profile, SampleLabel};

/// Memory in bytes of a sample without its stack (starts of stack and labels, and a value), and of a frame and a label.
/// Each size is doubled for growth.
const SAMPLE_BYTES: usize = 2 * (2 * size_of::<u32>() + size_of::<i64>());
const FRAME_BYTES: usize = 2 * size_of::<u32>();
const LABEL_BYTES: usize = 2 * size_of::<SampleLabel<'_>>();

/// Memory in bytes of an entry of a table and of its index, doubled for growth.
const LOCATION_BYTES: usize = 2 * (size_of::<Location>() + 8);
const LINE_BYTES: usize = 2 * size_of::<Line>();
const FUNCTION_BYTES: usize = 2 * (size_of::<Function<'_>>() + 8);
const MAPPING_BYTES: usize = 2 * (size_of::<Mapping<'_>>() + 8);

/// Memory in bytes of a text besides its contents: its entry in the table of texts.
const TEXT_BYTES: usize = 96;
/// Additional memory in bytes of a long text, which the table of texts also finds by its address.
const ADDRESS_BYTES: usize = 48;

/// Length in bytes of the trace id and span id of a sample, in hexadecimal.
const LINK_TEXT_BYTES: usize = 48;

/// Name of the sample label with the trace id of a link, as the store expects it.
pub(super) const TRACE_ID: &str = "trace_id";

/// Name of the sample label with the span id of a link, as the store expects it.
pub(super) const SPAN_ID: &str = "span_id";

/// Converts groups of samples to columns. The marks of used entries are allocated once and reused for each group.
pub(super) struct ColumnMaker<'d> {
    dictionary: &'d Dictionary<'d>,
    locations: Marks,
    functions: Marks,
    mappings: Marks,
    attributes: Marks,
}

impl<'d> ColumnMaker<'d> {
    /// Creates a maker for profiles that refer to this dictionary.
    pub(super) fn new(dictionary: &'d Dictionary<'d>, budget: &mut Budget) -> Result<Self, ExportError> {
        let mut new_marks = |size| Marks::new(size, budget);
        let [locations, functions, mappings, attributes] = dictionary.sizes();
        Ok(Self {
            dictionary,
            locations: new_marks(locations)?,
            functions: new_marks(functions)?,
            mappings: new_marks(mappings)?,
            attributes: new_marks(attributes)?,
        })
    }

    /// Returns the columns of a group. `header` has types, period and time. Values are multiplied by `scale`.
    pub(super) fn columns(
        &mut self,
        group: &Group<'d>,
        header: Profile<'d>,
        scale: i64,
        budget: &mut Budget,
    ) -> Result<Columns, ExportError> {
        for marks in [
            &mut self.locations,
            &mut self.functions,
            &mut self.mappings,
            &mut self.attributes,
        ] {
            marks.forget();
        }
        let mut building = Building {
            builder: Builder::new(header),
            maker: self,
            budget,
        };
        let (mut stack, mut labels) = (Vec::new(), Vec::new());
        for sample in &group.samples {
            stack.clear();
            labels.clear();
            building.stack(sample, &mut stack)?;
            building.labels(sample, &mut labels)?;
            let value = value_of(sample).saturating_mul(scale);
            building
                .builder
                .sample(stack.iter().copied(), labels.iter().copied(), &[value]);
        }
        Ok(Columns::copied(building.builder.finish()))
    }
}

/// Returns the memory in bytes of a text that is new to a profile.
fn text_bytes(text: &str) -> usize {
    match text.len() {
        0 => 0,
        length @ ..=MAX_SHORT_BYTES => TEXT_BYTES + length,
        length => TEXT_BYTES + ADDRESS_BYTES + length,
    }
}

/// Returns the number of events of a sample: the sum of its values or, if it has none, the number of its timestamps.
fn value_of(sample: &Sample) -> i64 {
    if sample.values.is_empty() {
        return sample.timestamps_unix_nano.len() as i64;
    }
    let sum: i128 = sample.values.iter().copied().map(i128::from).sum();
    sum.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// A profile that is being built.
struct Building<'d, 'm> {
    builder: Builder<'d>,
    maker: &'m mut ColumnMaker<'d>,
    budget: &'m mut Budget,
}

impl<'d> Building<'d, '_> {
    fn stack(&mut self, sample: &Sample, out: &mut Vec<u32>) -> Result<(), ExportError> {
        let stack = self.maker.dictionary.stack(sample.stack_index)?;
        self.budget.take(1, SAMPLE_BYTES)?;
        self.budget.take(stack.len(), FRAME_BYTES)?;
        for index in stack {
            out.extend(self.location(*index)?);
        }
        Ok(())
    }

    /// Returns the index of a location in the profile, or `None` for the empty location.
    fn location(&mut self, index: i32) -> Result<Option<u32>, ExportError> {
        let dictionary = self.maker.dictionary;
        let Some(location) = dictionary.location(index)? else {
            return Ok(None);
        };
        if let Some(location_index) = self.maker.locations.get(index) {
            return Ok(Some(location_index));
        }
        self.budget.take(1, LOCATION_BYTES)?;
        self.budget.take(location.lines.len(), LINE_BYTES)?;
        let mut lines = Vec::with_capacity(location.lines.len());
        // Flags for functions, files, line numbers and inlined frames.
        let mut flags = [false; 4];
        for line in &location.lines {
            let Some((index, function)) = self.function(line.function_index)? else {
                continue;
            };
            flags[0] |= !function.name.is_empty();
            flags[1] |= !function.file.is_empty();
            flags[2] |= line.line != 0;
            flags[3] |= !lines.is_empty();
            lines.push(Line {
                function: index,
                line: line.line,
            });
        }
        let mapping = self.mapping(location.mapping_index)?;
        self.builder.add_flags(mapping, flags);
        let location_index = self.builder.location(mapping, location.address, &lines);
        self.maker.locations.set(index, location_index);
        Ok(Some(location_index))
    }

    /// Returns the index of a mapping in the profile. For the empty mapping, returns [`Location::NO_MAPPING`].
    fn mapping(&mut self, index: i32) -> Result<u32, ExportError> {
        if let Some(mapping_index) = self.maker.mappings.get(index) {
            return Ok(mapping_index);
        }
        let mapping_index = match self.maker.dictionary.mapping(index, self.budget)? {
            None => Location::NO_MAPPING,
            Some(mapping) => {
                let texts = text_bytes(mapping.file) + text_bytes(mapping.build_id);
                self.budget.take(1, MAPPING_BYTES + texts)?;
                self.builder.mapping(mapping)
            }
        };
        self.maker.mappings.set(index, mapping_index);
        Ok(mapping_index)
    }

    /// Returns a function with its index in the profile, or `None` for the empty function.
    fn function(&mut self, index: i32) -> Result<Option<(u32, Function<'d>)>, ExportError> {
        let Some(function) = self.maker.dictionary.function(index)? else {
            return Ok(None);
        };
        if let Some(function_index) = self.maker.functions.get(index) {
            return Ok(Some((function_index, function)));
        }
        let texts = [function.name, function.system_name, function.file].map(text_bytes);
        self.budget.take(1, FUNCTION_BYTES + texts.iter().sum::<usize>())?;
        let function_index = self.builder.function(function);
        self.maker.functions.set(index, function_index);
        Ok(Some((function_index, function)))
    }

    fn labels(&mut self, sample: &Sample, out: &mut Vec<SampleLabel<'d>>) -> Result<(), ExportError> {
        let dictionary = self.maker.dictionary;
        self.budget.take(sample.attribute_indices.len(), LABEL_BYTES)?;
        for index in &sample.attribute_indices {
            let attribute = dictionary.attribute(*index)?;
            let name = attribute.name.as_ref();
            if name.is_empty() || name == SERVICE {
                continue;
            }
            let label = match attribute.value {
                // pprof cannot distinguish an empty text from the number 0.
                Value::Text("") | Value::None => continue,
                Value::Text(text) => SampleLabel::Text(name, text),
                Value::Number(number) => SampleLabel::Number(name, number, attribute.unit),
            };
            if self.maker.attributes.get(*index).is_none() {
                let (SampleLabel::Text(_, text) | SampleLabel::Number(.., text)) = label;
                self.budget.take(1, text_bytes(name) + text_bytes(text))?;
                self.maker.attributes.set(*index, 0);
            }
            out.push(label);
        }
        let Some(link) = dictionary.link(sample.link_index)? else {
            return Ok(());
        };
        for (name, id) in [(TRACE_ID, &link.trace), (SPAN_ID, &link.span)] {
            if !id.is_empty() {
                self.budget.take(1, LABEL_BYTES + TEXT_BYTES + LINK_TEXT_BYTES)?;
                out.push(SampleLabel::Text(name, id));
            }
        }
        Ok(())
    }
}

/// Marks the entries of a table that the current group uses, with their indices in its profile.
struct Marks {
    /// Number of the current group. Marks of other groups are ignored.
    group: u32,
    marks: Vec<(u32, u32)>,
}

impl Marks {
    fn new(count: usize, budget: &mut Budget) -> Result<Self, ExportError> {
        budget.take(count, size_of::<(u32, u32)>())?;
        Ok(Self {
            group: 0,
            marks: vec![(0, 0); count],
        })
    }

    /// Starts another group, for which no entry is marked.
    fn forget(&mut self) {
        self.group += 1;
    }

    fn get(&self, index: i32) -> Option<u32> {
        let (group, profile_index) = *self.marks.get(index as usize)?;
        (group == self.group).then_some(profile_index)
    }

    fn set(&mut self, index: i32, profile_index: u32) {
        if let Some(mark) = self.marks.get_mut(index as usize) {
            *mark = (self.group, profile_index);
        }
    }
}
