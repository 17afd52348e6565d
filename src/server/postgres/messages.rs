//! The message loop of a connection. It reads and handles messages until the client disconnects or is idle for too
//! long, or until the server stops.
//!
//! In: messages. Out: responses and errors. `extended` implements the extended protocol, and `connection` contains the
//! code for both protocols.

use pgwire::messages::response::{EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};
use tokio::time::Instant;

use crate::query::SqlSession;
use crate::server::postgres::command::{Command, split};
use crate::server::postgres::connection::{Connection, Protocol};
use crate::server::postgres::encode::{Field, Format};
use crate::server::postgres::failure::Failure;
use crate::server::postgres::portal::{Portal, Rows};
use alluvium_base::Shutdown;

impl Connection {
    /// Serves the connection until it ends.
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
                    () = shutdown.cancelled() => return Err(Failure::fatal("57P01", "the server is shutting down")),
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
            // Large responses are sent now, because a client that never sends `Sync` must not make them accumulate.
            self.wire.send_some().await?;
        }
    }

    /// Returns the rows of portals that the client has not read to their end.
    fn open_rows(&mut self) -> impl Iterator<Item = &mut Rows> {
        let rows = self.portals.values_mut().filter_map(Portal::rows);
        rows.filter(|rows| rows.is_open())
    }

    async fn message(&mut self, message: PgWireFrontendMessage) -> Result<(), Failure> {
        let result = match message {
            PgWireFrontendMessage::Query(query) => {
                self.skips = false;
                let result = self.simple(&query.query).await;
                self.report_error(result)?;
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
            _ => return Err(Failure::protocol("the message is not allowed at this point")),
        };
        let failed = result.is_err();
        self.report_error(result)?;
        self.skips = failed;
        if failed {
            self.wire.send().await?;
        }
        Ok(())
    }

    /// Sends the error of a failed message to the client. A fatal error is returned instead.
    fn report_error(&mut self, result: Result<(), Failure>) -> Result<(), Failure> {
        match result {
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

    /// Handles a message of the simple protocol: runs the statements in order until one fails.
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
            if let Some(command) = command {
                self.command(&command, Protocol::Simple)?;
            } else {
                let result = self.query(statement).await?;
                let columns = SqlSession::columns(&result);
                self.row_description(&columns, &[])?;
                let fields = columns
                    .iter()
                    .map(|column| Field {
                        kind: column.kind,
                        format: Format::Text,
                    })
                    .collect();
                let count = self.send_rows(&mut Rows::new(result, fields), usize::MAX).await?;
                self.send_complete(&format!("SELECT {count}"))?;
            }
        }
        Ok(())
    }
}
