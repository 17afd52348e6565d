//! A connection after its beginning: messages in, answers out, one query at a time.
//!
//! In: a session of the query layer, the client's messages. Out: rows, as they come. A query ends when its client goes away, asks for its end, or the
//! server stops. The simple protocol is here, the extended one in `extended`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use pgwire::messages::data::{FieldDescription, RowDescription};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::ParameterStatus;
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::base::Shutdown;
use crate::query::cells::{Cells, ColumnKind, Kind, Simple};
use crate::query::{QueryError, SqlResult, SqlSession};
use crate::server::postgres::Port;
use crate::server::postgres::cancel::CancelKey;
use crate::server::postgres::command::{Command, split};
use crate::server::postgres::encode::{self, Field};
use crate::server::postgres::extended::{Portal, Statement};
use crate::server::postgres::failure::Failure;
use crate::server::postgres::parameters::Settings;
use crate::server::postgres::types;
use crate::server::postgres::wire::Wire;

/// A connection.
pub(super) struct Connection {
    port: Arc<Port>,
    pub(super) wire: Wire,
    pub(super) session: SqlSession,
    settings: Settings,
    key: CancelKey,
    status: TransactionStatus,
    pub(super) statements: HashMap<String, Statement>,
    pub(super) portals: HashMap<String, Portal>,
    /// An error in the extended protocol: everything up to `Sync` is passed over.
    skips: bool,
    _slot: OwnedSemaphorePermit,
}

/// Rows on their way to the client.
pub(super) struct Rows {
    result: SqlResult,
    fields: Vec<Field>,
    /// The batch that is being sent, and its next row.
    batch: Option<(Cells, usize)>,
    is_done: bool,
    /// What was held is given back.
    is_ended: bool,
    /// When the query ends at the latest, and what was read of it goes.
    ends_at: Instant,
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
    fn is_open(&self) -> bool {
        !self.is_ended
    }

    /// Gives back what is held of the rows. Whoever asks for more is told that the time is over.
    fn end(&mut self) {
        self.is_ended = true;
        self.batch = None;
        self.result.end();
    }
}

impl Connection {
    pub(super) fn new(
        port: Arc<Port>,
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

    /// Serves the connection to its end.
    pub(super) async fn serve(mut self, shutdown: Shutdown) {
        if let Err(failure) = self.messages(&shutdown).await {
            tracing::debug!(error = %failure, "postgresql connection ends");
            self.wire.close_with(&failure).await;
        }
    }

    async fn messages(&mut self, shutdown: &Shutdown) -> Result<(), Failure> {
        self.ready().await?;
        loop {
            let idle_until = Instant::now() + self.port.options.idle_timeout;
            let message = loop {
                let rows_until = self.open_rows().map(|rows| rows.ends_at).min();
                tokio::select! {
                    biased;
                    message = tokio::time::timeout_at(idle_until, self.wire.message()) => break message,
                    () = shutdown.cancelled() => return Err(Failure::fatal("57P01", "the server stops")),
                    () = tokio::time::sleep_until(rows_until.unwrap_or(idle_until)), if rows_until.is_some() => {
                        let now = Instant::now();
                        self.open_rows().filter(|rows| rows.ends_at <= now).for_each(Rows::end);
                    }
                }
            };
            let message = message.map_err(|_| {
                Failure::fatal(
                    "57P05",
                    "the connection was idle for longer than postgres.idle_timeout allows",
                )
            })??;
            let Some(message) = message else { return Ok(()) };
            if matches!(message, PgWireFrontendMessage::Terminate(_)) {
                return Ok(());
            }
            self.message(message).await?;
            // Answers to messages that are never followed by a `Sync` must not gather.
            self.wire.send_some().await?;
        }
    }

    /// Rows of portals that were read in part.
    fn open_rows(&mut self) -> impl Iterator<Item = &mut Rows> {
        let rows = self.portals.values_mut().filter_map(Portal::rows);
        rows.filter(|rows| rows.is_open())
    }

    async fn message(&mut self, message: PgWireFrontendMessage) -> Result<(), Failure> {
        let done = match message {
            PgWireFrontendMessage::Query(query) => {
                self.skips = false;
                let done = self.simple(&query.query).await;
                self.answered(done)?;
                return self.ready().await;
            }
            PgWireFrontendMessage::Sync(_) => {
                self.skips = false;
                if self.status == TransactionStatus::Idle {
                    self.portals.clear();
                }
                return self.ready().await;
            }
            PgWireFrontendMessage::Flush(_) => return self.wire.send().await,
            _ if self.skips => return Ok(()),
            PgWireFrontendMessage::Parse(parse) => self.parse(parse).await,
            PgWireFrontendMessage::Bind(bind) => self.bind(&bind),
            PgWireFrontendMessage::Describe(describe) => self.describe(&describe),
            PgWireFrontendMessage::Execute(execute) => self.execute(&execute).await,
            PgWireFrontendMessage::Close(close) => self.close(&close),
            _ => return Err(Failure::protocol("a message that does not belong here")),
        };
        let failed = done.is_err();
        self.answered(done)?;
        self.skips = failed;
        if failed {
            self.wire.send().await?;
        }
        Ok(())
    }

    /// Tells the client of an error; only those that end the connection go on.
    fn answered(&mut self, done: Result<(), Failure>) -> Result<(), Failure> {
        match done {
            Ok(()) => Ok(()),
            Err(failure) if failure.is_fatal => Err(failure),
            Err(failure) => {
                if self.status == TransactionStatus::Transaction {
                    self.status = TransactionStatus::Error;
                }
                self.wire
                    .put(&PgWireBackendMessage::ErrorResponse(failure.info().into()))
            }
        }
    }

    async fn ready(&mut self) -> Result<(), Failure> {
        self.wire
            .put(&PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(self.status)))?;
        self.wire.send().await
    }

    /// The simple protocol: statements one after the other, until one fails.
    async fn simple(&mut self, text: &str) -> Result<(), Failure> {
        let statements = split(text)?;
        if statements.is_empty() {
            return self
                .wire
                .put(&PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new()));
        }
        for statement in statements {
            let command = Command::read(statement)?;
            self.check_transaction(command.as_ref())?;
            match command {
                Some(command) => self.command(&command, true)?,
                None => {
                    let token = self.key.begin();
                    let timeout = self.settings.statement_timeout();
                    let session = &self.session;
                    let started = stopped(&mut self.wire, &token, Box::pin(session.query(statement, timeout))).await;
                    let result = started?.map_err(|error| timed_out(error, timeout))?;
                    let columns = SqlSession::columns(&result);
                    self.row_description(&columns, &[])?;
                    let fields = columns.iter().map(|column| (column.kind, false)).collect();
                    let mut rows = Rows::new(result, fields);
                    let count = self.send_rows(&mut rows, usize::MAX, &token).await;
                    self.key.end();
                    self.complete(&format!("SELECT {}", count?))?;
                }
            }
        }
        Ok(())
    }

    /// Runs a statement of the extended protocol until its rows can be read.
    pub(super) async fn run(
        &mut self,
        prepared: &crate::query::Prepared,
        values: &[crate::query::SqlValue],
    ) -> Result<SqlResult, Failure> {
        let token = self.key.begin();
        let timeout = self.settings.statement_timeout();
        let running = Box::pin(self.session.run(prepared, values, timeout));
        let result = stopped(&mut self.wire, &token, running).await;
        self.key.end();
        result?.map_err(|error| timed_out(error, timeout))
    }

    /// Sends up to `most` rows and gives their number.
    pub(super) async fn send_portal_rows(&mut self, rows: &mut Rows, most: usize) -> Result<usize, Failure> {
        let token = self.key.begin();
        let count = self.send_rows(rows, most, &token).await;
        self.key.end();
        count
    }

    async fn send_rows(&mut self, rows: &mut Rows, most: usize, token: &Shutdown) -> Result<usize, Failure> {
        let timeout = self.settings.statement_timeout();
        let mut count = 0;
        while count < most && !rows.is_done {
            let Some((cells, next)) = &mut rows.batch else {
                let next = stopped(&mut self.wire, token, rows.result.stream.next()).await?;
                match next.transpose().map_err(|error| timed_out(error, timeout))? {
                    Some(batch) => rows.batch = Some((Cells::new(&batch)?, 0)),
                    None => rows.is_done = true,
                }
                continue;
            };
            if *next >= cells.rows() {
                rows.batch = None;
                continue;
            }
            encode::row(&mut self.wire.outgoing, cells, *next, &rows.fields)?;
            *next += 1;
            count += 1;
            // The rows are given back with the error. The connection ends: it may stand in the middle of a message.
            tokio::time::timeout_at(rows.ends_at, self.wire.send_some())
                .await
                .map_err(|_| {
                    Failure::fatal(
                        "57014",
                        "the client did not take the rows within the time limit of the query: raise sql.timeout in the server's configuration",
                    )
                })??;
            if token.is_cancelled() {
                return Err(Failure::cancelled());
            }
        }
        Ok(count)
    }

    /// In a failed transaction only its end is taken.
    pub(super) fn check_transaction(&self, command: Option<&Command>) -> Result<(), Failure> {
        let ends = matches!(
            command,
            Some(Command::Commit | Command::Rollback | Command::Nothing("ROLLBACK"))
        );
        match self.status == TransactionStatus::Error && !ends {
            true => Err(Failure::error(
                "25P02",
                "the transaction has failed: statements are ignored until it ends",
            )),
            false => Ok(()),
        }
    }

    /// Carries out a command. `describes` also tells the columns of its rows, as the simple protocol does.
    pub(super) fn command(&mut self, command: &Command, describes: bool) -> Result<(), Failure> {
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
                let rows = self.shown(name.as_deref())?;
                if describes {
                    self.row_description(&show_columns(name.as_deref()), &[])?;
                }
                for values in rows {
                    self.text_row(&values)?;
                }
            }
        }
        self.complete(tag)
    }

    fn shown(&self, name: Option<&str>) -> Result<Vec<Vec<String>>, Failure> {
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

    /// Tells the client the columns of the rows that come. `formats` are the codes that it asked for.
    pub(super) fn row_description(&mut self, columns: &[ColumnKind], formats: &[i16]) -> Result<(), Failure> {
        let described = columns.iter().enumerate().map(|(at, column)| {
            let format = match formats {
                [] => 0,
                [all] => *all,
                each => each.get(at).copied().unwrap_or(0),
            };
            let (number, size) = (types::number(column.kind), types::size(column.kind));
            FieldDescription::new(column.name.clone(), 0, 0, number, size, -1, format)
        });
        self.wire.put(&PgWireBackendMessage::RowDescription(RowDescription::new(
            described.collect(),
        )))
    }

    pub(super) fn complete(&mut self, tag: &str) -> Result<(), Failure> {
        self.wire
            .put(&PgWireBackendMessage::CommandComplete(CommandComplete::new(
                tag.to_owned(),
            )))
    }
}

/// Columns of the rows of `SHOW`.
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

/// Waits for `work` until its client goes away or asks for its end; dropped then, it stops.
async fn stopped<T>(wire: &mut Wire, token: &Shutdown, work: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::select! {
        biased;
        () = token.cancelled() => Err(Failure::cancelled()),
        done = work => Ok(done),
        () = wire.gone() => Err(Failure::fatal("08006", "the client went away while its query ran")),
    }
}

/// A time limit that the client gave itself is told as its own.
fn timed_out(error: QueryError, timeout: Option<Duration>) -> Failure {
    match (&error, timeout) {
        (QueryError::Timeout(length), Some(own)) if *length == own => {
            Failure::error("57014", "the query was stopped by statement_timeout")
        }
        _ => Failure::from(error),
    }
}
