//! State that a connection keeps between messages: prepared statements, portals, and rows that are being sent.

use tokio::time::Instant;

use crate::query::cells::Cells;
use crate::query::{Prepared, SqlResult, SqlValue};
use crate::server::postgres::command::Command;
use crate::server::postgres::encode::Field;

/// A prepared statement, parsed and planned.
#[derive(Clone)]
pub(super) enum Statement {
    /// A text of only blanks and comments.
    Empty,
    /// Executed by the connection itself.
    Command(Command),
    /// A query that the engine has planned.
    Query(Box<Prepared>),
}

/// A statement with its parameters, and its rows if it was started.
pub(super) struct Portal {
    pub(super) statement: Statement,
    pub(super) values: Vec<SqlValue>,
    /// Column formats that the client requested.
    pub(super) formats: Vec<i16>,
    pub(super) rows: Option<Rows>,
    pub(super) is_done: bool,
}

impl Portal {
    /// The rows of a portal that was read in part.
    pub(super) fn rows(&mut self) -> Option<&mut Rows> {
        self.rows.as_mut()
    }
}

/// Rows that are being sent to the client.
pub(super) struct Rows {
    pub(super) result: SqlResult,
    pub(super) fields: Vec<Field>,
    /// The batch that is being sent, and its next row.
    pub(super) batch: Option<(Cells, usize)>,
    pub(super) is_done: bool,
    /// True when the rows were released.
    is_ended: bool,
    /// Deadline of the query, at which its unread rows are released.
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

    /// True while the rows may hold resources.
    pub(super) fn is_open(&self) -> bool {
        !self.is_ended
    }

    /// Releases the rows. A client that asks for more gets the error of the time limit.
    pub(super) fn end(&mut self) {
        self.is_ended = true;
        self.batch = None;
        self.result.end();
    }
}
