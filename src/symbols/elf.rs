//! ELF files: names of addresses from `.symtab` and `.dynsym`, segments, and the build id.
//!
//! Files are read through a cache of ranges; nothing is mapped, so that a file that shrinks meanwhile causes an error
//! and not a signal. Knows no processes.

use object::elf::{SHN_UNDEF, STB_LOCAL, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE};
use object::read::elf::{SectionHeader, Sym};
use object::read::{ReadCache, ReadCacheOps};
use object::{Object, ObjectSegment, ReadRef, SegmentFlags};

/// Most bytes that are read in one piece: the largest symbol tables and unwind sections seen have a third of it.
const MAX_PIECE: u64 = 160 << 20;

/// A file whose reads are limited in size, whatever its headers say: a sparse file costs nothing to create and may have
/// terabytes.
#[derive(Debug)]
pub struct Limited<'a, R: ReadCacheOps>(pub &'a ReadCache<R>);

impl<R: ReadCacheOps> Clone for Limited<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: ReadCacheOps> Copy for Limited<'_, R> {}

impl<'a, R: ReadCacheOps> ReadRef<'a> for Limited<'a, R> {
    fn len(self) -> Result<u64, ()> {
        self.0.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size > MAX_PIECE {
            return Err(());
        }
        self.0.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: std::ops::Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        self.0.read_bytes_at_until(range, delimiter)
    }
}

/// An executable segment: its position in the file and its virtual addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub offset: u64,
    /// Virtual address, before relocation.
    pub address: u64,
    /// Length of the segment in bytes.
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
pub(crate) fn address_of(segments: &[Segment], offset: u64) -> Option<u64> {
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

/// The functions of a file sorted by address, 16 bytes each; their names stay in the file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Index {
    functions: Vec<Entry>,
    /// Offsets of the two string tables in the file.
    strings: [u64; 2],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    start: u64,
    /// Size in bytes; 0 when the function extends to the next one.
    size: u32,
    /// Offset in the string table; the highest bit selects the table.
    name: u32,
}

/// Bit for the string table of `.dynsym`.
const DYNAMIC: u32 = 1 << 31;

/// A function of an [`Index`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// Offset of its name in the file; the name ends with a zero.
    pub name: u64,
}

impl Index {
    /// Reads `.symtab` and `.dynsym`. Empty for files of other kinds and for those without symbols.
    pub fn new<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Self {
        let object::File::Elf64(elf) = file else {
            return Self::default();
        };
        let endian = elf.endian();
        let mut index = Self::default();
        let tables = [elf.elf_symbol_table(), elf.elf_dynamic_symbol_table()];
        // Of two symbols at one address the better comes first: sized, then global.
        let mut ranked: Vec<(u8, Entry)> = Vec::new();
        for (which, table) in tables.into_iter().enumerate() {
            if table.is_empty() {
                continue;
            }
            let Ok(strings) = elf.elf_section_table().section(table.string_section()) else {
                continue;
            };
            index.strings[which] = strings.sh_offset(endian);
            for symbol in table.symbols() {
                let kind = symbol.st_type();
                let is_code = kind == STT_FUNC || kind == STT_GNU_IFUNC || kind == STT_NOTYPE;
                let start = symbol.st_value(endian);
                let name = symbol.st_name(endian);
                if !is_code || symbol.st_shndx(endian) == SHN_UNDEF || start == 0 || name == 0 || name >= DYNAMIC {
                    continue;
                }
                let size = u32::try_from(symbol.st_size(endian)).unwrap_or(u32::MAX);
                // Marks of the assembler and of sections have neither type nor size.
                if kind == STT_NOTYPE && size == 0 {
                    continue;
                }
                let rank = u8::from(size == 0) * 2 + u8::from(symbol.st_bind() == STB_LOCAL);
                let name = if which == 1 { name | DYNAMIC } else { name };
                ranked.push((rank, Entry { start, size, name }));
            }
        }
        ranked.sort_by_key(|(rank, entry)| (entry.start, *rank));
        ranked.dedup_by_key(|(_, entry)| entry.start);
        index.functions = ranked.into_iter().map(|(_, entry)| entry).collect();
        index
    }

    /// The function around an address.
    pub fn find(&self, address: u64) -> Option<Place> {
        /// Functions may be nested; this many before the address are tried.
        const NESTED: usize = 8;
        let after = self.functions.partition_point(|entry| entry.start <= address);
        let next = self.functions.get(after).map_or(u64::MAX, |entry| entry.start);
        self.functions[..after].iter().rev().take(NESTED).find_map(|entry| {
            let end = match entry.size {
                // Only up to the address: the bytes after it may belong to no function.
                0 => address.saturating_add(1).min(next),
                size => entry.start.saturating_add(u64::from(size)),
            };
            (address < end).then_some(Place {
                start: entry.start,
                end: end.min(next.max(address.saturating_add(1))),
                name: self.strings[usize::from(entry.name & DYNAMIC != 0)]
                    .saturating_add(u64::from(entry.name & !DYNAMIC)),
            })
        })
    }

    /// True when it has no functions.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    pub fn bytes(&self) -> usize {
        self.functions.len() * size_of::<Entry>()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use object::ObjectSymbol;

    use super::*;

    #[test]
    fn our_own_functions_are_found_by_their_addresses() {
        let path = std::env::current_exe().unwrap();
        let cache = ReadCache::new(File::open(&path).unwrap());
        let file = object::File::parse(Limited(&cache)).unwrap();
        let symbol = file
            .symbols()
            .find(|symbol| {
                symbol.size() > 16
                    && symbol
                        .name()
                        .is_ok_and(|name| name.contains("our_own_functions_are_found"))
            })
            .unwrap();
        let place = Index::new(&file).find(symbol.address() + 8).unwrap();
        assert_eq!(place.start, symbol.address());
        let bytes = std::fs::read(&path).unwrap();
        let name = &bytes[usize::try_from(place.name).unwrap()..];
        let end = name.iter().position(|byte| *byte == 0).unwrap();
        assert_eq!(&name[..end], symbol.name_bytes().unwrap());
        let segments = executable_segments(&file);
        assert!(!segments.is_empty());
        let first = segments[0];
        assert_eq!(address_of(&segments, first.offset + 5), Some(first.address + 5));
    }

    #[test]
    fn a_section_of_terabytes_in_a_file_that_has_them_is_refused() {
        use std::os::unix::fs::FileExt;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        std::fs::copy("/bin/sh", &path).unwrap();
        let (headers, count) = {
            let bytes = std::fs::read(&path).unwrap();
            let at = u64::from_le_bytes(bytes[40..48].try_into().unwrap());
            (at, u16::from_le_bytes(bytes[60..62].try_into().unwrap()))
        };
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(2 << 40).unwrap();
        for section in 1..u64::from(count) {
            // sh_size
            file.write_all_at(&(1_u64 << 40).to_le_bytes(), headers + section * 64 + 32)
                .unwrap();
        }
        let cache = ReadCache::new(File::open(&path).unwrap());
        if let Ok(file) = object::File::parse(Limited(&cache)) {
            assert!(Index::new(&file).bytes() < 16 << 20);
        }
    }
}
