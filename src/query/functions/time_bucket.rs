//! `time_bucket('15s', time)`: the start of the interval that contains a time; intervals are counted from 1970.

use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, TimestampMicrosecondType};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::query::common::error::QueryError;
use crate::store::common::schema;
use alluvium_base::duration;

#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct TimeBucket(Signature);

impl TimeBucket {
    pub(crate) fn new() -> Self {
        Self(Signature::user_defined(Volatility::Immutable))
    }
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &str {
        "time_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if let [
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View,
            DataType::Timestamp(..) | DataType::Date32 | DataType::Null,
        ] = types
        {
            Ok(vec![DataType::Utf8, schema::timestamp()])
        } else {
            plan_err!("time_bucket requires a duration and a time, as in time_bucket('15s', time)")
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(schema::timestamp())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(width), times] = args.args.as_slice() else {
            return plan_err!("the first argument of time_bucket must be a constant duration such as '15s'");
        };
        let width = width.try_as_str().flatten().unwrap_or_default();
        let width = duration::parse(width).map_err(|error| QueryError::invalid(error.to_string()))?;
        let width = i64::try_from(width.as_micros()).unwrap_or(i64::MAX);
        if width == 0 {
            return plan_err!("the interval of time_bucket must be at least a microsecond");
        }
        let floor = |time: i64| time.div_euclid(width).saturating_mul(width);
        Ok(match times {
            ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(time, zone)) => {
                ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(time.map(floor), zone.clone()))
            }
            ColumnarValue::Scalar(_) => return plan_err!("the second argument of time_bucket must be a time"),
            ColumnarValue::Array(times) => {
                let Some(times) = times.as_primitive_opt::<TimestampMicrosecondType>() else {
                    return plan_err!("the second argument of time_bucket must be a time");
                };
                let floored = times.unary::<_, TimestampMicrosecondType>(floor).with_timezone("UTC");
                ColumnarValue::Array(Arc::new(floored))
            }
        })
    }
}
