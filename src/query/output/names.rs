//! Handles duplicate column names in a result, as in `SELECT 1, 1` or `SELECT total, total::double`. SQL allows
//! duplicate names, but DataFusion's planner does not.
//!
//! In: a statement that the planner refused because of duplicate names. Out: the same statement with unique names for
//! all columns that may collide, and the original names, which the result shows.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::error::DataFusionError;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, Ident, Select, SelectItem, VisitMut, VisitorMut};

use crate::query::common::error::QueryError;
use crate::query::tables::hint;
use alluvium_base::BoxFuture;

/// Prefix of a unique name that replaces the name of a column. Users do not write names with this prefix.
const REPLACEMENT_PREFIX: &str = "alluvium.column.";

/// The original names of the columns. The unique name `alluvium.column.N` replaces the name at the index `N`.
#[derive(Debug, Default)]
pub(crate) struct Names(Vec<String>);

impl Names {
    /// Returns the schema with the original names, which may occur twice.
    pub(crate) fn restore(&self, schema: &SchemaRef) -> SchemaRef {
        if self.0.is_empty() {
            return schema.clone();
        }
        let fields = schema.fields().iter().map(|field| {
            let number = field
                .name()
                .strip_prefix(REPLACEMENT_PREFIX)
                .and_then(|number| number.parse().ok());
            match number.and_then(|number: usize| self.0.get(number)) {
                Some(name) => Arc::new(Field::clone(field).with_name(name)),
                None => field.clone(),
            }
        });
        let fields: Vec<Arc<Field>> = fields.collect();
        Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
    }
}

/// Returns the plan of a statement and the column names of its result.
pub(crate) fn plan(
    session_state: &SessionState,
    statement: Statement,
) -> BoxFuture<'_, Result<(LogicalPlan, Names), QueryError>> {
    Box::pin(async move {
        let refused = match session_state.statement_to_plan(statement.clone()).await {
            Ok(plan) => return Ok((plan, Names::default())),
            Err(error) => error,
        };
        let Some((renamed, names)) = is_collision(&refused).then(|| renamed(statement)).flatten() else {
            return Err(hint::of_planning(refused));
        };
        match session_state.statement_to_plan(renamed).await {
            Ok(plan) => Ok((plan, names)),
            Err(_) => Err(hint::of_planning(refused)),
        }
    })
}

fn is_collision(error: &DataFusionError) -> bool {
    let text = error.strip_backtrace();
    text.contains("unique expression names") || text.contains("duplicate unqualified field name")
}

/// Returns the statement with unique names for the columns that may collide; `None` if no column may collide.
fn renamed(statement: Statement) -> Option<(Statement, Names)> {
    let Statement::Statement(mut inner) = statement else {
        return None;
    };
    let mut names = Names::default();
    let _ = inner.visit(&mut Renaming(&mut names));
    (!names.0.is_empty()).then_some((Statement::Statement(inner), names))
}

struct Renaming<'a>(&'a mut Names);

impl VisitorMut for Renaming<'_> {
    type Break = ();

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let is_wild = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
        let has_all = select.projection.iter().any(is_wild);
        let mut texts = HashSet::new();
        for item in &mut select.projection {
            let (text, name, collides) = match item {
                SelectItem::UnnamedExpr(expr) => {
                    if let Some((text, name, is_plain)) = column(expr) {
                        (text, name, has_all || !is_plain)
                    } else {
                        let (text, inner) = (expr.to_string(), without_casts(expr).to_string());
                        let is_cast = text != inner;
                        (text, inner, is_cast)
                    }
                }
                SelectItem::ExprWithAlias { alias, .. } => (alias.value.clone(), alias.value.clone(), has_all),
                _ => continue,
            };
            if texts.insert(text) && !collides {
                continue;
            }
            let stand_in = Ident::with_quote('"', format!("{REPLACEMENT_PREFIX}{}", self.0.0.len()));
            self.0.0.push(name);
            let expr = match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr.clone(),
                _ => continue,
            };
            *item = SelectItem::ExprWithAlias { expr, alias: stand_in };
        }
        ControlFlow::Continue(())
    }
}

/// Splits an expression that is a column. For `t.a`, returns the text `t.a`, the name `a`, and true. For a cast of a
/// column, the last value is false. Returns `None` for other expressions.
fn column(expr: &Expr) -> Option<(String, String, bool)> {
    match expr {
        Expr::Identifier(name) => Some((folded(name), folded(name), true)),
        Expr::CompoundIdentifier(parts) => Some((expr.to_string(), folded(parts.last()?), true)),
        Expr::Cast { expr, .. } => column(expr).map(|(text, name, _)| (text, name, false)),
        Expr::Nested(inner) => column(inner),
        _ => None,
    }
}

/// Returns the expression without its casts. DataFusion derives the column name from this expression.
fn without_casts(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast { expr, .. } | Expr::Nested(expr) => without_casts(expr),
        _ => expr,
    }
}

/// Returns the name, in lower case unless it is quoted.
fn folded(name: &Ident) -> String {
    match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    }
}

/// Returns the schema with unique names: of two columns `a`, the second is called `a_2`. Formats that encode a row as a
/// map need unique names.
pub(crate) fn unique_names(schema: &SchemaRef) -> SchemaRef {
    let all = schema.fields().iter().map(|field| field.name().clone());
    let mut used_names: HashSet<String> = all.collect();
    if used_names.len() == schema.fields().len() {
        return schema.clone();
    }
    let mut first_names = HashSet::new();
    let fields = schema.fields().iter().map(|field| {
        if first_names.insert(field.name()) {
            return field.clone();
        }
        let mut numbered = (2..).map(|number: u32| format!("{}_{number}", field.name()));
        let free_name = numbered
            .find(|name| used_names.insert(name.clone()))
            .unwrap_or_default();
        Arc::new(Field::clone(field).with_name(free_name))
    });
    let fields: Vec<Arc<Field>> = fields.collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;

    fn schema(names: &[&str]) -> SchemaRef {
        let fields: Vec<Field> = names
            .iter()
            .map(|name| Field::new(*name, DataType::Int64, true))
            .collect();
        Arc::new(Schema::new(fields))
    }

    fn names(schema: &SchemaRef) -> Vec<&str> {
        schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number_that_is_free() {
        assert_eq!(names(&unique_names(&schema(&["a", "b"]))), ["a", "b"]);
        let distinct = unique_names(&schema(&["a", "a", "a_2", "a", "b"]));
        assert_eq!(names(&distinct), ["a", "a_3", "a_2", "a_4", "b"]);
    }
}
