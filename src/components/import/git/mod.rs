//! `import.git`: modules from a git repository, pulled again and again.
//!
//! In: a repository, a revision and a path in it. Out: the file's text, or those of the folder's `*.alloy` and `*.river` files. The work is done by the `git` program.

use std::path::{Component as Part, Path};
use std::sync::Arc;
use std::time::Duration;

use crate::components::common::source::{self, Exports, Fetch};
use crate::lang::schema::{Arguments, Attribute, Block, Kind, Schema};
use crate::lang::value::Value;
use crate::pipeline::component::{ArgumentError, Component, ComponentError, Context, Definition, Stability};

mod repository;
#[cfg(test)]
mod tests;

use repository::{Auth, Key, Repository};

/// The definition of the block.
pub const DEFINITION: Definition = Definition {
    name: "import.git",
    stability: Stability::GenerallyAvailable,
    arguments: &Schema {
        attributes: &[
            Attribute::required("path", Kind::String, "File or folder in the repository."),
            Attribute::with_default(
                "pull_frequency",
                Kind::Duration,
                "\"60s\"",
                "Time from one pull to the next; 0 pulls once.",
            ),
            Attribute::required("repository", Kind::String, "URL or path of the repository."),
            Attribute::with_default("revision", Kind::String, "\"main\"", "Branch, tag or commit."),
        ],
        blocks: &[
            Block::optional("basic_auth", &BASIC_AUTH, "User and password for HTTP."),
            Block::optional("ssh_key", &SSH_KEY, "Key for SSH."),
        ],
    },
    exports: &[],
    validate: |arguments| check(arguments).map(drop),
    build: Some(build),
    doc: "`import.git` makes the declarations in a git repository usable as `LABEL.NAME`.",
};

const BASIC_AUTH: Schema = Schema {
    attributes: &[
        Attribute::optional("password", Kind::Secret, "Password."),
        Attribute::optional(
            "password_file",
            Kind::String,
            "File with the password; read at every pull.",
        ),
        Attribute::with_default("username", Kind::String, "\"\"", "User."),
    ],
    blocks: &[],
};

const SSH_KEY: Schema = Schema {
    attributes: &[
        Attribute::optional("key", Kind::Secret, "The private key."),
        Attribute::optional("key_file", Kind::String, "File with the private key."),
        Attribute::optional("passphrase", Kind::Secret, "What the key is locked with."),
        Attribute::required("username", Kind::String, "User."),
    ],
    blocks: &[],
};

struct Git {
    repository: Repository,
    path: String,
    frequency: Duration,
}

fn build(context: Context, arguments: Arguments) -> Result<Arc<dyn Component>, ComponentError> {
    source::build(context, &arguments, |context, arguments| {
        let auth = check(arguments)?;
        Ok(Arc::new(Git {
            repository: Repository::new(
                &context.data_path,
                &arguments.string("repository"),
                &arguments.string("revision"),
                auth,
            ),
            path: arguments.string("path").to_string(),
            frequency: arguments.duration("pull_frequency"),
        }))
    })
}

fn check(arguments: &Arguments) -> Result<Auth, ArgumentError> {
    let error = |path: &str, message: &str| {
        Err(ArgumentError {
            path: path.to_owned(),
            message: message.to_owned(),
        })
    };
    let (repository, revision, path) = (
        arguments.string("repository"),
        arguments.string("revision"),
        arguments.string("path"),
    );
    if repository.is_empty() || repository.starts_with('-') {
        return error("repository", "must be the URL or path of a repository");
    }
    if revision.is_empty() || revision.starts_with('-') || revision.contains([':', ' ', '^', '~', '?', '*', '[']) {
        return error("revision", "must be the name of a branch, a tag or a commit");
    }
    let inside = |part| matches!(part, Part::Normal(_) | Part::CurDir);
    if path.is_empty() || !Path::new(&*path).components().all(inside) {
        return error("path", "must be a path inside of the repository");
    }
    let set = |block: &Arguments, name: &str| block.optional_string(name).filter(|value| !value.is_empty());
    match (arguments.block("basic_auth"), arguments.block("ssh_key")) {
        (None, None) => Ok(Auth::None),
        (Some(_), Some(_)) => error("", "at most one of basic_auth and ssh_key may be configured"),
        (Some(basic), None) => match (set(basic, "password"), set(basic, "password_file")) {
            (Some(_), Some(_)) => error(
                "basic_auth.password",
                "at most one of password and password_file may be configured",
            ),
            (password, file) => Ok(Auth::Basic {
                username: basic.string("username"),
                password,
                password_file: file,
            }),
        },
        (None, Some(ssh)) => {
            let key = match (set(ssh, "key"), set(ssh, "key_file")) {
                (Some(_), Some(_)) => return error("ssh_key.key", "at most one of key and key_file may be configured"),
                (Some(text), None) => Key::Text(text),
                (None, Some(file)) => Key::File(file),
                (None, None) => return error("ssh_key", "needs a key or a key_file"),
            };
            Ok(Auth::Ssh {
                username: ssh.string("username"),
                key,
                passphrase: set(ssh, "passphrase"),
            })
        }
    }
}

impl Fetch for Git {
    fn fetch(&self) -> Result<Exports, String> {
        let texts = self.repository.pull(&self.path)?;
        let texts = texts.into_iter().map(|(name, text)| (name, Value::string(text)));
        let folder = self.repository.folder().display().to_string();
        Ok(source::module(texts, Some(folder)))
    }

    fn interval(&self) -> Option<Duration> {
        (!self.frequency.is_zero()).then_some(self.frequency)
    }
}
