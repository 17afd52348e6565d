//! Returns unused memory of the allocator to the system.
//!
//! jemalloc returns pages that have been unused for the time in its option `dirty_decay_ms`, but checks the time only
//! during allocations. A program that becomes idle after a large task would keep the pages. So call
//! [`release_unused_memory`] after such a task. The call takes milliseconds; make it outside of the async threads.
//! Pages of the executable are not affected: they are in the page cache, which the system reclaims when it is short of
//! memory.

#![allow(
    unsafe_code,
    reason = "jemalloc's settings of a single arena have no typed function; an untyped call reads and writes them"
)]

use tikv_jemalloc_ctl::{arenas, raw};

/// Returns unused pages of the allocator to the system. Without jemalloc, the function does nothing.
pub fn release_unused_memory() {
    let Ok(count) = arenas::narenas::read() else { return };
    for arena in 0..count {
        let name = format!("arena.{arena}.dirty_decay_ms\0");
        // SAFETY: the name ends in NUL and the value has the type `ssize_t`, as jemalloc's manual says; an arena that
        // does not exist yet only yields an error.
        let Ok(before) = (unsafe { raw::read::<isize>(name.as_bytes()) }) else {
            continue;
        };
        for milliseconds in [0, before] {
            // SAFETY: the name and the type are the same as for the read. A decay time of 0 returns unused pages at
            // once.
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
        release_unused_memory();
        assert_eq!(decay().ok(), before.ok());
    }
}
