//! Read-only SQL: one `SELECT` (or `DESCRIBE`) over the tables of one tenant, with limits on size, time, rows and memory.
//!
//! In: text. Out: [`SqlResult`], a stream. Refused before planning: every statement that is not a query. Refused by construction: files,
//! addresses, settings, other tenants, for none of them is in the session.

use std::sync::Arc;

use arrow::array::Array;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::config::Dialect;
use datafusion::execution::context::SQLOptions;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::execution::{SessionStateDefaults, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use futures::StreamExt;
use futures::stream;
use tokio::time::Instant;

use crate::base::BoxFuture;
use crate::query::engine::Context;
use crate::query::runtime::Runtime;
use crate::query::scan::BatchStream;
use crate::query::{QueryError, QueryLimits, catalog, functions};

/// Longest text of a query.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Most operators and joining words in a query. Each may deepen the plan by one, and planning recurses over it.
const MAX_OPERATORS: usize = 400;
/// Stack of the thread that plans; only what is touched takes memory. Enough for [`MAX_OPERATORS`] in a debug build.
const PLANNING_STACK_BYTES: usize = 64 << 20;

/// The answer of a SQL query.
pub struct SqlResult {
    /// Columns.
    pub schema: SchemaRef,
    /// Rows. The last item is an error when the query failed or met a limit after it had begun.
    pub stream: BatchStream,
}

/// The session's settings and functions, made once.
pub(crate) struct Template(SessionState);

impl Template {
    pub(crate) fn new(runtime: &Runtime) -> Self {
        let mut functions = SessionStateDefaults::default_scalar_functions();
        functions.extend(functions::scalar());
        // No table factories, no file formats, no table functions but ours: nothing that could open a file.
        let state = SessionStateBuilder::new()
            .with_config(runtime.config.clone())
            .with_runtime_env(runtime.environment.clone())
            .with_expr_planners(SessionStateDefaults::default_expr_planners())
            .with_scalar_functions(functions)
            .with_higher_order_functions(SessionStateDefaults::default_higher_order_functions())
            .with_aggregate_functions(SessionStateDefaults::default_aggregate_functions())
            .with_window_functions(SessionStateDefaults::default_window_functions())
            .build();
        Self(state)
    }
}

/// Plans and starts a query.
pub(crate) fn run(
    template: &Template,
    context: Arc<Context>,
    limits: &QueryLimits,
    text: &str,
) -> BoxFuture<'static, Result<SqlResult, QueryError>> {
    let deadline = Instant::now() + limits.timeout;
    let (timeout, max_rows) = (limits.timeout, limits.max_rows);
    let prepared = prepare(template, &context, text);
    Box::pin(async move {
        let (state, statement) = prepared?;
        let planned = on_planning_thread(start(state, statement));
        let stream = tokio::time::timeout_at(deadline, planned)
            .await
            .map_err(|_| QueryError::Timeout(timeout))??;
        let schema = without_views(&stream.0);
        let guarded = Guarded {
            rows: stream.1,
            schema: schema.clone(),
            deadline,
            timeout,
            left: max_rows,
            max_rows,
        };
        let stream = stream::try_unfold(guarded, Guarded::next).boxed();
        Ok(SqlResult { schema, stream })
    })
}

impl SqlResult {
    /// All rows at once.
    pub async fn collect(mut self) -> Result<Vec<RecordBatch>, QueryError> {
        let mut batches = Vec::new();
        while let Some(batch) = self.stream.next().await {
            batches.push(batch?);
        }
        Ok(batches)
    }
}

/// Checks the text and sets up the session of one query.
fn prepare(template: &Template, context: &Arc<Context>, text: &str) -> Result<(SessionState, Statement), QueryError> {
    check_size(text)?;
    let mut state = template.0.clone();
    let statement = state.sql_to_statement(text, &Dialect::Generic)?;
    check_statement(&statement)?;
    state.register_catalog_list(catalog::catalog(context)?);
    for (name, function) in functions::tables(context) {
        state.register_udtf(name, function);
    }
    state.mark_start_execution();
    Ok((state, statement))
}

/// From the statement to running streams.
fn start(
    state: SessionState,
    statement: Statement,
) -> BoxFuture<'static, Result<(SchemaRef, BatchStream), QueryError>> {
    Box::pin(async move {
        let plan = state.statement_to_plan(statement).await?;
        SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false)
            .verify_plan(&plan)?;
        if matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_)) {
            return Err(refused("EXPLAIN"));
        }
        let physical = state.create_physical_plan(&plan).await?;
        let schema = physical.schema();
        let rows = execute_stream(physical, Arc::new(TaskContext::from(&state)))?;
        Ok((schema, rows.map(|batch| batch.map_err(QueryError::from)).boxed()))
    })
}

/// Runs a future on a thread of its own with a deep stack; dropping the returned future ends it at its next rest.
async fn on_planning_thread<T: Send + 'static>(
    work: BoxFuture<'static, Result<T, QueryError>>,
) -> Result<T, QueryError> {
    let (mut sender, receiver) = tokio::sync::oneshot::channel();
    let handle = tokio::runtime::Handle::current();
    std::thread::Builder::new()
        .name("sql planner".to_owned())
        .stack_size(PLANNING_STACK_BYTES)
        .spawn(move || {
            let answer = handle.block_on(async {
                tokio::select! {
                    () = sender.closed() => None,
                    answer = work => Some(answer),
                }
            });
            if let Some(answer) = answer {
                // The asker may have gone meanwhile.
                let _ = sender.send(answer);
            }
        })
        .map_err(|error| QueryError::internal(format!("starting a planning thread: {error}")))?;
    receiver
        .await
        .map_err(|_| QueryError::internal("planning the query ended without an answer"))?
}

/// The stream of an answer with its limits.
struct Guarded {
    rows: BatchStream,
    schema: SchemaRef,
    deadline: Instant,
    timeout: std::time::Duration,
    left: usize,
    max_rows: usize,
}

impl Guarded {
    async fn next(mut self) -> Result<Option<(RecordBatch, Self)>, QueryError> {
        if Instant::now() >= self.deadline {
            return Err(QueryError::Timeout(self.timeout));
        }
        let next = tokio::time::timeout_at(self.deadline, self.rows.next())
            .await
            .map_err(|_| QueryError::Timeout(self.timeout))?;
        let Some(batch) = next.transpose()? else {
            return Ok(None);
        };
        self.left = self.left.checked_sub(batch.num_rows()).ok_or_else(|| {
            QueryError::Limit(format!(
                "the answer has more than {} rows; add a LIMIT or aggregate",
                self.max_rows
            ))
        })?;
        Ok(Some((plain(&batch, &self.schema)?, self)))
    }
}

fn check_size(text: &str) -> Result<(), QueryError> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(QueryError::Limit(format!(
            "the query is longer than {MAX_TEXT_BYTES} bytes"
        )));
    }
    let tokens = Tokenizer::new(&GenericDialect {}, text)
        .tokenize()
        .map_err(|error| QueryError::invalid(format!("reading the query: {error}")))?;
    let deepens = |token: &Token| match token {
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
    };
    let count = tokens.iter().filter(|token| deepens(token)).count();
    if count > MAX_OPERATORS {
        return Err(QueryError::Limit(format!(
            "the query has {count} operators, more than {MAX_OPERATORS}; write long lists with IN"
        )));
    }
    Ok(())
}

fn check_statement(statement: &Statement) -> Result<(), QueryError> {
    match statement {
        Statement::Statement(inner) => match inner.as_ref() {
            ast::Statement::Query(_) | ast::Statement::ExplainTable { .. } => Ok(()),
            other => Err(refused(&first_words(&other.to_string()))),
        },
        Statement::CreateExternalTable(_) => Err(refused("CREATE EXTERNAL TABLE")),
        Statement::CopyTo(_) => Err(refused("COPY")),
        Statement::Explain(_) => Err(refused("EXPLAIN")),
        Statement::Reset(_) => Err(refused("RESET")),
    }
}

fn refused(what: &str) -> QueryError {
    QueryError::invalid(format!(
        "{what} is not allowed: SQL here is read-only, a SELECT over the tables profiles, samples, stacks, series and flat"
    ))
}

fn first_words(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(2).collect();
    let words = words.join(" ");
    words.chars().filter(char::is_ascii).take(40).collect()
}

/// The schema with text in place of text views, which not every client reads.
fn without_views(schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            DataType::Utf8View => field.as_ref().clone().with_data_type(DataType::Utf8),
            DataType::BinaryView => field.as_ref().clone().with_data_type(DataType::Binary),
            _ => field.as_ref().clone(),
        })
        .collect();
    Arc::new(Schema::new(fields))
}

fn plain(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, QueryError> {
    let columns: Result<Vec<_>, _> = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(column.clone()),
            false => cast(column, field.data_type()),
        })
        .collect();
    let options = arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns?, &options)?)
}
