//! Merges the samples of many sorted files into one sorted sequence of rows, run by run.
//!
//! In: [`Input`]s. Out: rows, passed to a receiver in order. Each input has a cursor, and a short list has the cursors
//! sorted by their current rows. The cursor with the smallest row emits rows until its row is greater than that of the
//! next cursor, so a run of one stack costs one comparison per row.

use std::cmp::Ordering;

use arrow::array::{Array, AsArray, RecordBatch, StringArray};
use arrow::buffer::ScalarBuffer;
use arrow::error::ArrowError;

use crate::store::common::error::StoreError;
use crate::store::common::schema;
use crate::store::common::schema::column::{SERIES, SPAN_ID, STACK, TIME, TRACE_ID, VALUE};
use crate::store::maintenance::merge::input;
use crate::store::maintenance::merge::input::Input;
use alluvium_profile::{ProfileTypeId, SeriesId, StackId};

/// One row of the samples table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// Profile type, as an index into the merge's [`ProfileTypes`].
    pub(crate) profile_type: u32,
    pub(crate) series: SeriesId,
    pub(crate) stack: StackId,
    /// Microseconds since 1970.
    pub(crate) time: i64,
    pub(crate) value: i64,
    pub(crate) span: Option<&'a str>,
    pub(crate) trace: Option<&'a str>,
}

/// The profile types that occur in a merge.
#[derive(Debug, Default)]
pub(crate) struct ProfileTypes(Vec<ProfileTypeId>);

impl ProfileTypes {
    pub(crate) fn id(&self, number: u32) -> &ProfileTypeId {
        &self.0[number as usize]
    }

    fn number(&mut self, text: &str) -> u32 {
        let position = self.0.iter().position(|name| name.as_str() == text);
        let index = position.unwrap_or_else(|| {
            self.0.push(text.into());
            self.0.len() - 1
        });
        index as u32
    }
}

/// The sort key of a row of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    profile_type: u32,
    series: SeriesId,
    stack: StackId,
    time: i64,
}

impl Key {
    #[inline]
    fn compare(&self, other: &Self, types: &ProfileTypes) -> Ordering {
        let by_type = if self.profile_type == other.profile_type {
            Ordering::Equal
        } else {
            types.id(self.profile_type).cmp(types.id(other.profile_type))
        };
        by_type
            .then_with(|| self.series.cmp(&other.series))
            .then_with(|| self.stack.cmp(&other.stack))
            .then_with(|| self.time.cmp(&other.time))
    }
}

/// Merges `inputs`. `receive` receives every row in order.
pub(crate) fn merge(
    inputs: Vec<Input>,
    mut receive: impl FnMut(&ProfileTypes, Row<'_>) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let mut types = ProfileTypes::default();
    let mut cursors = Vec::with_capacity(inputs.len());
    for input in inputs {
        if let Some(cursor) = Cursor::new(input, &mut types)? {
            cursors.push(cursor);
        }
    }
    // The cursors are in descending order, so that the cursor with the smallest row is the last.
    let mut order: Vec<usize> = (0..cursors.len()).collect();
    order.sort_by(|left, right| cursors[*right].key().compare(&cursors[*left].key(), &types));
    while let Some(current) = order.pop() {
        let limit = order.last().map(|next| cursors[*next].key());
        let cursor = &mut cursors[current];
        loop {
            receive(&types, cursor.row())?;
            if !cursor.advance(&mut types)? {
                break;
            }
            let key = cursor.key();
            if limit.is_some_and(|limit| key.compare(&limit, &types) == Ordering::Greater) {
                let position =
                    order.partition_point(|other| cursors[*other].key().compare(&key, &types) == Ordering::Greater);
                order.insert(position, current);
                break;
            }
        }
    }
    Ok(())
}

/// A position in one input.
struct Cursor {
    input: Input,
    types: ScalarBuffer<i32>,
    /// Index in [`ProfileTypes`] of each entry of the batch's dictionary.
    numbers: Vec<u32>,
    time: ScalarBuffer<i64>,
    series: ScalarBuffer<i64>,
    stack: ScalarBuffer<i64>,
    value: ScalarBuffer<i64>,
    links: Option<(StringArray, StringArray)>,
    row: usize,
}

impl Cursor {
    fn new(mut input: Input, types: &mut ProfileTypes) -> Result<Option<Self>, StoreError> {
        loop {
            match input.next()? {
                None => return Ok(None),
                Some(batch) if batch.num_rows() == 0 => {}
                Some(batch) => {
                    let empty = || ScalarBuffer::from(Vec::new());
                    let mut cursor = Self {
                        input,
                        types: ScalarBuffer::from(Vec::new()),
                        numbers: Vec::new(),
                        time: empty(),
                        series: empty(),
                        stack: empty(),
                        value: empty(),
                        links: None,
                        row: 0,
                    };
                    cursor
                        .load(&batch, types)
                        .map_err(|error| cursor.input.failed(&error))?;
                    return Ok(Some(cursor));
                }
            }
        }
    }

    /// Loads the columns of a batch with the schema that [`Input`] reads.
    fn load(&mut self, batch: &RecordBatch, types: &mut ProfileTypes) -> Result<(), ArrowError> {
        let column = input::types(batch)?;
        self.types = column.keys().values().clone();
        self.numbers.clear();
        let names = column.values().as_string::<i32>();
        self.numbers
            .extend((0..names.len()).map(|index| types.number(names.value(index))));
        self.time = schema::times(batch, TIME)?.clone();
        self.series = schema::integers(batch, SERIES)?.clone();
        self.stack = schema::integers(batch, STACK)?.clone();
        self.value = schema::integers(batch, VALUE)?.clone();
        let (spans, traces) = (schema::texts(batch, SPAN_ID)?, schema::texts(batch, TRACE_ID)?);
        let linked = spans.null_count() < spans.len() || traces.null_count() < traces.len();
        self.links = linked.then(|| (spans.clone(), traces.clone()));
        self.row = 0;
        Ok(())
    }

    fn advance(&mut self, types: &mut ProfileTypes) -> Result<bool, StoreError> {
        self.row += 1;
        while self.row >= self.value.len() {
            match self.input.next()? {
                None => return Ok(false),
                Some(batch) => self.load(&batch, types).map_err(|error| self.input.failed(&error))?,
            }
        }
        Ok(true)
    }

    #[inline]
    fn profile_type(&self) -> u32 {
        self.numbers[self.types[self.row] as usize]
    }

    #[inline]
    fn key(&self) -> Key {
        Key {
            profile_type: self.profile_type(),
            series: SeriesId(self.series[self.row]),
            stack: StackId(self.stack[self.row]),
            time: self.time[self.row],
        }
    }

    #[inline]
    fn row(&self) -> Row<'_> {
        let (span, trace) = match &self.links {
            None => (None, None),
            Some((spans, traces)) => (text(spans, self.row), text(traces, self.row)),
        };
        Row {
            profile_type: self.profile_type(),
            series: SeriesId(self.series[self.row]),
            stack: StackId(self.stack[self.row]),
            time: self.time[self.row],
            value: self.value[self.row],
            span,
            trace,
        }
    }
}

fn text(texts: &StringArray, row: usize) -> Option<&str> {
    texts.is_valid(row).then(|| texts.value(row))
}
