//! A SQL session of one client and one tenant in PostgreSQL's dialect, with prepared statements and the catalogs that
//! PostgreSQL tools read.
//!
//! In: text, parameters. Out: [`Prepared`] with the types of its parameters and columns, and [`SqlResult`]s. Each
//! statement is planned again when it runs, over the current tables. The checks and limits are the same as for all
//! queries. `src/server/postgres` implements the wire protocol.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProvider, MemoryCatalogProviderList, MemorySchemaProvider,
    SchemaProvider,
};
use datafusion::common::plan_datafusion_err;
use datafusion::execution::session_state::SessionState;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, DataType as SqlType, Expr, TimezoneInfo, Value};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::{PgCatalogSchemaProvider, PgCatalogStaticTables, setup_pg_catalog};
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;

use crate::query::common::error::QueryError;
use crate::query::common::sql_result::{Deadline, SqlResult};
use crate::query::common::types::QueryLimits;
use crate::query::decoded::context::{Context, Contexts, Purpose};
use crate::query::functions;
use crate::query::output::cells;
use crate::query::output::cells::{ColumnKind, Kind, Simple};
use crate::query::output::names;
use crate::query::resources::allowance::Allowance;
use crate::query::sql::guard;
use crate::query::sql::statement;
use crate::query::sql::statement::Template;
use crate::query::sql::watch::Watch;
use crate::query::tables::catalog;
use alluvium_base::BoxFuture;
use alluvium_profile::{TenantId, Tenants};

/// Name of the only catalog.
const CATALOG: &str = "alluvium";

/// State that all sessions of an engine share: PostgreSQL's fixed catalogs and functions, and the parser that rewrites
/// queries of PostgreSQL tools.
pub(crate) struct Sessions {
    contexts: Arc<Contexts>,
    template: Arc<Template>,
    state: SessionState,
    fixed: Arc<PgCatalogStaticTables>,
    parser: Arc<PostgresCompatibilityParser>,
}

impl Sessions {
    pub(crate) fn new(contexts: Arc<Contexts>, template: Arc<Template>) -> Result<Self, QueryError> {
        let context = SessionContext::new_with_state(template.state().clone());
        let list = MemoryCatalogProviderList::new();
        list.register_catalog(CATALOG.to_owned(), Arc::new(MemoryCatalogProvider::new()));
        context.register_catalog_list(Arc::new(list));
        setup_pg_catalog(&context, CATALOG, EmptyContextProvider).map_err(|error| QueryError::from(*error))?;
        let fixed = PgCatalogStaticTables::try_new()?;
        Ok(Self {
            contexts,
            template,
            state: context.state(),
            fixed: Arc::new(fixed),
            parser: Arc::new(PostgresCompatibilityParser::new()),
        })
    }
}

/// A session. It runs one statement at a time.
pub(crate) struct SqlSession {
    shared: Arc<Sessions>,
    tenants: Tenants,
    state: SessionState,
    public: Arc<MemorySchemaProvider>,
}

/// A checked statement, ready to run with parameters. It stores the text and not the syntax tree, because the tree
/// takes up to 170 times as much memory.
#[derive(Debug)]
pub(crate) struct Prepared {
    text: String,
    /// Number of tokens of the statement.
    tokens: usize,
    /// Kinds of `$1`, `$2` and so on; `None` if the kind is unknown.
    pub parameters: Vec<Option<Kind>>,
    /// Names and kinds of the columns of the result.
    pub columns: Vec<ColumnKind>,
}

impl Prepared {
    /// Returns the memory of the statement in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let columns = self
            .columns
            .iter()
            .map(|column| size_of_val(column) + column.name.len());
        self.text.len() + size_of_val(&*self.parameters) + columns.sum::<usize>()
    }
}

/// The value of a statement parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SqlValue {
    /// SQL's null, of any type.
    Null,
    /// A boolean, which the statement contains as `TRUE` or `FALSE`.
    Bool(bool),
    /// An integer of up to 64 bits.
    Int(i64),
    /// A floating-point number of double precision.
    Float(f64),
    /// Text, or a value of the expected kind in text form.
    Text(String),
    /// Microseconds since 1970.
    Timestamp(i64),
    /// A day, as the number of days since 1970.
    Date(i32),
    /// Bytes, which the statement contains as a hexadecimal literal.
    Bytes(Vec<u8>),
}

impl SqlValue {
    /// Returns the memory of the value in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let outside = match self {
            Self::Text(text) => text.capacity(),
            Self::Bytes(bytes) => bytes.capacity(),
            _ => 0,
        };
        size_of::<Self>() + outside
    }
}

impl SqlSession {
    pub(crate) fn new(shared: Arc<Sessions>, tenant: &TenantId) -> Result<Self, QueryError> {
        let public = Arc::new(MemorySchemaProvider::new());
        let catalog = Arc::new(MemoryCatalogProvider::new());
        catalog.register_schema("public", public.clone())?;
        let list = MemoryCatalogProviderList::new();
        list.register_catalog(CATALOG.to_owned(), catalog.clone());
        let list: Arc<dyn CatalogProviderList> = Arc::new(list);
        let provider = PgCatalogSchemaProvider::try_new(list.clone(), shared.fixed.clone(), EmptyContextProvider)?;
        catalog.register_schema("pg_catalog", Arc::new(provider))?;
        let mut state = shared.state.clone();
        state.register_catalog_list(list);
        let session = Self {
            shared,
            tenants: tenant.clone().into(),
            state,
            public,
        };
        // The first binding assigns OIDs to the tables, so that the catalogs contain the tables before the first query.
        session.bind(&session.context(Purpose::Answer))?;
        Ok(session)
    }

    /// Checks and plans a statement. `declared_kinds` contains the kind of each parameter, or `None` if the client did
    /// not specify the kind.
    pub(crate) async fn prepare(&self, text: &str, declared_kinds: &[Option<Kind>]) -> Result<Prepared, QueryError> {
        let tokens = guard::check_size_in(text, &PostgreSqlDialect {})?;
        let context = self.context(Purpose::Describe);
        let state = self.session_over(&context)?;
        let (parser, text, declared_kinds) = (self.shared.parser.clone(), text.to_owned(), declared_kinds.to_vec());
        let limits = self.limits();
        let _slot = self.shared.template.slot(limits).await?;
        let work = move |watch: Watch| -> BoxFuture<'static, Result<Prepared, QueryError>> {
            Box::pin(async move {
                let allowance = Allowance::begin(&context.runtime, tokens)?;
                let mut state = watch.watched_state(&state, &context);
                allowance.attach_to(&mut state);
                let statement = read(&parser, &text)?;
                prepare(&state, statement, (text, tokens), declared_kinds).await
            })
        };
        let threads = self.shared.template.threads();
        threads.plan(Deadline::after(limits.timeout), work).await
    }

    /// Runs a statement. If `timeout` is shorter than the engine's time limit for queries, it replaces that limit.
    pub(crate) async fn run(
        &self,
        prepared: &Arc<Prepared>,
        values: &Arc<[SqlValue]>,
        timeout: Option<Duration>,
    ) -> Result<SqlResult, QueryError> {
        if values.len() < prepared.parameters.len() {
            return Err(QueryError::invalid(format!(
                "the statement requires {} parameters, but {} were supplied",
                prepared.parameters.len(),
                values.len()
            )));
        }
        let parser = self.shared.parser.clone();
        let tokens = prepared.tokens;
        let (prepared, values) = (prepared.clone(), values.clone());
        let filled = move || {
            let mut statement = read(&parser, &prepared.text)?;
            put_values(&mut statement, &prepared.parameters, &values)?;
            Ok(statement)
        };
        self.answer(timeout, tokens, filled).await
    }

    /// Runs a statement without parameters.
    pub(crate) async fn query(&self, text: &str, timeout: Option<Duration>) -> Result<SqlResult, QueryError> {
        let tokens = guard::check_size_in(text, &PostgreSqlDialect {})?;
        let (parser, text) = (self.shared.parser.clone(), text.to_owned());
        let parsed = move || {
            let mut statement = read(&parser, &text)?;
            put_values(&mut statement, &[], &[])?;
            Ok(statement)
        };
        self.answer(timeout, tokens, parsed).await
    }

    async fn answer(
        &self,
        timeout: Option<Duration>,
        tokens: usize,
        statement: impl FnOnce() -> Result<ast::Statement, QueryError> + Send + 'static,
    ) -> Result<SqlResult, QueryError> {
        let mut limits = self.limits().clone();
        if let Some(timeout) = timeout {
            limits.timeout = limits.timeout.min(timeout);
        }
        let slot = self.shared.template.slot(&limits).await?;
        let context = self.context(Purpose::Answer);
        let state = self.session_over(&context)?;
        let prepare = move |context: &Arc<Context>, watch: &Watch| {
            let statement = Statement::Statement(Box::new(statement()?));
            Ok((watch.watched_state(&state, context), statement))
        };
        statement::answer(self.shared.template.threads(), context, &limits, slot, tokens, prepare).await
    }

    /// Returns the names and kinds of the columns of a result.
    pub(crate) fn columns(result: &SqlResult) -> Vec<ColumnKind> {
        cells::kinds(&result.schema)
    }

    fn limits(&self) -> &QueryLimits {
        &self.shared.contexts.limits
    }

    fn context(&self, purpose: Purpose) -> Arc<Context> {
        self.shared.contexts.open(&self.tenants, purpose)
    }

    /// Returns the state of the session over the tables of `context`.
    fn session_over(&self, context: &Arc<Context>) -> Result<SessionState, QueryError> {
        self.bind(context)?;
        let mut state = self.state.clone();
        for (name, function) in functions::tables(context) {
            state.register_udtf(name, function);
        }
        Ok(state)
    }

    fn bind(&self, context: &Arc<Context>) -> Result<(), QueryError> {
        for (name, table) in catalog::tables(context) {
            self.public.deregister_table(&name)?;
            self.public.register_table(name, table)?;
        }
        Ok(())
    }
}

/// Parses one statement and refuses statements that are not queries.
fn read(parser: &PostgresCompatibilityParser, text: &str) -> Result<ast::Statement, QueryError> {
    let mut statements = parser
        .parse(text)
        .map_err(|error| QueryError::invalid(format!("cannot parse the query: {error}")))?;
    let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
        return Err(QueryError::invalid("the query must be exactly one statement"));
    };
    guard::check_sql(&statement)?;
    Ok(statement)
}

fn prepare(
    state: &SessionState,
    statement: ast::Statement,
    (text, tokens): (String, usize),
    declared_kinds: Vec<Option<Kind>>,
) -> BoxFuture<'_, Result<Prepared, QueryError>> {
    Box::pin(async move {
        let full_statement = Statement::Statement(Box::new(statement.clone()));
        let (inner, explained) = statement::split_explain(full_statement);
        let (plan, of_answer) = names::plan(state, inner).await?;
        guard::check_plan(&plan)?;
        // The names are sorted so that the error is always the same if several names are wrong.
        let names: BTreeMap<_, _> = plan.get_parameter_types()?.into_iter().collect();
        let mut parameters = declared_kinds;
        for (name, kind) in &names {
            let index: usize = name
                .strip_prefix('$')
                .and_then(|number| number.parse().ok())
                .filter(|number| (1..=1000).contains(number))
                .ok_or_else(|| {
                    QueryError::from(plan_datafusion_err!(
                        "there is no parameter {name}: parameters are $1 to $1000"
                    ))
                })?;
            if parameters.len() < index {
                parameters.resize(index, None);
            }
            if parameters[index - 1].is_none() {
                parameters[index - 1] = kind.as_ref().map(cells::kind);
            }
        }
        // The plan does not contain the arguments of table functions, so the parameters of the statement are counted as
        // well.
        let parameter_count = count_parameters(&statement);
        if parameters.len() < parameter_count {
            parameters.resize(parameter_count, None);
        }
        let columns = match explained {
            Some(_) => ["plan_type", "plan"]
                .map(|name| ColumnKind {
                    name: name.to_owned(),
                    kind: Kind {
                        simple: Simple::Text,
                        is_list: false,
                    },
                })
                .to_vec(),
            None => cells::kinds(&of_answer.restore(&Arc::new(plan.schema().as_arrow().clone()))),
        };
        Ok(Prepared {
            text,
            tokens,
            parameters,
            columns,
        })
    })
}

fn placeholder(expr: &Expr) -> Option<usize> {
    let Expr::Value(value) = expr else { return None };
    let Value::Placeholder(name) = &value.value else {
        return None;
    };
    name.strip_prefix('$').and_then(|number| number.parse().ok())
}

/// Returns the highest number of a parameter in the statement, or 1000 if it is higher.
fn count_parameters(statement: &ast::Statement) -> usize {
    let mut max = 0;
    let _ = ast::visit_expressions(statement, |expr| {
        max = max.max(placeholder(expr).unwrap_or(0));
        ControlFlow::<()>::Continue(())
    });
    max.min(1000)
}

/// Replaces the parameters with literals. Changes the syntax tree instead of the text, so that no value can be parsed
/// as SQL. Fails if the total size of the values, each counted for every use, exceeds the maximum size of the text of a
/// query.
fn put_values(statement: &mut ast::Statement, kinds: &[Option<Kind>], values: &[SqlValue]) -> Result<(), QueryError> {
    let mut literals: HashMap<usize, Expr> = HashMap::new();
    for (index, value) in values.iter().enumerate() {
        literals.insert(index + 1, literal(value, kinds.get(index).copied().flatten())?);
    }
    let mut value_bytes: usize = 0;
    let _ = ast::visit_expressions(statement, |expr| {
        let value = placeholder(expr).and_then(|number| values.get(number.checked_sub(1)?));
        value_bytes = value_bytes.saturating_add(value.map_or(0, length));
        ControlFlow::<()>::Continue(())
    });
    guard::check_values(value_bytes)?;
    let left = ast::visit_expressions_mut(statement, |expr| {
        if let Some(number) = placeholder(expr) {
            match literals.get(&number) {
                Some(literal) => *expr = literal.clone(),
                None => return ControlFlow::Break(number),
            }
        }
        ControlFlow::Continue(())
    });
    match left {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(number) => Err(QueryError::invalid(format!(
            "there is no value for parameter ${number}"
        ))),
    }
}

/// Returns the length of a value in the text of a statement in bytes; 0 for values that are always short.
fn length(value: &SqlValue) -> usize {
    match value {
        SqlValue::Text(text) => text.len(),
        SqlValue::Bytes(bytes) => 2 * bytes.len(),
        _ => 0,
    }
}

fn literal(value: &SqlValue, kind: Option<Kind>) -> Result<Expr, QueryError> {
    let quoted = |text: String| Expr::Value(Value::SingleQuotedString(text).into());
    let as_type = |text: String, data_type: SqlType| Expr::Cast {
        kind: ast::CastKind::Cast,
        expr: Box::new(quoted(text)),
        data_type,
        array: false,
        format: None,
    };
    let moment = |micros: i64| {
        chrono::DateTime::from_timestamp_micros(micros)
            .map(|time| time.to_rfc3339_opts(chrono::SecondsFormat::Micros, true))
            .ok_or_else(|| QueryError::invalid("timestamp out of range in a parameter"))
    };
    let simple = kind.map(|kind| (kind.simple, kind.is_list));
    Ok(match value {
        SqlValue::Null => Expr::Value(Value::Null.into()),
        SqlValue::Bool(value) => Expr::Value(Value::Boolean(*value).into()),
        SqlValue::Int(value) if *value >= 0 => Expr::Value(Value::Number(value.to_string(), false).into()),
        SqlValue::Int(value) => as_type(value.to_string(), SqlType::BigInt(None)),
        SqlValue::Float(value) => as_type(value.to_string(), SqlType::Double(ast::ExactNumberInfo::None)),
        SqlValue::Timestamp(micros) => match simple {
            Some((Simple::Timestamp, _)) => as_type(
                moment(*micros)?.trim_end_matches('Z').to_owned(),
                SqlType::Timestamp(None, TimezoneInfo::None),
            ),
            _ => as_type(moment(*micros)?, SqlType::Timestamp(None, TimezoneInfo::WithTimeZone)),
        },
        SqlValue::Date(days) => {
            let day = chrono::DateTime::from_timestamp(i64::from(*days) * 86_400, 0)
                .ok_or_else(|| QueryError::invalid("date out of range in a parameter"))?;
            as_type(day.date_naive().to_string(), SqlType::Date)
        }
        SqlValue::Bytes(bytes) => {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            Expr::Value(Value::HexStringLiteral(hex).into())
        }
        SqlValue::Text(text) => {
            let refuse =
                |type_name: &str| QueryError::invalid(format!("invalid input syntax for type {type_name}: \"{text}\""));
            match simple {
                Some((Simple::Int2 | Simple::Int4 | Simple::Int8, false)) => {
                    let number: i64 = text.trim().parse().map_err(|_| refuse("bigint"))?;
                    return literal(&SqlValue::Int(number), kind);
                }
                Some((Simple::Float4 | Simple::Float8 | Simple::Numeric, false)) => {
                    let number: f64 = text.trim().parse().map_err(|_| refuse("double precision"))?;
                    return literal(&SqlValue::Float(number), kind);
                }
                Some((Simple::Bool, false)) => match text.trim() {
                    "t" | "true" | "1" | "on" | "yes" => Expr::Value(Value::Boolean(true).into()),
                    "f" | "false" | "0" | "off" | "no" => Expr::Value(Value::Boolean(false).into()),
                    _ => return Err(refuse("boolean")),
                },
                Some((Simple::Timestamp, false)) => as_type(text.clone(), SqlType::Timestamp(None, TimezoneInfo::None)),
                Some((Simple::TimestampTz, false)) => {
                    as_type(text.clone(), SqlType::Timestamp(None, TimezoneInfo::WithTimeZone))
                }
                Some((Simple::Date, false)) => as_type(text.clone(), SqlType::Date),
                _ => quoted(text.clone()),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn a_value_counts_as_often_as_its_parameter_is_used() {
        let filled = |uses: usize, value: SqlValue| {
            let text = format!("SELECT 1 WHERE 'a' IN ({})", vec!["$1"; uses].join(", "));
            let mut statement = Parser::parse_sql(&PostgreSqlDialect {}, &text).unwrap().remove(0);
            put_values(&mut statement, &[], &[value]).map(|()| statement.to_string().len())
        };
        let text = |length: usize| SqlValue::Text("x".repeat(length));
        let bytes = |length: usize| SqlValue::Bytes(vec![0; length]);
        assert!(filled(300, text(800)).unwrap() > 240_000);
        assert!(filled(1, text(200_000)).unwrap() > 200_000);
        for (uses, value) in [
            (390, text(1_000_000)),
            (390, text(700)),
            (390, bytes(400)),
            (1, text(300_000)),
        ] {
            let refused = filled(uses, value);
            assert!(matches!(refused, Err(QueryError::Limit(_))), "{refused:?}");
        }
    }
}
