//! `alluvium sql`: questions in SQL to a server or to a data folder, one or, without a statement, as many as are typed.
//!
//! One statement goes out, its rows come back as a table, JSON, CSV or an Arrow stream. Lines typed at the prompt are kept in a history file;
//! statements end with a semicolon. The server checks and runs SQL: nothing is parsed here.

use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::{Args, ValueEnum};
use futures::stream::{BoxStream, StreamExt, TryStreamExt};

use crate::cli::output;
use crate::cli::remote::{ServerArgs, call_error};
use crate::cli::table;
use crate::wire::call::CallError;
use crate::wire::client::error_chain;
use crate::wire::sql::SqlFormat;

/// Lines of history that are kept.
const HISTORY_LINES: usize = 5_000;

const HELP: &str = "Statements end with a semicolon. Other than SQL:\n  \
                    \\format table|json|csv   form of the answers\n  \
                    \\help                    this text\n  \
                    \\q                       leave (so does Ctrl-D)\n";

/// Arguments of `alluvium sql`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  alluvium sql \"SELECT profile_type, count(*) AS n FROM profiles GROUP BY 1\"\n  \
                        alluvium sql --format csv \"SELECT * FROM series\" > series.csv\n  \
                        alluvium sql                 # interactively\n  \
                        alluvium sql < question.sql\n  \
                        alluvium sql --data ./alluvium-data \"SELECT count(*) FROM profiles\"   # without a server"
)]
pub struct SqlArgs {
    /// Statement to run; without one it is read from standard input, interactively on a terminal.
    #[arg(value_name = "STATEMENT")]
    pub statement: Option<String>,
    /// Form of the answer.
    // An id of its own: the global `--log.format` has the id `format`.
    #[arg(
        id = "answer_format",
        long = "format",
        value_enum,
        default_value = "table",
        value_name = "FORMAT"
    )]
    pub format: Format,
    /// File to write the answer to instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Data folder to read directly, as it is at this moment, instead of asking a server; the folder's own server may be running.
    #[cfg(feature = "server")]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Which server.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Forms of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns for people.
    Table,
    /// What the server gives as JSON.
    Json,
    /// Comma-separated values with a header.
    Csv,
    /// An Arrow IPC stream.
    Arrow,
}

/// Runs one statement, or a session.
pub async fn run(args: SqlArgs) -> anyhow::Result<()> {
    #[cfg(feature = "server")]
    let client = match &args.data {
        Some(folder) => SqlClient::Data(DataFolder::open(folder, args.server.tenant.as_deref())?),
        None => SqlClient::Server(SqlServer::new(&args.server).await?),
    };
    #[cfg(not(feature = "server"))]
    let client = SqlClient::Server(SqlServer::new(&args.server).await?);
    let statement = match &args.statement {
        Some(statement) => statement.clone(),
        None if std::io::stdin().is_terminal() => return session(client, args).await,
        None => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("cannot read standard input")?;
            text
        }
    };
    if statement.trim().is_empty() {
        bail!("there is no statement to run");
    }
    if args.format == Format::Arrow && args.output.is_none() && std::io::stdout().is_terminal() {
        bail!("an Arrow stream is not for a terminal: add --output FILE or redirect");
    }
    match (&args.output, args.format) {
        (Some(path), _) => {
            let in_path = || format!("cannot write {}", path.display());
            let mut file = std::fs::File::create(path).with_context(in_path)?;
            let written = client.answer_to(&statement, args.format, &mut file).await;
            if written.is_err() {
                // Nobody shall take a part of an answer for the whole.
                let _ = std::fs::remove_file(path);
            }
            written
        }
        (None, Format::Table) => print(&client.ask(&statement, Format::Table).await?),
        (None, format) => client.answer_to(&statement, format, &mut std::io::stdout()).await,
    }
}

/// Chunks of an answer.
type Chunks = BoxStream<'static, anyhow::Result<Bytes>>;

/// Who answers SQL.
#[derive(Clone)]
pub enum SqlClient {
    /// A server.
    Server(SqlServer),
    /// A data folder, read by this process.
    #[cfg(feature = "server")]
    Data(DataFolder),
}

impl SqlClient {
    /// Where the answers come from, for people.
    fn place(&self) -> String {
        match self {
            Self::Server(server) => server.url.clone(),
            #[cfg(feature = "server")]
            Self::Data(folder) => folder.path.display().to_string(),
        }
    }

    /// Sends the statement and gives the chunks of the answer, or the refusal.
    async fn send(&self, statement: &str, format: Format) -> anyhow::Result<Chunks> {
        // A final semicolon is how people end statements; it is no part of one.
        let statement = statement.trim().trim_end_matches(';');
        match self {
            Self::Server(server) => server.send(statement, format).await,
            #[cfg(feature = "server")]
            Self::Data(folder) => folder.send(statement, format).await,
        }
    }

    /// The whole answer to `statement` in `format`.
    pub async fn ask(&self, statement: &str, format: Format) -> anyhow::Result<Vec<u8>> {
        let mut answer = Vec::new();
        self.answer_to(statement, format, &mut answer).await?;
        Ok(answer)
    }

    /// Writes the answer to `out` as it comes; only a table needs the whole of it first. A reader of a pipe that went away ends it without an error.
    pub async fn answer_to(&self, statement: &str, format: Format, out: &mut (dyn Write + Send)) -> anyhow::Result<()> {
        let mut chunks = self.send(statement, format).await?;
        let mut whole = Vec::new();
        while let Some(chunk) = chunks.try_next().await? {
            if format == Format::Table {
                whole.extend_from_slice(&chunk);
                continue;
            }
            match out.write_all(&chunk) {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                result => result.context("cannot write the answer")?,
            }
        }
        if format == Format::Table {
            out.write_all(table::from_json(&whole)?.as_bytes())?;
        }
        out.flush().context("cannot write the answer")
    }
}

/// A server that is asked over HTTP.
#[derive(Debug, Clone)]
pub struct SqlServer {
    client: crate::wire::sql::SqlClient,
    url: String,
}

impl SqlServer {
    /// A client of a server.
    pub async fn new(server: &ServerArgs) -> anyhow::Result<Self> {
        Ok(Self {
            client: crate::wire::sql::SqlClient::new(server.caller().await?),
            url: server.url.clone(),
        })
    }

    async fn send(&self, statement: &str, format: Format) -> anyhow::Result<Chunks> {
        let asked = match format {
            Format::Table | Format::Json => SqlFormat::Json,
            Format::Csv => SqlFormat::Csv,
            Format::Arrow => SqlFormat::Arrow,
        };
        let response = self.client.query(statement, asked).await.map_err(|error| match error {
            // What is wrong with the statement, without the wrapping of the call.
            CallError::Refused { message, .. } => anyhow::anyhow!(message),
            other => call_error(other),
        })?;
        let broken = |error: reqwest::Error| anyhow::anyhow!("the answer broke off: {}", error_chain(&error));
        Ok(response.bytes_stream().map_err(broken).boxed())
    }
}

/// A data folder as it was when it was opened: tables and log are read, nothing is locked or changed.
#[cfg(feature = "server")]
#[derive(Clone)]
pub struct DataFolder {
    engine: crate::query::QueryEngine,
    path: PathBuf,
    tenant: String,
}

#[cfg(feature = "server")]
impl DataFolder {
    /// Opens the folder at `path` for the questions of one tenant, by default that of a server without tenants.
    pub fn open(path: &std::path::Path, tenant: Option<&str>) -> anyhow::Result<Self> {
        let store = crate::store::Store::open_read_only(path)?;
        let engine = crate::query::QueryEngine::new(std::sync::Arc::new(store), crate::query::QueryLimits::default())?;
        let tenant = tenant.unwrap_or(crate::server::DEFAULT_TENANT).to_owned();
        Ok(Self {
            engine,
            path: path.to_owned(),
            tenant,
        })
    }

    async fn send(&self, statement: &str, format: Format) -> anyhow::Result<Chunks> {
        let result = self.engine.sql(&self.tenant, statement).await?;
        let asked = match format {
            Format::Table | Format::Json => crate::query::format::Format::Json,
            Format::Csv => crate::query::format::Format::Csv,
            Format::Arrow => crate::query::format::Format::Arrow,
        };
        let chunks = crate::query::format::encode(result, asked);
        Ok(chunks.map_err(anyhow::Error::from).boxed())
    }
}

/// Statements from a prompt until the end of input.
#[expect(clippy::print_stderr, reason = "errors of one statement do not end the session")]
async fn session(client: SqlClient, args: SqlArgs) -> anyhow::Result<()> {
    let mut format = match args.format {
        Format::Arrow => bail!("--format arrow needs a statement"),
        other => other,
    };
    let history = history_path();
    let config = rustyline::Config::builder()
        .max_history_size(HISTORY_LINES)?
        .auto_add_history(false)
        .build();
    let mut editor = rustyline::DefaultEditor::with_config(config)?;
    if let Some(path) = &history {
        // The first time there is none.
        let _ = editor.load_history(path);
    }
    print(
        format!(
            "alluvium {} at {}; \\help for help\n",
            env!("CARGO_PKG_VERSION"),
            client.place()
        )
        .as_bytes(),
    )?;
    let mut pending = String::new();
    loop {
        let prompt = if pending.is_empty() { "sql> " } else { "...> " };
        // The terminal blocks; the runtime must not.
        let (back, line) = tokio::task::spawn_blocking(move || {
            let line = editor.readline(prompt);
            (editor, line)
        })
        .await?;
        editor = back;
        let line = match line {
            Ok(line) => line,
            // Ctrl-C forgets what was typed, as in every shell.
            Err(rustyline::error::ReadlineError::Interrupted) => {
                pending.clear();
                continue;
            }
            Err(rustyline::error::ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        };
        match take_line(&mut pending, &line) {
            Input::More => {}
            Input::Quit => break,
            Input::Help => print(HELP.as_bytes())?,
            Input::Format(name) => match Format::from_str(name.as_str(), true) {
                Ok(Format::Arrow) | Err(_) => eprintln!("the formats of a session are table, json and csv"),
                Ok(other) => format = other,
            },
            Input::Unknown(command) => eprintln!("unknown command {command}, try \\help"),
            Input::Statement(statement) => {
                let _ = editor.add_history_entry(statement.as_str());
                match client.ask(&statement, format).await {
                    Ok(answer) => print(&answer)?,
                    Err(error) => eprintln!("error: {error:#}"),
                }
            }
        }
    }
    if let Some(path) = &history {
        let folder_is_there = path
            .parent()
            .is_none_or(|folder| std::fs::create_dir_all(folder).is_ok());
        if folder_is_there && let Err(error) = editor.save_history(path) {
            eprintln!("cannot save the history in {}: {error}", path.display());
        }
    }
    Ok(())
}

/// What a typed line means.
#[derive(Debug, PartialEq, Eq)]
enum Input {
    /// The statement goes on in the next line.
    More,
    Statement(String),
    Format(String),
    Help,
    Quit,
    Unknown(String),
}

/// Adds `line` to the statement being typed.
fn take_line(pending: &mut String, line: &str) -> Input {
    let trimmed = line.trim();
    if pending.is_empty() {
        if trimmed.is_empty() {
            return Input::More;
        }
        if trimmed.starts_with('\\') || matches!(trimmed, "exit" | "quit") {
            let mut words = trimmed.split_whitespace();
            return match words.next().unwrap_or_default() {
                "\\q" | "exit" | "quit" => Input::Quit,
                "\\help" | "\\h" | "\\?" => Input::Help,
                "\\format" => Input::Format(words.next().unwrap_or_default().to_owned()),
                other => Input::Unknown(other.to_owned()),
            };
        }
    } else {
        pending.push('\n');
    }
    pending.push_str(line.trim_end());
    match pending.ends_with(';') {
        true => Input::Statement(std::mem::take(pending)),
        false => Input::More,
    }
}

/// `$XDG_STATE_HOME/alluvium/sql_history`, by default under `~/.local/state`; none without a home.
fn history_path() -> Option<PathBuf> {
    let folder = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let state = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state.join("alluvium/sql_history"))
}

fn print(bytes: &[u8]) -> anyhow::Result<()> {
    output::write(bytes)?;
    // A prompt must not follow in the same line.
    match std::io::stdout().is_terminal() && !bytes.ends_with(b"\n") {
        true => output::write(b"\n"),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_ends_with_a_semicolon_and_commands_with_the_line() {
        let mut pending = String::new();
        assert_eq!(take_line(&mut pending, ""), Input::More);
        assert_eq!(take_line(&mut pending, "SELECT 1"), Input::More);
        assert_eq!(
            take_line(&mut pending, "  AS one; "),
            Input::Statement("SELECT 1\n  AS one;".to_owned())
        );
        assert_eq!(take_line(&mut pending, "\\format csv"), Input::Format("csv".to_owned()));
        assert_eq!(take_line(&mut pending, "\\x"), Input::Unknown("\\x".to_owned()));
        assert_eq!(take_line(&mut pending, " \\q"), Input::Quit);
        assert_eq!(take_line(&mut pending, "exit"), Input::Quit);
        assert!(pending.is_empty());
    }
}
