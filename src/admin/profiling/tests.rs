//! Tests with profiles of the test program itself: known work must appear under its name.
//!
//! A process has only one sampler, so a single test does everything that needs it. The test program runs on jemalloc
//! with sampling on.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;

use alluvium_base::Shutdown;
use alluvium_profile::pprof::{Profile, decode, gunzip};
use alluvium_telemetry::process::cpu_seconds;

use super::symbols::Symbols;
use super::{Profiling, ProfilingError, heap};

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[allow(unsafe_code, reason = "jemalloc reads its options from this symbol before main")]
#[unsafe(export_name = "malloc_conf")]
static MALLOC_CONF: &[u8; 45] = b"prof:true,prof_active:true,lg_prof_sample:16\0";

#[inline(never)]
fn burn_for_the_cpu_test(stop: &AtomicBool) -> u64 {
    let mut sum = 0u64;
    while !stop.load(Ordering::Relaxed) {
        for n in 0..10_000u64 {
            sum = black_box(sum.wrapping_mul(31).wrapping_add(n));
        }
    }
    sum
}

#[inline(never)]
fn hold_for_the_heap_test() -> Vec<Vec<u8>> {
    (0..64).map(|n| black_box(vec![n; 1 << 20])).collect()
}

fn opened(gzip: Vec<u8>) -> Bytes {
    gunzip(&gzip.into(), usize::MAX).unwrap()
}

fn types(profile: &Profile<'_>) -> Vec<String> {
    let types = profile.sample_types.iter();
    types
        .map(|sample_type| format!("{}/{}", sample_type.kind, sample_type.unit))
        .collect()
}

/// Returns the names of the functions in the stack of a sample, leaf first.
fn names<'a>(profile: &Profile<'a>, sample: usize) -> Vec<&'a str> {
    let locations = profile.stack(sample).iter();
    let lines = locations.flat_map(|location| profile.lines_of(&profile.locations[*location as usize]));
    lines
        .map(|line| profile.functions[line.function as usize].name)
        .collect()
}

/// Sums the values of all samples whose stack contains a function with `part` in its name. An empty `part` selects all
/// samples.
fn sum(profile: &Profile<'_>, part: &str) -> Vec<i64> {
    let mut sums = vec![0; profile.sample_types.len()];
    for sample in 0..profile.sample_count() {
        if part.is_empty() || names(profile, sample).iter().any(|name| name.contains(part)) {
            sums.iter_mut()
                .zip(profile.values_of(sample))
                .for_each(|(sum, value)| *sum += value);
        }
    }
    sums
}

#[tokio::test(flavor = "multi_thread")]
async fn cpu_work_is_found_under_its_name_and_adds_up() {
    let profiling = Profiling::new(Shutdown::new());
    for seconds in [0, 301] {
        let error = profiling.cpu(Duration::from_secs(seconds)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the duration of a CPU profile must be 1 to 300 seconds, not {seconds}")
        );
    }

    let before = cpu_seconds().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let burner = std::thread::spawn({
        let stop = stop.clone();
        move || burn_for_the_cpu_test(&stop)
    });
    let (profile, second) = tokio::join!(profiling.cpu(Duration::from_secs(3)), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        profiling.clone().cpu(Duration::from_secs(1)).await
    });
    let used = (cpu_seconds().unwrap() - before) * 1e9;
    stop.store(true, Ordering::Relaxed);
    burner.join().unwrap();
    assert!(matches!(second, Err(ProfilingError::Busy)), "{second:?}");

    let bytes = opened(profile.unwrap());
    let profile = decode(&bytes).unwrap();
    assert_eq!(types(&profile), ["samples/count", "cpu/nanoseconds"]);
    assert_eq!(profile.period, 10_000_000);
    assert!(profile.duration_nanos >= 3_000_000_000, "{}", profile.duration_nanos);
    let total = sum(&profile, "");
    assert_eq!(total[1], total[0] * profile.period);
    let burnt = sum(&profile, "burn_for_the_cpu_test");
    // Three seconds of CPU time are 300 samples. A busy machine may deliver only a twentieth of them, and a kernel with
    // a slow tick samples less often.
    assert!(burnt[0] >= 3, "only {burnt:?} of {total:?}");
    // The process also uses time after the last sample, for resolving symbols and for other tests. A tighter bound is
    // not possible.
    assert!((total[1] as f64) < used * 1.3, "{total:?} of {used}");

    // If the caller goes away, sampling stops.
    let timeout_result = tokio::time::timeout(Duration::from_millis(300), profiling.cpu(Duration::from_mins(1))).await;
    assert!(timeout_result.is_err());
    // A stopping program does not wait for the profile.
    let shutdown = Shutdown::new();
    let stopping = Profiling::new(shutdown.clone());
    shutdown.cancel();
    let started = Instant::now();
    stopping.cpu(Duration::from_mins(1)).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn held_memory_is_found_under_its_name_until_it_is_freed() {
    let profiling = Profiling::new(Shutdown::new());
    let blocks = hold_for_the_heap_test();
    let bytes = opened(profiling.heap().await.unwrap());
    let profile = decode(&bytes).unwrap();
    assert_eq!(types(&profile), ["inuse_objects/count", "inuse_space/bytes"]);
    let sums = sum(&profile, "hold_for_the_heap_test");
    let expected = f64::from(64 << 20);
    assert!((sums[1] as f64 - expected).abs() < expected * 0.1, "{sums:?}");
    assert!((60..=68).contains(&sums[0]), "{sums:?}");
    for sample in 0..profile.sample_count() {
        let leaf = profile.locations[profile.stack(sample)[0] as usize];
        for line in profile.lines_of(&leaf) {
            let name = profile.functions[line.function as usize].name;
            assert!(!name.contains("_rjem_") && !name.contains("__rust_"), "{name}");
        }
    }
    drop(blocks);
    let bytes = opened(profiling.heap().await.unwrap());
    let profile = decode(&bytes).unwrap();
    assert!(sum(&profile, "hold_for_the_heap_test")[1] < 1 << 20);
}

#[test]
fn a_dump_that_is_not_one_is_refused() {
    let mut symbols = Symbols::default();
    let error = |text: &str, symbols: &mut Symbols| heap::to_pprof(text, symbols).unwrap_err().to_string();
    assert_eq!(
        error("", &mut symbols),
        "the heap profile failed: jemalloc's dump has no `heap_v2` header"
    );
    assert_eq!(
        error("heap_v2/1024\n  t*: 1: 2 [0: 0]\n@ 0x1\n  t*: x\n", &mut symbols),
        "the heap profile failed: jemalloc's dump has the invalid line `t*: x`"
    );
}
