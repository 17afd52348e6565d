//! Finds Go's function table in an ELF file, by the name of its section or, if the section names are gone, by the
//! table's magic number.

use object::elf::{R_AARCH64_RELATIVE, R_X86_64_RELATIVE};
use object::read::elf::{ElfFile64, Rela, SectionHeader, Sym};
use object::{Endianness, Object, ObjectSection, ObjectSegment, ReadRef, SectionFlags, SegmentFlags};

use crate::bytes::Bytes;
use crate::pclntab::{Header, Pclntab};

/// Maximum number of bytes that are searched for the magic number, in all segments together, and for the module data,
/// in one section.
const MAX_SEARCH: u64 = 256 << 20;
/// Maximum number of bytes of relocations that are searched.
const MAX_RELOCATIONS: u64 = 64 << 20;
/// Maximum number of symbols that are searched.
const MAX_SYMBOLS: usize = 2_000_000;

/// Returns the table of a file, or `None` if it is not a Go program.
pub fn find<'data, R: ReadRef<'data>>(file: &object::File<'data, R>, bytes: &Bytes<'_>) -> Option<Pclntab> {
    let object::File::Elf64(elf) = file else { return None };
    if !file.is_little_endian() {
        return None;
    }
    let table_offset = locate(file, bytes)?;
    let mut start = [0; Header::LENGTH];
    bytes.read(table_offset, &mut start)?;
    let header = Header::parse(&start)?;
    let image = Image { file, elf, bytes };
    let module = image.module(table_offset);
    let (text_field, inlined_field) = header.module_fields();
    let text = if header.needs_text() {
        let from_module = || image.pointer(module?.checked_add(text_field)?);
        [
            Some(header.text),
            image.pointer(image.address(table_offset)?.checked_add(24)?),
        ]
        .into_iter()
        .flatten()
        .find(|text| *text != 0)
        .or_else(from_module)
        .or_else(|| image.symbol(&["runtime.text"]))
        .or_else(|| file.section_by_name(".text").map(|section| section.address()))?
    } else {
        0
    };
    let mut table = Pclntab::open(bytes, table_offset, text)?;
    table.inlined = module
        .and_then(|module| image.pointer(module.checked_add(inlined_field?)?))
        .filter(|address| *address != 0)
        .or_else(|| image.symbol(&["go:func.*", "go.func.*"]))
        .and_then(|address| image.offset(address));
    // The functions of a false or foreign table are outside of the code of this file.
    let (first, last) = table.range(bytes)?;
    (first < last && image.is_code(first)).then_some(table)
}

/// Returns the offset of the table in the file.
fn locate<'data, R: ReadRef<'data>>(file: &object::File<'data, R>, bytes: &Bytes<'_>) -> Option<u64> {
    for name in [".gopclntab", ".data.rel.ro.gopclntab"] {
        if let Some((section_offset, _)) = file.section_by_name(name).and_then(|section| section.file_range()) {
            return Some(section_offset);
        }
    }
    let is_nameless = file.sections().next().is_none();
    let is_go = [".go.buildinfo", ".note.go.buildid"]
        .into_iter()
        .any(|name| file.section_by_name(name).is_some());
    if !is_nameless && !is_go {
        return None;
    }
    let mut budget = MAX_SEARCH;
    for segment in file.segments() {
        if matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & object::elf::PF_X != 0) {
            continue;
        }
        let (start, size) = segment.file_range();
        let end = start.saturating_add(size.min(budget));
        budget = budget.saturating_sub(size);
        let Some(mut position) = start.checked_next_multiple_of(8) else {
            continue;
        };
        let mut piece = [0; 4096 + Header::LENGTH];
        while position < end {
            // The last piece may be shorter.
            let length = (end - position).min(piece.len() as u64) as usize;
            let Some(part) = piece.get_mut(..length) else { break };
            if bytes.read(position, part).is_none() {
                break;
            }
            let offset = (0..length.min(4096)).step_by(8).find(|from| {
                part.get(*from..)
                    .is_some_and(|rest| rest.len() >= Header::LENGTH && Header::parse(rest).is_some())
            });
            if let Some(from) = offset {
                return Some(position + from as u64);
            }
            position += 4096;
        }
    }
    None
}

struct Image<'a, 'data, 'b, R: ReadRef<'data>> {
    file: &'a object::File<'data, R>,
    elf: &'a ElfFile64<'data, Endianness, R>,
    bytes: &'a Bytes<'b>,
}

impl<'data, R: ReadRef<'data>> Image<'_, 'data, '_, R> {
    /// Converts a file offset to a virtual address.
    fn address(&self, offset: u64) -> Option<u64> {
        self.file.segments().find_map(|segment| {
            let (start, size) = segment.file_range();
            let distance = offset.checked_sub(start).filter(|distance| *distance < size)?;
            segment.address().checked_add(distance)
        })
    }

    /// Converts a virtual address to a file offset.
    fn offset(&self, address: u64) -> Option<u64> {
        self.file.segments().find_map(|segment| {
            let (start, size) = segment.file_range();
            let distance = address
                .checked_sub(segment.address())
                .filter(|distance| *distance < size)?;
            start.checked_add(distance)
        })
    }

    fn is_code(&self, address: u64) -> bool {
        self.file.segments().any(|segment| {
            matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & object::elf::PF_X != 0)
                && address
                    .checked_sub(segment.address())
                    .is_some_and(|distance| distance < segment.size())
        })
    }

    /// Returns the pointer at an address, or the value of its relocation if the dynamic linker fills it in.
    fn pointer(&self, address: u64) -> Option<u64> {
        match self.bytes.u64(self.offset(address)?)? {
            0 => self
                .relocation(|location, _| location == address)
                .map(|(_, value)| value),
            value => Some(value),
        }
    }

    /// Returns the first relative relocation for which `is_match`, called with its address and its value, returns true.
    fn relocation(&self, mut is_match: impl FnMut(u64, u64) -> bool) -> Option<(u64, u64)> {
        let endian = self.elf.endian();
        let mut budget = MAX_RELOCATIONS;
        for section in self.elf.elf_section_table().iter() {
            if section.sh_type(endian) != object::elf::SHT_RELA {
                continue;
            }
            budget = budget.checked_sub(section.sh_size(endian))?;
            let Ok(Some((entries, _))) = section.rela(endian, self.elf.data()) else {
                continue;
            };
            for entry in entries {
                let kind = entry.r_type(endian, false);
                let (location, value) = (entry.r_offset(endian), entry.r_addend(endian) as u64);
                if (kind == R_X86_64_RELATIVE || kind == R_AARCH64_RELATIVE) && is_match(location, value) {
                    return Some((location, value));
                }
            }
        }
        None
    }

    fn symbol(&self, names: &[&str]) -> Option<u64> {
        let endian = self.elf.endian();
        let table = self.elf.elf_symbol_table();
        let strings = self.elf.elf_section_table().section(table.string_section()).ok()?;
        let strings = strings.sh_offset(endian);
        let is_wanted = |offset: u64| names.iter().any(|name| self.is_text(offset, name));
        let mut symbols = table.symbols().iter().take(MAX_SYMBOLS);
        symbols
            .find(|symbol| {
                strings
                    .checked_add(symbol.st_name(endian).into())
                    .is_some_and(is_wanted)
            })
            .map(|symbol| symbol.st_value(endian))
    }

    /// Returns true if this text, followed by a zero byte, is at an offset of the file.
    fn is_text(&self, offset: u64, expected: &str) -> bool {
        let mut text = [0; 32];
        let Some(text) = text.get_mut(..=expected.len()) else {
            return false;
        };
        self.bytes.read(offset, text).is_some() && text.strip_suffix(&[0]) == Some(expected.as_bytes())
    }

    /// Returns the address of the module data, which begins with the address of the table.
    fn module(&self, table: u64) -> Option<u64> {
        if let Some(section) = self.file.section_by_name(".go.module") {
            return Some(section.address());
        }
        let table = self.address(table)?;
        if let Some((location, _)) = self.relocation(|_, value| value == table) {
            return Some(location);
        }
        let section = [".noptrdata", ".data"]
            .into_iter()
            .find_map(|name| self.search(name, table));
        section.or_else(|| self.symbol(&["runtime.firstmoduledata"]))
    }

    /// Searches a section for the number `address` followed by a slightly larger number, and returns the address at
    /// which the first number is stored. The two numbers are the addresses of the table and of the names in it.
    fn search(&self, name: &str, address: u64) -> Option<u64> {
        let section = self.file.section_by_name(name)?;
        let writable = u64::from(object::elf::SHF_WRITE);
        if !matches!(section.flags(), SectionFlags::Elf { sh_flags } if sh_flags & writable != 0) {
            return None;
        }
        let (start, size) = section.file_range()?;
        let size = size.min(MAX_SEARCH);
        let mut offset = 0;
        while offset + 16 <= size {
            let position = start.checked_add(offset)?;
            if self.bytes.u64(position)? == address {
                let names = self.bytes.u64(position.checked_add(8)?)?;
                if names > address && names - address < 256 {
                    return section.address().checked_add(offset);
                }
            }
            offset += 8;
        }
        None
    }
}
