//! The place of a location's code: in a file, or only in the memory of a process.
//!
//! In: an address and its mapping. Out: its offset in the mapped file. The offset is the same in every process that
//! loads the file, wherever the file is loaded. If the location has no mapping with a range, the result is the address
//! itself.

use crate::pprof::model::{Location, Mapping, Profile};

/// The place of a location's code. It identifies code whose function is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// An address from the profile: in memory, or in a file that is not relocated.
    Address(u64),
    /// A place in the file of the mapping.
    InFile {
        /// Offset in the file. It is never 0, because no file has code at offset 0.
        offset: u64,
        /// Offset in the file at which the mapping begins.
        mapped: u64,
    },
}

/// First address of the kernel on 64-bit machines. Its mappings are not files.
const KERNEL: u64 = 1 << 63;

impl Code {
    /// Returns the address or the offset.
    pub(crate) fn number(self) -> u64 {
        match self {
            Self::Address(number) | Self::InFile { offset: number, .. } => number,
        }
    }
}

impl Profile<'_> {
    /// Returns the place of a location's code.
    pub fn code_of(&self, location: &Location) -> Code {
        let mapping = match location.mapping {
            Location::NO_MAPPING => None,
            index => self.mappings.get(index as usize),
        };
        let file_position = mapping.and_then(|mapping| Some((mapping.offset_of(location.address)?, mapping.offset)));
        file_position.map_or(Code::Address(location.address), |(offset, mapped)| Code::InFile {
            offset,
            mapped,
        })
    }
}

impl Mapping<'_> {
    /// Converts an address of the mapping to an offset in the file. Returns `None` if the mapping belongs to the kernel
    /// or has neither a file nor a build id, or if the address is outside of its range.
    fn offset_of(&self, address: u64) -> Option<u64> {
        let is_in_range = (self.start..self.limit).contains(&address) && self.limit <= KERNEL;
        // `[vdso]`, `[heap]` and `//anon` differ in each process.
        let is_file = !self.file.is_empty() && !self.file.starts_with('[') && !self.file.starts_with("//");
        if !is_in_range || !is_file && self.build_id.is_empty() {
            return None;
        }
        let offset = self.offset.checked_add(address - self.start)?;
        (1..KERNEL).contains(&offset).then_some(offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_a_file_is_its_offset_and_any_other_stays() {
        let library = Mapping {
            start: 0x7f00_0000_1000,
            limit: 0x7f00_0000_3000,
            offset: 0x2000,
            file: "/lib/libc.so.6",
            ..Mapping::default()
        };
        let unnamed = Mapping { file: "", ..library };
        let cases = [
            (library, 0x7f00_0000_1010, Some(0x2010)),
            (library, 0x7f00_0000_0fff, None),
            (library, 0x7f00_0000_3000, None),
            (
                Mapping {
                    limit: 0,
                    start: 0,
                    ..library
                },
                0x2010,
                None,
            ),
            (
                Mapping {
                    file: "[vdso]",
                    ..library
                },
                0x7f00_0000_1010,
                None,
            ),
            (
                Mapping {
                    file: "//anon",
                    ..library
                },
                0x7f00_0000_1010,
                None,
            ),
            (unnamed, 0x7f00_0000_1010, None),
            (
                Mapping {
                    build_id: "ab",
                    ..unnamed
                },
                0x7f00_0000_1010,
                Some(0x2010),
            ),
            (
                Mapping {
                    offset: u64::MAX,
                    ..library
                },
                0x7f00_0000_1010,
                None,
            ),
            (Mapping { offset: 0, ..library }, 0x7f00_0000_1000, None),
            (
                Mapping {
                    limit: u64::MAX,
                    ..library
                },
                0x7f00_0000_1010,
                None,
            ),
        ];
        for (mapping, address, offset) in cases {
            assert_eq!(mapping.offset_of(address), offset, "{mapping:?}");
        }
    }
}
