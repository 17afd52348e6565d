//! A working copy of one revision of a repository, made and renewed by the `git` program.
//!
//! In: URL, revision and credentials. Out: texts of files. Secrets reach git through its environment and through files
//! that only we can read, never through arguments, which every user of the machine can see. Git gets no terminal, no
//! hooks and no way to run other programs than ssh.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

/// Longest time of one git command.
const TIMEOUT: Duration = Duration::from_mins(2);
/// How much of git's error output an error shows, in characters.
const MAX_ERROR: usize = 500;

/// The credentials for a repository.
pub(super) enum Auth {
    /// None: everybody may read the repository.
    None,
    /// User name and password, over HTTP.
    Basic {
        /// User name that the repository knows.
        username: Arc<str>,
        /// Password, when it is not in a file.
        password: Option<Arc<str>>,
        /// File with the password.
        password_file: Option<Arc<str>>,
    },
    /// A private key, over SSH.
    Ssh {
        /// User name that the repository knows.
        username: Arc<str>,
        /// The key itself, or its file.
        key: Key,
        /// The passphrase of the key.
        passphrase: Option<Arc<str>>,
    },
}

/// A private key for SSH, or the file that holds it.
pub(super) enum Key {
    /// The key, as PEM text of its own.
    Text(Arc<str>),
    /// Path of the file that holds the key.
    File(Arc<str>),
}

/// A working copy of one revision of a repository.
pub(super) struct Repository {
    /// Folder that it is kept in.
    folder: PathBuf,
    url: String,
    revision: String,
    auth: Auth,
}

/// The environment of a command, and the files that it needs; they are gone when this is dropped.
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
    /// A working copy under `data`; nothing is read or written yet. Each repository and revision has a folder of its
    /// own, so that a copy in use stays whole.
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

    /// The folder of the copy.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Updates the copy and reads a file, or the modules of a folder. Returns texts with names for diagnostics.
    pub(super) fn pull(&self, path: &str) -> Result<Vec<(String, String)>, String> {
        match self.pull_once(path) {
            // A killed git leaves lock files. Nobody else uses the copy, so it is deleted and made anew.
            Err(error) if error.contains(".lock': File exists") => {
                let removed = std::fs::remove_dir_all(&self.folder);
                removed.map_err(|_| error)?;
                self.pull_once(path)
            }
            pulled => pulled,
        }
    }

    fn pull_once(&self, path: &str) -> Result<Vec<(String, String)>, String> {
        let failed = |error: std::io::Error| format!("cannot use the folder {}: {error}", self.folder.display());
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&self.folder).map_err(failed)?;
        let access = self.access()?;
        if !self.folder.join(".git").exists() {
            self.git(&access, &["init", "--quiet"])?;
        }
        // The last commit is enough. Servers may refuse to send a commit by its hash; then everything is fetched.
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
        self.read(path)
    }

    fn read(&self, path: &str) -> Result<Vec<(String, String)>, String> {
        let at = self.folder.join(path);
        let place = self.place();
        let text = |file: &Path, name: String| match std::fs::read_to_string(file) {
            Ok(text) => Ok((name, text)),
            Err(error) => Err(format!("cannot read {name}: {error}")),
        };
        if !at.is_dir() {
            return Ok(vec![text(&at, format!("{place}/{path}"))?]);
        }
        let entries = std::fs::read_dir(&at).map_err(|error| format!("cannot list {place}/{path}: {error}"))?;
        let mut texts = Vec::new();
        for entry in entries.flatten() {
            let file = entry.path();
            let known = file
                .extension()
                .is_some_and(|ending| ending == "alloy" || ending == "river");
            if known && file.is_file() {
                let name = entry.file_name();
                texts.push(text(&file, format!("{place}/{path}/{}", name.display()))?);
            }
        }
        Ok(texts)
    }

    /// The repository as errors and diagnostics call it: without user and password.
    fn place(&self) -> String {
        match self.url.split_once("://") {
            Some((scheme, rest)) => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                let host = host.rsplit('@').next().unwrap_or(host);
                format!("{scheme}://{host}/{path}")
            }
            None => self.url.clone(),
        }
    }

    /// Runs git in the folder.
    fn git(&self, access: &Access, arguments: &[&str]) -> Result<String, String> {
        let handle = tokio::runtime::Handle::try_current().map_err(|error| error.to_string())?;
        let mut command = tokio::process::Command::new("git");
        command
            .args(arguments)
            .current_dir(&self.folder)
            .stdin(std::process::Stdio::null())
            .envs(access.variables.iter().map(|(name, value)| (name, value)))
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .kill_on_drop(true);
        let what = format!("git {} of {}", arguments.first().unwrap_or(&""), self.place());
        let output = handle.block_on(async { tokio::time::timeout(TIMEOUT, command.output()).await });
        let output = match output {
            Err(_) => return Err(format!("{what} did not end in {} s", TIMEOUT.as_secs())),
            Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err("import.git needs the program `git`, which is not installed".to_owned());
            }
            Ok(Err(error)) => return Err(format!("{what} could not be started: {error}")),
            Ok(Ok(output)) => output,
        };
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().replace(&self.url, &self.place()).replace('\n', "; ");
        let said: String = said.chars().take(MAX_ERROR).collect();
        Err(format!("{what} failed: {said}"))
    }

    fn access(&self) -> Result<Access, String> {
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
                        let text = text.map_err(|error| format!("cannot read the password file {file}: {error}"))?;
                        text.trim_end_matches(['\n', '\r']).to_owned()
                    }
                    (None, None) => String::new(),
                };
                set("ALLUVIUM_GIT_USERNAME", username.to_string());
                set("ALLUVIUM_GIT_PASSWORD", password);
                // Only for this server: one that it redirects git to does not get the password.
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

    /// Scheme and host of the repository.
    fn server(&self) -> String {
        let place = self.place();
        match place.split_once("://") {
            Some((scheme, rest)) => format!("{scheme}://{}", rest.split('/').next().unwrap_or(rest)),
            None => place,
        }
    }

    /// A file beside the copy that only we can read.
    fn private_file(&self, name: &str, mode: u32, text: &str) -> Result<PathBuf, String> {
        let path = self.folder.with_extension(name);
        let failed = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
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

/// True for the hash of a commit, which may be abbreviated.
fn is_commit(revision: &str) -> bool {
    (7..=64).contains(&revision.len()) && revision.bytes().all(|byte| byte.is_ascii_hexdigit())
}
