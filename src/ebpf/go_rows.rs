//! The unwind table of a Go program: rows of its C parts, and rows from Go's own function table.
//!
//! In: the function table and the table from `.eh_frame`. Out: one table. The program's file is read only
//! through the page cache of `Bytes`.

use alluvium_symbols::bytes::Bytes;
use alluvium_symbols::pclntab::Pclntab;
use alluvium_unwind::go::{Function, rows};
use alluvium_unwind::{Arch, Table};

/// Maximum number of rows, as for `.eh_frame`.
const MAX_ROWS: usize = 4_000_000;
/// Maximum number of pieces of functions that are read. A piece is a range of addresses with one stack offset. A
/// hostile table can refer to many pieces for each function.
const MAX_PIECES: usize = 16_000_000;
/// Names of the functions that are outermost frames, for Go versions whose table does not mark them.
const OUTERMOST_FUNCTIONS: [&str; 5] = [
    "runtime.goexit",
    "runtime.mstart",
    "runtime.rt0_go",
    "runtime.mcall",
    "runtime.sigtramp",
];
/// Names of the functions that switch stacks, for Go versions whose table does not mark them.
const STACK_SWITCHES: [&str; 5] = [
    "runtime.systemstack",
    "runtime.asmcgocall",
    "runtime.morestack",
    "runtime.gogo",
    "runtime.cgocallback",
];

/// Returns `table` with new rows in the address range of Go's functions.
pub(super) fn compile(arch: Arch, go: &Pclntab, bytes: &Bytes<'_>, entry: u64, table: Table) -> Table {
    let mut go_rows = Vec::new();
    let mut offsets = Vec::new();
    let mut pieces = 0_usize;
    let mut range: Option<(u64, u64)> = None;
    for function in go.functions(bytes) {
        offsets.clear();
        go.stack_offsets(bytes, &function, |end, offset| {
            let repeats = offsets.last().is_some_and(|(_, last)| *last == offset);
            if repeats {
                offsets.pop();
            }
            offsets.push((end, offset));
        });
        pieces += offsets.len() + 1;
        let mut described = Function {
            start: function.start,
            end: function.end,
            is_top: function.is_top || (function.start..function.end).contains(&entry),
            switches: function.switches,
            is_signal_return: false,
            offsets: &offsets,
        };
        // Only assembly functions of the runtime are special, so the names of other functions are not needed.
        if function.is_assembly
            && let Some(name) = go.name(bytes, &function)
            && let Some(rest) = name.strip_prefix("runtime.")
        {
            let plain = rest.trim_end_matches(".abi0");
            // The unwinder looks up a return address at the byte before it. For a function to which signal handlers
            // return, `rows` therefore begins the row one byte before the function.
            described.is_signal_return = plain == "sigreturn__sigaction" || plain == "sigreturn";
            let named = |list: &[&str]| {
                list.iter()
                    .any(|full_name| full_name.strip_prefix("runtime.") == Some(plain))
            };
            described.is_top |= named(&OUTERMOST_FUNCTIONS) && !function.switches;
            described.switches |= named(&STACK_SWITCHES);
        }
        rows(arch, &described, &mut go_rows);
        range = Some(range.map_or((function.start, function.end), |(start, end)| {
            (start.min(function.start), end.max(function.end))
        }));
        if go_rows.len() > MAX_ROWS || pieces > MAX_PIECES {
            tracing::debug!("Go's function table is too large");
            return table;
        }
    }
    let Some((start, end)) = range else { return table };
    match (u32::try_from(start), u32::try_from(end)) {
        (Ok(start), Ok(end)) => table.overlay(go_rows, start, end),
        _ => table,
    }
}
