//! CPython's trampolines, which make Python functions visible to profilers (`-X perf`, from 3.12 on; see "Python
//! support for the Linux perf profiler" in Python's manual).
//!
//! Each function of a script has its own trampoline, which only calls the interpreter. The perf map contains the name
//! of each trampoline. The trampolines of 3.13 for x86-64 move the stack pointer by a word and set up no frame pointer.
//! An unwinder that follows frame pointers therefore loses all functions except the innermost. The profiler
//! recognises trampolines by their bytes, which are the same in every trampoline.

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::proc::MapsLine;
use alluvium_unwind::{Arch, Row, Rule};

/// Size of the memory that Python allocates for trampolines.
const ARENA_BYTES: u64 = 64 << 10;
/// `endbr64`, in builds that guard indirect jumps.
const GUARD: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];
/// The code of a trampoline: `sub rsp, 8; call rcx; add rsp, 8; ret`.
const PIECE: [u8; 11] = [0x48, 0x83, 0xec, 0x08, 0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3];

/// Returns true if memory without a file holds trampolines, judged by its first bytes.
pub(crate) fn contain_trampolines(pid: u32, line: &MapsLine) -> bool {
    let bytes = line.end.saturating_sub(line.start);
    if Arch::native() != Some(Arch::X86_64) || bytes == 0 || !bytes.is_multiple_of(ARENA_BYTES) {
        return false;
    }
    let mut first = [0; GUARD.len() + PIECE.len()];
    let read = File::open(format!("/proc/{pid}/mem")).and_then(|memory| memory.read_exact_at(&mut first, line.start));
    read.is_ok() && is_piece(&first)
}

fn is_piece(bytes: &[u8]) -> bool {
    bytes.strip_prefix(&GUARD).unwrap_or(bytes).starts_with(&PIECE)
}

/// Returns the rule that applies in all trampolines at the address to which the interpreter returns.
pub(super) fn row() -> Row {
    Row {
        // One word is reserved by the trampoline, and the other is the return address.
        cfa: 2,
        ..Row::plain(0, Rule::Sp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_known_with_and_without_a_guard() {
        let guarded: Vec<u8> = GUARD.iter().chain(&PIECE).copied().collect();
        assert!(is_piece(&guarded));
        assert!(is_piece(&[&PIECE[..], &[0; 5]].concat()));
        assert!(!is_piece(&PIECE[..10]) && !is_piece(&[0; 16]) && !is_piece(&[]));
    }
}
