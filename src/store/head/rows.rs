//! Rows on their way into record batches: plain columns per table, and the arrays made of them.
//!
//! Only the columns of the projection are built; the constant columns and runs of one text are written without a lookup a row.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Int64Array, ListArray, MapArray, RecordBatch, RecordBatchOptions, StringArray,
    StringBuilder, StructArray, TimestampMicrosecondArray, new_null_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::DataType;
use arrow::error::ArrowError;

use crate::profile::Labels;
use crate::profile::labels::SERVICE_NAME;
use crate::store::head::intern::Texts;
use crate::store::head::partition::{Frame, NO_TEXT, ProfileRow};
use crate::store::schema::{self, Table};

/// Most bytes of text in a batch, but for a single row that has more: Arrow's offsets end at 2 GiB, and a batch is in memory twice
/// while it is written.
const BATCH_TEXT: usize = 32 << 20;

/// What all rows of a partition share.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    /// Tenant.
    pub tenant: &'a str,
    /// Days since 1970.
    pub day: i32,
    /// The partition's texts.
    pub texts: &'a Texts,
    /// Columns to build; `None` for all.
    pub projection: Option<&'a [usize]>,
}

/// Rows of [`Table::Samples`].
#[derive(Default)]
pub struct SampleRows {
    time: Vec<i64>,
    series: Vec<i64>,
    kinds: Runs,
    stack: Vec<i64>,
    value: Vec<i64>,
    /// Span and trace; empty while no row has them.
    links: Vec<(u32, u32)>,
    text: usize,
}

/// One row of [`Table::Samples`].
pub struct SampleRow {
    /// Microseconds since 1970.
    pub time: i64,
    /// Series.
    pub series: i64,
    /// Profile type, a number of the texts.
    pub kind: u32,
    /// Stack id.
    pub stack: i64,
    /// Value.
    pub value: i64,
    /// Span and trace, numbers of the texts or [`NO_TEXT`].
    pub link: (u32, u32),
}

impl SampleRows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.value.len()
    }

    /// True when a batch of `rows` rows is full, or one of fewer by its text.
    #[inline]
    pub fn is_full(&self, rows: usize) -> bool {
        self.value.len() >= rows || self.text >= BATCH_TEXT
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, row: SampleRow, texts: &Texts) {
        if row.link != (NO_TEXT, NO_TEXT) || !self.links.is_empty() {
            self.links.resize(self.value.len(), (NO_TEXT, NO_TEXT));
            self.links.push(row.link);
            let length = |number| if number == NO_TEXT { 0 } else { texts.get(number).len() };
            self.text += length(row.link.0) + length(row.link.1);
        }
        self.text += self.kinds.length_of(row.kind, texts);
        self.time.push(row.time);
        self.series.push(row.series);
        self.stack.push(row.stack);
        self.value.push(row.value);
        self.kinds.push(row.kind, self.value.len());
    }

    /// Takes the rows as a batch.
    pub fn take(&mut self, shared: Shared<'_>) -> Result<RecordBatch, ArrowError> {
        let mut rows = std::mem::take(self);
        let count = rows.len();
        // A projection names a column once.
        batch(Table::Samples, shared, count, |column| match column {
            2 => times(std::mem::take(&mut rows.time)),
            3 => integers(std::mem::take(&mut rows.series)),
            4 => rows.kinds.array(shared.texts),
            5 => integers(std::mem::take(&mut rows.stack)),
            6 => integers(std::mem::take(&mut rows.value)),
            _ => rows.link_array(column == 7, count, shared.texts),
        })
    }

    fn link_array(&self, span: bool, count: usize, texts: &Texts) -> ArrayRef {
        if self.links.is_empty() {
            return new_null_array(&DataType::Utf8, count);
        }
        let text = |link: &(u32, u32)| match if span { link.0 } else { link.1 } {
            NO_TEXT => None,
            number => Some(texts.get(number)),
        };
        Arc::new(self.links.iter().map(text).collect::<StringArray>())
    }
}

/// Rows of [`Table::Profiles`].
#[derive(Default)]
pub struct ProfileRows {
    rows: Vec<(i64, u32, ProfileRow, i64)>,
    text: usize,
}

impl ProfileRows {
    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// True when a batch of `rows` rows is full, or one of fewer by its text.
    pub fn is_full(&self, rows: usize) -> bool {
        self.rows.len() >= rows || self.text >= BATCH_TEXT
    }

    /// Adds a row: series, profile type, the profile and its number of samples.
    pub fn push(&mut self, series: i64, kind: u32, profile: ProfileRow, samples: i64, texts: &Texts) {
        self.text += texts.get(kind).len() + texts.get(profile.id).len();
        self.rows.push((series, kind, profile, samples));
    }

    /// Takes the rows as a batch.
    pub fn take(&mut self, shared: Shared<'_>) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(self).rows;
        let numbers = |value: fn(&(i64, u32, ProfileRow, i64)) -> i64| integers(rows.iter().map(value).collect());
        batch(Table::Profiles, shared, rows.len(), |column| match column {
            2 => times(rows.iter().map(|row| row.2.time_us).collect()),
            3 => numbers(|row| row.0),
            4 => {
                let mut runs = Runs::default();
                for (index, row) in rows.iter().enumerate() {
                    runs.push(row.1, index + 1);
                }
                runs.array(shared.texts)
            }
            5 => numbers(|row| row.2.total),
            6 => numbers(|row| row.3),
            7 => numbers(|row| row.2.duration_ns),
            8 => numbers(|row| row.2.period),
            _ => Arc::new(StringArray::from_iter_values(
                rows.iter().map(|row| shared.texts.get(row.2.id)),
            )),
        })
    }
}

/// Splits series into batches of at most `rows` rows, or fewer by their text.
pub fn series_chunks<'a, 'b>(
    all: &'a [(i64, &'b Labels)],
    rows: usize,
) -> impl Iterator<Item = &'a [(i64, &'b Labels)]> {
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

/// The batch of [`Table::Series`] with these series.
pub fn series_batch(shared: Shared<'_>, rows: &[(i64, &Labels)]) -> Result<RecordBatch, ArrowError> {
    let mut labels = labels_array(rows)?;
    batch(Table::Series, shared, rows.len(), |column| match column {
        2 => integers(rows.iter().map(|row| row.0).collect()),
        3 => Arc::new(StringArray::from_iter_values(
            rows.iter().map(|row| row.1.get(SERVICE_NAME).unwrap_or_default()),
        )),
        _ => labels
            .take()
            .unwrap_or_else(|| new_null_array(&schema::labels(), rows.len())),
    })
}

/// Rows of [`Table::Stacks`].
#[derive(Default)]
pub struct StackRows {
    ids: Vec<i64>,
    ends: Vec<i32>,
    frames: Vec<Frame>,
    text: usize,
}

impl StackRows {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// True when a batch of `frames` frames is full, or one of fewer by its text.
    pub fn is_full(&self, frames: usize) -> bool {
        self.frames.len() >= frames || self.text >= BATCH_TEXT
    }

    /// Adds a stack.
    pub fn push<'a>(&mut self, id: i64, frames: impl Iterator<Item = &'a Frame>, texts: &Texts) {
        self.ids.push(id);
        let text = &mut self.text;
        self.frames.extend(frames.inspect(|frame| {
            let names = [frame.function, frame.file, frame.mapping, frame.build_id];
            *text += names.map(|number| texts.get(number).len()).iter().sum::<usize>();
        }));
        self.ends.push(self.frames.len() as i32);
    }

    /// Takes the rows as a batch.
    pub fn take(&mut self, shared: Shared<'_>) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(self);
        let wanted = shared.projection.is_none_or(|columns| columns.contains(&3));
        let mut frames = if wanted {
            Some(rows.frames_array(shared.texts)?)
        } else {
            None
        };
        batch(Table::Stacks, shared, rows.len(), |column| match column {
            2 => integers(rows.ids.clone()),
            _ => frames
                .take()
                .unwrap_or_else(|| new_null_array(Table::Stacks.schema().field(3).data_type(), rows.len())),
        })
    }

    fn frames_array(&self, texts: &Texts) -> Result<ArrayRef, ArrowError> {
        let text = |number: fn(&Frame) -> u32| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(
                self.frames.iter().map(|frame| texts.get(number(frame))),
            ))
        };
        let columns = vec![
            text(|frame| frame.function),
            text(|frame| frame.file),
            integers(self.frames.iter().map(|frame| frame.line).collect()),
            text(|frame| frame.mapping),
            integers(self.frames.iter().map(|frame| frame.address as i64).collect()),
            text(|frame| frame.build_id),
            Arc::new(BooleanArray::from_iter(
                self.frames.iter().map(|frame| Some(frame.inlined)),
            )),
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
}

/// A column of texts as runs of one number.
#[derive(Default)]
struct Runs(Vec<(u32, usize)>, usize);

impl Runs {
    /// Bytes of a text, looked up once a run.
    #[inline]
    fn length_of(&mut self, number: u32, texts: &Texts) -> usize {
        if self.0.last().is_none_or(|(last, _)| *last != number) {
            self.1 = texts.get(number).len();
        }
        self.1
    }

    #[inline]
    fn push(&mut self, number: u32, end: usize) {
        match self.0.last_mut() {
            Some((last, last_end)) if *last == number => *last_end = end,
            _ => self.0.push((number, end)),
        }
    }

    fn array(&self, texts: &Texts) -> ArrayRef {
        let mut builder = StringBuilder::new();
        let mut start = 0;
        for (number, end) in &self.0 {
            let text = texts.get(*number);
            for _ in start..*end {
                builder.append_value(text);
            }
            start = *end;
        }
        Arc::new(builder.finish())
    }
}

/// A batch of the projected columns; `column` makes those after the partition columns.
fn batch(
    table: Table,
    shared: Shared<'_>,
    rows: usize,
    mut column: impl FnMut(usize) -> ArrayRef,
) -> Result<RecordBatch, ArrowError> {
    let full = table.schema();
    let indices: Vec<usize> = match shared.projection {
        Some(columns) => columns.to_vec(),
        None => (0..full.fields().len()).collect(),
    };
    let schema = Arc::new(full.project(&indices)?);
    let columns = indices
        .into_iter()
        .map(|index| match index {
            0 => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(shared.tenant, rows))) as ArrayRef,
            1 => Arc::new(Date32Array::from_value(shared.day, rows)),
            index => column(index),
        })
        .collect();
    RecordBatch::try_new_with_options(schema, columns, &RecordBatchOptions::new().with_row_count(Some(rows)))
}

fn integers(values: Vec<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}

fn times(values: Vec<i64>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC"))
}

fn labels_array(rows: &[(i64, &Labels)]) -> Result<Option<ArrayRef>, ArrowError> {
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
        return Err(ArrowError::SchemaError("labels are a map".to_owned()));
    };
    let DataType::Struct(fields) = field.data_type().clone() else {
        return Err(ArrowError::SchemaError("entries of a map are a struct".to_owned()));
    };
    let entries = StructArray::try_new(fields, vec![Arc::new(keys.finish()), Arc::new(values.finish())], None)?;
    let map = MapArray::try_new(field, OffsetBuffer::new(offsets.into()), entries, None, sorted)?;
    Ok(Some(Arc::new(map)))
}
