//! Records a virtual machine, with async-profiler or, where that is missing, with the virtual machine's own recorder.
//!
//! In: settings. Out: the commands that start and end a recording, and the files that they need. Both recorders write
//! Java Flight Recorder files. Each recording has a time limit, so that none goes on after the collector is gone.

use std::io;
use std::time::Duration;

use rustix::fs::Mode;

use crate::components::pyroscope::java::arguments::{JavaArguments, ProfilingConfig};
use crate::components::pyroscope::java::attach::{AttachError, Command, command};
use crate::components::pyroscope::java::jfc;
use crate::components::pyroscope::java::jvm::Jvm;
use crate::components::pyroscope::java::library::{self, Library};
use crate::components::pyroscope::java::options;
use crate::components::pyroscope::java::place::{Place, as_user};

/// Time beyond its interval after which a recording ends by itself.
const GRACE: Duration = Duration::from_mins(1);

/// Name of the recordings in the virtual machine's own recorder.
const NAME: &str = "alluvium";

/// Largest recording that is read. A minute of a busy program is some megabytes.
pub(super) const MAX_RECORDING_BYTES: u64 = 64 << 20;

/// Why a recording was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// There is no profiler to load.
    #[error("dist: {0}")]
    Library(String),
    /// The exchange with the virtual machine failed, or it refused.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// async-profiler reported an error.
    #[error("async-profiler: {0}")]
    Profiler(String),
    /// The virtual machine's own recorder reported an error.
    #[error("the recorder of the virtual machine: {0}")]
    Own(String),
    /// A file could not be written or read.
    #[error("{what} `{path}` of process {pid}: {error}")]
    File {
        /// The operation that failed.
        what: &'static str,
        /// Its path, as the process sees it.
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
    /// The virtual machine's own recorder.
    Own,
}

impl Recorder {
    /// The library of `dist` or of a package, or else the virtual machine's own recorder.
    pub(super) fn find(dist: &str) -> Result<Self, RecordError> {
        let library = match dist {
            "" => library::of_system().transpose(),
            dist => library::of_dist(dist).map(Some),
        };
        Ok(library
            .map_err(RecordError::Library)?
            .map_or(Self::Own, Self::AsyncProfiler))
    }

    /// Its name in debug information.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::AsyncProfiler(_) => "async-profiler",
            Self::Own => "jfr",
        }
    }
}

/// The recorder of one virtual machine, with its files in the folders of the process. Every call blocks.
pub(super) struct Recorded {
    jvm: Jvm,
    recorder: Recorder,
    /// Folder of the files, as the process sees it.
    folder: String,
}

impl Recorded {
    /// Puts the files that the recorder needs into the folder of the process.
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

    /// True when these arguments need the same files in the same places.
    pub(super) fn is_for(&self, arguments: &JavaArguments) -> bool {
        let folder = arguments.tmp_dir.trim_end_matches('/');
        folder == self.folder && Recorder::find(&arguments.dist).is_ok_and(|recorder| recorder == self.recorder)
    }

    /// The program that makes the recordings.
    pub(super) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Starts a recording. One that a crashed collector left behind is ended first.
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
                // Ends a recording that was left behind; fails when there is none.
                let _left_over = command(&self.jvm, Command::Jcmd(&format!("JFR.stop name={NAME}")));
                let version = command(&self.jvm, Command::Jcmd("VM.version"))?;
                let settings = jfc::settings(config, jfc::major_version(&version));
                self.put(&self.file(SETTINGS), settings.as_bytes())?;
                let start = format!(
                    "JFR.start name={NAME} settings={} filename={} duration={}s",
                    self.path(SETTINGS),
                    self.path(RECORDING),
                    limit.as_secs()
                );
                self.own(&start, "Started recording")
            }
        }
    }

    /// Ends the recording and reads its bytes.
    pub(super) fn finish(&self) -> Result<Vec<u8>, RecordError> {
        match &self.recorder {
            Recorder::AsyncProfiler(library) => self.profiler(library, &self.stop_options())?,
            Recorder::Own => {
                let stop = format!("JFR.stop name={NAME} filename={}", self.path(RECORDING));
                self.own(&stop, "Stopped recording")?;
            }
        }
        let bytes = self.read(&self.file(RECORDING));
        self.remove(&[self.file(RECORDING)])?;
        bytes
    }

    /// Removes all files from the folder.
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

    /// Calls async-profiler. When it refuses, the reason is in its log.
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

    /// Sends a command to the virtual machine's own recorder. The result code is always 0: the text shows how it ended.
    fn own(&self, words: &str, done: &str) -> Result<(), RecordError> {
        let text = command(&self.jvm, Command::Jcmd(words))?;
        if text.contains(done) {
            return Ok(());
        }
        Err(RecordError::Own(text.trim().to_owned()))
    }

    /// Name of a file of ours for this process.
    fn file(&self, ending: &str) -> String {
        format!("alluvium-{}{ending}", self.jvm.own_pid)
    }

    /// Path of such a file, as the process sees it.
    fn path(&self, ending: &str) -> String {
        format!("{}/{}", self.folder, self.file(ending))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), RecordError> {
        let put = || Place::open(&self.jvm, &self.folder)?.put(name, bytes, Mode::from_raw_mode(0o700));
        as_user(&self.jvm, put).map_err(|error| self.failed("cannot write", name, error))
    }

    fn remove(&self, names: &[String]) -> Result<(), RecordError> {
        let remove = || {
            let place = Place::open(&self.jvm, &self.folder)?;
            names.iter().try_for_each(|name| place.remove(name))
        };
        as_user(&self.jvm, remove).map_err(|error| self.failed("cannot remove", &names.join(", "), error))
    }

    /// The bytes of a file that the process wrote.
    fn read(&self, name: &str) -> Result<Vec<u8>, RecordError> {
        let read = || -> io::Result<Vec<u8>> {
            let place = Place::open(&self.jvm, &self.folder)?;
            place.read(name, MAX_RECORDING_BYTES)
        };
        as_user(&self.jvm, read).map_err(|error| self.failed("cannot read", name, error))
    }

    fn failed(&self, what: &'static str, name: &str, error: io::Error) -> RecordError {
        RecordError::File {
            what,
            path: format!("{}/{name}", self.folder),
            pid: self.jvm.key.pid,
            error,
        }
    }
}

const RECORDING: &str = ".jfr";
const LOG: &str = ".log";
const SETTINGS: &str = ".jfc";
