//! Adds up values. A sum that does not fit in 64 bits is an error instead of a wrong number.

use crate::query::common::error::QueryError;

/// Adds a value to a sum. Fails if the sum does not fit in 64 bits.
pub(crate) fn add(sum: &mut i64, value: i64) -> Result<(), QueryError> {
    *sum = sum.checked_add(value).ok_or_else(too_large)?;
    Ok(())
}

/// Fails if the sum of all these values, or of any subset of these values, could overflow 64 bits.
pub(crate) fn check_total(values: impl IntoIterator<Item = i64>) -> Result<(), QueryError> {
    let total: u128 = values.into_iter().map(|value| u128::from(value.unsigned_abs())).sum();
    // A value may have been capped at `i64::MAX`, so a total of exactly `i64::MAX` fails as well.
    if total >= i64::MAX as u128 {
        return Err(too_large());
    }
    Ok(())
}

/// Returns the error for a sum that does not fit in 64 bits.
pub(crate) fn too_large() -> QueryError {
    QueryError::invalid("the sum of the values does not fit in 64 bits: select a shorter time range or fewer series")
}
