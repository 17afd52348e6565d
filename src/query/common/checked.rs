//! Sums of values that are errors when they do not fit 64 bits, instead of wrong numbers.

use crate::query::common::error::QueryError;

/// Adds a value to a sum, or says that the sum does not fit 64 bits.
pub(crate) fn add(sum: &mut i64, value: i64) -> Result<(), QueryError> {
    *sum = sum.checked_add(value).ok_or_else(too_large)?;
    Ok(())
}

/// Fails when a sum over all these values, or over any part of them, does not fit.
pub(crate) fn check_total(values: impl IntoIterator<Item = i64>) -> Result<(), QueryError> {
    let total: u128 = values.into_iter().map(|value| u128::from(value.unsigned_abs())).sum();
    // A total that was cut at the largest number is as large as it.
    if total >= i64::MAX as u128 {
        return Err(too_large());
    }
    Ok(())
}

/// The error of a sum that does not fit.
pub(crate) fn too_large() -> QueryError {
    QueryError::invalid("the sum of the values does not fit 64 bits: ask for less time or fewer series")
}
