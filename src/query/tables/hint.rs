//! Adds a hint to the error for an unknown column: the tables that have a column of this name.
//!
//! In: an error of planning. Out: the same error, with the hint if another table has the column.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

use crate::query::common::error::QueryError;
use crate::query::scan::read;
use crate::query::tables::flat;
use crate::store::common::schema::Table;
use crate::store::common::schema::column::SERIES;

/// Converts an error of planning, and adds the hint if there is one.
pub(crate) fn of_planning(error: DataFusionError) -> QueryError {
    let hint = missing_column(&error).and_then(hint);
    match (QueryError::from(error), hint) {
        (QueryError::InvalidArgument(message), Some(hint)) => {
            QueryError::InvalidArgument(format!("{}. {hint}", message.trim_end_matches('.')))
        }
        (error, _) => error,
    }
}

fn missing_column(error: &DataFusionError) -> Option<&str> {
    let DataFusionError::SchemaError(problem, _) = error.find_root() else {
        return None;
    };
    match problem.as_ref() {
        SchemaError::FieldNotFound { field, .. } => Some(field.name()),
        _ => None,
    }
}

/// Returns a text with the tables that have the column, and how to join them with other tables.
fn hint(column: &str) -> Option<String> {
    let tables = Table::ALL.map(|table| (table.name(), read::sql_schema(table)));
    let tables = tables.into_iter().chain([("flat", flat::flat_schema())]);
    let names: Vec<String> = tables
        .filter(|(_, schema)| schema.column_with_name(column).is_some())
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    let has_series = names.iter().any(|name| *name == format!("`{}`", Table::Series.name()));
    let (last, others) = names.split_last()?;
    let list = match others {
        [] => last.clone(),
        others => format!("{} and {last}", others.join(", ")),
    };
    let join = if has_series {
        format!("; join other tables with `series` on the column `{SERIES}`")
    } else {
        String::new()
    };
    Some(format!("`{column}` is a column of {list}{join}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_said_to_be_of_the_tables_that_have_it() {
        let expected = "`service_name` is a column of `series` and `flat`; \
            join other tables with `series` on the column `series`";
        assert_eq!(hint("service_name").unwrap(), expected);
        assert_eq!(
            hint("sample_count").unwrap(),
            "`sample_count` is a column of `profiles`"
        );
        assert_eq!(hint("nothing"), None);
    }
}
