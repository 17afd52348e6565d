//! The credential plugin of a kubeconfig file (`exec`): a program that prints a token, as defined by Kubernetes' client
//! authentication API.
//!
//! In: the program, its arguments and variables. Out: the token that the program prints, which is cached until
//! shortly before it expires. The program runs without input, and its run time and output are limited. Its arguments,
//! variables and standard output are secret. Errors show the beginning of its error output.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::DateTime;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

use crate::common::clouds::expiring::{Expiring, Lasting};
use alluvium_base::BoxFuture;
use alluvium_wire::client::{ProviderError, TokenProvider};

/// Maximum run time of the program.
const MAX_TIME: Duration = Duration::from_mins(1);
/// Maximum size of the program's standard output, in bytes.
const MAX_ANSWER: usize = 1 << 20;
/// Maximum number of bytes of the program's error output that a message contains.
const MAX_COMPLAINT: usize = 300;
/// Lifetime of a token that has no expiration time.
const LIFETIME: Duration = Duration::from_mins(5);
/// Supported versions of the API.
const VERSIONS: [&str; 2] = [
    "client.authentication.k8s.io/v1",
    "client.authentication.k8s.io/v1beta1",
];

/// The reason why the settings of a program cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExecError {
    /// The program uses an unsupported version of the API.
    #[error("its exec has the apiVersion `{0}`, which must be {known}", known = VERSIONS.join(" or "))]
    Version(String),
    /// The program needs a user who types.
    #[error("its exec needs a terminal (interactiveMode: Always), which does not exist here")]
    Terminal,
}

/// The error of a run that returned no token.
#[derive(Debug, thiserror::Error)]
#[error("the program {} returned no token: {source}", path.display())]
struct TokenError {
    path: PathBuf,
    source: RunError,
}

/// The reason why a run returned no token. The standard output is secret, so no variant contains a part of it.
#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error("it did not end within {} s", MAX_TIME.as_secs())]
    Timeout,
    #[error("it cannot be started: {0}")]
    Start(#[source] io::Error),
    #[error("cannot wait for its end: {0}")]
    Wait(#[source] io::Error),
    #[error("its output is longer than {MAX_ANSWER} bytes")]
    TooLong,
    /// The program ended with an error.
    #[error("{status}: {complaint}")]
    Failed {
        status: ExitStatus,
        /// The beginning of the program's error output.
        complaint: String,
    },
    /// The output is not JSON of the expected form.
    #[error("its output is not an ExecCredential")]
    Malformed,
    #[error("it returned a client certificate, but only tokens are supported")]
    Certificate,
    #[error("its output has no status.token")]
    NoToken,
    #[error("the status.expirationTimestamp in its output is not a valid time")]
    Expiration(#[source] chrono::ParseError),
}

/// The settings of the program in a kubeconfig file.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Exec {
    api_version: String,
    command: String,
    #[serde(default)]
    args: Option<Vec<String>>,
    #[serde(default)]
    env: Option<Vec<Variable>>,
    #[serde(default)]
    interactive_mode: Option<String>,
}

#[derive(Clone, Deserialize)]
struct Variable {
    name: String,
    value: String,
}

/// The program, with its last token.
pub(super) struct Program {
    exec: Exec,
    path: PathBuf,
    token: Expiring<Arc<str>>,
}

/// The output of the program.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    token: Option<String>,
    expiration_timestamp: Option<String>,
    client_certificate_data: Option<serde::de::IgnoredAny>,
}

impl Program {
    /// Creates the program that a kubeconfig file in `folder` describes. A relative command that contains a slash
    /// is a path from `folder`. A command without a slash is looked up in PATH.
    pub(super) fn new(exec: &Exec, folder: &Path) -> Result<Self, ExecError> {
        if !VERSIONS.contains(&&*exec.api_version) {
            return Err(ExecError::Version(exec.api_version.clone()));
        }
        if exec.interactive_mode.as_deref() == Some("Always") {
            return Err(ExecError::Terminal);
        }
        let path = if exec.command.contains('/') {
            folder.join(&exec.command)
        } else {
            PathBuf::from(&exec.command)
        };
        Ok(Self {
            exec: exec.clone(),
            path,
            token: Expiring::default(),
        })
    }

    async fn ask(&self) -> Result<Lasting<Arc<str>>, TokenError> {
        let output = tokio::time::timeout(MAX_TIME, self.run()).await;
        let output = output.unwrap_or(Err(RunError::Timeout));
        let answer = output.and_then(|answer| token(&answer));
        answer.map_err(|source| TokenError {
            path: self.path.clone(),
            source,
        })
    }

    /// Runs the program and returns its output.
    async fn run(&self) -> Result<Vec<u8>, RunError> {
        let info = serde_json::json!({
            "apiVersion": self.exec.api_version, "kind": "ExecCredential", "spec": {"interactive": false},
        });
        let variables = self.exec.env.iter().flatten();
        let mut command = Command::new(&self.path);
        command
            .args(self.exec.args.iter().flatten())
            .envs(variables.map(|variable| (&variable.name, &variable.value)))
            .env("KUBERNETES_EXEC_INFO", info.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(RunError::Start)?;
        let (answer, complaint) = (child.stdout.take(), child.stderr.take());
        let (answer, complaint) = tokio::join!(start_of(answer, MAX_ANSWER + 1), start_of(complaint, MAX_COMPLAINT));
        let status = child.wait().await.map_err(RunError::Wait)?;
        if answer.len() > MAX_ANSWER {
            return Err(RunError::TooLong);
        }
        ended(status, &complaint).map(|()| answer)
    }
}

impl TokenProvider for Program {
    fn token(&self) -> BoxFuture<'_, Result<Arc<str>, ProviderError>> {
        Box::pin(async { Ok(self.token.get(self.ask()).await?) })
    }
}

/// Prints only the path, because arguments, variables and tokens are secret.
impl fmt::Debug for Program {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "(token of {})", self.path.display())
    }
}

/// Reads a stream to its end and returns the first `bytes` bytes.
async fn start_of(stream: Option<impl AsyncRead + Unpin>, bytes: usize) -> Vec<u8> {
    let mut start = Vec::new();
    if let Some(mut stream) = stream {
        // If reading fails, bytes are missing, and the exit status or the parser reports the failure.
        let _ = (&mut stream).take(bytes as u64).read_to_end(&mut start).await;
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
    start
}

fn ended(status: ExitStatus, complaint: &[u8]) -> Result<(), RunError> {
    if status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(complaint);
    let words: Vec<&str> = complaint.split_whitespace().collect();
    Err(RunError::Failed {
        status,
        complaint: words.join(" "),
    })
}

/// Returns the token in the output. The output is secret, so errors do not show it.
fn token(answer: &[u8]) -> Result<Lasting<Arc<str>>, RunError> {
    let read: Result<Answer, _> = serde_json::from_slice(answer);
    let Answer { status } = read.map_err(|_| RunError::Malformed)?;
    match (status.token, status.client_certificate_data) {
        (Some(token), _) => Ok(Lasting {
            value: token.into(),
            ends: Some(end(status.expiration_timestamp.as_deref())?),
        }),
        (None, Some(_)) => Err(RunError::Certificate),
        (None, None) => Err(RunError::NoToken),
    }
}

fn end(written: Option<&str>) -> Result<SystemTime, RunError> {
    let Some(written) = written else {
        return Ok(SystemTime::now() + LIFETIME);
    };
    let time = DateTime::parse_from_rfc3339(written);
    time.map(SystemTime::from).map_err(RunError::Expiration)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Creates a program that logs each run and executes `script`.
    fn program(folder: &Path, script: &str) -> Program {
        let path = folder.join("program");
        std::fs::write(
            &path,
            format!("#!/bin/sh\necho run >> {}\n{script}\n", folder.join("runs").display()),
        )
        .unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        let exec = serde_json::json!({
            "apiVersion": VERSIONS[0], "command": "./program", "args": ["a b"],
            "env": [{"name": "X", "value": "hush"}],
        });
        Program::new(&serde_json::from_value(exec).unwrap(), folder).unwrap()
    }

    fn runs(folder: &Path) -> usize {
        std::fs::read_to_string(folder.join("runs")).unwrap().lines().count()
    }

    /// Requests a token. A program that was just written cannot start while the child process of another test still
    /// has the file open for writing, so the start is retried.
    async fn request_token(program: &Program) -> Result<Arc<str>, String> {
        loop {
            match program.token().await.map_err(|error| error.to_string()) {
                Err(error) if error.contains("Text file busy") => tokio::task::yield_now().await,
                other => return other,
            }
        }
    }

    #[tokio::test]
    async fn the_token_is_asked_for_once_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let script = r#"echo '{"status": {"token": "'"$1-$X"'", "expirationTimestamp": "2999-01-01T00:00:00Z"}}'"#;
        let lasting = program(folder.path(), script);
        for _ in 0..2 {
            assert_eq!(&*request_token(&lasting).await.unwrap(), "a b-hush");
        }
        assert_eq!(runs(folder.path()), 1);
        assert!(!format!("{lasting:?}").contains("hush"));

        let folder = tempfile::tempdir().unwrap();
        let script = r#"echo '{"status": {"token": "t", "expirationTimestamp": "2001-01-01T00:00:00Z"}}'"#;
        let ending = program(folder.path(), script);
        for _ in 0..2 {
            assert_eq!(&*request_token(&ending).await.unwrap(), "t");
        }
        assert_eq!(runs(folder.path()), 2);
    }

    #[tokio::test]
    async fn what_gives_no_token_says_why_without_secrets() {
        for (script, reason) in [
            ("echo not logged in >&2; exit 3", "exit status: 3: not logged in"),
            ("echo hush", "its output is not an ExecCredential"),
            ("echo '{\"status\": {}}'", "its output has no status.token"),
            (
                "echo '{\"status\": {\"clientCertificateData\": \"hush\"}}'",
                "it returned a client certificate, but only tokens are supported",
            ),
            ("head -c 2000000 /dev/zero", "its output is longer than 1048576 bytes"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let error = request_token(&program(folder.path(), script)).await.unwrap_err();
            assert!(error.ends_with(reason) && !error.contains("hush"), "{error}");
        }
    }

    #[test]
    fn programs_that_cannot_be_used_are_refused() {
        let refused = |exec: &str| {
            let error = Program::new(&serde_json::from_str(exec).unwrap(), Path::new("/")).unwrap_err();
            error.to_string()
        };
        let old = refused(r#"{"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "a"}"#);
        assert!(old.contains("v1alpha1"), "{old}");
        let message = refused(
            r#"{"apiVersion": "client.authentication.k8s.io/v1", "command": "a", "interactiveMode": "Always"}"#,
        );
        assert!(message.contains("interactiveMode"), "{message}");
    }
}
