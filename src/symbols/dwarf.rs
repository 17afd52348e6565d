//! Reads lines and inlined calls from `.debug_info` and `.debug_line` (DWARF 2 to 5), for some addresses at a time.
//!
//! In: an ELF file and sorted addresses. Out: the calls at each. Nothing is kept between calls. Files whose sections
//! exceed the budget are skipped, and only their symbols are used: a long-running profiler must not hold a compiler's
//! debug information.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use gimli::constants as dw;
use gimli::{AttributeValue, DebugInfoOffset, EndianSlice, RunTimeEndian, SectionId, UnitOffset};
use object::{Object, ObjectSection, ReadRef};

use crate::symbols::calls::Call;
use crate::symbols::demangle::{Demangle, demangle};

type Reader<'a> = EndianSlice<'a, RunTimeEndian>;
type Unit<'a> = gimli::Unit<Reader<'a>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of all sections, uncompressed in memory.
    pub bytes: u64,
    /// Entries that are read for one set of addresses.
    pub entries: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes: 32 << 20,
            entries: 20_000_000,
        }
    }
}

/// Most steps along names that refer to each other.
const MAX_STEPS: usize = 8;
/// Most calls inlined into each other.
const MAX_INLINED: usize = 64;

/// A function or inlined call around an address while its unit is read.
struct Scope {
    name: Option<Arc<str>>,
    /// For inlined calls, the caller's place: index of the file and line.
    called_from: (u64, u32),
}

/// What is known of an address: scopes and a line while its unit is read, then the calls.
#[derive(Default)]
struct Found {
    scopes: Vec<Scope>,
    line: Option<(Arc<str>, u32)>,
    calls: Vec<Call>,
}

/// The calls at each of some sorted addresses, innermost first. Addresses without any are left out; the result is empty
/// when the file has no such sections, or damaged or too large ones. The name of a call is empty where only its line is
/// known.
pub fn locate<'data, R: ReadRef<'data>>(
    file: &object::File<'data, R>,
    addresses: &[u64],
    how: Demangle,
    limits: Limits,
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
    let load = |id: SectionId| -> Result<Cow<'data, [u8]>, Refused> {
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
        let size = section.compressed_file_range().map_err(|_| Refused)?.uncompressed_size;
        left = left.checked_sub(size).ok_or(Refused)?;
        section.uncompressed_data().map_err(|_| Refused)
    };
    let Ok(sections) = gimli::DwarfSections::load(load) else {
        return Vec::new();
    };
    let dwarf = sections.borrow(|section| EndianSlice::new(section, endian));
    let mut search = Search {
        dwarf: &dwarf,
        how,
        entries: limits.entries,
        found: BTreeMap::new(),
        others: BTreeMap::new(),
    };
    let mut units = dwarf.units();
    // Damage ends the search; earlier results stay.
    while let Ok(Some(header)) = units.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        if search.unit(&unit, addresses).is_err() || search.entries == 0 {
            break;
        }
    }
    let found = std::mem::take(&mut search.found);
    found
        .into_iter()
        .map(|(address, found)| (address, found.calls))
        .filter(|(_, calls)| !calls.is_empty())
        .collect()
}

/// A section is too large or cannot be read.
struct Refused;

struct Search<'a, 'b> {
    dwarf: &'b gimli::Dwarf<Reader<'a>>,
    how: Demangle,
    /// Entries that may still be read.
    entries: usize,
    found: BTreeMap<u64, Found>,
    /// Other units that names refer to.
    others: BTreeMap<usize, Unit<'a>>,
}

impl<'a> Search<'a, '_> {
    fn unit(&mut self, unit: &Unit<'a>, addresses: &[u64]) -> gimli::Result<()> {
        let mut here = Vec::new();
        let mut root = unit.entries();
        let Some(root) = root.next_dfs()? else {
            return Ok(());
        };
        let mut ranges = self.ranges(unit, root)?;
        while let Some(range) = ranges.next()? {
            here.extend_from_slice(within(addresses, range.begin, range.end));
        }
        here.sort_unstable();
        here.dedup();
        if here.is_empty() {
            return Ok(());
        }
        self.lines(unit, &here)?;
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            self.entries = self.entries.saturating_sub(1);
            if self.entries == 0 {
                return Ok(());
            }
            let tag = entry.tag();
            if tag != dw::DW_TAG_subprogram && tag != dw::DW_TAG_inlined_subroutine {
                continue;
            }
            let mut ranges = self.ranges(unit, entry)?;
            let mut around: Vec<u64> = Vec::new();
            while let Some(range) = ranges.next()? {
                around.extend_from_slice(within(&here, range.begin, range.end));
            }
            if around.is_empty() {
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
            for address in around {
                let found = self.found.entry(address).or_default();
                if tag == dw::DW_TAG_subprogram {
                    // Functions are not nested; of two that share code the last one counts.
                    found.scopes.clear();
                }
                if found.scopes.len() < MAX_INLINED {
                    found.scopes.push(Scope {
                        name: name.clone(),
                        called_from: (file, line),
                    });
                }
            }
        }
        self.name_callers(unit, &here);
        Ok(())
    }

    /// The address ranges of an entry. A length beyond the address space is refused: gimli adds it unchecked.
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

    /// Replaces the numbers of files with names. Until then the line of each address is that of its innermost call.
    fn name_callers(&mut self, unit: &Unit<'a>, here: &[u64]) {
        let mut files: BTreeMap<u64, Arc<str>> = BTreeMap::new();
        for address in here {
            let Some(found) = self.found.get_mut(address) else {
                continue;
            };
            let mut calls = Vec::with_capacity(found.scopes.len());
            let mut at = found.line.take().unwrap_or_else(|| (Arc::from(""), 0));
            while let Some(scope) = found.scopes.pop() {
                calls.push((scope.name, at));
                let (file, line) = scope.called_from;
                let file = files
                    .entry(file)
                    .or_insert_with(|| file_of(self.dwarf, unit, file).unwrap_or_default().into());
                at = (file.clone(), line);
            }
            if calls.is_empty() {
                calls.push((None, at));
            }
            found.calls = calls
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
    fn lines(&mut self, unit: &Unit<'a>, here: &[u64]) -> gimli::Result<()> {
        let Some(program) = unit.line_program.clone() else {
            return Ok(());
        };
        let mut files: BTreeMap<u64, Arc<str>> = BTreeMap::new();
        let mut rows = program.rows();
        let mut before: Option<(u64, u64, u32)> = None;
        while let Some((_, row)) = rows.next_row()? {
            self.entries = self.entries.saturating_sub(1);
            if self.entries == 0 {
                break;
            }
            if let Some((start, file, line)) = before.take() {
                for address in within(here, start, row.address()) {
                    let path = files
                        .entry(file)
                        .or_insert_with(|| file_of(self.dwarf, unit, file).unwrap_or_default().into());
                    self.found.entry(*address).or_default().line = Some((path.clone(), line));
                }
            }
            if !row.end_sequence() {
                let line = row.line().and_then(|line| u32::try_from(line.get()).ok()).unwrap_or(0);
                before = Some((row.address(), row.file_index(), line));
            }
        }
        Ok(())
    }

    /// The name of an entry, or of the entry it is an instance of. The linkage name is preferred: it has the
    /// namespaces.
    fn name(&mut self, unit: &Unit<'a>, offset: UnitOffset) -> Option<String> {
        let mut place = Place::Here(offset);
        let mut plain = None;
        for _ in 0..MAX_STEPS {
            let (linkage, name, next) = match place {
                Place::Here(offset) => names_at(self.dwarf, unit, offset)?,
                Place::Elsewhere(offset) => {
                    let (header, within) = self.unit_of(offset)?;
                    names_at(self.dwarf, self.others.get(&header)?, within)?
                }
            };
            if let Some(name) = linkage {
                return Some(demangle(&name, self.how).into_owned());
            }
            plain = plain.or(name);
            place = match (next, place) {
                (Some(AttributeValue::UnitRef(offset)), Place::Here(_)) => Place::Here(offset),
                (Some(AttributeValue::UnitRef(offset)), Place::Elsewhere(from)) => {
                    let (header, _) = self.unit_of(from)?;
                    Place::Elsewhere(offset.to_debug_info_offset(&self.others.get(&header)?.header)?)
                }
                (Some(AttributeValue::DebugInfoRef(offset)), _) => Place::Elsewhere(offset),
                _ => break,
            };
        }
        plain
    }

    /// The unit that contains an offset: its start, and the offset in it.
    fn unit_of(&mut self, offset: DebugInfoOffset) -> Option<(usize, UnitOffset)> {
        if let Some((at, unit)) = self.others.range(..=offset.0).next_back()
            && let Some(within) = offset.to_unit_offset(&unit.header)
        {
            return Some((*at, within));
        }
        let mut units = self.dwarf.units();
        while let Ok(Some(header)) = units.next() {
            self.entries = self.entries.saturating_sub(1);
            if self.entries == 0 {
                return None;
            }
            let Some(within) = offset.to_unit_offset(&header) else {
                continue;
            };
            let at = header.debug_info_offset()?.0;
            let unit = self.dwarf.unit(header).ok()?;
            self.others.insert(at, unit);
            return Some((at, within));
        }
        None
    }
}

#[derive(Clone, Copy)]
enum Place {
    Here(UnitOffset),
    Elsewhere(DebugInfoOffset),
}

type Names<'a> = (Option<String>, Option<String>, Option<AttributeValue<Reader<'a>>>);

/// The linker's name and the plain name of an entry, and the entry that has the rest.
fn names_at<'a>(dwarf: &gimli::Dwarf<Reader<'a>>, unit: &Unit<'a>, offset: UnitOffset) -> Option<Names<'a>> {
    let entry = unit.entry(offset).ok()?;
    let text = |name| {
        let value = entry.attr_value(name)?;
        let text = dwarf.attr_string(unit, value).ok()?;
        Some(String::from_utf8_lossy(text.slice()).into_owned())
    };
    let linkage = text(dw::DW_AT_linkage_name).or_else(|| text(dw::DW_AT_MIPS_linkage_name));
    let next = entry
        .attr_value(dw::DW_AT_abstract_origin)
        .or_else(|| entry.attr_value(dw::DW_AT_specification));
    Some((linkage, text(dw::DW_AT_name), next))
}

/// The path of a file of a unit.
fn file_of<'a>(dwarf: &gimli::Dwarf<Reader<'a>>, unit: &Unit<'a>, index: u64) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(index)?;
    let text = |value| {
        let text = dwarf.attr_string(unit, value).ok()?;
        Some(String::from_utf8_lossy(text.slice()).into_owned())
    };
    let name = text(file.path_name())?;
    if name.starts_with('/') {
        return Some(name);
    }
    let mut path = String::new();
    if let Some(folder) = file.directory(header).and_then(text) {
        if !folder.starts_with('/')
            && let Some(base) = unit.comp_dir
        {
            path.push_str(&String::from_utf8_lossy(base.slice()));
            path.push('/');
        }
        path.push_str(&folder);
        path.push('/');
    }
    path.push_str(&name);
    Some(path)
}

/// The part of sorted addresses that lies in a range.
fn within(addresses: &[u64], start: u64, end: u64) -> &[u64] {
    let from = addresses.partition_point(|address| *address < start);
    let to = addresses.partition_point(|address| *address < end);
    addresses.get(from..to).unwrap_or_default()
}
