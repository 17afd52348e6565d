//! Encodes the stacks of a profile in the file formats of several profilers, for tests, benches and fuzz targets. Equal
//! profiles give equal bytes.
//!
//! In: a profile. The first value of each of its samples is a number of ticks, each of `stacks::TICK_NANOS`. Out: a
//! file of each supported format except JFR. The running program does not use this module.

mod instruments;
mod json;
pub(crate) mod nettrace;
pub(super) mod stacks;
mod texts;

use crate::files::synthetic::stacks::Stacks;
use alluvium_profile::pprof::{self, Profile};

/// Returns a file of each format, with the format's name.
pub fn files(profile: &Profile<'_>) -> Vec<(&'static str, Vec<u8>)> {
    let stacks = Stacks::of(profile);
    vec![
        ("pprof", pprof::encode(profile)),
        ("go_text", texts::go(&stacks).into()),
        ("collapsed", texts::collapsed(&stacks).into()),
        ("perf_script", texts::perf_script(&stacks).into()),
        ("speedscope", json::speedscope(&stacks).into()),
        ("cpuprofile", json::cpuprofile(&stacks).into()),
        ("chrome_trace", json::chrome_trace(&stacks).into()),
        ("durations", json::durations(&stacks).into()),
        ("firefox", json::firefox(&stacks).into()),
        ("nettrace", nettrace::file(&stacks)),
        ("instruments", instruments::table(&stacks).into()),
    ]
}
