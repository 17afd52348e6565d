//! Arrays in the kernel that contain the mappings of a process, or the unwind table of a file. Each is created in its
//! final size and filled by one copy.
#![allow(
    unsafe_code,
    reason = "a kernel array is filled through shared memory: one copy instead of one system call per element"
)]

use std::fmt;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd};

use aya::maps::MapData;

use alluvium_unwind::Line;

// The map type BPF_MAP_TYPE_ARRAY.
const ARRAY: u32 = 2;
/// Flags of an array: BPF_F_INNER_MAP | BPF_F_MMAPABLE.
const FLAGS: u32 = 1 << 12 | 1 << 10;

/// A mapping as the BPF program reads it (`struct mapping`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub(crate) struct KernelMapping {
    pub start: u64,
    /// End address (exclusive).
    pub end: u64,
    /// Difference between an address in the process and the corresponding address in the file's tables.
    pub bias: u64,
    /// Key of the unwind table; 0 for none.
    pub table: u32,
    // Always 0.
    pub reserved: u32,
}

impl KernelMapping {
    /// Creates the first element, which holds the number of elements after it.
    pub(super) fn header(count: u64) -> Self {
        Self {
            start: count,
            ..Self::default()
        }
    }

    /// Written instead of the number of mappings if a process is ignored. The BPF program then only counts
    /// the ticks of the process.
    pub(crate) const IGNORED: u64 = u64::MAX;
}

/// Plain data without padding and pointers, which may be copied into a kernel map.
///
/// # Safety
/// The type has no padding and no pointers.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: the fields are three u64 and two u32, 32 bytes in all, so there is no padding and no pointer.
unsafe impl Plain for KernelMapping {}

// SAFETY: the type is an array of u32, so there is no padding and no pointer.
unsafe impl Plain for Line {}

/// Creates an array that holds `elements`.
pub(super) fn array<T: Plain>(name: &str, elements: &[T]) -> io::Result<MapData> {
    shared_array(name, elements).map(|(map, _)| map)
}

/// The elements of an array in the kernel. They never change.
pub(crate) struct SharedArray<T> {
    /// Address of the first element.
    first: *const T,
    count: usize,
    length: usize,
}

// SAFETY: the memory belongs to this value until it is dropped, and both this process and the kernel only read it.
unsafe impl<T: Plain + Send> Send for SharedArray<T> {}
// SAFETY: as for `Send`: all threads and the kernel only read the memory.
unsafe impl<T: Plain + Sync> Sync for SharedArray<T> {}

impl<T> Deref for SharedArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory holds `count` elements of plain data, which `shared_array` has written.
        unsafe { std::slice::from_raw_parts(self.first, self.count) }
    }
}

impl<T> Drop for SharedArray<T> {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this length, and no reference into it exists any more.
        unsafe { libc::munmap(self.first.cast_mut().cast(), self.length) };
    }
}

impl<T> fmt::Debug for SharedArray<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} elements in kernel memory", self.count)
    }
}

/// Creates an array that holds `elements`, and maps it for reading without a copy.
pub(crate) fn shared_array<T: Plain>(name: &str, elements: &[T]) -> io::Result<(MapData, SharedArray<T>)> {
    let size = size_of::<T>();
    let entries = u32::try_from(elements.len()).map_err(io::Error::other)?;
    let definition = aya_obj::Map::new_from_params(ARRAY, 4, size as u32, entries, FLAGS);
    let map = MapData::create(definition, name, None).map_err(io::Error::other)?;
    // SAFETY: sysconf(3) only returns a number.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).map_err(io::Error::other)?;
    let length = size_of_val(elements).next_multiple_of(page);
    // SAFETY: the kernel chooses the address of the new mapping, and the length is that of the map, in whole pages.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            map.fd().as_fd().as_raw_fd(),
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping belongs to this function, is page aligned and long enough for all elements. The BPF program
    // does not read the map before this process puts it into an outer map.
    unsafe {
        let first = memory.cast::<T>();
        std::ptr::copy_nonoverlapping(elements.as_ptr(), first, elements.len());
        libc::mprotect(memory, length, libc::PROT_READ);
    }
    let shared = SharedArray {
        first: memory.cast::<T>().cast_const(),
        count: elements.len(),
        length,
    };
    Ok((map, shared))
}
