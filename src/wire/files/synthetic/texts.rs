//! Text files: folded stacks, the output of `perf script`, and Go's text format.

use std::fmt::Write;

use crate::files::synthetic::stacks::{Frame, Stacks, TICK_NANOS};

/// Writes folded stacks as py-spy does, with files and lines.
pub(super) fn collapsed(stacks: &Stacks<'_>) -> String {
    let mut text = String::new();
    for (leaf, ticks) in &stacks.samples {
        for (depth, frame) in stacks.path(*leaf).into_iter().rev().enumerate() {
            let Frame { name, file, line } = stacks.frames[frame];
            let between = if depth == 0 { "" } else { ";" };
            let _ = write!(text, "{between}{name} ({file}:{line})");
        }
        let _ = writeln!(text, " {ticks}");
    }
    text
}

/// Writes the samples like the output of `perf script` with source positions.
pub(super) fn perf_script(stacks: &Stacks<'_>) -> String {
    let mut text = String::from("# captured on    : Mon Nov 23 10:00:00 2026\n#\n");
    for (number, (leaf, ticks)) in stacks.samples.iter().enumerate() {
        let (second, micros, period) = (number / 1000, number % 1000 * 1000, ticks * TICK_NANOS);
        let _ = writeln!(
            text,
            "            shop    17/18    [001]  {second}.{micros:06}: {period:>10} cpu-clock:u: "
        );
        for frame in stacks.path(*leaf) {
            let Frame { name, file, line } = stacks.frames[frame];
            let address = 0x55_0000_1000 + frame * 0x100;
            let _ = writeln!(text, "\t{address:>16x} {name}+0x1f (/usr/bin/shop)\n  {file}:{line}");
        }
        text.push('\n');
    }
    text
}

/// Writes a goroutine profile in Go's text format.
pub(super) fn go(stacks: &Stacks<'_>) -> String {
    let mut text = format!("goroutine profile: total {}\n", stacks.total());
    for (leaf, ticks) in &stacks.samples {
        let path = stacks.path(*leaf);
        let _ = write!(text, "{ticks} @");
        for frame in &path {
            let _ = write!(text, " {:#x}", 0x40_1000 + frame * 0x100);
        }
        text.push('\n');
        for frame in path {
            let Frame { name, file, line } = stacks.frames[frame];
            let address = 0x40_1000 + frame * 0x100;
            let _ = writeln!(text, "#\t{address:#x}\t{name}+0x1f\t{file}:{line}");
        }
        text.push('\n');
    }
    text
}
