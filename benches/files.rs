//! Measures how fast files of profilers are read: `cargo bench --no-default-features --features agent --bench files`.
//!
//! The bench reads a file of each format that `upload` supports, with the stacks of one profile: 5,000 distinct stacks
//! of 2,000 functions, up to 60 deep. The recording of Java Flight Recorder consists of many small chunks, which
//! contain mostly metadata; `ALLUVIUM_BENCH_JFR` names another recording. Rates are MB (10^6 bytes) of the file per
//! second. The measured time is the time to convert the bytes of the file to profiles that can be sent. The module
//! `measure` measures it.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a bench prints its results")]

mod measure;

use std::hint::black_box;

use alluvium_testing::synthetic::{Names, Shape, cpu_profile};
use alluvium_wire::files::{self, synthetic};
use bytes::Bytes;

use crate::measure::Bench;

/// Maximum size of a file in bytes after decompression.
const MAX_BYTES: usize = 256 << 20;

fn recording() -> Vec<u8> {
    let named = std::env::var_os("ALLUVIUM_BENCH_JFR").and_then(|path| std::fs::read(path).ok());
    named.unwrap_or_else(|| include_bytes!("../integration/fixtures/jfr/small.jfr").repeat(200))
}

fn main() {
    let bench = Bench::of_arguments();
    let shape = Shape::default();
    let names = Names::new(shape.functions);
    let profile = cpu_profile(&names, shape, 1);
    let files = synthetic::files(&profile).into_iter().chain([("jfr", recording())]);
    for (name, content) in files {
        let content = Bytes::from(content);
        let read = || files::read(&content, MAX_BYTES);
        if let Err(error) = read() {
            // If the file cannot be read, the bench prints no result, and the tables report the missing figure.
            eprintln!("{name}: {error}");
            continue;
        }
        bench.run(name, content.len() as f64 / 1e6, || {
            black_box(read().is_ok());
        });
    }
}
