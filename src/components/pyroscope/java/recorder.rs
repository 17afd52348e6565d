//! Records a JVM with async-profiler or, if that is not installed, with JDK Flight Recorder (JFR).
//!
//! In: settings. Out: the commands that start and stop a recording, and the files that they need. Both recorders write
//! JFR files. Each recording has a time limit, so that no recording continues after the collector has died.

use std::io;
use std::time::Duration;

use rustix::fs::Mode;

use crate::pyroscope::java::arguments::{JavaArguments, ProfilingConfig};
use crate::pyroscope::java::attach::{AttachError, Command, command};
use crate::pyroscope::java::jfc;
use crate::pyroscope::java::jvm::Jvm;
use crate::pyroscope::java::library::{self, Library, LibraryError};
use crate::pyroscope::java::options;
use crate::pyroscope::java::place::{ProcessFolder, as_user};

/// Time that a recording may run beyond its interval before it ends by itself.
const GRACE: Duration = Duration::from_mins(1);

/// Name of the recordings in JFR.
const NAME: &str = "alluvium";

/// Size limit of a recording. A recording of one minute of a busy program has a size of some megabytes.
pub(super) const MAX_RECORDING_BYTES: u64 = 64 << 20;

/// The reason why a recording failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// async-profiler's library cannot be found or read.
    #[error("dist: {0}")]
    Library(#[from] LibraryError),
    /// The exchange with the JVM failed, or the JVM refused the command.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// async-profiler reported an error.
    #[error("async-profiler: {0}")]
    Profiler(String),
    /// JDK Flight Recorder reported an error.
    #[error("JDK Flight Recorder: {0}")]
    Own(String),
    /// A file could not be written, read or removed.
    #[error("{operation} `{path}` of process {pid}: {error}")]
    File {
        /// The operation that failed.
        operation: &'static str,
        /// Path of the file, as the process sees it.
        path: String,
        /// The process whose file it is.
        pid: u32,
        /// The error of the kernel.
        error: io::Error,
    },
}

/// The program that makes the recordings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Recorder {
    AsyncProfiler(Library),
    /// JDK Flight Recorder, which is part of the JVM.
    Own,
}

impl Recorder {
    /// Finds async-profiler in `dist` or in an installed package. If `dist` is empty and no package is installed,
    /// returns JDK Flight Recorder.
    pub(super) fn find(dist: &str) -> Result<Self, RecordError> {
        let library = match dist {
            "" => library::of_system().transpose(),
            dist => library::of_dist(dist).map(Some),
        };
        Ok(library?.map_or(Self::Own, Self::AsyncProfiler))
    }

    /// Returns the name of the recorder for debug info.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::AsyncProfiler(_) => "async-profiler",
            Self::Own => "jfr",
        }
    }
}

/// The recorder of one JVM, with its files in a folder of the process. Every method blocks.
pub(super) struct Recorded {
    jvm: Jvm,
    recorder: Recorder,
    /// Folder of the files, as the process sees it.
    folder: String,
}

impl Recorded {
    /// Writes the files that the recorder needs into the folder of the process.
    pub(super) fn prepare(jvm: Jvm, arguments: &JavaArguments) -> Result<Self, RecordError> {
        let recorded = Self {
            jvm,
            recorder: Recorder::find(&arguments.dist)?,
            folder: arguments.tmp_dir.trim_end_matches('/').to_owned(),
        };
        if let Recorder::AsyncProfiler(library) = &recorded.recorder {
            recorded.put(&library.name, &library.bytes)?;
        }
        Ok(recorded)
    }

    /// Returns true if this value has the recorder and the folder that the arguments need.
    pub(super) fn is_for(&self, arguments: &JavaArguments) -> bool {
        let folder = arguments.tmp_dir.trim_end_matches('/');
        folder == self.folder && Recorder::find(&arguments.dist).is_ok_and(|recorder| recorder == self.recorder)
    }

    /// Returns the program that makes the recordings.
    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Starts a recording. A recording that a crashed collector left behind is stopped first.
    pub(super) fn start(&self, config: &ProfilingConfig) -> Result<(), RecordError> {
        let limit = config.interval.get().saturating_add(GRACE);
        match &self.recorder {
            Recorder::AsyncProfiler(library) => {
                let start = options::start(config, limit, &self.path(RECORDING), &self.path(LOG));
                match self.profiler(library, &start) {
                    Err(RecordError::Profiler(reason)) if reason.contains("already started") => {
                        self.profiler(library, &self.stop_options())?;
                        self.profiler(library, &start)
                    }
                    done => done,
                }
            }
            Recorder::Own => {
                // Stops a recording of a crashed collector. The command fails if there is no such recording.
                let _answer = command(&self.jvm, Command::Jcmd(&format!("JFR.stop name={NAME}")));
                let version = command(&self.jvm, Command::Jcmd("VM.version"))?;
                let settings = jfc::settings(config, jfc::major_version(&version));
                self.put(&self.file(SETTINGS), settings.as_bytes())?;
                let start = format!(
                    "JFR.start name={NAME} settings={} filename={} duration={}s",
                    self.path(SETTINGS),
                    self.path(RECORDING),
                    limit.as_secs()
                );
                self.run_jfr(&start, "Started recording")
            }
        }
    }

    /// Stops the recording and returns its bytes.
    pub(super) fn finish(&self) -> Result<Vec<u8>, RecordError> {
        match &self.recorder {
            Recorder::AsyncProfiler(library) => self.profiler(library, &self.stop_options())?,
            Recorder::Own => {
                let stop = format!("JFR.stop name={NAME} filename={}", self.path(RECORDING));
                self.run_jfr(&stop, "Stopped recording")?;
            }
        }
        let bytes = self.read(&self.file(RECORDING));
        self.remove(&[self.file(RECORDING)])?;
        bytes
    }

    /// Removes the collector's files for this process from the folder.
    pub(super) fn clean(&self) -> Result<(), RecordError> {
        let mut names = vec![self.file(RECORDING), self.file(LOG), self.file(SETTINGS)];
        if let Recorder::AsyncProfiler(library) = &self.recorder {
            names.push(library.name.clone());
        }
        self.remove(&names)
    }

    fn stop_options(&self) -> String {
        options::stop(&self.path(RECORDING), &self.path(LOG))
    }

    /// Calls async-profiler. If async-profiler refuses the command, the error contains the reason from its log.
    fn profiler(&self, library: &Library, options: &str) -> Result<(), RecordError> {
        let load = Command::Load {
            library: &format!("{}/{}", self.folder, library.name),
            options,
        };
        let answer = command(&self.jvm, load);
        let log = self.read(&self.file(LOG)).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        self.remove(&[self.file(LOG)])?;
        match answer {
            Ok(_) => Ok(()),
            Err(AttachError::Refused { .. }) if !log.trim().is_empty() => {
                let reasons: Vec<&str> = log.lines().filter(|line| line.contains("[ERROR]")).collect();
                let reason = if reasons.is_empty() {
                    log.to_string()
                } else {
                    reasons.join(" ")
                };
                Err(RecordError::Profiler(reason.trim().replace("[ERROR] ", "")))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a command to JFR. The result code is always 0, so only the text of the answer distinguishes success from
    /// failure.
    fn run_jfr(&self, words: &str, done: &str) -> Result<(), RecordError> {
        let text = command(&self.jvm, Command::Jcmd(words))?;
        if text.contains(done) {
            return Ok(());
        }
        Err(RecordError::Own(text.trim().to_owned()))
    }

    /// Returns the name of the collector's file with this ending for this process.
    fn file(&self, ending: &str) -> String {
        format!("alluvium-{}{ending}", self.jvm.own_pid)
    }

    /// Returns the path of the collector's file with this ending, as the process sees it.
    fn path(&self, ending: &str) -> String {
        format!("{}/{}", self.folder, self.file(ending))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
        let write = || ProcessFolder::open(&self.jvm, &self.folder)?.put(name, bytes, Mode::from_raw_mode(0o700));
        as_user(&self.jvm, write).map_err(|error| self.failed("cannot write", name, error))
    }

    fn remove(&self, names: &[String]) -> Result<(), RecordError> {
        let remove = || {
            let folder = ProcessFolder::open(&self.jvm, &self.folder)?;
            names.iter().try_for_each(|name| folder.remove(name))
        };
        as_user(&self.jvm, remove).map_err(|error| self.failed("cannot remove", &names.join(", "), error))
    }

    /// Reads a file that the process wrote.
    fn read(&self, name: &str) -> Result<Vec<u8>, RecordError> {
        let read = || -> io::Result<Vec<u8>> {
            let folder = ProcessFolder::open(&self.jvm, &self.folder)?;
            folder.read(name, MAX_RECORDING_BYTES)
        };
        as_user(&self.jvm, read).map_err(|error| self.failed("cannot read", name, error))
    }

    fn failed(&self, operation: &'static str, name: &str, error: io::Error) -> RecordError {
        RecordError::File {
            operation,
            path: format!("{}/{name}", self.folder),
            pid: self.jvm.key.pid,
            error,
        }
    }
}

const RECORDING: &str = ".jfr";
const LOG: &str = ".log";
const SETTINGS: &str = ".jfc";
