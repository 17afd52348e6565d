//! Memory that the program holds and does not need, given back to the system.
//!
//! In: nothing. Out: pages. jemalloc gives pages back when they have been unused for ten seconds, but looks at its clock only when somebody allocates: a program that has just
//! done something large and then rests would keep them. And the pages of the program's own file that only its start or a load needed, each with its neighbours, stay mapped until the
//! system lacks memory. To be called after such work, off the async threads: it takes milliseconds.

#![allow(
    unsafe_code,
    reason = "jemalloc's settings of one arena are reached by name only, through a call without types"
)]

use std::ops::Range;

use tikv_jemalloc_ctl::{arenas, raw};

/// Gives back unused pages of the allocator, and those of the program's own file: what is still needed of it comes back by itself, from the system's cache of files.
pub fn give_back() {
    give_back_heap();
    for pages in own_pages() {
        // SAFETY: the range is a mapping of this process that is backed by a file and was never written to, so that no page of it is another than the file's: what is
        // touched again is mapped again with the same content.
        unsafe { libc::madvise(pages.start as *mut libc::c_void, pages.len(), libc::MADV_DONTNEED) };
    }
}

/// Where the code and constants of the program's own file are mapped; empty where the system does not tell.
fn own_pages() -> Vec<Range<usize>> {
    let (Ok(maps), Ok(program)) = (
        std::fs::read_to_string("/proc/self/maps"),
        std::fs::read_link("/proc/self/exe"),
    ) else {
        return Vec::new();
    };
    let program = program.display().to_string();
    maps.lines().filter_map(|line| unwritten(line, &program)).collect()
}

/// `55d0c0a00000-55d0c1a00000 r-xp 00400000 fe:00 1234   /usr/bin/alluvium`: code, or the first segment, which has the constants. Addresses that the dynamic linker has
/// put in, and that must not be lost, are in a later one, which may be read-only by now.
fn unwritten(line: &str, program: &str) -> Option<Range<usize>> {
    let mut words = line.split_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let rights = words.next()?;
    let offset = words.next()?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    let is_unwritten = rights == "r-xp" || (rights == "r--p" && number(offset)? == 0);
    // Device and inode stand between.
    let is_own = words.nth(2)? == program;
    (is_unwritten && is_own).then_some(number(start)?..number(end)?)
}

/// Without jemalloc nothing happens.
fn give_back_heap() {
    let Ok(count) = arenas::narenas::read() else { return };
    for arena in 0..count {
        let name = format!("arena.{arena}.dirty_decay_ms\0");
        // SAFETY: the name ends in NUL and the value behind it is an `ssize_t`, as jemalloc's manual says; an arena that does not exist yet is an error and no more.
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

    #[test]
    fn code_and_constants_of_the_program_are_found_and_nothing_else() {
        let line = "55d0c0a00000-55d0c0a02000 r-xp 00400000 fe:00 1234                       /usr/bin/alluvium";
        assert_eq!(
            unwritten(line, "/usr/bin/alluvium"),
            Some(0x55d0_c0a0_0000..0x55d0_c0a0_2000)
        );
        let constants = line.replace("r-xp 00400000", "r--p 00000000");
        assert!(unwritten(&constants, "/usr/bin/alluvium").is_some());
        assert_eq!(unwritten(line, "/usr/bin/other"), None);
        for other in [
            &line.replace("r-xp", "r--p"),
            &line.replace("r-xp", "rw-p"),
            &line.replace("r-xp 00400000", "rw-p 00000000"),
            "7ffc-7ffd r-xp 0 0 0",
            "x",
        ] {
            assert_eq!(unwritten(other, "/usr/bin/alluvium"), None, "{other}");
        }
        let own = own_pages();
        assert!(
            own.iter().any(|pages| pages.contains(&(give_back as fn() as usize))),
            "{own:?}"
        );
    }
}
