//! `alluvium sql`: questions in SQL to a server, one or, without a statement, as many as are typed.
//!
//! One statement goes out, its rows come back as a table, JSON, CSV or an Arrow stream. Lines typed at the prompt are kept in a history file;
//! statements end with a semicolon. The server checks and runs SQL: nothing is parsed here.

use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};

use crate::cli::output;
use crate::cli::remote::ServerArgs;
use crate::cli::table;
use crate::wire::call::TENANT_HEADER;
use crate::wire::client::error_chain;

/// Route of SQL.
const ROUTE: &str = "api/v1/sql";

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
                        alluvium sql < question.sql"
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
    let client = SqlClient::new(&args.server).await?;
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

/// Asks a server in SQL.
#[derive(Debug, Clone)]
pub struct SqlClient {
    http: crate::wire::client::HttpClient,
    url: url::Url,
    tenant: Option<String>,
}

impl SqlClient {
    /// A client of a server.
    pub async fn new(server: &ServerArgs) -> anyhow::Result<Self> {
        let mut url = server.base()?;
        url.set_path(&format!("{}/{ROUTE}", url.path().trim_end_matches('/')));
        Ok(Self {
            http: server.http()?,
            url,
            tenant: server.tenant.clone(),
        })
    }

    /// The whole answer to `statement` in `format`.
    pub async fn ask(&self, statement: &str, format: Format) -> anyhow::Result<Vec<u8>> {
        let mut answer = Vec::new();
        self.answer_to(statement, format, &mut answer).await?;
        Ok(answer)
    }

    /// Writes the answer to `out` as it comes; only a table needs the whole of it first. A reader of a pipe that went away ends it without an error.
    pub async fn answer_to(&self, statement: &str, format: Format, out: &mut (dyn Write + Send)) -> anyhow::Result<()> {
        let mut response = self.send(statement, format).await?;
        let broken = |error: reqwest::Error| anyhow::anyhow!("the answer broke off: {}", error_chain(&error));
        let mut whole = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
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

    /// Sends the statement and gives the answer's start, or the server's error.
    async fn send(&self, statement: &str, format: Format) -> anyhow::Result<reqwest::Response> {
        let asked = match format {
            Format::Table | Format::Json => "json",
            Format::Csv => "csv",
            Format::Arrow => "arrow",
        };
        let mut url = self.url.clone();
        url.query_pairs_mut().append_pair("format", asked);
        // A final semicolon is how people end statements; it is no part of one.
        let statement = statement.trim().trim_end_matches(';').to_owned();
        let mut request = self
            .http
            .client()
            .post(url)
            .headers(self.http.headers().await?)
            .header("content-type", "text/plain; charset=utf-8")
            .body(statement);
        if let Some(tenant) = &self.tenant {
            request = request.header(TENANT_HEADER, tenant);
        }
        let response = request
            .send()
            .await
            .map_err(|error| anyhow::anyhow!("cannot ask {}: {}", self.url, error_chain(&error)))?;
        let status = response.status();
        if !status.is_success() {
            let body = response.bytes().await.context("the answer broke off")?;
            bail!("{}", refusal(status.as_u16(), &body));
        }
        Ok(response)
    }
}

/// The server's text for an error, or what there is instead.
fn refusal(status: u16, body: &[u8]) -> String {
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let message = json.as_ref().and_then(|json| json.get("message")?.as_str());
    match message {
        Some(message) => message.to_owned(),
        None => {
            let start = String::from_utf8_lossy(&body[..body.len().min(200)]);
            format!("the server answered {status}: {}", start.trim())
        }
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
            args.server.url
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

    #[test]
    fn the_servers_text_is_the_error() {
        assert_eq!(
            refusal(400, br#"{"code":"invalid_argument","message":"no table `x`"}"#),
            "no table `x`"
        );
        assert_eq!(refusal(502, b"bad gateway\n"), "the server answered 502: bad gateway");
    }
}
