//! Checks the size of a query, the kind of statement, and the expansion of the query before it is planned. Checks the
//! size of the plan before it is optimized.
//!
//! In: text, statement, plan. Out: success, or an error with the reason. Planning recurses over operators, expands
//! every `WITH` at each use, and replaces column names with their definitions. Each of these steps can turn a short
//! text into an enormous plan. Every join contains all columns of both sides, so the cost of planning grows with the
//! square of the number of joins.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::expr::GroupingSet;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlan};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, Expr, ObjectName, Query, Select, SelectItem, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::query::common::error::QueryError;
use crate::query::sql::widths;

/// Maximum size of the text of a query in bytes.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Maximum number of operators and keywords that join expressions in a query. Each may deepen the plan by one level,
/// and planning recurses over the levels.
const MAX_OPERATORS: usize = 400;
/// Maximum number of tables that a query reads after every `WITH` is expanded.
const MAX_RELATIONS: u64 = 200;
/// Maximum expansion of a column's definition. The expansion is a product with one factor for each `SELECT`: the
/// largest number of uses of one column in one expression of the `SELECT`.
const MAX_REPEATS: u64 = 1 << 16;

/// Maximum length of a list: columns of a `SELECT`, arguments, `GROUP BY`, `ORDER BY`. PostgreSQL has the same limit
/// for columns. Lists of values (`IN`, arrays) may be longer.
const MAX_ITEMS: usize = 1664;
/// Maximum number of words (names and keywords) in a query.
const MAX_WORDS: usize = 8192;
/// Maximum length of a name in bytes. PostgreSQL truncates names to 63 bytes.
const MAX_NAME_BYTES: usize = 1 << 10;
/// Maximum number of comparisons of column names while a query is planned. This number of comparisons takes seconds in
/// a debug build. The limit is enough for [`MAX_ITEMS`] columns that pass through three subqueries.
const MAX_COMPARISONS: u64 = 10_000_000;
/// Maximum number of columns of a plan over all of its operators. About 90 joins of `series` reach this limit.
const MAX_PLAN_COLUMNS: usize = 50_000;

/// Refuses texts that are too long, or that may need a plan with too many levels. Returns the number of tokens without
/// whitespace.
pub(crate) fn check_size(text: &str) -> Result<usize, QueryError> {
    check_size_in(text, &GenericDialect {})
}

/// Refuses parameter values if their total size, `bytes`, exceeds the maximum size of the text of a query.
pub(crate) fn check_values(bytes: usize) -> Result<(), QueryError> {
    if bytes > MAX_TEXT_BYTES {
        return Err(QueryError::Limit(format!(
            "the parameters of the query have {bytes} bytes, more than {MAX_TEXT_BYTES}: a parameter is \
                counted each time that the query uses it"
        )));
    }
    Ok(())
}

/// Like [`check_size`], for another dialect.
pub(crate) fn check_size_in(text: &str, dialect: &dyn Dialect) -> Result<usize, QueryError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(QueryError::Limit(format!(
            "the query is longer than {MAX_TEXT_BYTES} bytes"
        )));
    }
    let tokens = Tokenizer::new(dialect, text)
        .tokenize()
        .map_err(|error| QueryError::invalid(format!("cannot parse the query: {error}")))?;
    let count = tokens.iter().filter(|token| opens_nesting(token)).count();
    if count > MAX_OPERATORS {
        return Err(QueryError::Limit(format!(
            "the query has {count} operators, more than {MAX_OPERATORS}; use IN for long lists"
        )));
    }
    let words = tokens.iter().filter_map(|token| match token {
        Token::Word(word) => Some(word),
        _ => None,
    });
    if let Some(length) = words
        .clone()
        .map(|word| word.value.len())
        .find(|length| *length > MAX_NAME_BYTES)
    {
        return Err(QueryError::Limit(format!(
            "the query has a name of {length} bytes, more than {MAX_NAME_BYTES}"
        )));
    }
    let words = words.count();
    if words > MAX_WORDS {
        return Err(QueryError::Limit(format!(
            "the query has {words} names and keywords, more than {MAX_WORDS}"
        )));
    }
    let items = longest_list(&tokens);
    if items > MAX_ITEMS {
        return Err(QueryError::Limit(format!(
            "the query has a list of {items} columns or expressions, more than {MAX_ITEMS}"
        )));
    }
    Ok(tokens
        .iter()
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .count())
}

/// Returns the number of items of the longest list that is not a list of values.
fn longest_list(tokens: &[Token]) -> usize {
    // The number of commas in the list of each open bracket; `None` for a list of values.
    let mut open = vec![Some(0)];
    let (mut max, mut is_in) = (0, false);
    for token in tokens {
        match token {
            Token::Whitespace(_) => continue,
            Token::LParen => open.push((!is_in).then_some(0)),
            Token::LBracket => open.push(None),
            Token::RParen | Token::RBracket if open.len() > 1 => {
                open.pop();
            }
            Token::Comma => {
                if let Some(Some(count)) = open.last_mut() {
                    *count += 1;
                    max = max.max(*count);
                }
            }
            Token::Word(word) if begins_list(word.keyword) => {
                if let Some(list) = open.last_mut() {
                    *list = Some(0);
                }
            }
            _ => {}
        }
        is_in = matches!(token, Token::Word(word) if word.keyword == Keyword::IN);
    }
    max + 1
}

fn begins_list(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::SELECT | Keyword::FROM | Keyword::WHERE | Keyword::BY | Keyword::HAVING | Keyword::VALUES
    )
}

/// Refuses plans that would take too long to optimize.
pub(crate) fn check_plan(plan: &LogicalPlan) -> Result<(), QueryError> {
    let mut columns: usize = 0;
    plan.apply_with_subqueries(|node| {
        let grouped = match node {
            LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.iter().map(grouped_columns).sum(),
            _ => 0,
        };
        columns = columns
            .saturating_add(node.schema().fields().len())
            .saturating_add(grouped);
        Ok(TreeNodeRecursion::Continue)
    })?;
    if columns > MAX_PLAN_COLUMNS {
        return Err(QueryError::Limit(format!(
            "the plan of the query has {columns} columns over all of its steps, more than {MAX_PLAN_COLUMNS}: join \
                fewer tables, name the columns that you need in a subquery of each table, or group by fewer sets"
        )));
    }
    Ok(())
}

/// Returns the number of columns over all sets of a grouping expression.
fn grouped_columns(expr: &PlanExpr) -> usize {
    match expr {
        PlanExpr::GroupingSet(GroupingSet::Rollup(columns)) => columns.len().saturating_mul(columns.len()),
        PlanExpr::GroupingSet(GroupingSet::Cube(columns)) => columns.len() << columns.len().min(32),
        PlanExpr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.iter().map(|set| set.len() + 1).sum(),
        _ => 0,
    }
}

/// Refuses statements that are not queries.
pub(crate) fn check_statement(statement: &Statement) -> Result<(), QueryError> {
    match statement {
        Statement::Statement(inner) => check_sql(inner),
        Statement::Explain(explain) => match explain.statement.as_ref() {
            Statement::Explain(_) => Err(refused("EXPLAIN of EXPLAIN")),
            inner => check_statement(inner),
        },
        Statement::CreateExternalTable(_) => Err(refused("CREATE EXTERNAL TABLE")),
        Statement::CopyTo(_) => Err(refused("COPY")),
        Statement::Reset(_) => Err(refused("RESET")),
    }
}

/// Like [`check_statement`], for a statement of the library `sqlparser`, which lacks DataFusion's own statements.
pub(crate) fn check_sql(statement: &ast::Statement) -> Result<(), QueryError> {
    match statement {
        ast::Statement::Query(query) => check_shape(query),
        ast::Statement::ExplainTable { .. } => Ok(()),
        ast::Statement::Explain { statement, .. } => match statement.as_ref() {
            ast::Statement::Query(query) => check_shape(query),
            other => Err(refused(&format!("EXPLAIN {}", first_words(&other.to_string())))),
        },
        other => Err(refused(&first_words(&other.to_string()))),
    }
}

fn refused(subject: &str) -> QueryError {
    QueryError::invalid(format!(
        "cannot execute {subject}: SQL here is read-only, only a SELECT from the tables profiles, samples, stacks, \
            series and flat is allowed"
    ))
}

fn first_words(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    let words = words.join(" ");
    words.chars().filter(char::is_ascii).take(40).collect()
}

fn opens_nesting(token: &Token) -> bool {
    match token {
        Token::Word(word) => matches!(
            word.keyword,
            Keyword::AND
                | Keyword::OR
                | Keyword::NOT
                | Keyword::JOIN
                | Keyword::UNION
                | Keyword::INTERSECT
                | Keyword::EXCEPT
                | Keyword::SELECT
                | Keyword::CASE
                | Keyword::WHEN
                | Keyword::IS
                | Keyword::LIKE
                | Keyword::ILIKE
                | Keyword::BETWEEN
                | Keyword::AT
                | Keyword::DIV
                | Keyword::COLLATE
                | Keyword::XOR
                | Keyword::RLIKE
                | Keyword::REGEXP
                | Keyword::MATCH
                | Keyword::MEMBER
                | Keyword::OVERLAPS
                | Keyword::SIMILAR
                | Keyword::NOTNULL
                | Keyword::MINUS
                | Keyword::APPLY
                | Keyword::STRAIGHT_JOIN
        ),
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::Comma
        | Token::Whitespace(_)
        | Token::RParen
        | Token::RBracket
        | Token::RBrace
        | Token::Period
        | Token::SemiColon
        | Token::EOF => false,
        _ => true,
    }
}

/// Refuses queries that would expand too far.
fn check_shape(query: &Query) -> Result<(), QueryError> {
    let mut shape = Shape::default();
    if let ControlFlow::Break(error) = query.visit(&mut shape) {
        return Err(error);
    }
    if shape.repeats > MAX_REPEATS {
        return Err(QueryError::Limit(
            "the query nests too many uses of the same columns: its expressions would be expanded more than 65536 \
                times"
                .to_owned(),
        ));
    }
    let relations = shape.unfolded(&Relations::collect(query)?, 0)?;
    if relations > MAX_RELATIONS {
        return Err(too_many_tables(relations));
    }
    let comparisons = widths::comparisons(query);
    if comparisons > MAX_COMPARISONS {
        return Err(QueryError::Limit(format!(
            "planning the query would compare column names {comparisons} times, more than {MAX_COMPARISONS}: select \
                only the columns that you need instead of `SELECT *` in each subquery"
        )));
    }
    Ok(())
}

fn too_many_tables(relations: u64) -> QueryError {
    QueryError::Limit(format!(
        "the query reads {relations} tables after its WITH queries are expanded, more than {MAX_RELATIONS}"
    ))
}

/// State of a walk over a query.
struct Shape {
    /// Names of the tables that each `WITH` part reads, by the lower-case name of the part. The bodies are not stored,
    /// because each body contains the parts nested in it: a part inside 200 others would be copied 200 times.
    parts: HashMap<String, Vec<String>>,
    /// Number of tables of each part after expansion.
    table_counts: HashMap<String, u64>,
    repeats: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            parts: HashMap::new(),
            table_counts: HashMap::new(),
            repeats: 1,
        }
    }
}

impl Shape {
    /// Returns an upper bound of the number of tables that a query reads after every part is expanded. `names` are the
    /// tables that occur in the query. The bound may be too high, because the tables in the definitions of parts occur
    /// in the query, too.
    fn unfolded(&mut self, names: &[String], depth: usize) -> Result<u64, QueryError> {
        if depth > self.parts.len() {
            return Err(QueryError::invalid("a WITH query must not refer to itself"));
        }
        let mut total: u64 = 0;
        for name in names {
            let Some(part) = self.parts.get(name) else {
                total = total.saturating_add(1);
                continue;
            };
            let count = if let Some(count) = self.table_counts.get(name) {
                *count
            } else {
                let part = part.clone();
                let count = self.unfolded(&part, depth + 1)?;
                self.table_counts.insert(name.clone(), count);
                count
            };
            total = total.saturating_add(count);
        }
        Ok(total)
    }
}

impl Visitor for Shape {
    type Break = QueryError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<QueryError> {
        let Some(with) = &query.with else {
            return ControlFlow::Continue(());
        };
        if with.recursive {
            return ControlFlow::Break(refused("WITH RECURSIVE"));
        }
        for part in &with.cte_tables {
            let name = part.alias.name.value.to_lowercase();
            let tables = match Relations::collect(&part.query) {
                Ok(tables) => tables,
                Err(error) => return ControlFlow::Break(error),
            };
            if self.parts.insert(name.clone(), tables).is_some() {
                return ControlFlow::Break(QueryError::invalid(format!(
                    "WITH query name \"{name}\" specified more than once; give each WITH query its own name"
                )));
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<QueryError> {
        // DataFusion compiles the pattern of SIMILAR TO without a limit.
        if matches!(expr, Expr::SimilarTo { .. }) {
            return ControlFlow::Break(QueryError::invalid("SIMILAR TO is not supported: use ~ or regexp_like"));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<QueryError> {
        let items = select.projection.iter().filter_map(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
            _ => None,
        });
        let max = items.map(most_repeated).max().unwrap_or(1).max(1);
        self.repeats = self.repeats.saturating_mul(max);
        ControlFlow::Continue(())
    }
}

/// Returns the number of uses of the column that the expression uses most.
fn most_repeated(expr: &Expr) -> u64 {
    let mut counts: HashMap<String, u64> = HashMap::new();
    let _ = ast::visit_expressions(expr, |part| {
        let name = match part {
            Expr::Identifier(name) => Some(&name.value),
            Expr::CompoundIdentifier(path) => path.last().map(|name| &name.value),
            _ => None,
        };
        if let Some(name) = name {
            *counts.entry(name.to_lowercase()).or_insert(0) += 1;
        }
        ControlFlow::<()>::Continue(())
    });
    counts.into_values().max().unwrap_or(1)
}

/// The names of the tables that a query reads.
#[derive(Default)]
struct Relations(Vec<String>);

impl Relations {
    /// Returns the names. Fails if there are more than [`MAX_RELATIONS`].
    fn collect(query: &Query) -> Result<Vec<String>, QueryError> {
        let mut names = Self::default();
        match query.visit(&mut names) {
            ControlFlow::Continue(()) => Ok(names.0),
            ControlFlow::Break(error) => Err(error),
        }
    }
}

impl Visitor for Relations {
    type Break = QueryError;

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<QueryError> {
        let name = name.to_string().to_lowercase();
        self.0.push(name.trim_matches('"').to_owned());
        if self.0.len() as u64 > MAX_RELATIONS {
            return ControlFlow::Break(too_many_tables(self.0.len() as u64));
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParserBuilder;

    use super::*;

    fn check(text: &str) -> Result<(), QueryError> {
        let mut statements = DFParserBuilder::new(text).build().unwrap().parse_statements().unwrap();
        check_statement(&statements.pop_front().unwrap())
    }

    #[test]
    fn operators_that_are_words_count() {
        for word in ["XOR", "RLIKE", "OVERLAPS", "and", "NOT LIKE"] {
            let text = format!("SELECT 1 {}", format!("{word} 1 ").repeat(MAX_OPERATORS));
            let error = check_size(&text).unwrap_err().to_string();
            assert!(error.contains("operators, more than 400"), "{word}: {error}");
        }
    }

    #[test]
    fn long_lists_are_refused_except_those_of_values() {
        let list = |count: usize| vec!["1"; count].join(",");
        let long_list = list(MAX_ITEMS + 1);
        for text in [
            format!("SELECT {long_list}"),
            format!("SELECT 1 GROUP BY {long_list}"),
            format!("SELECT 1 FROM samples ORDER BY {long_list}"),
            format!("SELECT coalesce({long_list})"),
            format!("SELECT 1 WHERE 1 IN (SELECT {long_list})"),
        ] {
            let error = check_size(&text).unwrap_err().to_string();
            assert!(error.contains("a list of 1665 columns"), "{error}");
        }
        let (half, max) = (list(1000), list(MAX_ITEMS));
        for text in [
            format!("SELECT {max}"),
            format!("SELECT {half} FROM samples GROUP BY {half} ORDER BY {half}"),
            format!("SELECT 1 WHERE 1 IN ({long_list}) AND 2 IN ({long_list})"),
            format!("SELECT [{long_list}]"),
        ] {
            assert!(check_size(&text).is_ok());
        }
        let words = vec!["a b"; 1600].join(",");
        let text = format!("SELECT {words} GROUP BY {words} ORDER BY {words}");
        assert!(
            check_size(&text)
                .unwrap_err()
                .to_string()
                .contains("names and keywords")
        );
    }

    #[test]
    fn names_may_not_be_longer_than_a_kilobyte_and_blanks_are_no_tokens() {
        let named = |length: usize| format!("SELECT 1 AS \"{}\"", "x".repeat(length));
        assert_eq!(check_size(&named(MAX_NAME_BYTES)), Ok(4));
        let error = check_size(&named(MAX_NAME_BYTES + 1)).unwrap_err();
        assert!(error.to_string().contains("a name of 1025 bytes"), "{error}");
        assert_eq!(check_size("SELECT  1 /* one */ IN (1,\n2)"), Ok(8));
    }

    #[test]
    fn what_unfolds_without_end_is_refused_and_what_is_usual_is_not() {
        let doubled = |levels: usize, body: &str| {
            let parts: Vec<String> = (1..=levels)
                .map(|level| format!("t{level} AS ({})", body.replace('$', &(level - 1).to_string())))
                .collect();
            format!(
                "WITH t0 AS (SELECT value AS x FROM samples), {} SELECT x FROM t{levels}",
                parts.join(", ")
            )
        };
        let twice = "SELECT * FROM t$ UNION ALL SELECT * FROM t$";
        assert!(check(&doubled(5, twice)).is_ok());
        assert!(check(&doubled(40, twice)).unwrap_err().to_string().contains("reads"));
        let sum = "SELECT x + x AS x FROM t$";
        assert!(check(&doubled(10, sum)).is_ok());
        assert!(check(&doubled(40, sum)).unwrap_err().to_string().contains("expanded"));
        assert!(check("WITH RECURSIVE t AS (SELECT 1) SELECT * FROM t").is_err());
        assert!(check("WITH t AS (SELECT 1) SELECT * FROM (WITH t AS (SELECT 2) SELECT * FROM t) AS u").is_err());
        assert!(check("EXPLAIN SELECT 1").is_ok());
        assert!(check("EXPLAIN EXPLAIN SELECT 1").is_err());
        assert!(check("EXPLAIN CREATE TABLE t (a INT)").is_err());
    }
}
