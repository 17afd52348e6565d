//! Builds record batches: collects the rows of a table as plain values and converts the values to Arrow arrays.
//!
//! Only the columns of the projection are built. Constant columns and runs of equal texts are written without a lookup
//! per row.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Int32Array, Int64Array, ListArray, MapArray, RecordBatch, RecordBatchOptions,
    StringArray, StringBuilder, StructArray, TimestampMicrosecondArray, new_null_array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use crate::store::common::schema;
use crate::store::common::schema::{Table, column};
use crate::store::head::frames::Frame;
use crate::store::head::intern::{SharedTexts, TextId};
use crate::store::head::partition::{Link, ProfileRow};
use alluvium_profile::labels::SERVICE_NAME;
use alluvium_profile::{Labels, SeriesId, StackId, TenantId};

/// Maximum size of the text in a batch in bytes, unless a single row has more. Arrow's offsets end at 2 GiB, and a
/// batch is in memory twice while it is written.
const BATCH_TEXT: usize = 32 << 20;

/// Values that all rows of a partition share.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a> {
    pub(crate) tenant: &'a TenantId,
    pub(crate) day: i32,
    pub(crate) texts: &'a SharedTexts,
    /// Columns to build; `None` for all.
    pub(crate) projection: Option<&'a [usize]>,
}

/// Rows of [`Table::Samples`].
#[derive(Default)]
pub(crate) struct SampleRows {
    time: Vec<i64>,
    series: Vec<SeriesId>,
    types: Runs,
    stack: Vec<StackId>,
    value: Vec<i64>,
    /// One link per row, or empty while no row has a span or trace.
    links: Vec<Link>,
    text: usize,
}

/// One row of [`Table::Samples`].
pub(crate) struct SampleRow {
    /// Microseconds since 1970.
    pub(crate) time: i64,
    pub(crate) series: SeriesId,
    pub(crate) profile_type: TextId,
    pub(crate) stack: StackId,
    pub(crate) value: i64,
    pub(crate) link: Link,
}

impl SampleRows {
    pub(crate) fn len(&self) -> usize {
        self.value.len()
    }

    /// Returns true if the rows fill a batch of `rows` rows, or their text reaches [`BATCH_TEXT`].
    #[inline]
    pub(crate) fn is_full(&self, rows: usize) -> bool {
        self.value.len() >= rows || self.text >= BATCH_TEXT
    }

    #[inline]
    pub(crate) fn push(&mut self, row: SampleRow, texts: &SharedTexts) {
        if row.link != Link::NONE || !self.links.is_empty() {
            self.links.resize(self.value.len(), Link::NONE);
            self.links.push(row.link);
            let length = |id| if id == TextId::NONE { 0 } else { texts.get(id).len() };
            self.text += length(row.link.span) + length(row.link.trace);
        }
        self.text += self.types.length_of(row.profile_type, texts);
        self.time.push(row.time);
        self.series.push(row.series);
        self.stack.push(row.stack);
        self.value.push(row.value);
        self.types.push(row.profile_type, self.value.len());
    }

    /// Removes the rows and returns them as a batch.
    pub(crate) fn take(&mut self, shared: Shared<'_>) -> Result<RecordBatch, ArrowError> {
        let mut rows = std::mem::take(self);
        let count = rows.len();
        // A projection names each column at most once.
        batch(Table::Samples, shared, count, |name| {
            Ok(match name {
                column::TIME => times(std::mem::take(&mut rows.time)),
                column::SERIES => integers(std::mem::take(&mut rows.series).into_iter().map(|id| id.0).collect()),
                column::PROFILE_TYPE => rows.types.array(shared.texts),
                column::STACK => integers(std::mem::take(&mut rows.stack).into_iter().map(|id| id.0).collect()),
                column::VALUE => integers(std::mem::take(&mut rows.value)),
                column::SPAN_ID => rows.link_array(|link| link.span, count, shared.texts),
                _ => rows.link_array(|link| link.trace, count, shared.texts),
            })
        })
    }

    fn link_array(&self, part: impl Fn(&Link) -> TextId, count: usize, texts: &SharedTexts) -> ArrayRef {
        if self.links.is_empty() {
            return new_null_array(&DataType::Utf8, count);
        }
        let text = |link: &Link| match part(link) {
            TextId::NONE => None,
            id => Some(texts.get(id)),
        };
        Arc::new(self.links.iter().map(text).collect::<StringArray>())
    }
}

/// Rows of [`Table::Profiles`].
#[derive(Default)]
pub(crate) struct ProfileRows {
    rows: Vec<ProfileOfType>,
    text: usize,
}

/// One row of [`Table::Profiles`].
pub(crate) struct ProfileOfType {
    pub(crate) series: SeriesId,
    pub(crate) profile_type: TextId,
    pub(crate) profile: ProfileRow,
    /// Number of samples of the profile.
    pub(crate) samples: i64,
}

impl ProfileRows {
    /// Returns true if there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns true if the rows fill a batch of `rows` rows, or their text reaches [`BATCH_TEXT`].
    pub(crate) fn is_full(&self, rows: usize) -> bool {
        self.rows.len() >= rows || self.text >= BATCH_TEXT
    }

    pub(crate) fn push(&mut self, row: ProfileOfType, texts: &SharedTexts) {
        self.text += texts.get(row.profile_type).len() + texts.get(row.profile.id).len();
        self.rows.push(row);
    }

    /// Removes the rows and returns them as a batch.
    pub(crate) fn take(&mut self, shared: Shared<'_>) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(self).rows;
        let numbers = |value: fn(&ProfileOfType) -> i64| integers(rows.iter().map(value).collect());
        batch(Table::Profiles, shared, rows.len(), |name| {
            Ok(match name {
                column::TIME => times(rows.iter().map(|row| row.profile.time_us).collect()),
                column::SERIES => numbers(|row| row.series.0),
                column::PROFILE_TYPE => {
                    let mut runs = Runs::default();
                    for (index, row) in rows.iter().enumerate() {
                        runs.push(row.profile_type, index + 1);
                    }
                    runs.array(shared.texts)
                }
                column::TOTAL => numbers(|row| row.profile.total),
                column::SAMPLE_COUNT => numbers(|row| row.samples),
                column::DURATION_NS => numbers(|row| row.profile.duration_ns),
                column::PERIOD => numbers(|row| row.profile.period),
                _ => Arc::new(StringArray::from_iter_values(
                    rows.iter().map(|row| shared.texts.get(row.profile.id)),
                )),
            })
        })
    }
}

/// Splits series into batches. A batch ends after `rows` rows, or earlier when its labels reach [`BATCH_TEXT`].
pub(crate) fn series_chunks<'a, 'b>(
    all: &'a [(SeriesId, &'b Labels)],
    rows: usize,
) -> impl Iterator<Item = &'a [(SeriesId, &'b Labels)]> {
    let mut rest = all;
    std::iter::from_fn(move || {
        let mut text = 0;
        let full = rest.iter().take(rows).position(|(_, labels)| {
            text += labels
                .iter()
                .map(|(name, value)| name.len() + value.len())
                .sum::<usize>();
            text >= BATCH_TEXT
        });
        let end = full.map_or(rows.min(rest.len()), |last| last + 1);
        let (chunk, after) = rest.split_at(end);
        rest = after;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// Builds the batch of [`Table::Series`] for these series.
pub(crate) fn series_batch(shared: Shared<'_>, rows: &[(SeriesId, &Labels)]) -> Result<RecordBatch, ArrowError> {
    batch(Table::Series, shared, rows.len(), |name| match name {
        column::SERIES => Ok(integers(rows.iter().map(|row| row.0.0).collect())),
        column::SERVICE_NAME => Ok(Arc::new(StringArray::from_iter_values(
            rows.iter().map(|row| row.1.get(SERVICE_NAME).unwrap_or_default()),
        ))),
        _ => labels_array(rows),
    })
}

/// Rows of [`Table::Stacks`].
#[derive(Default)]
pub(crate) struct StackRows {
    ids: Vec<StackId>,
    ends: Vec<i32>,
    frames: Vec<Frame>,
    text: usize,
}

impl StackRows {
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Returns true if the rows fill a batch of `frames` frames, or their text reaches [`BATCH_TEXT`].
    pub(crate) fn is_full(&self, frames: usize) -> bool {
        self.frames.len() >= frames || self.text >= BATCH_TEXT
    }

    pub(crate) fn push<'a>(&mut self, id: StackId, frames: impl Iterator<Item = &'a Frame>, texts: &SharedTexts) {
        self.ids.push(id);
        let text = &mut self.text;
        self.frames.extend(frames.inspect(|frame| {
            let names = [frame.function, frame.file, frame.mapping, frame.build_id];
            *text += names.map(|number| texts.get(number).len()).iter().sum::<usize>();
        }));
        self.ends.push(self.frames.len() as i32);
    }

    /// Removes the rows and returns them as a batch.
    pub(crate) fn take(&mut self, shared: Shared<'_>) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(self);
        batch(Table::Stacks, shared, rows.len(), |name| match name {
            column::STACK => Ok(integers(rows.ids.iter().map(|id| id.0).collect())),
            column::START_LINES => rows.start_lines_array(),
            _ => rows.frames_array(shared.texts),
        })
    }

    fn frames_array(&self, texts: &SharedTexts) -> Result<ArrayRef, ArrowError> {
        let text = |id: fn(&Frame) -> TextId| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(
                self.frames.iter().map(|frame| texts.get(id(frame))),
            ))
        };
        let columns = vec![
            text(|frame| frame.function),
            text(|frame| frame.file),
            integers(self.frames.iter().map(|frame| frame.line).collect()),
            text(|frame| frame.mapping),
            integers(self.frames.iter().map(|frame| frame.address as i64).collect()),
            text(|frame| frame.build_id),
            Arc::new(
                self.frames
                    .iter()
                    .map(|frame| Some(frame.inlined))
                    .collect::<BooleanArray>(),
            ),
        ];
        let frames = StructArray::try_new(schema::frame_fields(), columns, None)?;
        let offsets: Vec<i32> = std::iter::once(0).chain(self.ends.iter().copied()).collect();
        let list = ListArray::try_new(
            schema::frame(),
            OffsetBuffer::new(offsets.into()),
            Arc::new(frames),
            None,
        )?;
        Ok(Arc::new(list))
    }

    /// Builds the column of start lines. A stack without start lines has a null list, so that stacks of programs
    /// without known lines need no space.
    fn start_lines_array(&self) -> Result<ArrayRef, ArrowError> {
        let mut lines: Vec<i32> = Vec::new();
        let mut offsets = vec![0i32];
        let mut validity = Vec::with_capacity(self.ids.len());
        let mut start = 0;
        for end in &self.ends {
            let own = &self.frames[start..*end as usize];
            let has_lines = own.iter().any(|frame| frame.start_line != 0);
            if has_lines {
                lines.extend(own.iter().map(|frame| frame.start_line));
            }
            validity.push(has_lines);
            offsets.push(lines.len() as i32);
            start = *end as usize;
        }
        let list = ListArray::try_new(
            schema::start_line(),
            OffsetBuffer::new(offsets.into()),
            Arc::new(Int32Array::from(lines)),
            Some(NullBuffer::from(validity)),
        )?;
        Ok(Arc::new(list))
    }
}

/// A text column, stored as runs of equal neighbouring rows.
#[derive(Default)]
struct Runs {
    runs: Vec<Run>,
    /// Bytes of the text of the last run.
    last_bytes: usize,
}

/// Neighbouring rows with the same text.
struct Run {
    text: TextId,
    /// Index of the first row after the run.
    end: usize,
}

impl Runs {
    /// Returns the size of the text of the next row in bytes. The text is looked up once per run.
    #[inline]
    fn length_of(&mut self, text: TextId, texts: &SharedTexts) -> usize {
        if self.runs.last().is_none_or(|last| last.text != text) {
            self.last_bytes = texts.get(text).len();
        }
        self.last_bytes
    }

    #[inline]
    fn push(&mut self, text: TextId, end: usize) {
        match self.runs.last_mut() {
            Some(last) if last.text == text => last.end = end,
            _ => self.runs.push(Run { text, end }),
        }
    }

    fn array(&self, texts: &SharedTexts) -> ArrayRef {
        let mut builder = StringBuilder::new();
        let mut start = 0;
        for run in &self.runs {
            let text = texts.get(run.text);
            for _ in start..run.end {
                builder.append_value(text);
            }
            start = run.end;
        }
        Arc::new(builder.finish())
    }
}

/// Builds a batch of the projected columns. `make` receives the name of a column of the file schema and builds that
/// column.
fn batch(
    table: Table,
    shared: Shared<'_>,
    rows: usize,
    mut make: impl FnMut(&str) -> Result<ArrayRef, ArrowError>,
) -> Result<RecordBatch, ArrowError> {
    let full = table.schema();
    let indices: Vec<usize> = match shared.projection {
        Some(columns) => columns.to_vec(),
        None => (0..full.fields().len()).collect(),
    };
    let schema = Arc::new(full.project(&indices)?);
    let columns = schema
        .fields()
        .iter()
        .map(|field| match field.name().as_str() {
            column::TENANT => {
                let tenants = std::iter::repeat_n(shared.tenant.as_str(), rows);
                Ok(Arc::new(StringArray::from_iter_values(tenants)) as ArrayRef)
            }
            column::DAY => Ok(Arc::new(Date32Array::from_value(shared.day, rows)) as ArrayRef),
            name => make(name),
        })
        .collect::<Result<_, ArrowError>>()?;
    RecordBatch::try_new_with_options(schema, columns, &RecordBatchOptions::new().with_row_count(Some(rows)))
}

fn integers(values: Vec<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}

fn times(values: Vec<i64>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC"))
}

fn labels_array(rows: &[(SeriesId, &Labels)]) -> Result<ArrayRef, ArrowError> {
    let (mut keys, mut values) = (StringBuilder::new(), StringBuilder::new());
    let mut offsets = vec![0i32];
    for (_, labels) in rows {
        for (name, value) in labels.iter() {
            keys.append_value(name);
            values.append_value(value);
        }
        offsets.push(offsets.last().copied().unwrap_or_default() + labels.len() as i32);
    }
    let DataType::Map(field, sorted) = schema::labels() else {
        return Err(ArrowError::SchemaError("labels must be a map".to_owned()));
    };
    let DataType::Struct(fields) = field.data_type().clone() else {
        return Err(ArrowError::SchemaError("entries of a map must be a struct".to_owned()));
    };
    let entries = StructArray::try_new(fields, vec![Arc::new(keys.finish()), Arc::new(values.finish())], None)?;
    let map = MapArray::try_new(field, OffsetBuffer::new(offsets.into()), entries, None, sorted)?;
    Ok(Arc::new(map))
}
