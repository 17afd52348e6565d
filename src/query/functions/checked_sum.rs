//! `sum` over integers, which fails if the sum does not fit in the integer type. DataFusion's `sum` returns a wrong
//! number instead.
//!
//! In: DataFusion's `sum`. Out: the same function, whose accumulators for 64-bit numbers add up in 128 bits and check
//! the result. DataFusion computes sums of other types (decimals, floats, durations).

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use arrow::datatypes::{DataType, FieldRef, Int64Type, UInt64Type};
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
};

use crate::query::common::error::QueryError;

/// The function `sum` that replaces DataFusion's `sum`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct CheckedSum(Arc<AggregateUDF>);

impl CheckedSum {
    pub(crate) fn new() -> Self {
        Self(sum_udaf())
    }
}

impl AggregateUDFImpl for CheckedSum {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.0.return_type(types)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(match (args.return_field.data_type(), args.is_distinct) {
            (DataType::Int64, false) => Box::new(Total::<Int64Type>::default()),
            (DataType::UInt64, false) => Box::new(Total::<UInt64Type>::default()),
            (DataType::Int64 | DataType::UInt64, true) => Box::new(Distinct(self.0.accumulator(args)?)),
            _ => self.0.accumulator(args)?,
        })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(match (args.return_field.data_type(), args.is_distinct) {
            (DataType::Int64, false) => Box::new(Total::<Int64Type>::default()),
            (DataType::UInt64, false) => Box::new(Total::<UInt64Type>::default()),
            _ => self.0.create_sliding_accumulator(args)?,
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(match args.return_field.data_type() {
            DataType::Int64 => Box::new(Totals::<Int64Type>::default()),
            DataType::UInt64 => Box::new(Totals::<UInt64Type>::default()),
            _ => self.0.create_groups_accumulator(args)?,
        })
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.0.inner().set_monotonicity(data_type)
    }
}

/// Returns the error for a sum that does not fit in 64 bits.
fn too_large(sum: i128) -> QueryError {
    QueryError::invalid(format!(
        "sum: {sum} does not fit in 64 bits; sum decimals instead, as in sum(value::decimal(38, 0))"
    ))
}

fn to_native<T: ArrowPrimitiveType>(sum: i128) -> Result<T::Native>
where
    T::Native: TryFrom<i128>,
{
    Ok(T::Native::try_from(sum).map_err(|_| too_large(sum))?)
}

/// Adds up the values that are not null.
fn sum_of<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>) -> i128
where
    T::Native: Into<i128>,
{
    if values.null_count() == 0 {
        values.values().iter().map(|value| (*value).into()).sum()
    } else {
        values.iter().flatten().map(Into::into).sum()
    }
}

/// The sum of one group, or of a window.
struct Total<T> {
    sum: i128,
    /// Number of values that are not null.
    count: i128,
    marker: PhantomData<fn() -> T>,
}

impl<T> Default for Total<T> {
    fn default() -> Self {
        Self {
            sum: 0,
            count: 0,
            marker: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Total<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "sum {} of {}", self.sum, self.count)
    }
}

impl<T: ArrowPrimitiveType + fmt::Debug> Accumulator for Total<T>
where
    T::Native: TryFrom<i128> + Into<i128>,
{
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        self.sum += sum_of(values);
        self.count += (values.len() - values.null_count()) as i128;
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = values[0].as_primitive::<T>();
        self.sum -= sum_of(values);
        self.count -= (values.len() - values.null_count()) as i128;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sum = if self.count == 0 {
            None
        } else {
            Some(to_native::<T>(self.sum)?)
        };
        ScalarValue::new_primitive::<T>(sum, &T::DATA_TYPE)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }
}

/// The sum of distinct values. DataFusion's accumulator collects the distinct values.
#[derive(Debug)]
struct Distinct(Box<dyn Accumulator>);

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut sum = 0;
        let state = self.0.state()?;
        let Some(ScalarValue::List(values)) = state.first() else {
            return exec_err!("the state of a sum of distinct values must be a list");
        };
        for values in values.iter().flatten() {
            sum += match values.data_type() {
                DataType::Int64 => sum_of(values.as_primitive::<Int64Type>()),
                _ => sum_of(values.as_primitive::<UInt64Type>()),
            };
        }
        let wrapped = self.0.evaluate()?;
        let fits = match &wrapped {
            ScalarValue::Int64(Some(value)) => i128::from(*value) == sum,
            ScalarValue::UInt64(Some(value)) => i128::from(*value) == sum,
            _ => true,
        };
        if fits { Ok(wrapped) } else { Err(too_large(sum).into()) }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.state()
    }

    fn size(&self) -> usize {
        self.0.size()
    }
}

/// The sums of many groups.
struct Totals<T> {
    sums: Vec<i128>,
    /// For each group, whether it has a value that is not null.
    has_value: Vec<bool>,
    marker: PhantomData<fn() -> T>,
}

impl<T> Default for Totals<T> {
    fn default() -> Self {
        Self {
            sums: Vec::new(),
            has_value: Vec::new(),
            marker: PhantomData,
        }
    }
}

impl<T: ArrowPrimitiveType> Totals<T>
where
    T::Native: TryFrom<i128> + Into<i128>,
{
    fn add(&mut self, values: &PrimitiveArray<T>, groups: &[usize], filter: Option<&BooleanArray>, count: usize) {
        self.sums.resize(count, 0);
        self.has_value.resize(count, false);
        if values.null_count() == 0 && filter.is_none() {
            for (group, value) in groups.iter().zip(values.values()) {
                self.sums[*group] += (*value).into();
                self.has_value[*group] = true;
            }
            return;
        }
        for (row, (group, value)) in groups.iter().zip(values.iter()).enumerate() {
            let is_wanted = filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            if let (Some(value), true) = (value, is_wanted) {
                self.sums[*group] += value.into();
                self.has_value[*group] = true;
            }
        }
    }
}

impl<T: ArrowPrimitiveType> GroupsAccumulator for Totals<T>
where
    T::Native: TryFrom<i128> + Into<i128>,
{
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.add(values[0].as_primitive::<T>(), groups, filter, count);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.add(states[0].as_primitive::<T>(), groups, None, count);
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let (sums, has_value) = (
            emit_to.take_needed(&mut self.sums),
            emit_to.take_needed(&mut self.has_value),
        );
        let groups = sums.into_iter().zip(has_value);
        let sums: Result<PrimitiveArray<T>> = groups
            .map(|(sum, has_value)| has_value.then(|| to_native::<T>(sum)).transpose())
            .collect();
        Ok(Arc::new(sums?))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit_to)?])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let values = values[0].as_primitive::<T>();
        let is_selected = |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        let kept: PrimitiveArray<T> = values
            .iter()
            .enumerate()
            .map(|(row, value)| value.filter(|_| is_selected(row)))
            .collect();
        Ok(vec![Arc::new(kept)])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.has_value.capacity()
    }
}
