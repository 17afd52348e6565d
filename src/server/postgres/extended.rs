//! The extended protocol: statements that are parsed once and bound to parameters. Their rows may be read in parts.
//!
//! In: `Parse`, `Bind`, `Describe`, `Execute`, `Close`. Out: PostgreSQL's response to each. The engine plans a
//! statement on `Parse`, to determine its types, and again at each run, over the current tables. The memory of
//! statements and portals is charged to the port's budget. If the budget is exhausted, the client receives an error.

use std::sync::Arc;

use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Close, CloseComplete, Describe, Execute, Parse, ParseComplete, PortalSuspended,
};
use pgwire::messages::response::EmptyQueryResponse;

use crate::query::output::cells::{Kind, Simple};
use crate::query::{Prepared, SqlValue};
use crate::server::postgres::command::{Command, split};
use crate::server::postgres::connection::{Connection, Protocol, show_columns};
use crate::server::postgres::encode::{self, Field, Format};
use crate::server::postgres::failure::Failure;
use crate::server::postgres::memory::ENTRY_BYTES;
use crate::server::postgres::portal::{Portal, PreparedStatement, Rows, Statement};
use crate::server::postgres::types;

/// Maximum number of prepared statements of a connection, and maximum number of its portals.
const MAX_NAMED: usize = 1000;
/// Maximum number of parameter types in a message. A statement cannot have more parameters.
const MAX_PARAMETERS: usize = 1000;
/// Maximum length of the name of a statement or portal in bytes.
const MAX_NAME: usize = 1 << 10;
const STATEMENT: u8 = b'S';
const PORTAL: u8 = b'P';

impl Connection {
    pub(super) async fn parse(&mut self, parse: Parse) -> Result<(), Failure> {
        let name = parse.name.unwrap_or_default();
        check_name(&name)?;
        if name.is_empty() {
            // As in PostgreSQL, a new unnamed statement replaces the previous one.
            self.statements.remove(&name);
        }
        if self.statements.contains_key(&name) {
            return Err(Failure::error(
                "42P05",
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        if self.statements.len() >= MAX_NAMED {
            return Err(Failure::error(
                "54000",
                format!("a connection may have at most {MAX_NAMED} prepared statements"),
            ));
        }
        if parse.type_oids.len() > MAX_PARAMETERS {
            return Err(Failure::error(
                "54000",
                format!("a statement may have at most {MAX_PARAMETERS} parameters"),
            ));
        }
        let texts = split(&parse.query)?;
        let (statement, bytes) = match texts.as_slice() {
            [] => (Statement::Empty, 0),
            [text] => {
                if let Some(command) = Command::read(text)? {
                    (Statement::Command(command), text.len())
                } else {
                    let parameter_kinds: Vec<Option<Kind>> =
                        parse.type_oids.iter().map(|number| types::kind(*number)).collect();
                    self.check_transaction(None)?;
                    let prepared = Box::pin(self.session.prepare(text, &parameter_kinds)).await?;
                    let bytes = prepared.bytes();
                    (Statement::Query(Arc::new(prepared)), bytes)
                }
            }
            _ => {
                return Err(Failure::error(
                    "42601",
                    "a prepared statement must be one statement, not several",
                ));
            }
        };
        let bytes = ENTRY_BYTES + name.len() + bytes;
        let held = self.port.memory.take("the prepared statement", bytes)?;
        self.statements.insert(name, PreparedStatement::new(statement, held));
        self.wire
            .put(&PgWireBackendMessage::ParseComplete(ParseComplete::new()))
    }

    pub(super) fn bind(&mut self, bind: &Bind) -> Result<(), Failure> {
        let name = bind.statement_name.as_deref().unwrap_or_default();
        let prepared_statement = self.statement(name)?.clone();
        let portal = bind.portal_name.clone().unwrap_or_default();
        check_name(&portal)?;
        if portal.is_empty() {
            self.portals.remove(&portal);
        }
        if self.portals.contains_key(&portal) {
            return Err(Failure::error("42P03", format!("portal \"{portal}\" already exists")));
        }
        if self.portals.len() >= MAX_NAMED {
            return Err(Failure::error(
                "54000",
                format!("a connection may have at most {MAX_NAMED} portals"),
            ));
        }
        let kinds = parameters(&prepared_statement);
        if bind.parameters.len() != kinds.len() {
            return Err(Failure::error(
                "08P01",
                format!(
                    "the statement has {} parameters, but {} are bound",
                    kinds.len(),
                    bind.parameters.len()
                ),
            ));
        }
        let mut values = Vec::with_capacity(kinds.len());
        for (index, (bytes, kind)) in bind.parameters.iter().zip(kinds).enumerate() {
            let format = format_of(&bind.parameter_format_codes, index, kinds.len())?;
            values.push(encode::parameter(bytes.as_deref(), *kind, format)?);
        }
        let columns = prepared_statement
            .prepared()
            .map_or(0, |prepared| prepared.columns.len());
        let bytes = ENTRY_BYTES
            + portal.len()
            + values.iter().map(SqlValue::bytes).sum::<usize>()
            + size_of_val(&*bind.result_column_format_codes)
            + columns * size_of::<Field>();
        let held = self.port.memory.take("the portal", bytes)?;
        let made = Portal::new(
            prepared_statement,
            values,
            bind.result_column_format_codes.clone(),
            held,
        );
        self.portals.insert(portal, made);
        self.wire.put(&PgWireBackendMessage::BindComplete(BindComplete::new()))
    }

    pub(super) fn describe(&mut self, describe: &Describe) -> Result<(), Failure> {
        let name = describe.name.as_deref().unwrap_or_default();
        let (prepared_statement, formats) = match describe.target_type {
            STATEMENT => (self.statement(name)?.clone(), Vec::new()),
            PORTAL => match self.portals.get(name) {
                Some(portal) => (portal.prepared_statement.clone(), portal.formats.clone()),
                None => return Err(no_portal(name)),
            },
            _ => return Err(Failure::protocol("only a statement or a portal can be described")),
        };
        if describe.target_type == STATEMENT {
            let text = Kind {
                simple: Simple::Text,
                is_list: false,
            };
            let numbers = parameters(&prepared_statement)
                .iter()
                .map(|kind| types::number(kind.unwrap_or(text)));
            self.wire
                .put(&PgWireBackendMessage::ParameterDescription(ParameterDescription::new(
                    numbers.collect(),
                )))?;
        }
        match &prepared_statement.statement {
            Statement::Query(prepared) => self.row_description(&prepared.columns, &formats),
            Statement::Command(Command::Show(name)) => self.row_description(&show_columns(name.as_deref()), &[]),
            Statement::Command(_) | Statement::Empty => self.wire.put(&PgWireBackendMessage::NoData(NoData::new())),
        }
    }

    pub(super) async fn execute(&mut self, execute: &Execute) -> Result<(), Failure> {
        let name = execute.name.clone().unwrap_or_default();
        // The portal is removed while it runs, so that it does not exist after a failure.
        let Some(mut portal) = self.portals.remove(&name) else {
            return Err(no_portal(&name));
        };
        let prepared_statement = portal.prepared_statement.clone();
        let prepared: &Arc<Prepared> = match &prepared_statement.statement {
            Statement::Empty => {
                self.wire
                    .put(&PgWireBackendMessage::EmptyQueryResponse(EmptyQueryResponse::new()))?;
                self.portals.insert(name, portal);
                return Ok(());
            }
            Statement::Command(command) => {
                self.check_transaction(Some(command))?;
                return self.command(command, Protocol::Extended);
            }
            Statement::Query(prepared) => prepared,
        };
        self.check_transaction(None)?;
        let max = usize::try_from(execute.max_rows).unwrap_or(0);
        let max = if max == 0 { usize::MAX } else { max };
        let mut rows = match portal.rows.take() {
            Some(rows) => rows,
            None if portal.is_done => {
                self.portals.insert(name, portal);
                return self.send_complete("SELECT 0");
            }
            None => {
                let mut fields = Vec::with_capacity(prepared.columns.len());
                for (index, column) in prepared.columns.iter().enumerate() {
                    fields.push(Field {
                        kind: column.kind,
                        format: format_of(&portal.formats, index, prepared.columns.len())?,
                    });
                }
                let result = self.run(prepared, &portal.values).await?;
                let current_columns = crate::query::SqlSession::columns(&result);
                if current_columns.len() != fields.len()
                    || current_columns
                        .iter()
                        .zip(&fields)
                        .any(|(column, field)| column.kind != field.kind)
                {
                    return Err(Failure::error(
                        "0A000",
                        "the columns have changed since the statement was prepared: prepare it again",
                    ));
                }
                Rows::new(result, fields)
            }
        };
        let count = self.send_rows(&mut rows, max).await?;
        if count == max {
            portal.rows = Some(rows);
            self.portals.insert(name, portal);
            return self
                .wire
                .put(&PgWireBackendMessage::PortalSuspended(PortalSuspended::new()));
        }
        portal.is_done = true;
        self.portals.insert(name, portal);
        self.send_complete(&format!("SELECT {count}"))
    }

    pub(super) fn close(&mut self, close: &Close) -> Result<(), Failure> {
        let name = close.name.as_deref().unwrap_or_default();
        match close.target_type {
            STATEMENT => {
                self.statements.remove(name);
            }
            PORTAL => {
                self.portals.remove(name);
            }
            _ => return Err(Failure::protocol("only a statement or a portal can be closed")),
        }
        self.wire
            .put(&PgWireBackendMessage::CloseComplete(CloseComplete::new()))
    }

    fn statement(&self, name: &str) -> Result<&Arc<PreparedStatement>, Failure> {
        self.statements
            .get(name)
            .ok_or_else(|| Failure::error("26000", format!("there is no prepared statement \"{name}\"")))
    }
}

/// Returns the kinds of the parameters of a statement.
fn parameters(prepared_statement: &PreparedStatement) -> &[Option<Kind>] {
    prepared_statement
        .prepared()
        .map_or(&[], |prepared| &prepared.parameters)
}

/// Refuses the name of a statement or portal if it is too long.
fn check_name(name: &str) -> Result<(), Failure> {
    if name.len() > MAX_NAME {
        return Err(Failure::error(
            "42622",
            format!(
                "the name of a statement or portal has {} bytes, but the limit is {MAX_NAME}",
                name.len()
            ),
        ));
    }
    Ok(())
}

fn no_portal(name: &str) -> Failure {
    Failure::error("34000", format!("there is no portal \"{name}\""))
}

/// Returns the format of the value at the position `index`. An empty list of codes means text. A single code applies
/// to all values.
fn format_of(codes: &[i16], index: usize, count: usize) -> Result<Format, Failure> {
    let code = match codes {
        [] => 0,
        [all] => *all,
        codes if codes.len() == count => codes.get(index).copied().unwrap_or(0),
        codes => {
            return Err(Failure::error(
                "08P01",
                format!("the message has {} formats for {count} values", codes.len()),
            ));
        }
    };
    match code {
        0 => Ok(Format::Text),
        1 => Ok(Format::Binary),
        _ => Err(Failure::error("08P01", format!("there is no format {code}"))),
    }
}
