//! `import.git`: modules from a git repository that is pulled at an interval.
//!
//! In: a repository, a revision and a path. Out: the text of the file at the path, or the texts of the
//! `*.alloy` and `*.river` files in the folder at the path. The import runs the program `git`.

use std::path::{Component as Part, Path};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::common::arguments::checks::at_most_one_of;
use crate::common::sources::fetch_error::FetchError;
use crate::common::sources::source;
use crate::common::sources::source::{Exports, Fetch};
use alluvium_lang::argument_error::ArgumentError;
use alluvium_lang::attribute::{FromValue, Secret, wrong};
use alluvium_lang::body::arguments;
use alluvium_lang::schema::Kind;
use alluvium_lang::value::Value;
use alluvium_pipeline::component::{Definition, Stability, no_metrics};

mod git_error;
mod repository;
#[cfg(test)]
mod tests;

use repository::{Auth, Key, Repository};

arguments! {
    /// Arguments of `import.git`.
    pub(crate) struct GitArguments {
        /// Path of a file or folder in the repository.
        path: RepositoryPath,
        /// Time between two pulls. With 0 the repository is pulled once.
        pull_frequency: Duration = "60s",
        /// URL or path of the repository.
        repository: RepositoryUrl,
        /// Branch, tag or commit to check out.
        revision: Revision = "main",
    }
    blocks {
        /// User name and password for a repository behind HTTP.
        basic_auth: Option<BasicAuth>,
        /// Key for a repository behind SSH.
        ssh_key: Option<SshKey>,
    }
    check GitArguments::check;
}

arguments! {
    /// The body of `basic_auth { }`.
    pub(crate) struct BasicAuth {
        /// Password for the repository.
        password: Option<Secret>,
        /// File with the password. It is read at every pull.
        password_file: Option<Arc<str>>,
        /// User name for the repository.
        username: Arc<str> = "",
    }
    check BasicAuth::check;
}

arguments! {
    /// The body of `ssh_key { }`.
    pub(crate) struct SshKey {
        /// The private key, as PEM text.
        key: Option<Secret>,
        /// File with the private key.
        key_file: Option<Arc<str>>,
        /// Passphrase that the key is encrypted with.
        passphrase: Option<Secret>,
        /// User name for the repository.
        username: Arc<str>,
    }
    check SshKey::check;
}

/// Declares a type for a text that is passed to `git`, with its check and the error for a text that fails the check.
macro_rules! texts {
    ($( $(#[doc = $doc:literal])+ $name:ident: $is_valid:expr, $reason:literal; )+) => { $(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) struct $name(Arc<str>);

        impl FromValue for $name {
            const KIND: Kind = Kind::String;

            fn from_value(name: &str, value: &Value) -> Result<Self, ArgumentError> {
                let text = Arc::<str>::from_value(name, value)?;
                let is_valid: fn(&str) -> bool = $is_valid;
                if is_valid(&text) { Ok(Self(text)) } else { Err(wrong($reason)) }
            }
        }
    )+ };
}

texts! {
    /// URL or path of the repository. `git` cannot mistake it for an option.
    RepositoryUrl: |text| !text.is_empty() && !text.starts_with('-'), "must be the URL or path of a repository";
    /// The revision to check out. `git` cannot mistake it for an option or an expression.
    Revision: |text| {
        let is_expression = text.contains([':', ' ', '^', '~', '?', '*', '[']);
        !text.is_empty() && !text.starts_with('-') && !is_expression
    }, "must be the name of a branch, a tag or a commit";
    /// A path that does not lead out of the repository.
    RepositoryPath: |text| {
        let is_inside = |part| matches!(part, Part::Normal(_) | Part::CurDir);
        !text.is_empty() && Path::new(text).components().all(is_inside)
    }, "must be a path inside the repository";
}

/// The definition of the block.
pub(crate) const DEFINITION: Definition<GitArguments> = Definition {
    name: "import.git",
    stability: Stability::GenerallyAvailable,
    exports: &[],
    metrics: no_metrics,
    build: Some(|context, arguments| {
        let copy_lock = Arc::default();
        source::build(context, &arguments, move |context, arguments: &GitArguments| {
            let GitArguments {
                repository, revision, ..
            } = arguments;
            Ok(Git {
                copy_lock: Arc::clone(&copy_lock),
                repository: Repository::new(&context.data_path, &repository.0, &revision.0, arguments.auth()),
                path: arguments.path.0.to_string(),
                frequency: arguments.pull_frequency,
            })
        })
    }),
    doc: "`import.git` makes the declarations in a git repository usable as `LABEL.NAME`.",
};

struct Git {
    /// Locked while the working copy is updated, because an import with new arguments may use the same copy.
    copy_lock: Arc<Mutex<()>>,
    repository: Repository,
    path: String,
    frequency: Duration,
}

impl GitArguments {
    fn check(&self) -> Result<(), ArgumentError> {
        if self.basic_auth.is_some() && self.ssh_key.is_some() {
            let message = "at most one of basic_auth and ssh_key may be configured";
            return Err(ArgumentError::new("", message));
        }
        Ok(())
    }

    fn auth(&self) -> Auth {
        let text = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.0.clone());
        if let Some(basic) = &self.basic_auth {
            return Auth::Basic {
                username: basic.username.clone(),
                password: text(&basic.password),
                password_file: basic.password_file.clone(),
            };
        }
        let Some(ssh) = &self.ssh_key else { return Auth::None };
        let key = text(&ssh.key).map(Key::Text);
        // The check rejects a block without a key.
        let Some(key) = key.or_else(|| ssh.key_file.clone().map(Key::File)) else {
            return Auth::None;
        };
        Auth::Ssh {
            username: ssh.username.clone(),
            key,
            passphrase: text(&ssh.passphrase),
        }
    }
}

impl BasicAuth {
    fn check(&self) -> Result<(), ArgumentError> {
        at_most_one_of("password", &self.password, "password_file", &self.password_file)
    }
}

impl SshKey {
    fn check(&self) -> Result<(), ArgumentError> {
        at_most_one_of("key", &self.key, "key_file", &self.key_file)?;
        if self.key.is_none() && self.key_file.is_none() {
            return Err(ArgumentError::new("", "one of key and key_file must be configured"));
        }
        Ok(())
    }
}

impl Fetch for Git {
    fn fetch(&self) -> Result<Exports, FetchError> {
        let _guard = self.copy_lock.lock();
        let pulled = self.repository.pull(&self.path);
        let texts = pulled.map_err(|error| FetchError::Remote(error.into()))?;
        let texts = texts.into_iter().map(|(name, text)| (name, Value::string(text)));
        let folder = self.repository.folder().display().to_string();
        Ok(source::module(texts, Some(folder)))
    }

    fn interval(&self) -> Option<Duration> {
        (!self.frequency.is_zero()).then_some(self.frequency)
    }

    fn is_spread(&self) -> bool {
        true
    }
}
