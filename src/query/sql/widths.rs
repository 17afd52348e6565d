//! Estimates the cost of resolving the column names of a query before it is planned.
//!
//! In: a query. Out: the number of comparisons. The planner compares each column name of an expression with the columns
//! of all tables to which it may belong, one by one. If twenty nested subqueries each pass a thousand columns on with
//! `SELECT *`, the estimate is twenty million comparisons.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, GroupByExpr, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor,
    TableWithJoins, Visit, Visitor,
};

/// Upper bound of the number of columns of a table. The tables of PostgreSQL's catalogs have the most columns.
const TABLE_COLUMNS: u64 = 40;

/// Returns the number of comparisons that resolving all names of `query` takes. Each `WITH` part is counted once,
/// because it is planned once. A part can refer to the parts before it.
pub(crate) fn comparisons(query: &Query) -> u64 {
    let mut widths = Widths {
        parts: HashMap::new(),
        known: HashMap::new(),
        comparisons: 0,
    };
    let _ = query.visit(&mut widths);
    widths.comparisons
}

struct Widths {
    /// Number of columns of each `WITH` part that was visited, by its lower-case name.
    parts: HashMap<String, u64>,
    /// Number of columns of each part and subquery, by the address of its syntax tree. Without this map, every `*`
    /// would derive the widths of all subqueries below its `SELECT` again.
    known: HashMap<*const SetExpr, u64>,
    comparisons: u64,
}

impl Visitor for Widths {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.query(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let input = self.input(select);
        let items = select.projection.iter().map(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => names(expr),
            other => self.columns(other, select),
        });
        let mut named = items.fold(0, u64::saturating_add);
        let conditions = select.selection.iter().chain(&select.having).chain(&select.qualify);
        named = conditions.map(names).fold(named, u64::saturating_add);
        if let GroupByExpr::Expressions(grouped, _) = &select.group_by {
            named = grouped.iter().map(names).fold(named, u64::saturating_add);
        }
        self.comparisons = self.comparisons.saturating_add(named.saturating_mul(input));
        ControlFlow::Continue(())
    }
}

impl Widths {
    /// Returns the number of columns of a query, and records the numbers of columns of its `WITH` parts.
    fn query(&mut self, query: &Query) -> u64 {
        if !self.known.contains_key(&std::ptr::from_ref(query.body.as_ref())) {
            for part in query.with.iter().flat_map(|with| &with.cte_tables) {
                let width = self.query(&part.query);
                self.parts.insert(part.alias.name.value.to_lowercase(), width);
            }
        }
        self.width(&query.body)
    }

    fn width(&mut self, body: &SetExpr) -> u64 {
        if let Some(width) = self.known.get(&std::ptr::from_ref(body)) {
            return *width;
        }
        let width = match body {
            SetExpr::Select(select) => {
                let columns = select.projection.iter().map(|item| self.columns(item, select));
                columns.fold(0, u64::saturating_add)
            }
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, .. } => self.width(left),
            SetExpr::Values(values) => values.rows.first().map_or(0, |row| row.len() as u64),
            _ => TABLE_COLUMNS,
        };
        self.known.insert(std::ptr::from_ref(body), width);
        width
    }

    /// Returns the number of columns of an item of `SELECT`.
    fn columns(&mut self, item: &SelectItem, select: &Select) -> u64 {
        match item {
            SelectItem::Wildcard(_) => self.input(select),
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                let name = name.0.last().map(ToString::to_string).unwrap_or_default();
                let factors: Vec<&TableFactor> = select.from.iter().flat_map(factors).collect();
                match factors.into_iter().find(|factor| is_called(factor, &name)) {
                    Some(factor) => self.factor(factor),
                    None => self.input(select),
                }
            }
            _ => 1,
        }
    }

    /// Returns the number of columns of all tables that a `SELECT` reads.
    fn input(&mut self, select: &Select) -> u64 {
        let factors = select.from.iter().flat_map(factors);
        factors.map(|factor| self.factor(factor)).fold(0, u64::saturating_add)
    }

    fn factor(&mut self, factor: &TableFactor) -> u64 {
        match factor {
            TableFactor::Table { name, .. } => self.table(&name.to_string()),
            TableFactor::Derived { subquery, .. } => self.query(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => factors(table_with_joins)
                .map(|factor| self.factor(factor))
                .fold(0, u64::saturating_add),
            _ => TABLE_COLUMNS,
        }
    }

    fn table(&mut self, name: &str) -> u64 {
        let name = name.to_lowercase();
        let width = self.parts.get(name.trim_matches('"'));
        width.copied().unwrap_or(TABLE_COLUMNS)
    }
}

fn factors(from: &TableWithJoins) -> impl Iterator<Item = &TableFactor> {
    std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation))
}

/// Returns true if a query refers to the table by this name.
fn is_called(factor: &TableFactor, name: &str) -> bool {
    let (alias, table) = match factor {
        TableFactor::Table { alias, name, .. } => (alias, name.0.last().map(ToString::to_string)),
        TableFactor::Derived { alias, .. } | TableFactor::NestedJoin { alias, .. } => (alias, None),
        _ => return false,
    };
    let called = alias.as_ref().map(|alias| alias.name.to_string()).or(table);
    called.is_some_and(|called| called.eq_ignore_ascii_case(name))
}

/// Returns an upper bound of the number of columns that an expression names, including its subqueries.
fn names(expr: &Expr) -> u64 {
    let mut count: u64 = 0;
    let _ = ast::visit_expressions(expr, |part| {
        count += u64::from(matches!(part, Expr::Identifier(_) | Expr::CompoundIdentifier(_)));
        ControlFlow::<()>::Continue(())
    });
    count
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn counted(text: &str) -> u64 {
        let statement = Parser::parse_sql(&GenericDialect {}, text).unwrap().pop().unwrap();
        let ast::Statement::Query(query) = statement else {
            panic!("{text} is no query");
        };
        comparisons(&query)
    }

    #[test]
    fn every_name_is_compared_with_the_columns_of_the_tables_that_are_read() {
        let table = TABLE_COLUMNS;
        for (text, expected) in [
            ("SELECT 1", 0),
            (
                "SELECT a, b + c FROM samples WHERE d > 1 GROUP BY e HAVING f > 1",
                6 * table,
            ),
            ("SELECT * FROM samples", table * table),
            ("SELECT * FROM samples, series", 4 * table * table),
            ("SELECT x FROM (SELECT a AS x, b FROM samples)", 2 + 2 * table),
            ("SELECT * FROM (SELECT a, b FROM samples)", 4 + 2 * table),
            (
                "SELECT t.* FROM (SELECT a, b FROM samples) t JOIN series ON TRUE",
                2 * (2 + table) + 2 * table,
            ),
            (
                "WITH t AS (SELECT a, b FROM samples) SELECT * FROM t JOIN T AS u USING (a)",
                16 + 2 * table,
            ),
            (
                "SELECT * FROM (VALUES (1, 2, 3)) UNION ALL SELECT a, b, c FROM series",
                9 + 3 * table,
            ),
        ] {
            assert_eq!(counted(text), expected, "{text}");
        }
    }

    #[test]
    fn wide_parts_on_top_of_each_other_add_up() {
        let columns: Vec<String> = (0..1000).map(|number| format!("{number} AS c{number}")).collect();
        let parts: String = (1..=20)
            .map(|number| format!(", t{number} AS (SELECT * FROM t{})", number - 1))
            .collect();
        let text = format!("WITH t0 AS (SELECT {}){parts} SELECT 1 FROM t20", columns.join(", "));
        assert_eq!(counted(&text), 20 * 1000 * 1000);
        let twice = text.replace("SELECT *", "SELECT *, *");
        assert_eq!(
            counted(&twice),
            (0..20).map(|level| 2 * 4u64.pow(level) * 1_000_000).sum::<u64>()
        );
    }

    /// Each level contains the columns of the level below several times. Nevertheless, the width of a level is derived
    /// only once.
    #[test]
    fn the_width_of_a_subquery_is_derived_once_however_often_its_columns_are_taken() {
        for item in ["*", "t.*"] {
            let items = [item; 4].join(", ");
            let mut text = "SELECT a FROM samples".to_owned();
            for _ in 0..15 {
                text = format!("SELECT {items} FROM ({text}) t");
            }
            // Level n reads 4^n columns.
            let levels = (0..15).map(|level| 4 * 16u64.saturating_pow(level));
            let expected = levels.fold(TABLE_COLUMNS, u64::saturating_add);
            assert_eq!(counted(&text), expected, "{item}");
        }
    }
}
