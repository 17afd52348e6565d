//! Names of addresses: from ELF symbol tables (also in separate and packed debug files), DWARF, Go's function table,
//! the kernel's list, and the perf maps and jitdump files of runtimes.
//!
//! In: sorted addresses and a source. Out: [`Ranges`] with the functions that contain the addresses. The module does
//! not depend on processes: the caller decides to which file an address belongs.

pub mod bytes;
pub mod calls;
pub(crate) mod demangle;
pub mod dwarf;
pub mod elf;
pub mod functions;
pub mod go;
pub mod jitdump;
pub mod kernel;
pub mod latest;
pub mod pclntab;
pub mod perf_map;
pub(crate) mod ranges;
pub mod separate;

pub use demangle::Demangle;
pub use ranges::Ranges;
