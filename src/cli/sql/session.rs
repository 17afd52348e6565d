//! The SQL prompt: multi-line statements, completion, history, paging and a few commands.
//!
//! In: lines. Out: results on standard output, and errors of statements on standard error. Ctrl-C clears the input or
//! stops the running query.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::bail;
use clap::ValueEnum;
use rustyline::history::FileHistory;

use crate::cli::common::{output, plain};
use crate::cli::sql::complete::{TABLES, Words};
use crate::cli::sql::{Format, SqlClient};

/// Maximum number of history lines that are kept.
const HISTORY_LINES: usize = 5_000;
/// If the environment variable `LINES` is not set, results of this many lines or more go through the pager.
const USUAL_LINES: usize = 40;

const HELP: &str = "Statements end with a semicolon; Tab completes; Ctrl-C stops a query. Commands:\n  \
                    \\d                       list the tables\n  \
                    \\d TABLE                 list the columns of a table\n  \
                    \\timing [on|off]         show how long statements take\n  \
                    \\format table|json|csv   format of the results\n  \
                    \\pager on|off            show long results with $PAGER (less)\n  \
                    \\help                    show this text\n  \
                    \\q                       quit (so does Ctrl-D)\n";

/// Settings that commands of the prompt can change.
struct Settings {
    format: Format,
    times: bool,
    pages: bool,
}

/// Reads and runs statements until the end of input.
#[expect(clippy::print_stderr, reason = "errors of one statement do not end the session")]
pub(super) async fn run(client: SqlClient, format: Format) -> anyhow::Result<()> {
    if format.is_binary() {
        bail!("a binary --format needs a statement on the command line");
    }
    let mut settings = Settings {
        format,
        times: false,
        pages: std::io::stdout().is_terminal(),
    };
    let history = history_path();
    let config = rustyline::Config::builder()
        .max_history_size(HISTORY_LINES)?
        .auto_add_history(false)
        .completion_type(rustyline::CompletionType::List)
        .build();
    let mut editor: rustyline::Editor<Words, FileHistory> = rustyline::Editor::with_config(config)?;
    editor.set_helper(Some(Words));
    if let Some(path) = &history {
        // The history file does not exist at the first start.
        let _ = editor.load_history(path);
    }
    print(
        format!(
            "alluvium {} at {}; \\help for help\n",
            env!("CARGO_PKG_VERSION"),
            client.location()
        )
        .as_bytes(),
    )?;
    let mut pending = String::new();
    loop {
        let prompt = if pending.is_empty() { "sql> " } else { "...> " };
        // Reading from the terminal blocks, so it runs outside the runtime's threads.
        let (back, line) = tokio::task::spawn_blocking(move || {
            let line = editor.readline(prompt);
            (editor, line)
        })
        .await?;
        editor = back;
        let line = match line {
            Ok(line) => line,
            // Ctrl-C clears the input, as in a shell.
            Err(rustyline::error::ReadlineError::Interrupted) => {
                pending.clear();
                continue;
            }
            Err(rustyline::error::ReadlineError::Eof) => break,
            Err(error) => return Err(error.into()),
        };
        let statement = match take_line(&mut pending, &line) {
            Input::Incomplete => continue,
            Input::Quit => break,
            Input::Statement(statement) => {
                let _ = editor.add_history_entry(statement.as_str());
                statement
            }
            Input::Command(words) => match command(&words, &mut settings) {
                Ok(Outcome::Message(text)) => {
                    print(text.as_bytes())?;
                    continue;
                }
                Ok(Outcome::Statement(statement)) => statement,
                Err(error) => {
                    eprintln!("{error}");
                    continue;
                }
            },
        };
        let start = Instant::now();
        let query = client.ask(&statement, settings.format);
        let answer = tokio::select! {
            answer = query => answer,
            // Dropping the query also stops it on the server.
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("the query was cancelled")),
        };
        let duration = start.elapsed();
        match answer {
            Ok(answer) => show(answer, &settings).await?,
            Err(error) => eprintln!("error: {}", plain::lines(&format!("{error:#}"))),
        }
        if settings.times {
            eprintln!("time: {:.3} ms", duration.as_secs_f64() * 1000.0);
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

/// The meaning of an input line.
#[derive(Debug, PartialEq, Eq)]
enum Input {
    /// The statement is not complete yet, or the line is empty.
    Incomplete,
    Statement(String),
    /// A command of the prompt, split into words.
    Command(Vec<String>),
    Quit,
}

/// The result of a command.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Message(String),
    /// The command runs this statement.
    Statement(String),
}

/// Adds `line` to the statement being typed, or recognizes a command of the prompt.
fn take_line(pending: &mut String, line: &str) -> Input {
    let trimmed = line.trim();
    if pending.is_empty() {
        if trimmed.is_empty() {
            return Input::Incomplete;
        }
        if matches!(trimmed, "\\q" | "exit" | "quit") {
            return Input::Quit;
        }
        if trimmed.starts_with('\\') {
            let words = trimmed.trim_end_matches(';').split_whitespace();
            return Input::Command(words.map(str::to_owned).collect());
        }
    } else {
        pending.push('\n');
    }
    pending.push_str(line.trim_end());
    if pending.ends_with(';') {
        Input::Statement(std::mem::take(pending))
    } else {
        Input::Incomplete
    }
}

/// The reason why a command of the prompt does nothing.
#[derive(Debug, PartialEq, thiserror::Error)]
enum CommandError {
    #[error("there is no table {0}; \\d lists them")]
    NoTable(String),
    #[error("the prompt supports only the formats table, json and csv")]
    Format,
    /// The value of a switch is neither `on` nor `off`.
    #[error("the value must be on or off")]
    Switch,
    #[error("unknown command {0}, try \\help")]
    Unknown(String),
}

fn command(words: &[String], settings: &mut Settings) -> Result<Outcome, CommandError> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let message = |text: &str| Ok(Outcome::Message(text.to_owned()));
    let on_off = |name: &str, value: bool| {
        Ok(Outcome::Message(format!(
            "{name} is {}\n",
            if value { "on" } else { "off" }
        )))
    };
    match words.as_slice() {
        ["\\help" | "\\h" | "\\?"] => message(HELP),
        ["\\d" | "\\dt"] => {
            let lines = TABLES
                .iter()
                .map(|(table, columns)| format!("{table:<9} {}\n", columns.join(", ")));
            Ok(Outcome::Message(lines.collect()))
        }
        ["\\d", table] => match TABLES.iter().find(|row| row.0.eq_ignore_ascii_case(table)) {
            Some((table, _)) => Ok(Outcome::Statement(format!("DESCRIBE {table}"))),
            None => Err(CommandError::NoTable((*table).to_owned())),
        },
        ["\\timing", rest @ ..] => {
            switch(&mut settings.times, rest)?;
            on_off("timing", settings.times)
        }
        ["\\pager", rest @ ..] => {
            switch(&mut settings.pages, rest)?;
            on_off("pager", settings.pages)
        }
        ["\\format", name] => match Format::from_str(name, true) {
            Ok(format) if !format.is_binary() => {
                settings.format = format;
                message("")
            }
            _ => Err(CommandError::Format),
        },
        [name, ..] => Err(CommandError::Unknown((*name).to_owned())),
        [] => message(""),
    }
}

/// Changes a setting by the word after its name, `on` or `off`. Without a word, toggles the setting.
fn switch(setting: &mut bool, words: &[&str]) -> Result<(), CommandError> {
    *setting = match words {
        [] => !*setting,
        ["on"] => true,
        ["off"] => false,
        _ => return Err(CommandError::Switch),
    };
    Ok(())
}

/// Prints a result. A long result goes through the pager.
async fn show(answer: Vec<u8>, settings: &Settings) -> anyhow::Result<()> {
    let lines = memchr::memchr_iter(b'\n', &answer).count();
    let height = std::env::var("LINES").ok().and_then(|text| text.parse().ok());
    if !settings.pages || lines < height.unwrap_or(USUAL_LINES) {
        return print(&answer);
    }
    let (answer, is_shown) = tokio::task::spawn_blocking(move || {
        let is_shown = page(&answer);
        (answer, is_shown)
    })
    .await?;
    if is_shown { Ok(()) } else { print(&answer) }
}

/// Shows the result in the pager. Returns false if the pager could not be started.
fn page(answer: &[u8]) -> bool {
    let pager = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    // Options of `less`: do not wrap lines, and print directly if the text fits on the screen.
    let pager = pager.unwrap_or_else(|| "less -S -F -X".to_owned());
    let child = Command::new("sh").args(["-c", &pager]).stdin(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return false };
    if let Some(mut input) = child.stdin.take() {
        let answer = plain::lines(&String::from_utf8_lossy(answer));
        // The write fails if the user quits the pager early.
        let _ = input.write_all(answer.as_bytes());
    }
    // Exit code 127 means that the shell did not find the pager.
    child.wait().is_ok_and(|status| status.code() != Some(127))
}

/// Returns `$XDG_STATE_HOME/alluvium/sql_history`, by default under `~/.local/state`. Returns `None` if neither
/// `XDG_STATE_HOME` nor `HOME` is set.
fn history_path() -> Option<PathBuf> {
    let folder = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let state_folder = folder("XDG_STATE_HOME").or_else(|| Some(folder("HOME")?.join(".local/state")))?;
    Some(state_folder.join("alluvium/sql_history"))
}

/// Prints a result. On a terminal, adds a final line end if it is missing.
pub(super) fn print(bytes: &[u8]) -> anyhow::Result<()> {
    output::write_text(bytes)?;
    // The prompt must start on a line of its own.
    if !bytes.is_empty() && std::io::stdout().is_terminal() && !bytes.ends_with(b"\n") {
        output::write(b"\n")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_ends_with_a_semicolon_and_commands_with_the_line() {
        let mut pending = String::new();
        let words = |text: &str| Input::Command(text.split(' ').map(str::to_owned).collect());
        assert_eq!(take_line(&mut pending, ""), Input::Incomplete);
        assert_eq!(take_line(&mut pending, "SELECT 1"), Input::Incomplete);
        assert_eq!(
            take_line(&mut pending, "  AS one; "),
            Input::Statement("SELECT 1\n  AS one;".to_owned())
        );
        assert_eq!(take_line(&mut pending, "\\format csv"), words("\\format csv"));
        assert_eq!(take_line(&mut pending, "\\d samples;"), words("\\d samples"));
        assert_eq!(take_line(&mut pending, " \\q"), Input::Quit);
        assert_eq!(take_line(&mut pending, "exit"), Input::Quit);
        assert!(pending.is_empty());
    }

    #[test]
    fn commands_change_settings_or_ask() {
        let mut settings = Settings {
            format: Format::Table,
            times: false,
            pages: true,
        };
        let mut run = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            let outcome = command(&words, &mut settings);
            (outcome, settings.times, settings.format)
        };
        assert!(run("\\timing").1);
        assert!(!run("\\timing off").1);
        assert_eq!(run("\\format csv").2, Format::Csv);
        assert!(run("\\format parquet").0.is_err());
        assert_eq!(
            run("\\d Samples").0,
            Ok(Outcome::Statement("DESCRIBE samples".to_owned()))
        );
        assert!(
            matches!(run("\\d").0, Ok(Outcome::Message(text)) if text.contains("stacks    tenant, day, stack, frames"))
        );
        assert!(run("\\d passwords").0.is_err());
        assert!(run("\\x").0.is_err());
    }
}
