//! Resolves code addresses of the own process to names, with a cache between profiles.
//!
//! In: a return address. Out: its frames. A lookup reads the program's debug information and takes tens of
//! microseconds, and a scraper requests the same addresses every few seconds. The cache is bounded and is cleared when
//! it is full.

use std::collections::HashMap;
use std::sync::Arc;

use super::samples::Frame;

/// Maximum number of cached addresses. A large program has a few tens of thousands of allocating call sites.
const CAPACITY: usize = 1 << 16;

/// Maximum number of allocator frames at the leaf: jemalloc's sampling, its entry points, and Rust's shims around it.
const ALLOCATOR_DEPTH: usize = 12;

/// Cache of the frames at resolved addresses.
#[derive(Default)]
pub(super) struct Symbols {
    frames: HashMap<u64, Arc<[Named]>>,
}

/// One frame at an address.
pub(crate) struct Named {
    function: String,
    file: String,
    line: u32,
}

impl Named {
    pub(super) fn frame(&self) -> Frame<'_> {
        Frame {
            function: &self.function,
            file: &self.file,
            line: self.line,
        }
    }
}

impl Symbols {
    /// Returns a stack without the allocator's frames at its leaf, so that the allocating function comes first, as in
    /// Go's profiles.
    pub(crate) fn without_allocator<'a>(&mut self, stack: &'a [u64]) -> &'a [u64] {
        let leaves = &stack[..stack.len().min(ALLOCATOR_DEPTH)];
        let last = leaves.iter().rposition(|&address| {
            // The outermost of the inlined functions decides.
            self.named(address)
                .last()
                .is_some_and(|named| is_allocator(&named.function))
        });
        last.map_or(stack, |last| &stack[last + 1..])
    }

    /// Returns the frames at a return address, innermost inlined frame first.
    pub(super) fn named(&mut self, address: u64) -> Arc<[Named]> {
        if self.frames.len() >= CAPACITY {
            self.frames.clear();
        }
        self.frames.entry(address).or_insert_with(|| resolve(address)).clone()
    }
}

/// Returns true for functions between the allocating caller and jemalloc's sampling.
fn is_allocator(function: &str) -> bool {
    let exact = [
        "malloc",
        "calloc",
        "realloc",
        "posix_memalign",
        "aligned_alloc",
        "mallocx",
        "rallocx",
        "do_rallocx",
        "imalloc",
        "prof_backtrace_impl",
        "prof_alloc_prep",
        "alloc::alloc::alloc",
        "alloc::alloc::alloc_zeroed",
        "alloc::alloc::realloc",
        "alloc::alloc::exchange_malloc",
    ];
    let parts = [
        "_rjem_",
        "__rust_alloc",
        "__rust_realloc",
        "__rdl_",
        "Jemalloc as core::alloc::",
        "alloc::alloc::Global",
    ];
    exact.contains(&function) || parts.iter().any(|part| function.contains(part))
}

fn resolve(address: u64) -> Arc<[Named]> {
    let mut frames = Vec::new();
    // The crate `backtrace` adjusts the return address to the call.
    backtrace::resolve(address as usize as *mut std::ffi::c_void, |symbol| {
        let Some(name) = symbol.name() else { return };
        frames.push(Named {
            function: format!("{name:#}"),
            file: symbol
                .filename()
                .map(|path| path.to_string_lossy().into_owned())
                .unwrap_or_default(),
            line: symbol.lineno().unwrap_or(0),
        });
    });
    frames.into()
}

#[cfg(test)]
mod unit {
    use super::is_allocator;

    #[test]
    fn the_allocator_is_told_from_those_who_call_it() {
        for function in [
            "_rjem_je_prof_backtrace",
            "do_rallocx",
            "__rustc::__rust_realloc",
            "<tikv_jemallocator::Jemalloc as core::alloc::global::GlobalAlloc>::realloc",
            "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
        ] {
            assert!(is_allocator(function), "{function}");
        }
        for function in [
            "alloc::raw_vec::RawVecInner<A>::finish_grow",
            "alloc::vec::Vec<T,A>::push",
            "mallocator::run",
        ] {
            assert!(!is_allocator(function), "{function}");
        }
    }
}
