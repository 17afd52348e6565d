//! Finds columns by their names.

use arrow::datatypes::SchemaRef;

use crate::query::common::error::QueryError;

/// Returns the indices of the columns with these names in a schema.
pub(crate) fn indices_of(schema: &SchemaRef, columns: &[&str]) -> Result<Vec<usize>, QueryError> {
    columns
        .iter()
        .map(|name| schema.index_of(name).map_err(QueryError::from))
        .collect()
}
