//! State that a connection keeps between messages: prepared statements, portals, and rows that are being sent.
//!
//! Each value holds the memory that is charged for it. Portals share their statement and its charge, so both are
//! released only after the statement is closed and its last portal is dropped.

use std::sync::Arc;

use tokio::time::Instant;

use crate::query::output::cells::Cells;
use crate::query::{Prepared, SqlResult, SqlValue};
use crate::server::postgres::command::Command;
use crate::server::postgres::encode::Field;
use alluvium_base::bytes::HeldBytes;

/// A prepared statement, parsed and planned.
pub(super) enum Statement {
    /// A text of only whitespace and comments.
    Empty,
    /// A command that the connection itself executes.
    Command(Command),
    /// A query that the engine has planned.
    Query(Arc<Prepared>),
}

/// A prepared statement with the memory charged for it.
pub(super) struct PreparedStatement {
    pub(super) statement: Statement,
    _held: HeldBytes,
}

impl PreparedStatement {
    pub(super) fn new(statement: Statement, held: HeldBytes) -> Arc<Self> {
        Arc::new(Self { statement, _held: held })
    }

    /// Returns the plan of a query, or `None` for other statements.
    pub(super) fn prepared(&self) -> Option<&Arc<Prepared>> {
        match &self.statement {
            Statement::Query(prepared) => Some(prepared),
            Statement::Empty | Statement::Command(_) => None,
        }
    }
}

/// A statement with its parameters, and with its rows once the statement has started.
pub(super) struct Portal {
    pub(super) prepared_statement: Arc<PreparedStatement>,
    pub(super) values: Arc<[SqlValue]>,
    /// Column formats that the client requested.
    pub(super) formats: Vec<i16>,
    pub(super) rows: Option<Rows>,
    pub(super) is_done: bool,
    _held: HeldBytes,
}

impl Portal {
    /// Creates a portal that has not run. `held` is the memory charged for its name, its values and its formats.
    pub(super) fn new(
        prepared_statement: Arc<PreparedStatement>,
        values: Vec<SqlValue>,
        formats: Vec<i16>,
        held: HeldBytes,
    ) -> Self {
        Self {
            prepared_statement,
            values: values.into(),
            formats,
            rows: None,
            is_done: false,
            _held: held,
        }
    }

    /// Returns the rows of a portal that was read in part.
    pub(super) fn rows(&mut self) -> Option<&mut Rows> {
        self.rows.as_mut()
    }
}

/// Rows that are being sent to the client.
pub(super) struct Rows {
    pub(super) result: SqlResult,
    pub(super) fields: Vec<Field>,
    /// The batch that is being sent, its next row, and the memory charged for it.
    pub(super) batch: Option<(Cells, usize, Option<HeldBytes>)>,
    pub(super) is_done: bool,
    /// True after the rows were released.
    is_ended: bool,
    /// Deadline of the query. At this time its unread rows are released.
    pub(super) ends_at: Instant,
}

impl Rows {
    pub(super) fn new(result: SqlResult, fields: Vec<Field>) -> Self {
        Self {
            ends_at: result.ends_at(),
            result,
            fields,
            batch: None,
            is_done: false,
            is_ended: false,
        }
    }

    /// Returns true while the rows may hold resources.
    pub(super) fn is_open(&self) -> bool {
        !self.is_ended
    }

    /// Releases the rows. A client that requests more rows then receives the timeout error.
    pub(super) fn end(&mut self) {
        self.is_ended = true;
        self.batch = None;
        self.result.end();
    }
}
