//! Reads lines and inlined calls from `.debug_info` and `.debug_line` (DWARF 2 to 5), for some addresses at a time.
//!
//! In: an ELF file and sorted addresses. Out: the calls at each address. Nothing is kept between look-ups. If the
//! sections of a file exceed [`Limits::bytes`], the result is empty, and the caller uses only the file's symbols: a
//! long-running profiler must not hold the debug information of a compiler in memory.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gimli::constants as dw;
use gimli::{AttributeValue, DebugInfoOffset, EndianSlice, RunTimeEndian, Section as _, SectionId, UnitOffset};
use object::{Object, ReadRef};

use crate::calls::Call;
use crate::demangle::{Demangle, demangle};
use alluvium_base::expand;

type Reader<'a> = EndianSlice<'a, RunTimeEndian>;
type Unit<'a> = gimli::Unit<Reader<'a>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of bytes of all sections together, uncompressed in memory.
    pub bytes: u64,
    /// Number of steps left. Each entry, row of a line table, range, address in a range, and piece of a text or section
    /// is a step.
    pub steps: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 32 << 20,
            steps: 20_000_000,
        }
    }
}

/// Maximum number of entries that are read for a name. An entry may refer to another entry for its name.
const MAX_STEPS: usize = 8;
/// Maximum number of calls inlined into each other.
const MAX_INLINED: usize = 64;
/// Maximum number of bytes of a name or path.
const MAX_NAME_BYTES: usize = 16 << 10;
/// Number of bytes of a text, table or section, or number of attributes of an entry, that cost one step.
const BYTES_PER_STEP: usize = 16;
/// Number of steps that the tables of a unit cost. `MAX_ABBREVIATIONS` is the maximum size of its abbreviation table
/// in bytes. Units that share a table cost as much, because each unit parses the table from its own offset.
const UNIT_STEPS: usize = 1024;
const MAX_ABBREVIATIONS: usize = 64 << 10;
/// Maximum number of units that are kept because names refer to them. A unit takes up to a megabyte.
const MAX_REFERENCED_UNITS: usize = 128;
/// Number of steps that each kept scope costs.
const SCOPE_STEPS: usize = 8;
/// Number of steps that each file of a kept unit costs. A file takes a hundred bytes.
const STEPS_PER_FILE: usize = 16;

/// A function or inlined call that contains an address. Scopes exist only while their unit is read.
struct Scope {
    name: Option<Arc<str>>,
    /// For an inlined call, its position in the caller: index of the file and line.
    called_from: (u64, u32),
}

/// The findings about an address: scopes and a line while its unit is read, and then the calls.
#[derive(Default)]
struct AddressFindings {
    scopes: Vec<Scope>,
    line: Option<(Arc<str>, u32)>,
    calls: Vec<Call>,
}

/// Returns the calls at each of the sorted `addresses`, innermost first. Addresses without calls are left out. The
/// result is empty if the file has no debug information, or if its sections are damaged or too large. The name of a
/// call is empty if only its line is known. Deducts the used steps from `limits`.
pub fn locate<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    addresses: &[u64],
    mode: Demangle,
    limits: &mut Limits,
) -> Vec<(u64, Vec<Call>)> {
    if addresses.is_empty()
        || file.section_by_name(".debug_info").is_none() && file.section_by_name(".zdebug_info").is_none()
    {
        return Vec::new();
    }
    let endian = if file.is_little_endian() {
        RunTimeEndian::Little
    } else {
        RunTimeEndian::Big
    };
    let mut left = limits.bytes;
    let load = |id: SectionId| -> Result<Cow<'data, [u8]>, UnreadableSection> {
        let is_used = matches!(
            id,
            SectionId::DebugAbbrev
                | SectionId::DebugAddr
                | SectionId::DebugInfo
                | SectionId::DebugLine
                | SectionId::DebugLineStr
                | SectionId::DebugRanges
                | SectionId::DebugRngLists
                | SectionId::DebugStr
                | SectionId::DebugStrOffsets
        );
        let Some(section) = file.section_by_name(id.name()).filter(|_| is_used) else {
            return Ok(Cow::Borrowed(&[]));
        };
        let bytes = expand::section(&section, left).map_err(|_| UnreadableSection)?;
        left = left.saturating_sub(bytes.len() as u64);
        Ok(match id {
            SectionId::DebugStr | SectionId::DebugLineStr => expand::whole_texts(bytes),
            _ => bytes,
        })
    };
    let sections = gimli::DwarfSections::load(load);
    let loaded = usize::try_from(limits.bytes - left).unwrap_or(usize::MAX);
    limits.steps = limits.steps.saturating_sub(loaded / BYTES_PER_STEP);
    let Ok(sections) = sections else {
        return Vec::new();
    };
    let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
    let mut search = Search {
        dwarf: &dwarf,
        mode,
        steps: limits.steps,
        findings: BTreeMap::new(),
        referenced_units: BTreeMap::new(),
    };
    let mut units = dwarf.units();
    // A damaged header or entry ends the search. The results so far are kept.
    while let Ok(Some(header)) = units.next() {
        let unit = search.open(header);
        let read = unit.map_or(Ok(()), |unit| search.unit(&unit, addresses));
        if read.is_err() || search.steps == 0 {
            break;
        }
    }
    limits.steps = search.steps;
    let findings = std::mem::take(&mut search.findings);
    findings
        .into_iter()
        .map(|(address, findings)| (address, findings.calls))
        .filter(|(_, calls)| !calls.is_empty())
        .collect()
}

/// The error for a section that is too large or cannot be read.
struct UnreadableSection;

struct Search<'a, 'b> {
    dwarf: &'b gimli::Dwarf<Reader<'a>>,
    mode: Demangle,
    /// Number of steps that are left.
    steps: usize,
    findings: BTreeMap<u64, AddressFindings>,
    /// Other units that names refer to.
    referenced_units: BTreeMap<usize, Unit<'a>>,
}

impl<'a> Search<'a, '_> {
    /// Opens a unit with its tables. Returns `None` if it is damaged.
    fn open(&mut self, header: gimli::UnitHeader<Reader<'a>>) -> Option<Unit<'a>> {
        self.steps = self.steps.saturating_sub(UNIT_STEPS);
        let section = self.dwarf.debug_abbrev.reader();
        let end = header.debug_abbrev_offset().0.saturating_add(MAX_ABBREVIATIONS);
        let part = gimli::DebugAbbrev::from(section.range_to(..end.min(section.slice().len())));
        let abbreviations = header.abbreviations(&part).ok()?;
        let unit = Unit::new_with_abbreviations(self.dwarf, header, Arc::new(abbreviations)).ok();
        let bytes = unit.as_ref().map_or_else(
            // Before the failure, `gimli` may have read all texts and a whole line header.
            || {
                let texts = [self.dwarf.debug_str.reader(), self.dwarf.debug_line_str.reader()];
                let texts: usize = texts.map(|texts| texts.slice().len()).into_iter().sum();
                texts + self.dwarf.debug_line.reader().slice().len()
            },
            |unit| {
                let texts = [unit.name, unit.comp_dir].into_iter().flatten();
                let texts = texts.map(|text| text.slice().len());
                let lines = unit.line_program.as_ref().map(|lines| lines.header().header_length());
                texts.chain(lines).sum()
            },
        );
        self.steps = self.steps.saturating_sub(bytes / BYTES_PER_STEP);
        unit
    }

    fn unit(&mut self, unit: &Unit<'a>, addresses: &[u64]) -> gimli::Result<()> {
        let mut unit_addresses = BTreeSet::new();
        let mut root = unit.entries();
        let Some(root) = root.next_dfs()? else {
            return Ok(());
        };
        let mut ranges = self.ranges(unit, root)?;
        while let Some(range) = ranges.next()? {
            unit_addresses.extend(self.addresses_in(addresses, range.begin, range.end));
            if self.steps == 0 {
                return Ok(());
            }
        }
        let unit_addresses: Vec<u64> = unit_addresses.into_iter().collect();
        if unit_addresses.is_empty() {
            return Ok(());
        }
        self.lines(unit, &unit_addresses)?;
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            // Attributes cost steps, too, because an attribute may take no bytes of the file.
            self.steps = self.steps.saturating_sub(1 + entry.attrs().len() / BYTES_PER_STEP);
            if self.steps == 0 {
                return Ok(());
            }
            let tag = entry.tag();
            if tag != dw::DW_TAG_subprogram && tag != dw::DW_TAG_inlined_subroutine {
                continue;
            }
            let mut ranges = self.ranges(unit, entry)?;
            let mut scope_addresses = BTreeSet::new();
            while let Some(range) = ranges.next()? {
                scope_addresses.extend(self.addresses_in(&unit_addresses, range.begin, range.end));
                if self.steps == 0 {
                    return Ok(());
                }
            }
            if scope_addresses.is_empty() {
                continue;
            }
            let name = self.name(unit, entry.offset()).map(Arc::from);
            let number = |name| {
                entry
                    .attr_value(name)
                    .and_then(|value| value.udata_value())
                    .unwrap_or(0)
            };
            let file = match entry.attr_value(dw::DW_AT_call_file) {
                Some(AttributeValue::FileIndex(index)) => index,
                Some(other) => other.udata_value().unwrap_or(0),
                None => 0,
            };
            let line = u32::try_from(number(dw::DW_AT_call_line)).unwrap_or(0);
            for address in scope_addresses {
                let findings = self.findings.entry(address).or_default();
                if tag == dw::DW_TAG_subprogram {
                    // Functions are not nested. If two share code, the last one counts.
                    findings.scopes.clear();
                }
                if findings.scopes.len() < MAX_INLINED {
                    self.steps = self.steps.saturating_sub(SCOPE_STEPS);
                    findings.scopes.push(Scope {
                        name: name.clone(),
                        called_from: (file, line),
                    });
                }
            }
        }
        self.name_callers(unit, &unit_addresses);
        Ok(())
    }

    /// Returns the sorted addresses that lie in a range. The range costs a step, and so does each address.
    fn addresses_in<'n>(&mut self, addresses: &'n [u64], start: u64, end: u64) -> &'n [u64] {
        let subset = addresses_in(addresses, start, end);
        self.steps = self.steps.saturating_sub(1 + subset.len());
        subset
    }

    /// Returns the address ranges of an entry. Rejects a length beyond the address space, because gimli adds it
    /// unchecked.
    fn ranges(
        &self,
        unit: &Unit<'a>,
        entry: &gimli::DebuggingInformationEntry<Reader<'a>>,
    ) -> gimli::Result<gimli::RangeIter<Reader<'a>>> {
        let (mut low, mut length) = (0u64, 0u64);
        for attribute in entry.attrs() {
            match (attribute.name(), attribute.value()) {
                (dw::DW_AT_low_pc, value) => low = low.max(self.dwarf.attr_address(unit, value)?.unwrap_or(0)),
                (dw::DW_AT_high_pc, AttributeValue::Udata(value)) => length = length.max(value),
                _ => {}
            }
        }
        match low.checked_add(length) {
            Some(_) => self.dwarf.die_ranges(unit, entry),
            None => Err(gimli::Error::AddressOverflow),
        }
    }

    /// Builds the calls of each address from its scopes and its line, which belongs to the innermost call. Replaces
    /// the indexes of files with names.
    fn name_callers(&mut self, unit: &Unit<'a>, addresses: &[u64]) {
        let mut files: BTreeMap<u64, Arc<str>> = BTreeMap::new();
        for address in addresses {
            let Some(findings) = self.findings.get_mut(address) else {
                continue;
            };
            let mut calls = Vec::with_capacity(findings.scopes.len());
            let mut position = findings.line.take().unwrap_or_else(|| (Arc::from(""), 0));
            while let Some(scope) = findings.scopes.pop() {
                calls.push((scope.name, position));
                let (file, line) = scope.called_from;
                let file = files.entry(file).or_insert_with(|| {
                    file_of(self.dwarf, unit, file, &mut self.steps)
                        .unwrap_or_default()
                        .into()
                });
                position = (file.clone(), line);
            }
            if calls.is_empty() {
                calls.push((None, position));
            }
            findings.calls = calls
                .into_iter()
                .map(|(name, (file, line))| Call {
                    name: name.unwrap_or_else(|| Arc::from("")),
                    file,
                    line,
                })
                .collect();
        }
    }

    /// Finds the line of each address.
    fn lines(&mut self, unit: &Unit<'a>, addresses: &[u64]) -> gimli::Result<()> {
        let Some(program) = unit.line_program.clone() else {
            return Ok(());
        };
        // A line program may have any number of instructions per row, and all units may share one program.
        let instructions = program.header().raw_program_buf().slice().len();
        self.steps = self.steps.saturating_sub(instructions / BYTES_PER_STEP);
        let mut files: BTreeMap<u64, Arc<str>> = BTreeMap::new();
        let mut rows = program.rows();
        let mut before: Option<(u64, u64, u32)> = None;
        while let Some((_, row)) = rows.next_row()? {
            self.steps = self.steps.saturating_sub(1);
            if self.steps == 0 {
                break;
            }
            if let Some((start, file, line)) = before.take() {
                for address in self.addresses_in(addresses, start, row.address()) {
                    let path = files.entry(file).or_insert_with(|| {
                        file_of(self.dwarf, unit, file, &mut self.steps)
                            .unwrap_or_default()
                            .into()
                    });
                    self.findings.entry(*address).or_default().line = Some((path.clone(), line));
                }
            }
            if !row.end_sequence() {
                let line = row.line().and_then(|line| u32::try_from(line.get()).ok()).unwrap_or(0);
                before = Some((row.address(), row.file_index(), line));
            }
        }
        Ok(())
    }

    /// Returns the name of an entry. If the entry has none, returns the name of the entry to which it refers. The
    /// linkage name is preferred, because it contains the namespaces.
    fn name(&mut self, unit: &Unit<'a>, offset: UnitOffset) -> Option<String> {
        let mut reference = EntryReference::InUnit(offset);
        let mut plain_name = None;
        for _ in 0..MAX_STEPS {
            let (linkage, name, next) = match reference {
                EntryReference::InUnit(offset) => names_at(self.dwarf, unit, offset, &mut self.steps)?,
                EntryReference::InSection(offset) => {
                    let (header, offset) = self.unit_of(offset)?;
                    names_at(self.dwarf, self.referenced_units.get(&header)?, offset, &mut self.steps)?
                }
            };
            if let Some(name) = linkage {
                let name = demangle(&name, self.mode).into_owned();
                self.steps = self.steps.saturating_sub(name.len() / BYTES_PER_STEP);
                return Some(name);
            }
            plain_name = plain_name.or(name);
            reference = match (next, reference) {
                (Some(AttributeValue::UnitRef(offset)), EntryReference::InUnit(_)) => EntryReference::InUnit(offset),
                (Some(AttributeValue::UnitRef(offset)), EntryReference::InSection(source_offset)) => {
                    let (header, _) = self.unit_of(source_offset)?;
                    EntryReference::InSection(offset.to_debug_info_offset(&self.referenced_units.get(&header)?.header)?)
                }
                (Some(AttributeValue::DebugInfoRef(offset)), _) => EntryReference::InSection(offset),
                _ => break,
            };
        }
        plain_name
    }

    /// Returns the start of the unit that contains an offset, and the offset within the unit.
    fn unit_of(&mut self, offset: DebugInfoOffset) -> Option<(usize, UnitOffset)> {
        if let Some((header_offset, unit)) = self.referenced_units.range(..=offset.0).next_back()
            && let Some(unit_offset) = offset.to_unit_offset(&unit.header)
        {
            return Some((*header_offset, unit_offset));
        }
        let mut units = self.dwarf.units();
        while let Ok(Some(header)) = units.next() {
            self.steps = self.steps.saturating_sub(1);
            if self.steps == 0 {
                return None;
            }
            let Some(unit_offset) = offset.to_unit_offset(&header) else {
                continue;
            };
            let header_offset = header.debug_info_offset()?.0;
            let unit = self.open(header)?;
            let files = unit
                .line_program
                .as_ref()
                .map_or(0, |lines| lines.header().file_names().len());
            self.steps = self.steps.saturating_sub(files.saturating_mul(STEPS_PER_FILE));
            if self.referenced_units.len() >= MAX_REFERENCED_UNITS {
                self.referenced_units.clear();
            }
            self.referenced_units.insert(header_offset, unit);
            return Some((header_offset, unit_offset));
        }
        None
    }
}

#[derive(Clone, Copy)]
enum EntryReference {
    InUnit(UnitOffset),
    InSection(DebugInfoOffset),
}

type Names<'a> = (Option<String>, Option<String>, Option<AttributeValue<Reader<'a>>>);

/// Returns the linkage name and the plain name of an entry, and the entry to which it refers for missing names.
fn names_at<'a>(
    dwarf: &gimli::Dwarf<Reader<'a>>,
    unit: &Unit<'a>,
    offset: UnitOffset,
    entries: &mut usize,
) -> Option<Names<'a>> {
    let mut entry = gimli::DebuggingInformationEntry::null();
    let mut reader = unit.entries_raw(Some(offset)).ok()?;
    let is_entry = reader.read_entry(&mut entry);
    // A text in the entry may be as long as the unit, or may have no end. Its bytes cost steps in both cases.
    let end = if is_entry.is_ok() {
        reader.next_offset().0
    } else {
        unit.header.length_including_self()
    };
    let bytes = end.saturating_sub(offset.0);
    *entries = entries.saturating_sub((bytes + entry.attrs().len()) / BYTES_PER_STEP);
    if !is_entry.ok()? {
        return None;
    }
    let mut text = |name| Some(to_text(dwarf.attr_string(unit, entry.attr_value(name)?).ok()?, entries));
    let linkage = text(dw::DW_AT_linkage_name).or_else(|| text(dw::DW_AT_MIPS_linkage_name));
    let next = entry
        .attr_value(dw::DW_AT_abstract_origin)
        .or_else(|| entry.attr_value(dw::DW_AT_specification));
    Some((linkage, text(dw::DW_AT_name), next))
}

/// Returns the path of a file of a unit.
fn file_of<'a>(dwarf: &gimli::Dwarf<Reader<'a>>, unit: &Unit<'a>, index: u64, entries: &mut usize) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(index)?;
    let mut text = |value| Some(to_text(dwarf.attr_string(unit, value).ok()?, entries));
    let name = text(file.path_name())?;
    if name.starts_with('/') {
        return Some(name);
    }
    let mut path = String::new();
    if let Some(folder) = file.directory(header).and_then(&mut text) {
        if !folder.starts_with('/')
            && let Some(base) = unit.comp_dir
        {
            path.push_str(&to_text(base, entries));
            path.push('/');
        }
        path.push_str(&folder);
        path.push('/');
    }
    path.push_str(&name);
    Some(path)
}

/// Converts a text, cut at [`MAX_NAME_BYTES`]. The steps count the whole text, because all of it was searched for its
/// end.
fn to_text(text: Reader<'_>, entries: &mut usize) -> String {
    let text = text.slice();
    *entries = entries.saturating_sub(text.len() / BYTES_PER_STEP);
    String::from_utf8_lossy(text.get(..MAX_NAME_BYTES).unwrap_or(text)).into_owned()
}

/// Returns the sorted addresses that lie in a range.
fn addresses_in(addresses: &[u64], start: u64, end: u64) -> &[u64] {
    let from = addresses.partition_point(|address| *address < start);
    let to = addresses.partition_point(|address| *address < end);
    addresses.get(from..to).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alluvium_testing::elf::{Section, made};

    /// Creates a file with a compressed `.debug_info`, whose header states `size` as the uncompressed size.
    fn packed(size: u64, bytes: &[u8]) -> Vec<u8> {
        // ELFCOMPRESS_ZSTD
        let header = [2, size, 1].map(u64::to_le_bytes).concat();
        made(&[Section {
            name: ".debug_info",
            kind: object::elf::SHT_PROGBITS,
            flags: u64::from(object::elf::SHF_COMPRESSED),
            bytes: [header.as_slice(), bytes].concat(),
            ..Section::default()
        }])
    }

    #[test]
    fn debug_information_that_unpacks_to_more_than_it_states_is_not_unpacked() {
        let steps = |size: u64, bytes: &[u8]| {
            let file = packed(size, bytes);
            let mut limits = Limits::default();
            let file = object::File::parse(file.as_slice()).unwrap();
            assert!(locate(&file, &[0x1000], Demangle::Full, &mut limits).is_empty());
            Limits::default().steps - limits.steps
        };
        let compressed = zstd::encode_all([0_u8; 1600].as_slice(), 3).unwrap();
        assert_eq!(steps(1600, &compressed), 100, "the section was not unpacked");
        assert_eq!(steps(1599, &compressed), 0);
        assert_eq!(steps(1601, &compressed), 0);
        // 64 GiB in a few megabytes.
        let zeros = zstd::encode_all(std::io::Read::take(std::io::repeat(0), 16 << 20), 1).unwrap();
        assert_eq!(steps(1600, &zeros.repeat(4096)), 0);
        assert_eq!(steps(Limits::default().bytes + 1, &zeros), 0);
    }

    /// Returns the steps left after a search for 0x1000 in these sections.
    fn left(sections: &[(&'static str, &[u8])]) -> usize {
        let sections: Vec<Section> = sections
            .iter()
            .map(|&(name, bytes)| Section {
                name,
                kind: object::elf::SHT_PROGBITS,
                bytes: bytes.to_vec(),
                ..Section::default()
            })
            .collect();
        let file = made(&sections);
        let mut limits = Limits::default();
        locate(
            &object::File::parse(file.as_slice()).unwrap(),
            &[0x1000],
            Demangle::Full,
            &mut limits,
        );
        limits.steps
    }

    /// Creates a unit of DWARF 4 with 64-bit addresses.
    fn unit(entries: &[u8]) -> Vec<u8> {
        let length = (7 + entries.len() as u32).to_le_bytes();
        [&length[..], &[4, 0], &[0; 4], &[8], entries].concat()
    }

    #[test]
    fn units_that_all_have_one_long_name_end_the_search() {
        // DW_TAG_compile_unit with DW_AT_name, DW_FORM_strp
        let abbreviations: [u8; 8] = [1, 0x11, 0, 3, 0x0e, 0, 0, 0];
        let units = unit(&[1, 0, 0, 0, 0]).repeat(10_000);
        let mut name = vec![b'x'; 8 << 20];
        let steps_left = |name: &[u8]| {
            left(&[
                (".debug_info", &units[..]),
                (".debug_abbrev", &abbreviations[..]),
                (".debug_str", name),
            ])
        };
        // A text without an end is cut off and costs nothing.
        assert!(steps_left(&name) > 1_000_000);
        name.push(0);
        assert_eq!(steps_left(&name), 0);
    }

    #[test]
    fn functions_that_all_refer_to_one_long_entry_end_the_search() {
        let range_attributes: [u8; 4] = [0x11, 0x01, 0x12, 0x06];
        let abbreviations = [
            // DW_TAG_compile_unit with children, DW_TAG_subprogram with DW_AT_specification, DW_FORM_ref4
            [&[1, 0x11, 1][..], &range_attributes, &[0, 0]].concat(),
            [&[2, 0x2e, 0][..], &range_attributes, &[0x47, 0x13, 0, 0]].concat(),
            // DW_TAG_variable with DW_AT_producer, DW_FORM_string
            vec![3, 0x34, 0, 0x25, 0x08, 0, 0, 0],
        ];
        let span = [&0x1000_u64.to_le_bytes()[..], &0x10_u32.to_le_bytes()].concat();
        let function_count = 10_000;
        let long_offset = 11 + 13 + 17 * function_count;
        let function = [&[2][..], &span[..], &(long_offset as u32).to_le_bytes()].concat();
        let long_text = vec![b'x'; 1 << 20];
        let entries = [
            &[1][..],
            &span,
            &function.repeat(function_count),
            &[3],
            &long_text,
            &[0, 0],
        ]
        .concat();
        let info = unit(&entries);
        assert_eq!(info[long_offset], 3);
        assert_eq!(
            left(&[
                (".debug_info", &info[..]),
                (".debug_abbrev", &abbreviations.concat()[..])
            ]),
            0
        );
    }
}
