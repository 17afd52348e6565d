//! ELF files: names of addresses from `.symtab` and `.dynsym`, segments, and the build id.
//!
//! Files are read through a cache of ranges and never mapped, so that a file that shrinks meanwhile causes an error
//! and not a signal. This module does not depend on processes.

use std::cell::Cell;

use object::elf::{
    ELF_NOTE_GNU, FileHeader32, FileHeader64, NT_GNU_BUILD_ID, PF_X, PT_LOAD, PT_NOTE, SHN_UNDEF, SHT_NOTE, STB_LOCAL,
    STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE,
};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader, Sym};
use object::read::{ReadCache, ReadCacheOps};
use object::{Endianness, FileKind, ReadRef};

/// Maximum number of bytes that are read in one piece. The largest known symbol tables and unwind sections have a
/// third of this size.
const MAX_PIECE_BYTES: u64 = 160 << 20;
/// Maximum number of bytes of all pieces. Each piece counts as its length plus [`PIECE_BYTES`]. The cache keeps every
/// piece, and a section table may name any number of long pieces in a sparse file that takes no disk space. The limit
/// has room for the longest symbol table and the longest unwind section.
const MAX_PIECES_BYTES: u64 = 320 << 20;
const PIECE_BYTES: u64 = 64;
/// Maximum number of bytes that are read for a [`Head`]: a thousand times the bytes that a typical file needs.
const MAX_HEAD: u64 = 1 << 20;

/// Maximum number of bytes of names that are read. Each name counts as its length plus [`TEXT_BYTES`]. The cache keeps
/// all names, and a file may have millions of sections and symbols with long names.
const MAX_TEXTS: usize = 128 << 20;
const TEXT_BYTES: usize = 16;
/// Maximum number of bytes that are searched for the end of a name.
const MAX_TEXT: usize = 4096;

/// A file, and the ranges and names that were read from it.
#[derive(Debug)]
pub struct Cache<R: ReadCacheOps> {
    ranges: ReadCache<R>,
    /// Number of bytes of pieces that may still be read.
    pieces: Cell<u64>,
    /// Number of bytes of names that may still be read.
    texts: Cell<usize>,
    /// True if a bound prevented a read.
    is_cut: Cell<bool>,
}

impl<R: ReadCacheOps> Cache<R> {
    pub fn new(file: R) -> Self {
        Self::with_max_bytes(file, MAX_PIECES_BYTES)
    }

    /// Creates a cache for [`Head::read`], which needs only a small part of a file.
    pub fn of_head(file: R) -> Self {
        Self::with_max_bytes(file, MAX_HEAD)
    }

    fn with_max_bytes(file: R, pieces: u64) -> Self {
        Self {
            ranges: ReadCache::new(file),
            pieces: Cell::new(pieces),
            texts: Cell::new(MAX_TEXTS),
            is_cut: Cell::new(false),
        }
    }

    /// Returns true if a bound prevented a read.
    pub fn is_cut(&self) -> bool {
        self.is_cut.get()
    }

    /// Returns the number of bytes of pieces and names that were read so far. The number is wrong for a cache from
    /// [`Cache::of_head`].
    pub fn read(&self) -> u64 {
        (MAX_PIECES_BYTES - self.pieces.get()) + (MAX_TEXTS - self.texts.get()) as u64
    }

    fn refuse<T>(&self) -> Result<T, ()> {
        self.is_cut.set(true);
        Err(())
    }
}

/// A file whose reads are limited in size, whatever its headers say. A sparse file costs nothing to create and may
/// have terabytes.
#[derive(Debug)]
pub struct Limited<'a, R: ReadCacheOps>(pub &'a Cache<R>);

impl<R: ReadCacheOps> Clone for Limited<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R: ReadCacheOps> Copy for Limited<'_, R> {}

impl<'a, R: ReadCacheOps> ReadRef<'a> for Limited<'a, R> {
    fn len(self) -> Result<u64, ()> {
        self.0.ranges.len()
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        if size > MAX_PIECE_BYTES {
            return self.0.refuse();
        }
        // A piece that is read again counts again, because its reader processes all of it again.
        let Some(left) = self.0.pieces.get().checked_sub(size + PIECE_BYTES) else {
            return self.0.refuse();
        };
        self.0.pieces.set(left);
        self.0.ranges.read_bytes_at(offset, size)
    }

    fn read_bytes_at_until(self, range: std::ops::Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        let left = self.0.texts.get();
        if left < MAX_TEXT + TEXT_BYTES {
            return self.0.refuse();
        }
        let text = self.0.ranges.read_bytes_at_until(range, delimiter);
        // A name without an end counts as the longest name: its end was searched, and each further request searches
        // again.
        let bytes = text.map_or(MAX_TEXT, <[u8]>::len) + TEXT_BYTES;
        self.0.texts.set(left.saturating_sub(bytes));
        text
    }
}

/// An executable segment: its position in the file and its virtual addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    pub offset: u64,
    /// Virtual address before relocation.
    pub address: u64,
    /// Length of the segment in bytes.
    pub size: u64,
}

/// Maximum number of executable segments. Programs have one or two.
const MAX_SEGMENTS: usize = 64;
/// Maximum number of bytes of a build id. Linkers write 8 to 32.
const MAX_BUILD_ID: usize = 64;
/// Maximum number of bytes of notes that are searched for the build id. Several sections may overlap the same notes.
const MAX_NOTES: u64 = 256 << 10;

/// The facts that are needed about every mapped file. Reading them needs neither symbols nor names of sections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Build id in hexadecimal digits. Empty if the file has no build id, or one that is too long to be valid.
    pub build_id: String,
    /// The executable segments.
    pub segments: Vec<Segment>,
    /// True if something was left out because of a bound.
    pub is_cut: bool,
}

impl Head {
    /// Reads the headers of a file. Returns `None` if it is not an ELF file.
    pub fn read<'data, R: ReadRef<'data>>(data: R) -> Option<Self> {
        match FileKind::parse(data).ok()? {
            FileKind::Elf32 => Self::parse::<FileHeader32<Endianness>, R>(data),
            FileKind::Elf64 => Self::parse::<FileHeader64<Endianness>, R>(data),
            _ => None,
        }
    }

    fn parse<'data, H: FileHeader<Endian = Endianness>, R: ReadRef<'data>>(data: R) -> Option<Self> {
        let header = H::parse(data).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, data).ok()?;
        let executable = segments
            .iter()
            .filter(|segment| segment.p_type(endian) == PT_LOAD && segment.p_flags(endian) & PF_X != 0)
            .map(|segment| Segment {
                offset: segment.p_offset(endian).into(),
                address: segment.p_vaddr(endian).into(),
                size: segment.p_filesz(endian).into(),
            });
        let (mut left, mut is_cut) = (MAX_NOTES, false);
        let mut has_room = |size: u64| {
            let rest = left.checked_sub(size.max(PIECE_BYTES));
            left = rest.unwrap_or(left);
            is_cut |= rest.is_none();
            rest.is_some()
        };
        // Debug files have notes in sections only. Programs without a section table have them in segments only.
        let sections = header.section_headers(endian, data).unwrap_or_default();
        let in_section = sections
            .iter()
            .filter(|section| section.sh_type(endian) == SHT_NOTE && has_room(section.sh_size(endian).into()))
            .find_map(|section| gnu_build_id(endian, section.notes(endian, data).ok()??));
        let id = in_section.or_else(|| {
            segments
                .iter()
                .filter(|segment| segment.p_type(endian) == PT_NOTE && has_room(segment.p_filesz(endian).into()))
                .find_map(|segment| gnu_build_id(endian, segment.notes(endian, data).ok()??))
        });
        let is_short = id.is_none_or(|id| id.len() <= MAX_BUILD_ID);
        let segments: Vec<Segment> = executable.take(MAX_SEGMENTS + 1).collect();
        Some(Self {
            build_id: id.filter(|_| is_short).map(hexadecimal).unwrap_or_default(),
            is_cut: is_cut || !is_short || segments.len() > MAX_SEGMENTS,
            segments: segments.into_iter().take(MAX_SEGMENTS).collect(),
        })
    }
}

fn gnu_build_id<H: FileHeader>(endian: H::Endian, mut notes: NoteIterator<'_, H>) -> Option<&[u8]> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID {
            return Some(note.desc());
        }
    }
    None
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns the virtual address at `offset` of the file. Uses the segment that contains the offset or that begins on the
/// same page.
pub fn address_of(segments: &[Segment], offset: u64) -> Option<u64> {
    const PAGE: u64 = 4096;
    segments
        .iter()
        .find(|segment| offset >= segment.offset / PAGE * PAGE && offset < segment.offset.saturating_add(segment.size))
        .map(|segment| segment.address.wrapping_sub(segment.offset).wrapping_add(offset))
}

/// The functions of a file, sorted by address, with 16 bytes for each function. The names stay in the file.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Index {
    functions: Vec<Entry>,
    /// Offsets of the two string tables in the file.
    strings: [u64; 2],
    /// True if there were more functions than are kept.
    is_cut: bool,
}

/// Maximum number of functions that are kept: several times as many as the largest programs have. This many functions
/// take 128 MiB.
const MAX_FUNCTIONS: usize = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    start: u64,
    /// Size in bytes; 0 if unknown.
    size: u32,
    /// Offset in the string table; the highest bit selects the table.
    name: u32,
}

/// Bit for the string table of `.dynsym`.
const DYNAMIC: u32 = 1 << 31;

/// A function of an [`Index`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionRange {
    pub start: u64,
    /// End address (exclusive).
    pub end: u64,
    /// Offset of the function's name in the file. The name ends with a zero byte.
    pub name: u64,
}

impl Index {
    /// Reads `.symtab` and `.dynsym`. The index is empty for other kinds of files and for files without symbols.
    pub fn new<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Self {
        let object::File::Elf64(elf) = file else {
            return Self::default();
        };
        let endian = elf.endian();
        let mut index = Self::default();
        let tables = [elf.elf_symbol_table(), elf.elf_dynamic_symbol_table()];
        // If two symbols have the same address, a symbol with a size is preferred, then a global symbol.
        let mut ranked: Vec<(u8, Entry)> = Vec::new();
        for (table_index, table) in tables.into_iter().enumerate() {
            if table.is_empty() {
                continue;
            }
            let Ok(strings) = elf.elf_section_table().section(table.string_section()) else {
                continue;
            };
            index.strings[table_index] = strings.sh_offset(endian);
            for symbol in table.symbols() {
                let kind = symbol.st_type();
                let is_code = kind == STT_FUNC || kind == STT_GNU_IFUNC || kind == STT_NOTYPE;
                let start = symbol.st_value(endian);
                let name = symbol.st_name(endian);
                if !is_code || symbol.st_shndx(endian) == SHN_UNDEF || start == 0 || name == 0 || name >= DYNAMIC {
                    continue;
                }
                let size = u32::try_from(symbol.st_size(endian)).unwrap_or(u32::MAX);
                // Markers of the assembler and of sections have neither type nor size.
                if kind == STT_NOTYPE && size == 0 {
                    continue;
                }
                let rank = u8::from(size == 0) * 2 + u8::from(symbol.st_bind() == STB_LOCAL);
                let name = if table_index == 1 { name | DYNAMIC } else { name };
                if ranked.len() == MAX_FUNCTIONS {
                    index.is_cut = true;
                    break;
                }
                ranked.push((rank, Entry { start, size, name }));
            }
        }
        ranked.sort_by_key(|(rank, entry)| (entry.start, *rank));
        ranked.dedup_by_key(|(_, entry)| entry.start);
        index.functions = ranked.into_iter().map(|(_, entry)| entry).collect();
        index
    }

    /// Returns the function that contains an address.
    pub fn find(&self, address: u64) -> Option<FunctionRange> {
        /// Functions may be nested. This many functions before the address are tried.
        const NESTED: usize = 8;
        let after = self.functions.partition_point(|entry| entry.start <= address);
        let next = self.functions.get(after).map_or(u64::MAX, |entry| entry.start);
        self.functions[..after].iter().rev().take(NESTED).find_map(|entry| {
            let end = match entry.size {
                // The size is unknown. The result ends after the address, because the later bytes may belong to no
                // function.
                0 => address.saturating_add(1).min(next),
                size => entry.start.saturating_add(u64::from(size)),
            };
            (address < end).then_some(FunctionRange {
                start: entry.start,
                end: end.min(next.max(address.saturating_add(1))),
                name: self.strings[usize::from(entry.name & DYNAMIC != 0)]
                    .saturating_add(u64::from(entry.name & !DYNAMIC)),
            })
        })
    }

    /// Returns true if there are no functions.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Returns true if the file has more functions than are kept.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub fn bytes(&self) -> usize {
        self.functions.len() * size_of::<Entry>()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use object::{Object, ObjectSymbol};

    use super::*;

    #[test]
    fn our_own_functions_are_found_by_their_addresses() {
        let path = std::env::current_exe().unwrap();
        let cache = Cache::new(File::open(&path).unwrap());
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
        let function = Index::new(&file).find(symbol.address() + 8).unwrap();
        assert_eq!(function.start, symbol.address());
        let bytes = std::fs::read(&path).unwrap();
        let name = &bytes[usize::try_from(function.name).unwrap()..];
        let end = name.iter().position(|byte| *byte == 0).unwrap();
        assert_eq!(&name[..end], symbol.name_bytes().unwrap());
        let segments = Head::read(Limited(&cache)).unwrap().segments;
        assert!(!segments.is_empty());
        let first = segments[0];
        assert_eq!(address_of(&segments, first.offset + 5), Some(first.address + 5));
    }

    /// Creates a file that begins with these bytes and continues with zeros.
    fn sparse(begin: &[u8], length: u64) -> File {
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, begin).unwrap();
        file.set_len(length).unwrap();
        file
    }

    #[test]
    fn names_that_are_kept_have_a_bound_and_those_without_an_end_count_too() {
        let mut bytes = b"name\0longer\0".to_vec();
        bytes.resize(3 * MAX_TEXT, b'x');
        let end = bytes.len() as u64;
        let cache = Cache::new(std::io::Cursor::new(bytes));
        let read = |offset| Limited(&cache).read_bytes_at_until(offset..end, 0);
        assert_eq!(read(0), Ok(&b"name"[..]));
        assert_eq!(cache.texts.get(), MAX_TEXTS - 4 - TEXT_BYTES);
        assert_eq!(read(12), Err(()));
        assert_eq!(cache.texts.get(), MAX_TEXTS - 4 - MAX_TEXT - 2 * TEXT_BYTES);
        cache.texts.set(MAX_TEXT + TEXT_BYTES);
        assert_eq!((read(5), cache.is_cut()), (Ok(&b"longer"[..]), false));
        assert_eq!((read(0), cache.is_cut()), (Err(()), true));
    }

    #[test]
    fn pieces_of_a_file_have_a_bound_together() {
        let cache = Cache::new(sparse(b"", 1 << 30));
        let read = |offset| Limited(&cache).read_bytes_at(offset, 100 << 20).map(<[u8]>::len);
        assert_eq!([read(0), read(1), read(2)], [Ok(100 << 20); 3]);
        assert!(!cache.is_cut());
        assert_eq!((read(3), cache.is_cut()), (Err(()), true));
        assert_eq!(Limited(&cache).read_bytes_at(4, 100).map(<[u8]>::len), Ok(100));
    }

    #[test]
    fn sections_that_are_all_the_same_notes_are_searched_once_or_not_at_all() {
        use alluvium_testing::elf::{Section, made};

        // Together these sections have 400 GB of empty notes.
        let notes = Section {
            kind: SHT_NOTE,
            offset: Some((0x1000, 100 << 20)),
            ..Section::default()
        };
        let short_notes = Section {
            offset: Some((0x1000, 64 << 10)),
            ..notes.clone()
        };
        let id = Section {
            kind: SHT_NOTE,
            bytes: note(&[0xab; 20]),
            ..Section::default()
        };
        for (before, is_found, is_cut) in [
            (vec![notes; 4000], true, true),
            (vec![short_notes.clone(); 3], true, false),
            (vec![short_notes; 4000], false, true),
        ] {
            let file = sparse(&made(&[before, vec![id.clone()]].concat()), 200 << 20);
            let cache = Cache::of_head(file);
            let head = Head::read(Limited(&cache)).unwrap();
            assert_eq!((head.build_id == "ab".repeat(20), head.is_cut), (is_found, is_cut));
        }
    }

    #[test]
    fn a_build_id_of_gigabytes_and_thousands_of_segments_are_not_kept() {
        use alluvium_testing::elf::{Section, made, with_segments};

        let id = |length: usize| Section {
            kind: SHT_NOTE,
            bytes: note(&vec![1; length]),
            ..Section::default()
        };
        let read = |bytes: Vec<u8>| Head::read(bytes.as_slice()).unwrap();
        let short_head = read(made(&[id(MAX_BUILD_ID)]));
        assert_eq!(
            (short_head.build_id.len(), short_head.is_cut),
            (2 * MAX_BUILD_ID, false)
        );
        for length in [MAX_BUILD_ID + 1, 1 << 20] {
            let long_head = read(made(&[id(length)]));
            assert_eq!((long_head.build_id.as_str(), long_head.is_cut), ("", true));
        }
        let head = read(with_segments(60_000, &[id(20)]));
        assert_eq!((head.segments.len(), head.build_id.len()), (MAX_SEGMENTS, 40));
    }

    /// Creates a note with a build id.
    fn note(id: &[u8]) -> Vec<u8> {
        let mut note = Vec::new();
        for number in [4, id.len() as u32, NT_GNU_BUILD_ID] {
            note.extend_from_slice(&number.to_le_bytes());
        }
        note.extend_from_slice(b"GNU\0");
        note.extend_from_slice(id);
        note.resize(note.len().next_multiple_of(4), 0);
        note
    }

    #[test]
    fn a_file_that_is_nothing_but_sections_and_a_name_without_an_end_is_read_in_no_time() {
        use object::ObjectSection;

        use alluvium_testing::elf::{Section, made};

        // Two million sections, whose names all begin at a text without an end.
        let names = Section {
            kind: object::elf::SHT_STRTAB,
            bytes: vec![b'x'; 8192],
            ..Section::default()
        };
        let mut bytes = made(&[names]);
        let table_offset = bytes.len() as u64;
        let first = u64::from_le_bytes(bytes[40..48].try_into().unwrap()) as usize;
        let headers = bytes[first..first + 3 * 64].to_vec();
        bytes.extend_from_slice(&headers);
        bytes[40..48].copy_from_slice(&table_offset.to_le_bytes());
        // e_shnum is 0, so the number is sh_size of the first section; e_shstrndx is the section of `x`.
        bytes[60..62].copy_from_slice(&0_u16.to_le_bytes());
        bytes[62..64].copy_from_slice(&1_u16.to_le_bytes());
        bytes[table_offset as usize + 32..table_offset as usize + 40].copy_from_slice(&2_000_000_u64.to_le_bytes());
        let cache = Cache::new(sparse(&bytes, 1 << 30));
        let file = object::File::parse(Limited(&cache)).unwrap();
        assert_eq!(file.sections().count(), 2_000_000 - 1);
        for _ in 0..5 {
            assert!(file.section_by_name(".eh_frame").is_none());
        }
        assert!(file.sections().next().unwrap().name().is_err());
        assert!(cache.is_cut());
        assert!(
            cache.texts.get() < MAX_TEXT + TEXT_BYTES,
            "the remaining bytes of names must not allow another search"
        );
    }

    #[test]
    fn a_section_of_terabytes_in_a_file_that_has_them_is_refused() {
        use std::os::unix::fs::FileExt;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sparse");
        std::fs::copy("/bin/sh", &path).unwrap();
        let (headers, count) = {
            let bytes = std::fs::read(&path).unwrap();
            let table_offset = u64::from_le_bytes(bytes[40..48].try_into().unwrap());
            (table_offset, u16::from_le_bytes(bytes[60..62].try_into().unwrap()))
        };
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(2 << 40).unwrap();
        for section in 1..u64::from(count) {
            // sh_size
            file.write_all_at(&(1_u64 << 40).to_le_bytes(), headers + section * 64 + 32)
                .unwrap();
        }
        let cache = Cache::new(File::open(&path).unwrap());
        if let Ok(file) = object::File::parse(Limited(&cache)) {
            assert!(Index::new(&file).bytes() < 16 << 20);
        }
    }
}
