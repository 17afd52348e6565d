//! `alluvium token`: creates, lists and revokes the tokens of a server, and prints lines for its users file.
//!
//! The command writes the tokens file, which the server reads. A running server applies a change within two seconds.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::app::auth::rights_and_tenants;
use crate::app::serve_options::DEFAULT_DATA;
use crate::cli::common::{output, table};
use crate::server::access::{AccessOptions, passwords, tokens};

/// Maximum length of a password, in bytes.
const MAX_PASSWORD_BYTES: u64 = 4096;

/// Arguments of `alluvium token`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  alluvium token new collector --role write\n  alluvium token list\n  alluvium token \
                        revoke collector"
)]
pub struct TokenArgs {
    #[command(subcommand)]
    pub command: TokenCommand,
}

/// The commands of `alluvium token`.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Create a token and print it, once.
    New(NewArgs),
    /// List the tokens: names, roles, tenants, times.
    List(FileArgs),
    /// Revoke a token, and end the sessions that were started with it.
    Revoke(RevokeArgs),
    /// Print a line for the users file of `serve --auth`; the password is read from standard input.
    Password(PasswordArgs),
}

/// Flags that locate the tokens file.
#[derive(Debug, Clone, Args)]
pub struct FileArgs {
    /// Data folder of the server.
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DATA, env = "ALLUVIUM_DATA")]
    pub data: PathBuf,
    /// Tokens file. Defaults to tokens.json in the data folder.
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
}

/// Flags for the rights of a token or a user.
#[derive(Debug, Clone, Args)]
pub struct RoleArgs {
    /// Role: read, write or admin; may be repeated.
    #[arg(long = "role", value_name = "ROLE", default_value = "read")]
    pub roles: Vec<String>,
    /// Tenant that may be accessed, `*` for all; may be repeated. A single-tenant server needs none.
    #[arg(long = "tenant", value_name = "ID")]
    pub tenants: Vec<String>,
}

/// Arguments of `alluvium token new`.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Name of the token in lists and logs.
    pub name: String,
    #[command(flatten)]
    pub role: RoleArgs,
    #[command(flatten)]
    pub file: FileArgs,
}

/// Arguments of `alluvium token revoke`.
#[derive(Debug, Args)]
pub struct RevokeArgs {
    /// Name of the token, as `list` shows it.
    pub name: String,
    #[command(flatten)]
    pub file: FileArgs,
}

/// Arguments of `alluvium token password`.
#[derive(Debug, Args)]
pub struct PasswordArgs {
    /// Name with which the user logs in.
    pub name: String,
    #[command(flatten)]
    pub role: RoleArgs,
}

impl FileArgs {
    fn path(&self) -> PathBuf {
        let beside = || self.data.join(AccessOptions::TOKENS);
        self.tokens.clone().unwrap_or_else(beside)
    }
}

/// Runs one of the commands.
#[expect(clippy::print_stderr, reason = "standard output is the token")]
pub(crate) fn run(args: TokenArgs) -> anyhow::Result<()> {
    match args.command {
        TokenCommand::New(args) => {
            let (rights, tenants) = rights_and_tenants(&args.role.roles, &args.role.tenants)?;
            let path = args.file.path();
            if args.file.tokens.is_none() {
                std::fs::create_dir_all(&args.file.data)
                    .with_context(|| format!("cannot create the folder {}", args.file.data.display()))?;
            }
            let token = tokens::add(&path, &args.name, &rights, &tenants)?;
            output::write(format!("{token}\n").as_bytes())?;
            eprintln!(
                "this token is not shown again: {} contains only its hash",
                path.display()
            );
        }
        TokenCommand::List(args) => {
            let rows = tokens::list(&args.path())?.into_iter().map(|entry| {
                json!({
                    "name": entry.name, "roles": entry.roles.join(","), "tenants": entry.tenants.join(","),
                    "created": entry.created,
                })
            });
            let rows = serde_json::to_vec(&rows.collect::<Vec<_>>())?;
            output::write(table::from_json(&rows)?.as_bytes())?;
        }
        TokenCommand::Revoke(args) => {
            tokens::revoke(&args.file.path(), &args.name)?;
            output::write(format!("revoked {}\n", args.name).as_bytes())?;
        }
        TokenCommand::Password(args) => {
            let (rights, tenants) = rights_and_tenants(&args.role.roles, &args.role.tenants)?;
            let line = passwords::line(&args.name, &password()?, &rights, &tenants)?;
            output::write(format!("{line}\n").as_bytes())?;
        }
    }
    Ok(())
}

/// Reads the password from standard input, without its line end.
#[expect(clippy::print_stderr, reason = "asks the person at the terminal")]
fn password() -> anyhow::Result<String> {
    let input = std::io::stdin();
    if input.is_terminal() {
        eprintln!("type the password and press Ctrl-D; the terminal shows what you type");
    }
    let mut text = String::new();
    input
        .take(MAX_PASSWORD_BYTES)
        .read_to_string(&mut text)
        .context("cannot read the password from standard input")?;
    let password = text.trim_end_matches(['\r', '\n']);
    if password.contains('\n') {
        bail!("the password must be a single line");
    }
    Ok(password.to_owned())
}
