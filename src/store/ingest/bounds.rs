//! Bounds on the size to which a profile may expand.
//!
//! A profile of a few kilobytes can use a location with many lines in many stacks, or one long id in every sample.
//! These bounds limit the resulting frames, text and rows. Real profiles stay far below the bounds, which cannot be
//! switched off. The bounds also apply to records of the log, so that no stored record can block a start or a flush.
//!
//! In: a decoded profile. Out: a refusal that names the number and the bound.

use hashbrown::HashSet;

use crate::store::rules::limits::{Rejection, start_of};
use alluvium_profile::SinkErrorKind;
use alluvium_profile::pprof::{Location, Profile};

/// Maximum number of sample types of a profile. Go's heap profile has 4, a JFR recording about 10.
const MAX_SAMPLE_TYPES: usize = 64;
/// Maximum size of a profile type id in bytes. Every row of a query's result contains it.
const MAX_TYPE_BYTES: usize = 1024;
/// Maximum size of a profile id in bytes. A UUID has 36.
const MAX_ID_BYTES: usize = 256;
/// Maximum size of a span or trace id in bytes. The row of each sample contains it. A trace id has 32.
const MAX_LINK_BYTES: usize = 128;
/// Maximum number of frames of one stack, including inlined frames. By default the deepest accepted stack has 1,000
/// locations.
const MAX_STACK_FRAMES: u64 = 16 << 10;
/// Maximum size of all names in one stack in bytes: 1,000 frames of 1,000 bytes. Readers hold a few hundred stacks at a
/// time.
const MAX_STACK_TEXT: u64 = 1 << 20;
/// Maximum number of frames of the distinct stacks of a profile: 16,000 stacks of 250 frames.
const MAX_FRAMES: u64 = 4_000_000;
/// Maximum size of the names in the distinct stacks of a profile in bytes. A flush writes all names of each stack, even
/// if several stacks contain the same name.
const MAX_TEXT: u64 = 512 << 20;
/// Maximum size of the names of all functions and mappings in bytes. A shared text is counted once for each use.
const MAX_NAMES: usize = 64 << 20;
/// Maximum size of the text labels of all samples in bytes. A shared text is counted once for each use.
const MAX_LABELS: usize = 64 << 20;
/// Maximum number of profile rows from one profile: its series times its sample types.
const MAX_PROFILE_ROWS: usize = 64 << 10;
/// Maximum size of the labels of all series of a profile in bytes.
const MAX_SERIES_TEXT: usize = 16 << 20;

fn refused(reason: &'static str, message: String) -> Rejection {
    Rejection::new(reason, SinkErrorKind::TooLarge, message)
}

/// Checks the length of the profile id that the sender chose.
pub(crate) fn check_id(id: &str) -> Result<(), Rejection> {
    if id.len() <= MAX_ID_BYTES {
        return Ok(());
    }
    Err(refused(
        "profile_id_too_long",
        format!(
            "profile id `{}` has {} bytes, but at most {MAX_ID_BYTES} are allowed",
            start_of(id),
            id.len()
        ),
    ))
}

/// Checks the number and lengths of the profile types.
pub(crate) fn check_types(name: &str, profile: &Profile<'_>) -> Result<(), Rejection> {
    let count = profile.sample_types.len();
    if count > MAX_SAMPLE_TYPES {
        return Err(refused(
            "sample_types_limit",
            format!("profile has {count} sample types, but at most {MAX_SAMPLE_TYPES} are allowed"),
        ));
    }
    let period = profile.period_type.kind.len() + profile.period_type.unit.len();
    for kind in &profile.sample_types {
        let bytes = name.len() + kind.kind.len() + kind.unit.len() + period;
        if bytes > MAX_TYPE_BYTES {
            return Err(refused(
                "profile_type_too_long",
                format!(
                    "the profile type of sample type `{}` has {bytes} bytes, but at most {MAX_TYPE_BYTES} are allowed",
                    start_of(kind.kind)
                ),
            ));
        }
    }
    Ok(())
}

/// Checks the length of a span or trace id.
pub(crate) fn check_link(name: &str, id: &str) -> Result<(), Rejection> {
    if id.len() <= MAX_LINK_BYTES {
        return Ok(());
    }
    Err(refused(
        "link_too_long",
        format!(
            "sample label `{name}` has {} bytes, but at most {MAX_LINK_BYTES} are allowed for an id",
            id.len()
        ),
    ))
}

/// Checks the number of rows of `series` series with `types` types, and the size of their labels in bytes.
pub(crate) fn check_series(series: usize, types: usize, text: usize) -> Result<(), Rejection> {
    let rows = series.saturating_mul(types);
    if rows > MAX_PROFILE_ROWS {
        return Err(refused(
            "series_limit",
            format!(
                "the labels of the samples make at least {series} series of {types} sample types, \
                 but series times types must not exceed {MAX_PROFILE_ROWS}"
            ),
        ));
    }
    if text > MAX_SERIES_TEXT {
        return Err(refused(
            "series_text_limit",
            format!(
                "the labels of the first {series} series have {text} bytes, but a profile may have at most \
                    {MAX_SERIES_TEXT}"
            ),
        ));
    }
    Ok(())
}

/// Checks the total size of the names of all functions and mappings. Each use of a name is hashed, so the work may be
/// much larger than the profile if many functions share one text.
pub(crate) fn check_names(profile: &Profile<'_>) -> Result<(), Rejection> {
    let functions = profile.functions.iter();
    let names = functions.map(|function| function.display_name().len() + function.file.len());
    let mappings = profile.mappings.iter();
    let text: usize = names
        .chain(mappings.map(|mapping| mapping.file.len() + mapping.build_id.len()))
        .sum();
    if text <= MAX_NAMES {
        return Ok(());
    }
    Err(refused(
        "names_limit",
        format!("the names of all functions and mappings have {text} bytes, but at most {MAX_NAMES} are allowed"),
    ))
}

/// Checks the total size of the labels of the samples read so far. Each label is sorted and hashed.
pub(crate) fn check_labels(sample: u32, text: usize) -> Result<(), Rejection> {
    if text <= MAX_LABELS {
        return Ok(());
    }
    Err(refused(
        "labels_limit",
        format!("the labels of the samples up to {sample} have {text} bytes, but at most {MAX_LABELS} are allowed"),
    ))
}

/// A number of frames and the size of their names in bytes.
#[derive(Clone, Copy, Default)]
struct Extent {
    frames: u64,
    text: u64,
}

impl Extent {
    fn add(&mut self, other: Self) {
        self.frames = self.frames.saturating_add(other.frames);
        self.text = self.text.saturating_add(other.text);
    }
}

/// Checks each stack, and all distinct stacks together. Returns an upper bound of the number of frames in the distinct
/// stacks.
pub(crate) fn check_stacks(profile: &Profile<'_>, stack_ids: &[u64]) -> Result<usize, Rejection> {
    let locations = location_extents(profile);
    let mut all = Extent::default();
    let mut stacks = Vec::with_capacity(stack_ids.len());
    for sample in 0..profile.sample_count() {
        let mut stack = Extent::default();
        for location in profile.stack(sample) {
            stack.add(locations[*location as usize]);
        }
        if stack.frames > MAX_STACK_FRAMES {
            return Err(refused(
                "stack_frames_limit",
                format!(
                    "the stack of sample {sample} has {} frames, including inlined ones, but at most \
                        {MAX_STACK_FRAMES} are allowed",
                    stack.frames
                ),
            ));
        }
        if stack.text > MAX_STACK_TEXT {
            return Err(refused(
                "stack_text_limit",
                format!(
                    "the names in the stack of sample {sample} have {} bytes, but at most {MAX_STACK_TEXT} are allowed",
                    stack.text
                ),
            ));
        }
        all.add(stack);
        stacks.push(stack);
    }
    // Most profiles are far below the bounds even if repeated stacks are counted each time.
    if all.frames > MAX_FRAMES || all.text > MAX_TEXT {
        let mut distinct = HashSet::with_capacity(stack_ids.len());
        all = Extent::default();
        for (stack, id) in stacks.iter().zip(stack_ids) {
            if distinct.insert(id) {
                all.add(*stack);
            }
        }
    }
    for (reason, unit, count, bound) in [
        ("frames_limit", "frames", all.frames, MAX_FRAMES),
        ("frames_text_limit", "bytes of names", all.text, MAX_TEXT),
    ] {
        if count > bound {
            return Err(refused(
                reason,
                format!("the distinct stacks of the profile have {count} {unit}, but at most {bound} are allowed"),
            ));
        }
    }
    Ok(all.frames as usize)
}

/// Returns, for each location, the number of its frames and the size of their names in bytes. A location has one frame
/// per line, or one frame if it has no lines.
fn location_extents(profile: &Profile<'_>) -> Vec<Extent> {
    profile
        .locations
        .iter()
        .map(|location| {
            let mapping = match location.mapping {
                Location::NO_MAPPING => 0,
                index => {
                    let mapping = &profile.mappings[index as usize];
                    (mapping.file.len() + mapping.build_id.len()) as u64
                }
            };
            let lines = profile.lines_of(location);
            let frames = lines.len().max(1) as u64;
            let names = lines.iter().fold(0u64, |sum, line| {
                let function = &profile.functions[line.function as usize];
                sum.saturating_add((function.display_name().len() + function.file.len()) as u64)
            });
            Extent {
                frames,
                text: mapping.saturating_mul(frames).saturating_add(names),
            }
        })
        .collect()
}
