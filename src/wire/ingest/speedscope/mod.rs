//! speedscope files, as the web page of speedscope and many profilers write them: several profiles, each of samples or
//! of events.
//!
//! In: JSON. Out: one profile for each name and unit. The application's name and the unit determine the meaning of the
//! values: times become nanoseconds whatever their unit, bytes stay bytes, and values without a unit are counts, as in
//! folded text. Pyroscope differs in two ways. It ignores the unit of a single profile. It multiplies times by the
//! factor of their unit, but not the caller's time between the preceding event and the start of a nested call.

mod file;
mod stacks;

use std::collections::BTreeMap;

use memchr::memmem;

use crate::connect::ConnectError;
use crate::ingest::format::{Format, Opening, Payload, ReadError, too_large};
use crate::ingest::meaning::Meaning;
use crate::ingest::query::IngestQuery;
use crate::ingest::speedscope::file::{File, OneProfile};
use crate::ingest::speedscope::stacks::{StackError, Stacks, shown};
use alluvium_profile::DecodedProfile;
use alluvium_profile::call_tree::{Size, SizeLimit};

/// The format of speedscope files.
pub(crate) static SPEEDSCOPE: Format = Format {
    names: &["speedscope"],
    content_type: "",
    field: "",
    opens_gzip: false,
    is_like,
    memory,
    read,
};

/// Value of `$schema` in every file.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Label with the name of a profile, if a file has several.
const NAME_LABEL: &str = "profile_name";

/// Maximum number of profiles in a file, which often has one per thread. Each name and unit needs columns of its own.
const MAX_PROFILES: usize = 1000;

/// Memory in bytes for each profile, for each object (a frame or an event) and for each further element of a list.
const PROFILE_BYTES: usize = 8 << 10;
const OBJECT_BYTES: usize = 192;
const ELEMENT_BYTES: usize = 40;

/// Maximum number of frames in the stacks of a file: a fixed number, and an additional number for each element.
const FREE_FRAMES: usize = 1 << 18;
const FRAMES_OF_ELEMENT: usize = 32;

fn is_like(body: &[u8]) -> bool {
    body.trim_ascii_start().starts_with(b"{") && memmem::find(body, SCHEMA.as_bytes()).is_some()
}

/// Upper bound for the contents of a file, computed from the number of its commas, braces and brackets.
struct Outline {
    objects: usize,
    elements: usize,
    size: Size,
}

impl Outline {
    fn of(json: &[u8]) -> Self {
        let objects = memchr::memchr_iter(b'{', json).count();
        let elements = objects + memchr::memchr2_iter(b',', b'[', json).count();
        let max_size = Size::MAX;
        let frames = FREE_FRAMES.saturating_add(elements.saturating_mul(FRAMES_OF_ELEMENT));
        let size = Size {
            calls: max_size.calls.min(elements),
            // If several profiles share a frame, each has its own copy of the name.
            text: max_size.text.min(json.len().saturating_mul(4)),
            stacks: max_size.stacks.min(elements),
            frames: max_size.frames.min(frames),
        };
        Self {
            objects,
            elements,
            size,
        }
    }

    fn bytes(&self) -> usize {
        let parts = [
            (self.objects.min(MAX_PROFILES), PROFILE_BYTES),
            (self.objects, OBJECT_BYTES),
            (self.elements, ELEMENT_BYTES),
        ];
        let parsed = parts.map(|(count, bytes)| count.saturating_mul(bytes));
        parsed.into_iter().fold(self.size.bytes(), usize::saturating_add)
    }
}

fn memory(payload: &Payload, opening: Opening) -> Result<usize, ConnectError> {
    let json = &payload.content;
    if json.len() > opening.limit() {
        return Err(too_large(opening.limit()));
    }
    Ok(json.len().saturating_add(Outline::of(json).bytes()))
}

fn read(payload: &Payload, query: &IngestQuery, opening: Opening) -> Result<Vec<DecodedProfile>, ReadError> {
    let json = &payload.content;
    if json.len() > opening.limit() {
        return Err(too_large(opening.limit()).into());
    }
    let file: File<'_> = serde_json::from_slice(json).map_err(|error| unreadable(&error.to_string()))?;
    if file.schema != SCHEMA {
        let problem = format!("$schema: `{}` is not `{SCHEMA}`", shown(&file.schema));
        return Err(unreadable(&problem).into());
    }
    if file.profiles.len() > MAX_PROFILES {
        let message = format!(
            "the file has {} profiles, the limit is {MAX_PROFILES}",
            file.profiles.len()
        );
        return Err(ConnectError::too_large(message).into());
    }
    let profiles = file.profiles.len();
    let mut room = SizeLimit::new(Outline::of(json).size);
    let mut decoded = Vec::new();
    for ((name, _), parts) in group_by_name_and_unit(&file.profiles) {
        let Some((first, _)) = parts.first() else { continue };
        let (meaning, scale) = meaning_of(first, query, profiles)?;
        let mut stacks = Stacks::new(room, &file.shared.frames);
        for (profile, index) in &parts {
            let result = stacks.add(profile, scale);
            result.map_err(|error| refused(&error, *index))?;
        }
        let mut header = meaning.profile(query);
        if header.duration_nanos == 0 {
            header.duration_nanos = parts
                .iter()
                .map(|(profile, _)| length_nanos(profile))
                .max()
                .unwrap_or(0);
        }
        let (columns, left) = stacks
            .tree
            .into_columns(header, 1)
            .map_err(|error| ConnectError::too_large(error.to_string()))?;
        room = left;
        let Some(columns) = columns else { continue };
        let mut profile = meaning.decoded(query, columns);
        if profiles > 1 {
            profile.labels = profile.labels.with(NAME_LABEL, name);
        }
        decoded.push(profile);
    }
    Ok(decoded)
}

/// Profiles that are merged into one, with their indices in the file.
type Parts<'a> = Vec<(&'a OneProfile<'a>, usize)>;

/// Groups the profiles by name and unit.
fn group_by_name_and_unit<'a>(profiles: &'a [OneProfile<'a>]) -> BTreeMap<(&'a str, &'a str), Parts<'a>> {
    let mut groups: BTreeMap<_, Parts<'a>> = BTreeMap::new();
    for (index, profile) in profiles.iter().enumerate() {
        let key = (profile.name.as_ref(), profile.unit.as_ref());
        groups.entry(key).or_default().push((profile, index));
    }
    groups
}

/// Returns the meaning of the values of a profile, and the factor by which the values are multiplied. `profiles` is the
/// number of profiles in the file.
fn meaning_of(profile: &OneProfile<'_>, query: &IngestQuery, profiles: usize) -> Result<(Meaning, i64), ConnectError> {
    let unit = profile.unit.as_ref();
    let app = &query.app;
    if unit == "none" {
        let meaning = Meaning::of(app, query)?;
        let scale = meaning.scale;
        return Ok((meaning, scale));
    }
    // A sample rate of 0 turns values into counts. Values with a unit are never counts, so that rate is ignored.
    let query = &IngestQuery {
        sample_rate: query.sample_rate.filter(|rate| *rate != 0),
        ..query.clone()
    };
    let meaning = match unit {
        // As in Pyroscope, the unit determines the meaning if the file has several profiles, or if the unit is bytes
        // and the name of the application has no dot.
        _ if profiles > 1 => Meaning::of(&format!("{app}.{unit}"), query)?,
        "bytes" if !app.contains('.') => Meaning::of(&format!("{app}.bytes"), query)?,
        _ => Meaning::of(app, query)?,
    };
    match (unit_nanos(unit), meaning.unit) {
        (Some(nanos), "nanoseconds") => Ok((meaning, nanos)),
        (None, "bytes") if unit == "bytes" => Ok((meaning, 1)),
        (_, expected_unit) => {
            let problem = format!(
                "the unit `{}` does not match `{app}`, which counts {expected_unit}",
                shown(unit)
            );
            Err(unreadable(&problem))
        }
    }
}

/// Returns the length of a unit of time in nanoseconds.
fn unit_nanos(unit: &str) -> Option<i64> {
    match unit {
        "nanoseconds" => Some(1),
        "microseconds" => Some(1000),
        "milliseconds" => Some(1_000_000),
        "seconds" => Some(1_000_000_000),
        _ => None,
    }
}

/// Returns the time from start to end of a profile, if its values are times.
fn length_nanos(profile: &OneProfile<'_>) -> i64 {
    let length = unit_nanos(&profile.unit)
        .zip(profile.end_value)
        .and_then(|(nanos, end)| end.scaled_difference(profile.start_value, nanos));
    length.unwrap_or(0).max(0)
}

fn refused(error: &StackError, index: usize) -> ConnectError {
    match error {
        StackError::TooMany(_) => ConnectError::too_large(error.to_string()),
        StackError::Invalid { .. } => unreadable(&format!("profiles[{index}].{error}")),
    }
}

fn unreadable(problem: &str) -> ConnectError {
    ConnectError::invalid(format!("cannot read the profile as a speedscope file: {problem}")).with_status(422)
}

#[cfg(test)]
mod tests;
