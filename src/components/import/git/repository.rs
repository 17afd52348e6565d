//! A working copy of one revision of a git repository. The program `git` creates and updates the copy.
//!
//! In: URL, revision and credentials. Out: texts of files. Secrets reach git through its environment and through files
//! that only Alluvium's user can read. They are never arguments, because every user of the machine can see arguments.
//! Git creates no symbolic links, so no path of the copy leads out of it. The module refuses links by name.
//! Git has no terminal and runs no hooks. The only programs that it can run are ssh and the credential helper that this
//! module configures.

use std::collections::BTreeSet;
use std::io;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Component as Part, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::import::git::git_error::GitError;

/// Timeout of one git command.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Maximum length of git's error output in an error message, in characters.
const MAX_ERROR: usize = 500;

/// Mode of a symbolic link in a tree of git.
const LINK_MODE: &str = "120000 ";

/// The credentials for a repository.
pub(super) enum Auth {
    /// No credentials, for a repository that everybody may read.
    None,
    /// User name and password, over HTTP.
    Basic {
        /// User name for the repository.
        username: Arc<str>,
        /// The password, if it is not in a file.
        password: Option<Arc<str>>,
        /// File with the password.
        password_file: Option<Arc<str>>,
    },
    /// A private key, over SSH.
    Ssh {
        /// User name for the repository.
        username: Arc<str>,
        /// The key, or the file that contains it.
        key: Key,
        /// The passphrase, if the key is encrypted.
        passphrase: Option<Arc<str>>,
    },
}

/// A private key for SSH, or the file that contains it.
pub(super) enum Key {
    /// The key itself, as PEM text.
    Text(Arc<str>),
    /// Path of the file that contains the key.
    File(Arc<str>),
}

/// A working copy of one revision of a repository.
pub(super) struct Repository {
    /// Folder that contains the working copy.
    folder: PathBuf,
    url: String,
    revision: String,
    auth: Auth,
}

/// The environment variables of a git command, and the files that it needs. The files are deleted on drop.
#[derive(Default)]
struct Access {
    variables: Vec<(String, String)>,
    files: Vec<PathBuf>,
}

impl Drop for Access {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = std::fs::remove_file(file);
        }
    }
}

impl Repository {
    /// Describes a working copy under `data`, without reading or writing anything. Each repository and revision has its
    /// own folder, so that a copy in use stays intact.
    pub(super) fn new(data: &Path, url: &str, revision: &str, auth: Auth) -> Self {
        let digest = Sha256::digest(format!("{url}\0{revision}"));
        let name: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let absolute = std::path::absolute(data).unwrap_or_else(|_| data.to_owned());
        Self {
            folder: absolute.join(format!("repository-{name}")),
            url: url.to_owned(),
            revision: revision.to_owned(),
            auth,
        }
    }

    /// Returns the folder of the copy.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Updates the copy, and reads the file at `path`, or all modules if `path` is a folder. Returns the texts, each
    /// with its name in diagnostics.
    pub(super) fn pull(&self, path: &str) -> Result<Vec<(String, String)>, GitError> {
        match self.pull_once(path) {
            // A killed git leaves lock files. No other process uses the copy, so it can be deleted and created again.
            Err(error) if error.is_locked() => {
                let removed = std::fs::remove_dir_all(&self.folder);
                removed.map_err(|_| error)?;
                self.pull_once(path)
            }
            pulled => pulled,
        }
    }

    fn pull_once(&self, path: &str) -> Result<Vec<(String, String)>, GitError> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&self.folder).map_err(|source| GitError::Folder {
            path: self.folder.clone(),
            source,
        })?;
        let access = self.access()?;
        if !self.folder.join(".git").exists() {
            self.git(&access, &["init", "--quiet"])?;
        }
        // Only the last commit is fetched. If the server refuses to send a commit by its hash, everything is fetched.
        let one = [
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--force",
            "--",
            &self.url,
            &self.revision,
        ];
        match self.git(&access, &one) {
            Ok(_) => self.git(&access, &["checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"])?,
            Err(error) if is_commit(&self.revision) => {
                let all = [
                    "fetch",
                    "--quiet",
                    "--force",
                    "--",
                    &self.url,
                    "+refs/*:refs/remotes/all/*",
                ];
                self.git(&access, &all).map_err(|_| error)?;
                self.git(&access, &["checkout", "--quiet", "--force", "--detach", &self.revision])?
            }
            Err(error) => return Err(error),
        };
        self.read(path, &self.links(&access, path)?)
    }

    /// Returns the symbolic links among the path, the folders on the way to it, and the files in it.
    fn links(&self, access: &Access, path: &str) -> Result<BTreeSet<PathBuf>, GitError> {
        let mut names = Vec::new();
        let mut prefix = PathBuf::new();
        for part in Path::new(path).components() {
            if let Part::Normal(name) = part {
                prefix.push(name);
                names.push(prefix.display().to_string());
            }
        }
        // With a slash at its end, the name of a folder lists the files in it. Without a name, git lists the root.
        names.extend(names.last().map(|last| format!("{last}/")));
        let mut arguments = vec!["ls-tree", "-z", "HEAD", "--"];
        arguments.extend(names.iter().map(String::as_str));
        let entries = self.git(access, &arguments)?;
        let entries = entries.split('\0').filter_map(|entry| entry.split_once('\t'));
        let links = entries.filter(|(attributes, _)| attributes.starts_with(LINK_MODE));
        Ok(links.map(|(_, name)| PathBuf::from(name)).collect())
    }

    fn read(&self, path: &str, links: &BTreeSet<PathBuf>) -> Result<Vec<(String, String)>, GitError> {
        let file_or_folder = self.folder.join(path);
        let url = self.display_url();
        let check = |path: &Path| match links.get(path) {
            None => Ok(()),
            Some(link) => Err(self.link_error(link)),
        };
        let inside: PathBuf = Path::new(path)
            .components()
            .filter(|part| *part != Part::CurDir)
            .collect();
        inside.ancestors().try_for_each(check)?;
        let text = |file: &Path, name: String| match std::fs::read_to_string(file) {
            Ok(text) => Ok((name, text)),
            Err(source) => Err(GitError::Read { name, source }),
        };
        if !file_or_folder.is_dir() {
            return Ok(vec![text(&file_or_folder, format!("{url}/{path}"))?]);
        }
        let entries = std::fs::read_dir(&file_or_folder).map_err(|source| GitError::List {
            name: format!("{url}/{path}"),
            source,
        })?;
        let mut texts = Vec::new();
        for entry in entries.flatten() {
            let file = entry.path();
            let known = file
                .extension()
                .is_some_and(|ending| ending == "alloy" || ending == "river");
            if known && file.is_file() {
                let name = entry.file_name();
                check(&inside.join(&name))?;
                texts.push(text(&file, format!("{url}/{path}/{}", name.display()))?);
            }
        }
        Ok(texts)
    }

    /// Returns the error for a symbolic link, whose target is the content of its file in the copy.
    fn link_error(&self, link: &Path) -> GitError {
        let target = std::fs::read_to_string(self.folder.join(link)).unwrap_or_default();
        GitError::Link {
            name: format!("{}/{}", self.display_url(), link.display()),
            target: target.chars().take(MAX_ERROR).collect(),
        }
    }

    /// Returns the repository's URL for errors and diagnostics, without user name and password.
    fn display_url(&self) -> String {
        match self.url.split_once("://") {
            Some((scheme, rest)) => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                let host = host.rsplit('@').next().unwrap_or(host);
                format!("{scheme}://{host}/{path}")
            }
            None => self.url.clone(),
        }
    }

    /// Runs git in the folder of the copy.
    fn git(&self, access: &Access, arguments: &[&str]) -> Result<String, GitError> {
        let handle = tokio::runtime::Handle::try_current()?;
        let mut git = tokio::process::Command::new("git");
        git.args(arguments)
            .current_dir(&self.folder)
            .stdin(std::process::Stdio::null())
            .envs(access.variables.iter().map(|(name, value)| (name, value)))
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .kill_on_drop(true);
        let command = format!("git {} of {}", arguments.first().unwrap_or(&""), self.display_url());
        let output = handle.block_on(async { tokio::time::timeout(TIMEOUT, git.output()).await });
        let output = match output {
            Err(_) => {
                return Err(GitError::Timeout {
                    command,
                    timeout: TIMEOUT,
                });
            }
            Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => return Err(GitError::NotInstalled),
            Ok(Err(source)) => return Err(GitError::Start { command, source }),
            Ok(Ok(output)) => output,
        };
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        let message = stderr
            .trim()
            .replace(&self.url, &self.display_url())
            .replace('\n', "; ");
        let message: String = message.chars().take(MAX_ERROR).collect();
        Err(GitError::Failed {
            command,
            output: message,
        })
    }

    fn access(&self) -> Result<Access, GitError> {
        let mut access = Access::default();
        let mut set = |name: &str, value: String| access.variables.push((name.to_owned(), value));
        let mut configuration = vec![
            ("core.hooksPath".to_owned(), "/dev/null".to_owned()),
            ("core.symlinks".to_owned(), "false".to_owned()),
            ("credential.helper".to_owned(), String::new()),
            ("advice.detachedHead".to_owned(), "false".to_owned()),
        ];
        set("GIT_TERMINAL_PROMPT", "0".to_owned());
        set("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh".to_owned());
        set("LC_ALL", "C".to_owned());
        match &self.auth {
            Auth::None => set("GIT_SSH_COMMAND", "ssh -o BatchMode=yes".to_owned()),
            Auth::Basic {
                username,
                password,
                password_file,
            } => {
                let password = match (password, password_file) {
                    (Some(password), _) => password.to_string(),
                    (None, Some(file)) => {
                        let text = std::fs::read_to_string(&**file);
                        let text = text.map_err(|source| GitError::Password {
                            path: file.clone(),
                            source,
                        })?;
                        text.trim_end_matches(['\n', '\r']).to_owned()
                    }
                    (None, None) => String::new(),
                };
                set("ALLUVIUM_GIT_USERNAME", username.to_string());
                set("ALLUVIUM_GIT_PASSWORD", password);
                // Git uses the helper only for this server, so a redirect cannot send the password to another server.
                let helper = "!f() { printf 'username=%s\\npassword=%s\\n' \"$ALLUVIUM_GIT_USERNAME\" \
                    \"$ALLUVIUM_GIT_PASSWORD\"; }; f";
                configuration.push((format!("credential.{}.helper", self.server()), helper.to_owned()));
            }
            Auth::Ssh {
                username,
                key,
                passphrase,
            } => {
                let file = match key {
                    Key::File(file) => PathBuf::from(&**file),
                    Key::Text(text) => {
                        let file = self.private_file("key", 0o600, &format!("{}\n", text.trim_end()))?;
                        access.files.push(file.clone());
                        file
                    }
                };
                let mut set = |name: &str, value: String| access.variables.push((name.to_owned(), value));
                set("ALLUVIUM_SSH_KEY", file.display().to_string());
                set("ALLUVIUM_SSH_USER", username.to_string());
                let batch = if passphrase.is_some() { "no" } else { "yes" };
                let command = format!(
                    "ssh -i \"$ALLUVIUM_SSH_KEY\" -l \"$ALLUVIUM_SSH_USER\" -o IdentitiesOnly=yes -o \
                     PasswordAuthentication=no -o BatchMode={batch}"
                );
                set("GIT_SSH_COMMAND", command);
                if let Some(passphrase) = passphrase {
                    set("ALLUVIUM_SSH_PASSPHRASE", passphrase.to_string());
                    set("SSH_ASKPASS_REQUIRE", "force".to_owned());
                    let script = "#!/bin/sh\nprintf '%s\\n' \"$ALLUVIUM_SSH_PASSPHRASE\"\n";
                    let file = self.private_file("askpass", 0o700, script)?;
                    access.files.push(file.clone());
                    access
                        .variables
                        .push(("SSH_ASKPASS".to_owned(), file.display().to_string()));
                }
            }
        }
        let count = configuration.len().to_string();
        access.variables.push(("GIT_CONFIG_COUNT".to_owned(), count));
        for (index, (key, value)) in configuration.into_iter().enumerate() {
            access.variables.push((format!("GIT_CONFIG_KEY_{index}"), key));
            access.variables.push((format!("GIT_CONFIG_VALUE_{index}"), value));
        }
        Ok(access)
    }

    /// Returns the scheme and host of the repository.
    fn server(&self) -> String {
        let url = self.display_url();
        match url.split_once("://") {
            Some((scheme, rest)) => format!("{scheme}://{}", rest.split('/').next().unwrap_or(rest)),
            None => url,
        }
    }

    /// Writes a file that only Alluvium's user can read, beside the working copy.
    fn private_file(&self, name: &str, mode: u32, text: &str) -> Result<PathBuf, GitError> {
        let path = self.folder.with_extension(name);
        let failed = |source: io::Error| GitError::Write {
            path: path.clone(),
            source,
        };
        let _ = std::fs::remove_file(&path);
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path)
            .map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(path)
    }
}

/// Returns true if `revision` has the form of a commit hash, complete or abbreviated: 7 to 64 hexadecimal digits.
fn is_commit(revision: &str) -> bool {
    (7..=64).contains(&revision.len()) && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}
