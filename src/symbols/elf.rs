//! ELF files: names of addresses from `.symtab` and `.dynsym` (of the file itself or of its separate debug file), where its segments
//! lie, and its build id.
//!
//! Files are read through a cache of the ranges that are asked for; nothing is mapped, so a file that shrinks meanwhile gives an
//! error and not a signal. Knows no processes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadRef, SegmentFlags, SymbolKind};

use crate::symbols::demangle::{Demangle, demangle};
use crate::symbols::ranges::{Ranges, Search};

/// An ELF file as it is handed to a visitor.
pub type ElfFile<'a> = object::File<'a, &'a ReadCache<File>>;

/// A file could not be read as ELF.
#[derive(Debug, thiserror::Error)]
pub enum ElfError {
    /// It could not be opened.
    #[error("cannot open {path}: {error}")]
    Open {
        /// Its path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not ELF, or damaged.
    #[error("cannot read {path} as an ELF file: {error}")]
    Parse {
        /// Its path.
        path: PathBuf,
        /// Why.
        error: object::Error,
    },
}

/// Opens a file and shows it to `visit`.
pub fn with_file<T>(path: &Path, visit: impl FnOnce(&ElfFile<'_>) -> T) -> Result<T, ElfError> {
    let file = File::open(path).map_err(|error| ElfError::Open {
        path: path.to_owned(),
        error,
    })?;
    let cache = ReadCache::new(file);
    let file = object::File::parse(&cache).map_err(|error| ElfError::Parse {
        path: path.to_owned(),
        error,
    })?;
    Ok(visit(&file))
}

/// An executable segment: where its bytes lie in the file and which virtual addresses they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the file.
    pub offset: u64,
    /// Virtual address, before relocation.
    pub address: u64,
    /// Length in bytes.
    pub size: u64,
}

/// The executable segments of a file.
pub fn executable_segments<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Vec<Segment> {
    file.segments()
        .filter(|segment| matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & object::elf::PF_X != 0))
        .map(|segment| {
            let (offset, size) = segment.file_range();
            Segment {
                offset,
                address: segment.address(),
                size,
            }
        })
        .collect()
}

/// The virtual address at `offset` of the file, by the segment that holds it or that begins on the same page.
pub fn address_of(segments: &[Segment], offset: u64) -> Option<u64> {
    const PAGE: u64 = 4096;
    segments
        .iter()
        .find(|segment| offset >= segment.offset / PAGE * PAGE && offset < segment.offset.saturating_add(segment.size))
        .map(|segment| segment.address.wrapping_sub(segment.offset).wrapping_add(offset))
}

/// The build id as hexadecimal digits; empty when the file has none.
pub fn build_id<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    if let Ok(Some(bytes)) = file.build_id() {
        for byte in bytes {
            // Writing to a String does not fail.
            let _ = write!(text, "{byte:02x}");
        }
    }
    text
}

/// Looks up `addresses` (sorted; virtual addresses of the file) and adds the functions found to `ranges`.
pub fn resolve<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    addresses: &[u64],
    how: Demangle,
    ranges: &mut Ranges,
) {
    let mut search = Search::new(addresses);
    offer_symbols(file, &mut search);
    if file.section_by_name(".symtab").is_none()
        && let Some(debug) = debug_file(file)
    {
        // A separate debug file that cannot be read is as none: the names of the file itself stay.
        let _ = with_file(&debug, |separate| offer_symbols(separate, &mut search));
    }
    search.finish(|_, start, end, name| ranges.insert(start, end, Arc::from(demangle(name, how))));
}

fn offer_symbols<'data, R: ReadRef<'data>>(file: &object::File<'data, R>, search: &mut Search<'_>) {
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let is_code = matches!(symbol.kind(), SymbolKind::Text)
            || (symbol.kind() == SymbolKind::Unknown && symbol.section_index().is_some());
        if !is_code || symbol.is_undefined() || symbol.address() == 0 {
            continue;
        }
        let Ok(name) = symbol.name_bytes() else { continue };
        if name.is_empty() {
            continue;
        }
        let limit = symbol
            .section_index()
            .and_then(|index| file.section_by_index(index).ok())
            .map_or(symbol.address(), |section| section.address() + section.size());
        search.offer(symbol.address(), symbol.size(), limit, symbol.is_global(), name);
    }
}

/// Where distributions put the debug file of a build id.
fn debug_file<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Option<PathBuf> {
    let id = build_id(file);
    let (first, rest) = id.split_at_checked(2)?;
    let path = PathBuf::from(format!("/usr/lib/debug/.build-id/{first}/{rest}.debug"));
    path.exists().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_functions_are_found_by_their_addresses() {
        let path = std::env::current_exe().unwrap();
        with_file(&path, |file| {
            let symbol = file
                .symbols()
                .find(|symbol| {
                    symbol.size() > 16
                        && symbol
                            .name()
                            .is_ok_and(|name| name.contains("our_own_functions_are_found"))
                })
                .unwrap();
            let mut ranges = Ranges::default();
            resolve(file, &[symbol.address() + 8], Demangle::Templates, &mut ranges);
            let name = ranges.find(symbol.address() + 4).unwrap();
            assert!(
                name.contains("symbols::elf::tests::our_own_functions_are_found"),
                "{name}"
            );
            let segments = executable_segments(file);
            assert!(!segments.is_empty());
            let first = segments[0];
            assert_eq!(address_of(&segments, first.offset + 5), Some(first.address + 5));
        })
        .unwrap();
    }

    #[test]
    fn a_file_that_is_not_elf_is_an_error_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        std::fs::write(&path, "hello").unwrap();
        let error = with_file(&path, |_| ()).unwrap_err().to_string();
        assert!(error.starts_with("cannot read") && error.contains("text"), "{error}");
    }
}
