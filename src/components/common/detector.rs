//! How a component that reads files sees their changes: the arguments `detector` and `poll_frequency`, their check, and one bounded reader of text.
//!
//! In: arguments. Out: what to watch and how often to look, for [`crate::components::common::source`].

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::components::common::checks;
use crate::lang::schema::{Arguments, Attribute, Kind};
use crate::pipeline::component::ArgumentError;

/// Largest file taken, in bytes: what is read is kept, exported and compared.
pub const MAX_FILE: u64 = 16 << 20;

/// `detector`
pub const DETECTOR: Attribute = Attribute::with_default(
    "detector",
    Kind::String,
    "\"fsnotify\"",
    "How changes are seen: fsnotify (the system tells) or poll.",
);
/// `poll_frequency`
pub const POLL_FREQUENCY: Attribute = Attribute::with_default(
    "poll_frequency",
    Kind::Duration,
    "\"1m\"",
    "Time from one look at the file to the next, with either detector.",
);

/// How changes are seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detector {
    /// Whether the system tells of changes of the folder.
    pub watches: bool,
    /// Time from one look to the next.
    pub interval: Duration,
}

impl Detector {
    /// Of these arguments.
    pub fn new(arguments: &Arguments) -> Result<Self, ArgumentError> {
        // An empty text means the default, as in Alloy.
        if !arguments.string("detector").is_empty() {
            checks::choice(arguments, "", "detector", &["fsnotify", "poll"])?;
        }
        checks::positive(arguments, "", "poll_frequency")?;
        Ok(Self {
            watches: &*arguments.string("detector") != "poll",
            interval: arguments.duration("poll_frequency"),
        })
    }
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The text of a file of at most [`MAX_FILE`].
pub fn read_text(path: &Path) -> Result<String, String> {
    let name = path.display();
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
        .map_err(|error| format!("cannot read {name}: {error}"))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("cannot read {name}: it is longer than {} MiB", MAX_FILE >> 20));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        format!("{name} is not UTF-8 text: bad byte at offset {at}")
    })
}
