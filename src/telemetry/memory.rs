//! Memory of the allocator that nobody uses any more, given back to the system.
//!
//! jemalloc gives pages back when they have been unused for ten seconds, but looks at its clock only when somebody
//! allocates: a program that has just done something large and then rests would keep them. To be called after such
//! work, off the async threads: it takes milliseconds. Pages of the program's own file are left alone: mapped or not,
//! they stay in the system's cache of files, and the system takes them when it lacks memory.

#![allow(
    unsafe_code,
    reason = "jemalloc's settings of one arena are reached by name only, through a call without types"
)]

use tikv_jemalloc_ctl::{arenas, raw};

/// Gives back unused pages of the allocator. Without jemalloc nothing happens.
pub(crate) fn give_back() {
    let Ok(count) = arenas::narenas::read() else { return };
    for arena in 0..count {
        let name = format!("arena.{arena}.dirty_decay_ms\0");
        // SAFETY: the name ends in NUL and the value behind it is an `ssize_t`, as jemalloc's manual says; an arena
        // that does not exist yet is an error and no more.
        let Ok(before) = (unsafe { raw::read::<isize>(name.as_bytes()) }) else {
            continue;
        };
        for milliseconds in [0, before] {
            // SAFETY: as above. At 0 unused pages are given back at once.
            let _ = unsafe { raw::write::<isize>(name.as_bytes(), milliseconds) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_may_be_called_at_any_time_and_settings_stay() {
        let decay = || unsafe { raw::read::<isize>(b"arena.0.dirty_decay_ms\0") };
        let before = decay();
        let large: Vec<u8> = vec![1; 32 << 20];
        drop(std::hint::black_box(large));
        give_back();
        assert_eq!(decay().ok(), before.ok());
    }
}
