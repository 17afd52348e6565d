//! An authenticated connection: its state, the execution of one query at a time, and the commands that it executes
//! itself.
//!
//! In: a session of the query layer. Out: streamed rows. A query ends if its client disconnects or cancels it, or if
//! the server stops. `messages` reads the messages.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::{FieldDescription, RowDescription};
use pgwire::messages::response::{CommandComplete, TransactionStatus};
use pgwire::messages::startup::ParameterStatus;
use tokio::sync::OwnedSemaphorePermit;

use crate::query::output::cells::{Cells, ColumnKind, Kind, Simple};
use crate::query::{Prepared, QueryError, SqlResult, SqlSession, SqlValue};
use crate::server::postgres::cancel::CancelKey;
use crate::server::postgres::command::Command;
use crate::server::postgres::encode;
use crate::server::postgres::failure::Failure;
use crate::server::postgres::parameters::Settings;
use crate::server::postgres::port::PortState;
use crate::server::postgres::portal::{Portal, PreparedStatement, Rows};
use crate::server::postgres::types;
use crate::server::postgres::wire::Wire;
use alluvium_base::Shutdown;

/// The PostgreSQL protocol by which a statement was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// The server sends the column descriptions with the rows.
    Simple,
    /// The client requests the column descriptions separately.
    Extended,
}

/// A connection that has authenticated.
pub(super) struct Connection {
    pub(super) port: Arc<PortState>,
    pub(super) wire: Wire,
    pub(super) session: SqlSession,
    settings: Settings,
    key: CancelKey,
    pub(super) status: TransactionStatus,
    pub(super) statements: HashMap<String, Arc<PreparedStatement>>,
    pub(super) portals: HashMap<String, Portal>,
    /// True after an error in the extended protocol. Messages are then skipped up to the next `Sync` or `Query`.
    pub(super) skips: bool,
    _slot: OwnedSemaphorePermit,
}

impl Connection {
    pub(super) fn new(
        port: Arc<PortState>,
        wire: Wire,
        session: SqlSession,
        settings: Settings,
        slot: OwnedSemaphorePermit,
        key: CancelKey,
    ) -> Self {
        Self {
            port,
            wire,
            session,
            settings,
            key,
            status: TransactionStatus::Idle,
            statements: HashMap::new(),
            portals: HashMap::new(),
            skips: false,
            _slot: slot,
        }
    }

    /// Runs a statement of the simple protocol until its rows are available.
    pub(super) async fn query(&mut self, statement: &str) -> Result<SqlResult, Failure> {
        let token = self.key.begin();
        let timeout = self.settings.statement_timeout();
        let running = Box::pin(self.session.query(statement, timeout));
        let result = run_until_stopped(&mut self.wire, &token, running).await;
        self.key.end();
        result?.map_err(|error| timed_out(error, timeout))
    }

    /// Runs a statement of the extended protocol until its rows are available.
    pub(super) async fn run(
        &mut self,
        prepared: &Arc<Prepared>,
        values: &Arc<[SqlValue]>,
    ) -> Result<SqlResult, Failure> {
        let token = self.key.begin();
        let timeout = self.settings.statement_timeout();
        let running = Box::pin(self.session.run(prepared, values, timeout));
        let result = run_until_stopped(&mut self.wire, &token, running).await;
        self.key.end();
        result?.map_err(|error| timed_out(error, timeout))
    }

    /// Sends up to `max` rows, and returns the number of sent rows.
    pub(super) async fn send_rows(&mut self, rows: &mut Rows, max: usize) -> Result<usize, Failure> {
        let token = self.key.begin();
        let count = self.send_until(rows, max, &token).await;
        self.key.end();
        count
    }

    async fn send_until(&mut self, rows: &mut Rows, max: usize, token: &Shutdown) -> Result<usize, Failure> {
        let timeout = self.settings.statement_timeout();
        let mut count = 0;
        while count < max && !rows.is_done {
            let Some((cells, next, _)) = &mut rows.batch else {
                let next = run_until_stopped(&mut self.wire, token, rows.result.stream.next()).await?;
                match next.transpose().map_err(|error| timed_out(error, timeout))? {
                    Some(batch) => {
                        let held = self.port.memory.take_rows(batch.get_array_memory_size())?;
                        rows.batch = Some((Cells::new(&batch)?, 0, held));
                    }
                    None => rows.is_done = true,
                }
                continue;
            };
            if *next >= cells.rows() {
                rows.batch = None;
                continue;
            }
            let start = self.wire.outgoing.len();
            encode::row(&mut self.wire.outgoing, cells, *next, &rows.fields)?;
            self.wire.charge(start)?;
            *next += 1;
            count += 1;
            // If the deadline of the query passes during the send, the connection ends, because a message may have been
            // sent only in part. The end of the connection also releases the rows.
            tokio::time::timeout_at(rows.ends_at, self.wire.send_some())
                .await
                .map_err(|_| {
                    Failure::fatal(
                        "57014",
                        "the client did not read the rows within the timeout of the query: raise sql.timeout in \
                            the server's configuration",
                    )
                })??;
            if token.is_cancelled() {
                return Err(Failure::cancelled());
            }
        }
        Ok(count)
    }

    /// Returns an error if the transaction has failed and the command does not end it.
    pub(super) fn check_transaction(&self, command: Option<&Command>) -> Result<(), Failure> {
        let ends = matches!(
            command,
            Some(Command::Commit | Command::Rollback | Command::Nothing("ROLLBACK"))
        );
        if self.status == TransactionStatus::Error && !ends {
            return Err(Failure::error(
                "25P02",
                "the transaction has failed: statements are ignored until it ends",
            ));
        }
        Ok(())
    }

    pub(super) fn command(&mut self, command: &Command, protocol: Protocol) -> Result<(), Failure> {
        let mut tag = command.tag();
        match command {
            Command::Begin => self.status = TransactionStatus::Transaction,
            Command::Commit | Command::Rollback => {
                if self.status == TransactionStatus::Error {
                    tag = "ROLLBACK";
                }
                self.status = TransactionStatus::Idle;
                self.portals.clear();
            }
            Command::Nothing("ROLLBACK") => self.status = TransactionStatus::Transaction,
            Command::Nothing(_) => {}
            Command::Set(name, value) => {
                let name = self.settings.set(name, value)?;
                self.report(name)?;
            }
            Command::Reset(name) => self.settings.reset(name.as_deref())?,
            Command::DiscardAll => {
                self.settings.reset(None)?;
                self.statements.clear();
                self.portals.clear();
            }
            Command::Deallocate(None) => self.statements.clear(),
            Command::Deallocate(Some(name)) => {
                if self.statements.remove(name).is_none() {
                    return Err(Failure::error(
                        "26000",
                        format!("there is no prepared statement \"{name}\""),
                    ));
                }
            }
            Command::Close(None) => self.portals.clear(),
            Command::Close(Some(name)) => {
                self.portals.remove(name);
            }
            Command::Show(name) => {
                let rows = self.setting_rows(name.as_deref())?;
                if protocol == Protocol::Simple {
                    self.row_description(&show_columns(name.as_deref()), &[])?;
                }
                for values in rows {
                    self.text_row(&values)?;
                }
            }
        }
        self.send_complete(tag)
    }

    fn setting_rows(&self, name: Option<&str>) -> Result<Vec<Vec<String>>, Failure> {
        let Some(name) = name else {
            let all = self.settings.all().into_iter();
            return Ok(all
                .map(|(name, value)| vec![name.to_owned(), value, String::new()])
                .collect());
        };
        match self.settings.get(name) {
            Some((_, value)) => Ok(vec![vec![value]]),
            None => Err(Failure::error("42704", format!("there is no setting `{name}`"))),
        }
    }

    fn report(&mut self, name: &'static str) -> Result<(), Failure> {
        if !Settings::is_reported(name) {
            return Ok(());
        }
        let value = self.settings.get(name).map(|(_, value)| value).unwrap_or_default();
        self.wire
            .put(&PgWireBackendMessage::ParameterStatus(ParameterStatus::new(
                name.to_owned(),
                value,
            )))
    }

    fn text_row(&mut self, values: &[String]) -> Result<(), Failure> {
        use bytes::BufMut;
        let mut data = bytes::BytesMut::new();
        for value in values {
            data.put_i32(i32::try_from(value.len()).unwrap_or(0));
            data.put_slice(value.as_bytes());
        }
        let row = pgwire::messages::data::DataRow::new(data, values.len() as i16);
        self.wire.put(&PgWireBackendMessage::DataRow(row))
    }

    /// Sends the description of the columns. `formats` are the format codes that the client requested.
    pub(super) fn row_description(&mut self, columns: &[ColumnKind], formats: &[i16]) -> Result<(), Failure> {
        let described = columns.iter().enumerate().map(|(index, column)| {
            let format = match formats {
                [] => 0,
                [all] => *all,
                formats => formats.get(index).copied().unwrap_or(0),
            };
            let (number, size) = (types::number(column.kind), types::size(column.kind));
            FieldDescription::new(column.name.clone(), 0, 0, number, size, -1, format)
        });
        let start = self.wire.outgoing.len();
        self.wire
            .put(&PgWireBackendMessage::RowDescription(RowDescription::new(
                described.collect(),
            )))?;
        self.wire.charge(start)
    }

    pub(super) fn send_complete(&mut self, tag: &str) -> Result<(), Failure> {
        self.wire
            .put(&PgWireBackendMessage::CommandComplete(CommandComplete::new(
                tag.to_owned(),
            )))
    }
}

/// Returns the columns of the rows of `SHOW`.
pub(super) fn show_columns(name: Option<&str>) -> Vec<ColumnKind> {
    let names = match name {
        Some(name) => vec![name],
        None => vec!["name", "setting", "description"],
    };
    let kind = Kind {
        simple: Simple::Text,
        is_list: false,
    };
    let columns = names.into_iter().map(|name| ColumnKind {
        name: name.to_owned(),
        kind,
    });
    columns.collect()
}

/// Runs `work` to its end. If the client disconnects or cancels the query first, `work` is dropped, which stops the
/// query.
async fn run_until_stopped<T>(wire: &mut Wire, token: &Shutdown, work: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::select! {
        biased;
        () = token.cancelled() => Err(Failure::cancelled()),
        output = work => Ok(output),
        () = wire.disconnected() => Err(Failure::fatal("08006", "the client disconnected while its query ran")),
    }
}

/// Converts the error of a query. A timeout that the client has set is reported as `statement_timeout`.
fn timed_out(error: QueryError, timeout: Option<Duration>) -> Failure {
    match (&error, timeout) {
        (QueryError::Timeout(length), Some(own)) if *length == own => {
            Failure::error("57014", "the query was stopped by statement_timeout")
        }
        _ => Failure::from(error),
    }
}
