//! Files with the output of `perf script`: one profile for each event.

use crate::files::error::FileError;
use crate::files::imported::{FileFormat, ImportedProfile};
use crate::perf_script::read_events;
use alluvium_profile::call_tree::Size;

/// Reads the profiles of a text.
pub(super) fn read(text: &str) -> Result<Vec<ImportedProfile>, FileError> {
    let events = read_events(text, Size::MAX).map_err(|error| FileFormat::PerfScript.invalid(&error))?;
    let profiles = events
        .iter()
        .map(|event| ImportedProfile::new(&event.name, event.columns(0, 0)));
    Ok(profiles.collect())
}
