//! Tests with texts in the form of Go's profiles. Other tests read the output of a real Go program.

use proptest::prelude::*;

use super::*;
use crate::pprof::{decode, encode};

const HEAP: &str = "heap profile: 2: 1024 [10: 5120] @ heap/1048576
1: 512 [5: 2560] @ 0x1001 0x2001
#\t0x1000\tmain.alloc+0x2b\t/src/main.go:12
#\t0x2000\tmain.main+0x1\t/src/main.go:30

1: 512 [5: 2560] @ 0x1001 0x3001

# runtime.MemStats
# Alloc = 1234
";
const GOROUTINE: &str = "goroutine profile: total 3
2 @ 0x10 0x21
# labels: {\"job\":\"a b\", \"q\":\"x\\\"y\"}
#\t0x20\t\tmain.wait+0x10\t\t/src/main.go:9

1 @
#\t0x0
";
const MUTEX: &str = "--- mutex:
cycles/second=2000000000
sampling period=5
4000 3 @ 0x11 0x22
#\t0x10\tsync.(*Mutex).Unlock+0x1f\t/go/sync/mutex.go:223
";

/// Returns a text for each sample: its stack (functions, or addresses without functions), its labels and its values.
fn shown(profile: &Profile<'_>) -> Vec<String> {
    let frame = |location: &u32| {
        let location = &profile.locations[*location as usize];
        match profile.lines_of(location) {
            [line] => {
                let function = &profile.functions[line.function as usize];
                format!("{} {}:{}", function.name, function.file, line.line)
            }
            _ => format!("{:#x}", location.address),
        }
    };
    let sample = |index: usize| {
        let stack: Vec<String> = profile.stack(index).iter().map(frame).collect();
        let labels = profile.labels_of(index);
        format!("{} {labels:?} {:?}", stack.join("; "), profile.values_of(index))
    };
    (0..profile.sample_count()).map(sample).collect()
}

#[test]
fn a_heap_is_scaled_by_its_rate_and_has_gos_types() {
    let profile = read(HEAP.as_bytes()).unwrap();
    let types: Vec<&str> = profile
        .sample_types
        .iter()
        .map(|sample_type| sample_type.kind)
        .collect();
    assert_eq!(types, ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]);
    assert_eq!((profile.period_type.kind, profile.period), ("space", 524_288));
    // Go samples an object of 512 bytes once in 1,024.5 allocations.
    assert_eq!(
        shown(&profile),
        [
            "main.alloc /src/main.go:12; main.main /src/main.go:30 [] [5122, 2622720, 1024, 524544]",
            "0x1001; 0x3000 [] [5122, 2622720, 1024, 524544]",
        ]
    );
}

#[test]
fn counts_have_labels_and_stacks_may_be_empty() {
    let profile = read(GOROUTINE.as_bytes()).unwrap();
    assert_eq!(
        profile.sample_types,
        [ValueType {
            kind: "goroutine",
            unit: "count"
        }]
    );
    assert_eq!(
        shown(&profile),
        [
            "main.wait /src/main.go:9 [Text(\"job\", \"a b\"), Text(\"q\", \"x\\\\\\\"y\")] [2]",
            " [] [1]",
        ]
    );
    let threads = "threadcreate profile: total 1\n1 @\n";
    assert_eq!(read(threads.as_bytes()).unwrap().sample_types[0].kind, "threadcreate");
}

#[test]
fn a_label_without_a_value_is_left_out() {
    let text = "goroutine profile: total 1\n1 @ 0x10\n# labels: {\"empty\":\"\", \"job\":\"a\"}\n";
    let profile = read(text.as_bytes()).unwrap();
    assert_eq!(shown(&profile), ["0x10 [Text(\"job\", \"a\")] [1]"]);
    assert_eq!(decode(&encode(&profile)).unwrap(), profile);
}

#[test]
fn waits_become_nanoseconds_and_only_those_of_other_programs_are_scaled_by_their_period() {
    let profile = read(MUTEX.as_bytes()).unwrap();
    assert_eq!(
        shown(&profile),
        ["sync.(*Mutex).Unlock /go/sync/mutex.go:223 [] [3, 2000]"]
    );
    let other = MUTEX.replace("--- mutex:", "--- contention:");
    assert!(shown(&read(other.as_bytes()).unwrap())[0].ends_with("[15, 10000]"));
}

#[test]
fn what_is_no_such_text_is_refused_with_its_line() {
    for text in [
        "",
        "heap profile: x",
        "goroutine 1 [running]:",
        "a b profile: total 1",
        "<html>",
    ] {
        assert!(!is_like(text.as_bytes()), "{text}");
        assert_eq!(read(text.as_bytes()), Err(LegacyError::Header));
    }
    assert!(is_like(HEAP.as_bytes()) && is_like(GOROUTINE.as_bytes()) && is_like(MUTEX.as_bytes()));
    let message = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(
        message("goroutine profile: total 1\n\nmany @ 0x1\n"),
        "line 3 does not have the form of a stack with a count"
    );
    assert_eq!(
        message("--- contention:\ncycles/second=0\n"),
        "line 2 does not have the form of a number of cycles"
    );
    assert_eq!(
        message("heap profile: 1: 1 [1: 1] @ heap/2\n1: 1 @ 0x1\n"),
        "line 2 does not have the form of a stack with objects and bytes"
    );
    let long_text = format!("goroutine profile: total 1\n{}", "1 @\n".repeat(MAX_STACKS + 1));
    assert_eq!(
        message(&long_text),
        format!("the text has more than {MAX_STACKS} stacks")
    );
}

proptest! {
    #[test]
    fn any_text_is_refused_or_becomes_a_profile_that_pprof_can_hold(
        index in 0..3_usize,
        fraction in 0.0..1.0_f64,
        change in "[-0-9a-fx@#: \\[\\]\n\t\"{}]{0,9}",
    ) {
        let mut text = [HEAP, GOROUTINE, MUTEX][index].to_owned();
        let start = (fraction * text.len() as f64) as usize;
        let end = (start + change.len() / 2).min(text.len());
        text.replace_range(start..end, &change);
        if let Ok(profile) = read(text.as_bytes()) {
            let encoded = encode(&profile);
            prop_assert_eq!(decode(&encoded).unwrap(), profile);
        }
    }
}
