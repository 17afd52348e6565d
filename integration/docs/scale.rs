//! Checks the model of `docs/scale.md` against measurements and against the code that it describes.
//!
//! In: `benches/scale.py`, run by `benches/figures.py`, with folders that have some measurements or none. Out: the
//! script must report missing measurements and find each disagreement.

use std::path::Path;
use std::process::Command;

use super::figures;
use crate::tidy::root;

const PAGE: &str = "# A\n<!-- figures: scale-units -->\n<!-- end of figures -->\n\n<!-- figures: scale-fleets -->\n\
                    <!-- end of figures -->\n";

#[test]
fn the_model_of_fleets_takes_what_is_measured_and_says_what_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (page, kept) = (
        folder.path().join("docs/scale.md"),
        folder.path().join("docs/benchmarks"),
    );
    std::fs::create_dir_all(&kept).unwrap();
    std::fs::write(&page, PAGE).unwrap();
    assert!(written(folder.path()).contains("Not measured yet: `make bench-server` measures it."));

    let server = std::fs::read_to_string(root().join("docs/benchmarks/server.json")).unwrap();
    std::fs::write(kept.join("server.json"), &server).unwrap();
    let text = written(folder.path());
    assert!(
        text.contains("| profiles per second | 1,330 | 13,300 | 133,000 |"),
        "{text}"
    );
    assert!(text.contains("| profiles per flush | **not measured** |"), "{text}");

    // Result of a run of the bench that counts flushes.
    std::fs::write(kept.join("disk.json"), disk()).unwrap();
    let text = written(folder.path());
    assert!(text.contains("| profiles per flush | 1,800 |"), "{text}");

    let differ = "docs/scale.md: differs from the JSON files";
    std::fs::write(&page, text.replace("| 1,800 |", "| 1,900 |")).unwrap();
    assert!(figures("check", folder.path()).contains(differ));
    std::fs::write(&page, &text).unwrap();
    let mut changed: serde_json::Value = serde_json::from_str(&server).unwrap();
    changed["figures"]["rate.cpu_s"] = serde_json::json!([1000.0]);
    std::fs::write(kept.join("server.json"), changed.to_string()).unwrap();
    assert!(figures("check", folder.path()).contains(differ));
}

#[test]
fn a_setting_or_a_function_that_the_model_counts_on_and_the_code_has_not_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut python = Command::new("python3");
    let script = root().join("benches/figures.py");
    let output = python
        .arg(script)
        .arg("check")
        .env("ALLUVIUM_SOURCES", folder.path())
        .output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    for expected in [
        "src/store/tables/delta/mod.rs does not contain `CHECKPOINT_INTERVAL: u64 = 50`",
        "src/store/flush/write.rs has no function try_commit",
    ] {
        assert!(said.contains(expected), "`{expected}` is not in `{said}`");
    }
    assert!(!output.status.success());
}

/// Lets the script write the page, checks that the script accepts the page, and returns the page.
fn written(folder: &Path) -> String {
    assert_eq!(figures("tables", folder), "");
    assert_eq!(figures("check", folder), "");
    std::fs::read_to_string(folder.join("docs/scale.md")).unwrap()
}

/// Returns a measurement of `make bench-disk`.
fn disk() -> String {
    let names = [
        "ack_ms.p50",
        "ack_ms.p90",
        "ack_ms.p99",
        "ack_ms.max",
        "errors",
        "jobs.flush",
        "jobs.compact",
        "memory.peak_mb",
        "memory.resident_mb",
        "memory.anon_mb",
        "memory.file_mb",
    ];
    let mut values: serde_json::Map<String, serde_json::Value> = names
        .iter()
        .map(|name| (format!("disk.{name}"), serde_json::json!([50.0])))
        .collect();
    values.insert("disk.profiles".to_owned(), serde_json::json!([90_000.0]));
    let command =
        "cargo bench --locked --bench load -- disk --url http://127.0.0.1:4041 --folder {folder} --seconds 180";
    serde_json::json!({
        "bench": "disk", "commands": [command], "date": "2026-11-24 21:00 UTC", "commit": "0123456789", "runs": 1,
        "machine": {"cpu": "x", "cores": 2, "memory_gb": 24, "kernel": "6.18"},
        "load_average_before": 0.1, "texts": {}, "figures": values,
    })
    .to_string()
}
