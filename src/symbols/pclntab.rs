//! Go's function table (pclntab), which every Go program has, stripped or not. It contains names, lines, inlined
//! calls, and the distance of the stack pointer from its value at the call.
//!
//! The layouts are those that Go's `debug/gosym` and `runtime` read, for the magic numbers of Go 1.2, 1.16, 1.18 and
//! 1.20. The table stays in the file and is read through [`Bytes`] as needed. Only little-endian 64-bit machines are
//! supported.

use crate::bytes::Bytes;
use crate::calls::{Call, Located};

/// Position and layout of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pclntab {
    layout: Layout,
    offset: u64,
    /// Size of the smallest instruction in bytes.
    quantum: u64,
    functions: u64,
    /// Address of the first function.
    text: u64,
    // Offsets in the file.
    names: u64,
    units: u64,
    files: u64,
    values: u64,
    table: u64,
    /// File offset of the trees of inlined calls, if known.
    pub inlined: Option<u64>,
}

/// Layouts, named after the Go version that introduced them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Layout {
    V2,
    V16,
    V18,
    V20,
}

/// A function of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub start: u64,
    /// End address (exclusive).
    pub end: u64,
    /// True for the outermost frame, which has no caller.
    pub is_top: bool,
    /// True if the function switches to another stack.
    pub switches: bool,
    /// True if the function is written in assembly, or if that is unknown.
    pub is_assembly: bool,
    name: u64,
    pcsp: u32,
    pcfile: u32,
    pcln: u32,
    unit: u32,
    /// Offset of the table that has the index of the inlined call for each address, and file offset of the tree of
    /// inlined calls.
    inlined: Option<(u32, u64)>,
}

/// A parsed header of a table.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    layout: Layout,
    /// Address of the first function, as the header states it; 0 if the address is absent or not relocated.
    pub text: u64,
}

/// Maximum number of functions: ten times as many as the largest known program has.
const MAX_FUNCTIONS: u64 = 4_000_000;
/// Maximum number of steps through the values of one function.
const MAX_STEPS: usize = 1 << 20;
/// Maximum number of calls inlined into each other.
const MAX_INLINED: usize = 64;
/// Numbers of the tables that belong to a function (`PCDATA_InlTreeIndex`, `FUNCDATA_InlTree`).
const INLINED_INDEX: u64 = 2;
const INLINED_TREE: u64 = 3;

impl Header {
    /// Length of the longest header in bytes.
    pub(crate) const LENGTH: usize = 72;

    /// Parses the magic number and the fields that confirm it.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let layout = match bytes.first_chunk::<4>().map(|magic| u32::from_le_bytes(*magic))? {
            0xffff_fffb => Layout::V2,
            0xffff_fffa => Layout::V16,
            0xffff_fff0 => Layout::V18,
            0xffff_fff1 => Layout::V20,
            _ => return None,
        };
        let [0, 0, 1 | 2 | 4, 8] = *bytes.get(4..8)? else {
            return None;
        };
        let functions = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
        if functions == 0 || functions > MAX_FUNCTIONS {
            return None;
        }
        let text = match layout {
            Layout::V2 | Layout::V16 => 0,
            Layout::V18 | Layout::V20 => u64::from_le_bytes(bytes.get(24..32)?.try_into().ok()?),
        };
        Some(Self { layout, text })
    }

    /// Returns true if the addresses of functions are relative to the first one, whose address must then be known.
    pub(crate) fn needs_text(&self) -> bool {
        self.layout >= Layout::V18
    }

    /// Returns two offsets in the module data. The first leads to the address of the first function, and the second to
    /// the address of the trees of inlined calls.
    pub(crate) fn module_fields(&self) -> (u64, Option<u64>) {
        match self.layout {
            Layout::V2 | Layout::V16 => (176, None),
            Layout::V18 => (176, Some(304)),
            Layout::V20 => (176, Some(320)),
        }
    }
}

impl Pclntab {
    /// Opens the table at a file offset. `text` is the address of the first function, if the header needs one.
    pub fn open(bytes: &Bytes<'_>, offset: u64, text: u64) -> Option<Self> {
        let mut start = [0; Header::LENGTH];
        bytes.read(offset, &mut start)?;
        let header = Header::parse(&start)?;
        let word = |index: u64| bytes.u64(offset.checked_add(8 + index * 8)?);
        let part = |index: u64| offset.checked_add(word(index)?);
        let [names, units, files, values, table] = match header.layout {
            Layout::V2 => {
                let functions = word(0)?;
                let table = offset.checked_add(16)?;
                // The offset of the file table follows the last address.
                let files = bytes.u32(table.checked_add(functions * 16 + 8)?)?;
                [offset, offset, offset.checked_add(u64::from(files))?, offset, table]
            }
            Layout::V16 => [part(2)?, part(3)?, part(4)?, part(5)?, part(6)?],
            Layout::V18 | Layout::V20 => [part(3)?, part(4)?, part(5)?, part(6)?, part(7)?],
        };
        Some(Self {
            layout: header.layout,
            offset,
            quantum: u64::from(start[6]),
            functions: word(0)?,
            text,
            names,
            units,
            files,
            values,
            table,
            inlined: None,
        })
    }

    /// Returns the start address of the function with an index. If the index is the number of functions, returns the
    /// end address of the last function.
    fn entry(&self, bytes: &Bytes<'_>, index: u64) -> Option<u64> {
        if self.layout >= Layout::V18 {
            let offset = bytes.u32(self.table.checked_add(index.checked_mul(8)?)?)?;
            self.text.checked_add(u64::from(offset))
        } else {
            bytes.u64(self.table.checked_add(index.checked_mul(16)?)?)
        }
    }

    /// Returns the start address of the first function, and the end address (exclusive) of the last one.
    pub fn range(&self, bytes: &Bytes<'_>) -> Option<(u64, u64)> {
        Some((self.entry(bytes, 0)?, self.entry(bytes, self.functions)?))
    }

    /// Returns the function with an index.
    fn function(&self, bytes: &Bytes<'_>, index: u64) -> Option<Function> {
        let (start, end) = (self.entry(bytes, index)?, self.entry(bytes, index + 1)?);
        let is_wide = self.layout < Layout::V18;
        let (record, fields) = if is_wide {
            let offset = bytes.u64(self.table.checked_add(index * 16 + 8)?)?;
            let base = if self.layout == Layout::V2 {
                self.offset
            } else {
                self.table
            };
            (base.checked_add(offset)?, 8)
        } else {
            let offset = bytes.u32(self.table.checked_add(index * 8 + 4)?)?;
            (self.table.checked_add(u64::from(offset))?, 4)
        };
        let fields = record.checked_add(fields)?;
        let field = |field_offset: u64| bytes.u32(fields.checked_add(field_offset)?);
        let kind = match self.layout {
            Layout::V2 => 28,
            Layout::V16 | Layout::V18 => 32,
            Layout::V20 => 36,
        };
        let flags = match self.layout {
            Layout::V2 => 0,
            _ => bytes.u8(fields.checked_add(kind + 1)?)?,
        };
        let (values, trees) = (field(24)?, bytes.u8(fields.checked_add(kind + 3)?)?);
        let tables = kind + 4;
        let mut inlined = None;
        if let Some(base) = self.inlined.filter(|_| !is_wide)
            && u64::from(values) > INLINED_INDEX
            && u64::from(trees) > INLINED_TREE
        {
            let index = field(tables + INLINED_INDEX * 4)?;
            let tree = field(tables + u64::from(values) * 4 + INLINED_TREE * 4)?;
            inlined = (index != 0 && tree != u32::MAX).then_some((index, base.checked_add(u64::from(tree))?));
        }
        Some(Function {
            start,
            end,
            is_top: flags & 1 != 0,
            switches: flags & 2 != 0,
            is_assembly: flags & 4 != 0 || self.layout < Layout::V18,
            name: self.names.checked_add(u64::from(field(0)?))?,
            pcsp: field(12)?,
            pcfile: field(16)?,
            pcln: field(20)?,
            unit: if self.layout == Layout::V2 { 0 } else { field(28)? },
            inlined,
        })
    }

    /// Iterates over the functions in order. Ends at the first function that cannot be read.
    pub fn functions<'a>(&'a self, bytes: &'a Bytes<'_>) -> impl Iterator<Item = Function> + 'a {
        (0..self.functions).map_while(|index| self.function(bytes, index))
    }

    /// Returns the name of a function.
    pub fn name(&self, bytes: &Bytes<'_>, function: &Function) -> Option<String> {
        bytes.text(function.name).filter(|name| !name.is_empty())
    }

    /// Calls `take` for each part of a function with a constant stack pointer. The arguments are the end address of the
    /// part and the number of bytes by which the stack pointer is below its value at the call.
    pub fn stack_offsets(&self, bytes: &Bytes<'_>, function: &Function, mut take: impl FnMut(u64, i64)) {
        self.values(bytes, function.pcsp, function.start, |end, value| {
            take(end, value);
            end < function.end
        });
    }

    /// Returns the function at an address with its file, line and inlined calls.
    pub fn find(&self, bytes: &Bytes<'_>, address: u64) -> Option<Located> {
        let (mut low, mut high) = (0, self.functions);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(bytes, middle)? <= address {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let function = self.function(bytes, low.checked_sub(1)?)?;
        if address < function.start || address >= function.end {
            return None;
        }
        let mut calls = Vec::new();
        let mut call_address = address;
        if let Some((index, tree)) = function.inlined {
            while calls.len() < MAX_INLINED {
                let Some(call) = self
                    .value(bytes, index, &function, call_address)
                    .and_then(|call| u64::try_from(call).ok())
                else {
                    break;
                };
                let Some((name, parent)) = self.inlined_call(bytes, tree, call) else {
                    break;
                };
                calls.push(self.call(bytes, &function, call_address, name));
                let Some(next) = function.start.checked_add(parent).filter(|next| *next < function.end) else {
                    break;
                };
                call_address = next;
            }
        }
        let name = self.name(bytes, &function)?;
        calls.push(self.call(bytes, &function, call_address, name));
        Some(Located {
            start: function.start,
            end: function.end,
            calls,
        })
    }

    /// Returns the name of an inlined call, and the position of an instruction at its call site, as an offset from the
    /// start of the function.
    fn inlined_call(&self, bytes: &Bytes<'_>, tree: u64, index: u64) -> Option<(String, u64)> {
        let (size, name, parent) = match self.layout {
            Layout::V20 => (16, 4, 8),
            _ => (20, 12, 16),
        };
        let record = tree.checked_add(index.checked_mul(size)?)?;
        let name = bytes.u32(record.checked_add(name)?)?;
        let parent = bytes.u32(record.checked_add(parent)?)?;
        let name = bytes.text(self.names.checked_add(u64::from(name))?)?;
        Some((name, u64::from(parent))).filter(|(name, _)| !name.is_empty())
    }

    fn call(&self, bytes: &Bytes<'_>, function: &Function, address: u64, name: String) -> Call {
        let value = |table| self.value(bytes, table, function, address);
        let file = value(function.pcfile).and_then(|index| self.file(bytes, function, index));
        Call {
            name: name.into(),
            file: file.unwrap_or_default().into(),
            line: value(function.pcln)
                .and_then(|line| u32::try_from(line).ok())
                .unwrap_or(0),
        }
    }

    fn file(&self, bytes: &Bytes<'_>, function: &Function, index: i64) -> Option<String> {
        let index = u64::try_from(index).ok()?;
        if self.layout == Layout::V2 {
            let offset = bytes.u32(self.files.checked_add(index.checked_mul(4)?)?)?;
            return bytes.text(self.offset.checked_add(u64::from(offset))?);
        }
        let unit = u64::from(function.unit).checked_add(index)?;
        let offset = bytes.u32(self.units.checked_add(unit.checked_mul(4)?)?)?;
        (offset != u32::MAX).then(|| bytes.text(self.files.checked_add(u64::from(offset))?))?
    }

    /// Returns the value that a table has for an address of a function.
    fn value(&self, bytes: &Bytes<'_>, table: u32, function: &Function, address: u64) -> Option<i64> {
        let mut result = None;
        self.values(bytes, table, function.start, |end, value| {
            result = (address < end).then_some(value);
            result.is_none()
        });
        result
    }

    /// Splits a function into address ranges for which a table has the same value. Calls `take` with the end address
    /// and the value of each range, as long as `take` returns true.
    fn values(&self, bytes: &Bytes<'_>, table: u32, start: u64, mut take: impl FnMut(u64, i64) -> bool) {
        let mut step = || {
            let mut offset = self.values.checked_add(u64::from(table)).filter(|_| table != 0)?;
            let (mut address, mut value) = (start, -1_i64);
            for index in 0..MAX_STEPS {
                let (change, next) = bytes.uleb128(offset)?;
                if change == 0 && index > 0 {
                    break;
                }
                // Zigzag encoding: 0, -1, 1, -2 ...
                value = value.wrapping_add((change >> 1) as i64 ^ -((change & 1) as i64));
                let (length, next) = bytes.uleb128(next)?;
                offset = next;
                address = address.checked_add(length.checked_mul(self.quantum)?)?;
                if !take(address, value) {
                    break;
                }
            }
            Some(())
        };
        // If the table is damaged, the rest of its values is ignored.
        let _ = step();
    }
}
