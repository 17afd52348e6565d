//! `pprof(profile_type, stack, frames, value)`: aggregate function that merges rows of `flat` into the bytes of one
//! pprof profile.
//!
//! In: rows of one profile type. Out: pprof without compression, or null if there are no rows. The state of the
//! aggregate contains the frames of each stack once.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Int64Array, StringArray};
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, Schema};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use arrow::record_batch::RecordBatch;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};

use crate::query::common::checked;
use crate::query::common::error::QueryError;
use crate::query::decoded::stack_table::StackTable;
use crate::query::pprof::export::{ProfileMetadata, profile_of};
use crate::query::scan::frame_columns;
use crate::store::common::schema;
use crate::store::common::schema::column::{FRAMES, STACK, VALUE};
use alluvium_profile::pprof::encode;
use alluvium_profile::{ProfileType, StackId};

const USAGE: &str = "pprof(profile_type, stack, frames, value)";

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct PprofSum(Signature);

impl PprofSum {
    pub(crate) fn new() -> Self {
        Self(Signature::user_defined(Volatility::Immutable))
    }
}

impl AggregateUDFImpl for PprofSum {
    fn name(&self) -> &str {
        "pprof"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [_, DataType::Int64, frames @ DataType::List(_), value] if value.is_integer() => {
                // The frames of `flat` have one field more than the frames of `stacks`.
                let frames = if *frames == frame_columns::flat_frames() {
                    frames.clone()
                } else {
                    schema::frames()
                };
                Ok(vec![DataType::Utf8, DataType::Int64, frames, DataType::Int64])
            }
            _ => plan_err!("call it as {USAGE}, with the columns of flat"),
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn state_fields(&self, _args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![
            Arc::new(Field::new("profile_type", DataType::Utf8, true)),
            Arc::new(Field::new("sums", DataType::Binary, true)),
            Arc::new(Field::new("frames", DataType::Binary, true)),
        ])
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Sum::default()))
    }
}

#[derive(Default)]
struct Sum {
    kind: Option<ProfileType>,
    sums: HashMap<StackId, i64>,
    table: StackTable,
    /// The stacks and frames as received, for the state of the aggregate.
    kept: Vec<RecordBatch>,
    kept_bytes: usize,
}

impl std::fmt::Debug for Sum {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "pprof of {} stacks", self.sums.len())
    }
}

impl Sum {
    fn set_kind(&mut self, text: &str) -> Result<(), QueryError> {
        let is_other = |kind: &ProfileType| kind.to_string() != text;
        match &self.kind {
            Some(kind) if is_other(kind) => Err(QueryError::invalid(format!(
                "a pprof profile can only have one profile type, not both {kind} and {text}: select one with WHERE"
            ))),
            Some(_) => Ok(()),
            None => {
                let kind = text.parse().map_err(|error| QueryError::invalid(format!("{error}")))?;
                self.kind = Some(kind);
                Ok(())
            }
        }
    }

    /// Stores the frames of stacks that are new.
    fn store_frames(&mut self, stacks: &ArrayRef, frames: &ArrayRef) -> Result<(), QueryError> {
        let ids = stacks.as_primitive::<Int64Type>();
        let mut new_ids = std::collections::HashSet::new();
        let mask: BooleanArray = ids
            .values()
            .iter()
            .map(|id| StackId(*id))
            .map(|id| Some(!self.table.has(id) && new_ids.insert(id)))
            .collect();
        if mask.true_count() == 0 {
            return Ok(());
        }
        let schema = Arc::new(Schema::new(vec![
            Field::new(STACK, DataType::Int64, true),
            Field::new(FRAMES, frames.data_type().clone(), true),
        ]));
        let batch = RecordBatch::try_new(schema, vec![stacks.clone(), frames.clone()])?;
        let new = filter_record_batch(&batch, &mask)?;
        self.table.insert(&new)?;
        self.kept_bytes += new.get_array_memory_size();
        self.kept.push(new);
        Ok(())
    }

    fn add(&mut self, stacks: &[i64], values: impl Iterator<Item = i64>) -> Result<()> {
        for (stack, value) in stacks.iter().zip(values) {
            checked::add(self.sums.entry(StackId(*stack)).or_insert(0), value)?;
        }
        Ok(())
    }
}

impl Accumulator for Sum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [kinds, stacks, frames, sums] = values else {
            return plan_err!("call it as {USAGE}");
        };
        let mut last = None;
        for kind in kinds.as_string::<i32>().iter().flatten() {
            if last != Some(kind) {
                self.set_kind(kind)?;
                last = Some(kind);
            }
        }
        self.store_frames(stacks, frames)?;
        let values = sums.as_primitive::<Int64Type>().iter();
        self.add(
            stacks.as_primitive::<Int64Type>().values(),
            values.map(Option::unwrap_or_default),
        )
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let Some(kind) = &self.kind else {
            return Ok(ScalarValue::Binary(None));
        };
        let mut sums: Vec<(StackId, i64)> = self.sums.iter().map(|(stack, value)| (*stack, *value)).collect();
        // The sums are sorted so that the same rows result in the same bytes.
        sums.sort_unstable();
        let metadata = ProfileMetadata {
            kind,
            period: 0,
            time_nanos: 0,
            duration_nanos: 0,
            pgo: None,
            max_nodes: 0,
        };
        let bytes = encode(&profile_of(&self.table, sums.into_iter(), &metadata));
        Ok(ScalarValue::Binary(Some(bytes)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sums.len() * 24 + self.table.bytes() + self.kept_bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let stacks = Int64Array::from_iter_values(self.sums.keys().map(|stack| stack.0));
        let values = Int64Array::from_iter_values(self.sums.values().copied());
        let schema = Arc::new(Schema::new(vec![
            Field::new(STACK, DataType::Int64, false),
            Field::new(VALUE, DataType::Int64, false),
        ]));
        let columns: Vec<ArrayRef> = vec![Arc::new(stacks), Arc::new(values)];
        let sums = RecordBatch::try_new(schema, columns)?;
        Ok(vec![
            ScalarValue::Utf8(self.kind.as_ref().map(ToString::to_string)),
            ScalarValue::Binary(Some(encode_batches(&[sums])?)),
            ScalarValue::Binary(Some(encode_batches(&self.kept)?)),
        ])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [kinds, sums, frames] = states else {
            return plan_err!("the state of pprof must have three columns");
        };
        let kinds = cast(kinds, &DataType::Utf8)?;
        let kinds: &StringArray = kinds.as_string::<i32>();
        let (sums, frames): (&BinaryArray, &BinaryArray) = (sums.as_binary::<i32>(), frames.as_binary::<i32>());
        for row in 0..kinds.len() {
            if kinds.is_null(row) {
                continue;
            }
            self.set_kind(kinds.value(row))?;
            for batch in read(frames.value(row))? {
                if let (Some(stacks), Some(frames)) = (batch.column_by_name(STACK), batch.column_by_name(FRAMES)) {
                    self.store_frames(stacks, frames)?;
                }
            }
            for batch in read(sums.value(row))? {
                let values = schema::integers(&batch, VALUE)?.iter().copied();
                self.add(schema::integers(&batch, STACK)?, values)?;
            }
        }
        Ok(())
    }
}

/// Encodes batches of one schema as bytes; empty for no batches.
fn encode_batches(batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let Some(first) = batches.first() else {
        return Ok(Vec::new());
    };
    let mut writer = StreamWriter::try_new(Vec::new(), &first.schema())?;
    for batch in batches {
        writer.write(batch)?;
    }
    Ok(writer.into_inner()?)
}

fn read(bytes: &[u8]) -> Result<Vec<RecordBatch>> {
    if bytes.is_empty() {
        return Ok(Vec::new());
    }
    let batches: std::result::Result<Vec<_>, _> = StreamReader::try_new(bytes, None)?.collect();
    Ok(batches?)
}
