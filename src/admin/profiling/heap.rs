//! Heap profile of this process from jemalloc's samples.
//!
//! In: jemalloc's dump (`heap_v2` text: return addresses, sampled objects and bytes). Out: gzip pprof with
//! `inuse_objects/count` and `inuse_space/bytes`, scaled up from the sample as `jeprof` does. Requires jemalloc as the
//! allocator, started with `prof:true` (set in `main.rs`). The profile contains no freed memory, because jemalloc does
//! not count it.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::error::{ProfilingError, blocking};
use super::samples::{Samples, program};
use super::symbols::{Named, Symbols};
use alluvium_profile::pprof::{Profile, ValueType};

/// Requests a dump from jemalloc, through a temporary file.
pub(crate) async fn dump() -> Result<String, ProfilingError> {
    let Some(control) = jemalloc_pprof::PROF_CTL.as_ref() else {
        return Err(ProfilingError::Unavailable(
            "the heap cannot be profiled: this program does not run on jemalloc with `prof:true`",
        ));
    };
    let mut control = control.clone().lock_owned().await;
    if !control.activated() {
        return Err(ProfilingError::Unavailable(
            "the heap cannot be profiled: the sampling of allocations is off (`prof_active:false`)",
        ));
    }
    blocking("heap", move || {
        let mut file = control.dump().map_err(failed)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(failed)?;
        Ok(text)
    })
    .await
}

/// Converts a dump to pprof.
pub(crate) fn to_pprof(dump: &str, symbols: &mut Symbols) -> Result<Vec<u8>, ProfilingError> {
    let mut lines = dump.lines();
    let interval: f64 = lines
        .next()
        .and_then(|line| line.strip_prefix("heap_v2/"))
        .and_then(|number| number.trim().parse().ok())
        .ok_or_else(|| failed("jemalloc's dump has no `heap_v2` header"))?;
    let mut allocations = Vec::new();
    let mut stack: Option<Vec<u64>> = None;
    for line in lines {
        let line = line.trim();
        if let Some(addresses) = line.strip_prefix("@ ") {
            stack = Some(addresses.split_whitespace().filter_map(address).collect());
        } else if let Some(counts) = line.strip_prefix("t*:") {
            // The first such line is the sum of all stacks; no stack precedes it.
            let Some(addresses) = stack.take() else { continue };
            let Some((objects, bytes)) = live(counts) else {
                return Err(failed(format!("jemalloc's dump has the invalid line `{line}`")));
            };
            let Some((objects, bytes)) = unsampled(objects, bytes, interval) else {
                continue;
            };
            let callers = symbols.without_allocator(&addresses).iter();
            let stack = callers.map(|&address| (address, symbols.named(address))).collect();
            allocations.push(Allocations { stack, objects, bytes });
        }
    }
    Ok(encode(&allocations, interval as i64))
}

/// Live allocations of one stack.
struct Allocations {
    /// Return addresses with their names, leaf first.
    stack: Vec<(u64, Arc<[Named]>)>,
    objects: i64,
    bytes: i64,
}

fn encode(allocations: &[Allocations], period: i64) -> Vec<u8> {
    let value_type = |kind, unit| ValueType { kind, unit };
    let header = Profile {
        sample_types: vec![value_type("inuse_objects", "count"), value_type("inuse_space", "bytes")],
        period_type: value_type("space", "bytes"),
        period,
        ..Profile::default()
    };
    let program = program();
    let mut samples = Samples::new(&program, header);
    for Allocations { stack, objects, bytes } in allocations {
        let locations = stack.iter();
        let stack = locations
            .map(|(address, names)| samples.location(*address, names.iter().map(Named::frame)))
            .collect();
        samples.add(stack, &[*objects, *bytes]);
    }
    samples.finish(SystemTime::now(), Duration::ZERO)
}

fn address(word: &str) -> Option<u64> {
    u64::from_str_radix(word.strip_prefix("0x").unwrap_or(word), 16).ok()
}

/// Parses objects and bytes from ` 12: 3456 [0: 0]`. The numbers in brackets also count freed memory. They are zero
/// unless jemalloc runs with `prof_accum`.
fn live(counts: &str) -> Option<(f64, f64)> {
    let mut words = counts.split_whitespace();
    let objects = words.next()?.strip_suffix(':')?.parse().ok()?;
    Some((objects, words.next()?.parse().ok()?))
}

/// Scales sampled numbers up to estimates. jemalloc samples an allocation of `n` bytes with probability `1 - exp(-n /
/// interval)`.
fn unsampled(objects: f64, bytes: f64, interval: f64) -> Option<(i64, i64)> {
    if objects <= 0.0 || bytes <= 0.0 {
        return None;
    }
    let scale = 1.0 / (1.0 - (-(bytes / objects) / interval).exp());
    Some(((objects * scale).round() as i64, (bytes * scale).round() as i64))
}

fn failed(reason: impl ToString) -> ProfilingError {
    ProfilingError::Failed {
        profile_name: "heap",
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod unit {
    use super::{live, unsampled};

    #[test]
    fn small_objects_are_scaled_up_and_large_ones_hardly() {
        let interval = 524_288.0;
        let (objects, bytes) = unsampled(1.0, 64.0, interval).unwrap();
        assert_eq!((objects, bytes), (8193, 524_320));
        let (objects, bytes) = unsampled(2.0, 2e8, interval).unwrap();
        assert_eq!((objects, bytes), (2, 200_000_000));
        assert_eq!(unsampled(0.0, 0.0, interval), None);
    }

    #[test]
    fn counts_are_read_with_and_without_brackets() {
        assert_eq!(live(" 12: 3456 [0: 0]"), Some((12.0, 3456.0)));
        assert_eq!(live(" 12: 3456"), Some((12.0, 3456.0)));
        assert_eq!(live(" 12 3456"), None);
    }
}
