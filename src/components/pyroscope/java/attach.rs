//! HotSpot's dynamic attach: sends commands to a running JVM without any JDK tool.
//!
//! A file `.attach_pidN` in the process's `/tmp` and a SIGQUIT make the JVM listen on the socket `.java_pidN` in the
//! same folder. A command consists of the version `1`, a name and three arguments, each followed by a zero byte. The
//! answer is a line with the result code, followed by text.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::pyroscope::java::jvm::Jvm;
use crate::pyroscope::java::place::{ProcessFolder, as_user};

/// Folder of HotSpot's attach files. HotSpot ignores TMPDIR.
const FOLDER: &str = "/tmp";
/// Time within which a JVM must start to listen. HotSpot's own tools wait ten seconds, too.
const LISTENS_WITHIN: Duration = Duration::from_secs(10);
/// Time between two checks for the socket.
const LOOK: Duration = Duration::from_millis(20);
/// Timeout for an answer. It is long, because a profiler starts only after all threads of the JVM have reached a
/// safepoint.
const ANSWERS_WITHIN: Duration = Duration::from_mins(1);
/// Size limit of an answer, in bytes.
const MAX_ANSWER: u64 = 64 << 10;

/// A command that a JVM understands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Command<'a> {
    /// Loads an agent and calls it with options.
    Load {
        /// Path of the library, as the process sees it.
        library: &'a str,
        options: &'a str,
    },
    /// A diagnostic command, as `jcmd` sends it.
    Jcmd(&'a str),
}

/// The reason why a command failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum AttachError {
    /// The exchange with the JVM failed.
    #[error("cannot attach to process {pid}: {error}")]
    Attach {
        /// Id of the process of the JVM.
        pid: u32,
        /// The error of the kernel or of the socket.
        error: io::Error,
    },
    /// The JVM or the agent refused the command.
    #[error("process {pid} answered {code}: {text}")]
    Refused {
        /// Id of the process of the JVM.
        pid: u32,
        /// The result code, which is not 0.
        code: i64,
        /// The text of the answer.
        text: String,
    },
}

/// Sends a command to a JVM and returns the answer. Blocks until the answer is complete or a timeout ends the wait.
pub(super) fn command(jvm: &Jvm, command: Command<'_>) -> Result<String, AttachError> {
    let pid = jvm.key.pid;
    let answer = as_user(jvm, || {
        let folder = ProcessFolder::open(jvm, FOLDER)?;
        let mut stream = connect(jvm, &folder)?;
        stream.set_read_timeout(Some(ANSWERS_WITHIN))?;
        stream.set_write_timeout(Some(ANSWERS_WITHIN))?;
        stream.write_all(&command.bytes())?;
        let mut answer = Vec::new();
        stream
            .take(MAX_ANSWER)
            .read_to_end(&mut answer)
            .map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    io::Error::other(format!("no answer within {} seconds", ANSWERS_WITHIN.as_secs()))
                }
                _ => error,
            })?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    });
    let answer = answer.map_err(|error| AttachError::Attach { pid, error })?;
    match command.result(&answer) {
        (0, text) => Ok(text.to_owned()),
        (code, text) => Err(AttachError::Refused {
            pid,
            code,
            text: text.trim().to_owned(),
        }),
    }
}

impl Command<'_> {
    fn bytes(self) -> Vec<u8> {
        let words = match self {
            Self::Load { library, options } => ["1", "load", library, "true", options],
            Self::Jcmd(command) => ["1", "jcmd", command, "", ""],
        };
        words.iter().flat_map(|word| word.bytes().chain([0])).collect()
    }

    /// Returns the result code and the text of an answer. The text of an answer to `Load` contains the result code of
    /// the agent.
    fn result(self, answer: &str) -> (i64, &str) {
        let (code, text) = answer.split_once('\n').unwrap_or((answer, ""));
        let code = code.trim().parse().unwrap_or(-1);
        match self {
            Self::Load { .. } if code == 0 => {
                // Since Java 9 the text is `return code: 0`. In older versions it is `0`. Since Java 21, any other text
                // is the reason why the JVM did not load the agent.
                let line = text.lines().next().unwrap_or_default();
                let of_agent = line.strip_prefix("return code: ").unwrap_or(line).trim();
                match of_agent.parse() {
                    Ok(code) => (code, text),
                    Err(_) if of_agent.is_empty() => (0, text),
                    Err(_) => (-1, text),
                }
            }
            _ => (code, text),
        }
    }
}

/// Connects to the socket of a JVM. If the JVM does not listen yet, makes it listen first.
fn connect(jvm: &Jvm, folder: &ProcessFolder) -> io::Result<UnixStream> {
    let name = format!(".java_pid{}", jvm.own_pid);
    if folder.socket(&name)?.is_none() {
        wake(jvm, folder, &name)?;
    }
    let socket = folder
        .socket(&name)?
        .ok_or_else(|| io::Error::other("its socket has disappeared"))?;
    UnixStream::connect(socket.path())
}

/// Makes a JVM listen on the socket `name`.
fn wake(jvm: &Jvm, folder: &ProcessFolder, name: &str) -> io::Result<()> {
    let process = Pid::from_raw(i32::try_from(jvm.key.pid).unwrap_or(0))
        .ok_or_else(|| io::Error::other("its id is out of range"))?;
    let process = pidfd_open(process, PidfdFlags::empty())?;
    // The process that the descriptor refers to must be the one that was inspected.
    jvm.key.check()?;
    let trigger = format!(".attach_pid{}", jvm.own_pid);
    folder.put(&trigger, &[], Mode::from_raw_mode(0o600))?;
    let result = pidfd_send_signal(&process, Signal::QUIT)
        .map_err(io::Error::from)
        .and_then(|()| {
            let deadline = Instant::now() + LISTENS_WITHIN;
            while folder.socket(name)?.is_none() {
                if Instant::now() > deadline {
                    let seconds = LISTENS_WITHIN.as_secs();
                    return Err(io::Error::other(format!(
                        "it did not start to listen within {seconds} seconds: is it stopped, or was it started with \
                         -XX:+DisableAttachMechanism?"
                    )));
                }
                std::thread::sleep(LOOK);
                jvm.key.check()?;
            }
            Ok(())
        });
    folder.remove(&trigger)?;
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_words_with_zeros_behind_them() {
        let load = Command::Load {
            library: "/tmp/a.so",
            options: "start,jfr",
        };
        assert_eq!(load.bytes(), b"1\0load\0/tmp/a.so\0true\0start,jfr\0");
        assert_eq!(Command::Jcmd("JFR.stop").bytes(), b"1\0jcmd\0JFR.stop\0\0\0");
    }

    #[test]
    fn the_result_of_an_agent_is_read_from_the_text_of_every_version() {
        let load = Command::Load {
            library: "",
            options: "",
        };
        for (answer, code) in [
            ("0\nreturn code: 0\n", 0),
            ("0\nreturn code: 200\n", 200),
            ("0\n0\n", 0),
            ("0\n100\n", 100),
            ("0\n", 0),
            ("0\nDynamic agent loading is not enabled.", -1),
            ("1\nfailed", 1),
            ("", -1),
        ] {
            assert_eq!(load.result(answer).0, code, "{answer}");
        }
        let jcmd = Command::Jcmd("JFR.start");
        assert_eq!(jcmd.result("0\nStarted recording 1.\n"), (0, "Started recording 1.\n"));
        assert_eq!(jcmd.result("1\njava.lang.Error\n").0, 1);
    }
}
