//! Prepared statements, portals, and rows on their way to a client: what a connection keeps between messages.

use tokio::time::Instant;

use crate::query::cells::Cells;
use crate::query::{Prepared, SqlResult, SqlValue};
use crate::server::postgres::command::Command;
use crate::server::postgres::encode::Field;

/// A statement that was parsed.
#[derive(Clone)]
pub(super) enum Statement {
    /// A text of nothing but blanks.
    Empty,
    /// Answered by the connection.
    Command(Command),
    /// A query that the engine has planned.
    Query(Box<Prepared>),
}

/// A statement with its parameters, and how far its rows were read.
pub(super) struct Portal {
    pub(super) statement: Statement,
    pub(super) values: Vec<SqlValue>,
    /// Formats of the columns as the client asked for them.
    pub(super) formats: Vec<i16>,
    pub(super) rows: Option<Rows>,
    pub(super) is_done: bool,
}

impl Portal {
    /// Its rows when they were read in part.
    pub(super) fn rows(&mut self) -> Option<&mut Rows> {
        self.rows.as_mut()
    }
}

/// Rows on their way to the client.
pub(super) struct Rows {
    pub(super) result: SqlResult,
    pub(super) fields: Vec<Field>,
    /// The batch that is being sent, and its next row.
    pub(super) batch: Option<(Cells, usize)>,
    pub(super) is_done: bool,
    /// What was held is given back.
    is_ended: bool,
    /// When the query ends at the latest, and what was read of it goes.
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

    /// True while the query may still hold something.
    pub(super) fn is_open(&self) -> bool {
        !self.is_ended
    }

    /// Frees what is held of the rows. A client that asks for more gets the error of the time limit.
    pub(super) fn end(&mut self) {
        self.is_ended = true;
        self.batch = None;
        self.result.end();
    }
}
