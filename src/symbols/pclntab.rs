//! Go's table of functions, which is in every Go program, stripped or not: names, lines, inlined calls, and how far the
//! stack pointer is from where it was at the call.
//!
//! The layouts are those that Go's `debug/gosym` and `runtime` read, by the magic number of Go 1.2, 1.16, 1.18 and
//! 1.20. The table stays in the file; what is asked for is read from there through [`Bytes`]. Little-endian machines of
//! 64 bits only.

use crate::symbols::bytes::Bytes;
use crate::symbols::calls::{Call, Located};

/// Where the table lies and how it is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pclntab {
    layout: Layout,
    at: u64,
    /// Bytes of the smallest instruction.
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
    /// Where the trees of inlined calls lie in the file, when that is known.
    pub inlined: Option<u64>,
}

/// By the version that brought it.
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
    /// Address after the last.
    pub end: u64,
    /// Nothing called it: it is the outermost frame.
    pub is_top: bool,
    /// It sets the stack pointer to other stacks.
    pub switches: bool,
    /// It is written in assembly, or that is not known.
    pub is_assembly: bool,
    name: u64,
    pcsp: u32,
    pcfile: u32,
    pcln: u32,
    unit: u32,
    /// Values of the inlined calls' index, and the tree of them.
    inlined: Option<(u32, u64)>,
}

/// A header found at some bytes.
#[derive(Debug, Clone, Copy)]
pub struct Header {
    layout: Layout,
    /// Address of the first function as the header has it; 0 where it has none or is not relocated.
    pub text: u64,
}

/// Functions at most: ten times those of the largest program seen.
const MAX_FUNCTIONS: u64 = 4_000_000;
/// Steps through the values of one function at most.
const MAX_STEPS: usize = 1 << 20;
/// Calls inlined into each other at most.
const MAX_INLINED: usize = 64;
/// Numbers of the tables that belong to a function (`PCDATA_InlTreeIndex`, `FUNCDATA_InlTree`).
const INLINED_INDEX: u64 = 2;
const INLINED_TREE: u64 = 3;

impl Header {
    /// Bytes of the longest header.
    pub(crate) const LENGTH: usize = 72;

    /// Reads the magic number and what has to be around it.
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

    /// True when the addresses of functions count from the first one, which has to be known then.
    pub(crate) fn needs_text(&self) -> bool {
        self.layout >= Layout::V18
    }

    /// Where a module's description has the address of its first function and of its trees of inlined calls.
    pub(crate) fn module_fields(&self) -> (u64, Option<u64>) {
        match self.layout {
            Layout::V2 | Layout::V16 => (176, None),
            Layout::V18 => (176, Some(304)),
            Layout::V20 => (176, Some(320)),
        }
    }
}

impl Pclntab {
    /// The table at an offset of the file; `text` is the address of the first function, where the header needs one.
    pub fn open(bytes: &Bytes<'_>, at: u64, text: u64) -> Option<Self> {
        let mut start = [0; Header::LENGTH];
        bytes.read(at, &mut start)?;
        let header = Header::parse(&start)?;
        let word = |index: u64| bytes.u64(at.checked_add(8 + index * 8)?);
        let part = |index: u64| at.checked_add(word(index)?);
        let [names, units, files, values, table] = match header.layout {
            Layout::V2 => {
                let functions = word(0)?;
                let table = at.checked_add(16)?;
                // After the last address comes where the files are.
                let files = bytes.u32(table.checked_add(functions * 16 + 8)?)?;
                [at, at, at.checked_add(u64::from(files))?, at, table]
            }
            Layout::V16 => [part(2)?, part(3)?, part(4)?, part(5)?, part(6)?],
            Layout::V18 | Layout::V20 => [part(3)?, part(4)?, part(5)?, part(6)?, part(7)?],
        };
        Some(Self {
            layout: header.layout,
            at,
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

    /// First address of the function of an index; of the number of functions the address after the last.
    fn entry(&self, bytes: &Bytes<'_>, index: u64) -> Option<u64> {
        if self.layout >= Layout::V18 {
            let offset = bytes.u32(self.table.checked_add(index.checked_mul(8)?)?)?;
            self.text.checked_add(u64::from(offset))
        } else {
            bytes.u64(self.table.checked_add(index.checked_mul(16)?)?)
        }
    }

    /// Addresses of the first function and after the last.
    pub fn range(&self, bytes: &Bytes<'_>) -> Option<(u64, u64)> {
        Some((self.entry(bytes, 0)?, self.entry(bytes, self.functions)?))
    }

    /// The function of an index.
    fn function(&self, bytes: &Bytes<'_>, index: u64) -> Option<Function> {
        let (start, end) = (self.entry(bytes, index)?, self.entry(bytes, index + 1)?);
        let wide = self.layout < Layout::V18;
        let (record, fields) = if wide {
            let offset = bytes.u64(self.table.checked_add(index * 16 + 8)?)?;
            let base = if self.layout == Layout::V2 { self.at } else { self.table };
            (base.checked_add(offset)?, 8)
        } else {
            let offset = bytes.u32(self.table.checked_add(index * 8 + 4)?)?;
            (self.table.checked_add(u64::from(offset))?, 4)
        };
        let fields = record.checked_add(fields)?;
        let field = |at: u64| bytes.u32(fields.checked_add(at)?);
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
        if let Some(base) = self.inlined.filter(|_| !wide)
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

    /// Every function in order; ends at the first that cannot be read.
    pub fn functions<'a>(&'a self, bytes: &'a Bytes<'_>) -> impl Iterator<Item = Function> + 'a {
        (0..self.functions).map_while(|index| self.function(bytes, index))
    }

    /// The name of a function.
    pub fn name(&self, bytes: &Bytes<'_>, function: &Function) -> Option<String> {
        bytes.text(function.name).filter(|name| !name.is_empty())
    }

    /// How far the stack pointer is below where it was at the call: address after the piece, and bytes.
    pub fn stack_offsets(&self, bytes: &Bytes<'_>, function: &Function, mut take: impl FnMut(u64, i64)) {
        self.values(bytes, function.pcsp, function.start, |end, value| {
            take(end, value);
            end < function.end
        });
    }

    /// The function at an address with its file, line and inlined calls.
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
        let mut at = address;
        if let Some((index, tree)) = function.inlined {
            while calls.len() < MAX_INLINED {
                let Some(call) = self
                    .value(bytes, index, &function, at)
                    .and_then(|call| u64::try_from(call).ok())
                else {
                    break;
                };
                let Some((name, parent)) = self.inlined_call(bytes, tree, call) else {
                    break;
                };
                calls.push(self.call(bytes, &function, at, name));
                let Some(next) = function.start.checked_add(parent).filter(|next| *next < function.end) else {
                    break;
                };
                at = next;
            }
        }
        let name = self.name(bytes, &function)?;
        calls.push(self.call(bytes, &function, at, name));
        Some(Located {
            start: function.start,
            end: function.end,
            calls,
        })
    }

    /// Name of an inlined call, and from the start of its function an instruction of its caller.
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
            return bytes.text(self.at.checked_add(u64::from(offset))?);
        }
        let unit = u64::from(function.unit).checked_add(index)?;
        let offset = bytes.u32(self.units.checked_add(unit.checked_mul(4)?)?)?;
        (offset != u32::MAX).then(|| bytes.text(self.files.checked_add(u64::from(offset))?))?
    }

    /// The value that a table has for an address of a function.
    fn value(&self, bytes: &Bytes<'_>, table: u32, function: &Function, address: u64) -> Option<i64> {
        let mut found = None;
        self.values(bytes, table, function.start, |end, value| {
            found = (address < end).then_some(value);
            found.is_none()
        });
        found
    }

    /// The values of a table: address after each piece, and its value, for as long as `take` wants more.
    fn values(&self, bytes: &Bytes<'_>, table: u32, start: u64, mut take: impl FnMut(u64, i64) -> bool) {
        let mut step = || {
            let mut at = self.values.checked_add(u64::from(table)).filter(|_| table != 0)?;
            let (mut address, mut value) = (start, -1_i64);
            for index in 0..MAX_STEPS {
                let (change, next) = bytes.uleb128(at)?;
                if change == 0 && index > 0 {
                    break;
                }
                // Signed numbers alternate: 0, -1, 1, -2 ...
                value = value.wrapping_add((change >> 1) as i64 ^ -((change & 1) as i64));
                let (length, next) = bytes.uleb128(next)?;
                at = next;
                address = address.checked_add(length.checked_mul(self.quantum)?)?;
                if !take(address, value) {
                    break;
                }
            }
            Some(())
        };
        // What is damaged ends the values.
        let _ = step();
    }
}
