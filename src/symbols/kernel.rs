//! Reads names of kernel addresses from `/proc/kallsyms` (proc(5)): one symbol per line, `address type name [module]`.

use std::io::{self, BufRead, BufReader};
use std::sync::Arc;

use crate::ranges::Ranges;

/// The functions of the kernel and its modules, in compact form. Callers keep this value, because each read of
/// `/proc/kallsyms` costs about 60 ms of CPU time in the kernel.
#[derive(Debug, Default)]
pub struct Symbols {
    /// Start addresses in ascending order. A function extends to the next one.
    starts: Box<[u64]>,
    /// Start of each name in `text`. The name extends to the end of its line.
    name_offsets: Box<[u32]>,
    text: Box<str>,
}

impl Symbols {
    /// Reads a list, line by line. Returns `None` if the list hides its addresses (all are zero), as for a reader
    /// without CAP_SYSLOG. If an address has several names, the first one is used.
    pub fn read(list: impl io::Read) -> io::Result<Option<Self>> {
        let mut lines = BufReader::with_capacity(1 << 16, list);
        let mut line = Vec::new();
        let mut visible = false;
        let mut starts: Vec<(u64, u32)> = Vec::new();
        let mut text = String::new();
        loop {
            line.clear();
            if lines.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let Some((address, kind, name)) = parse(&line) else {
                continue;
            };
            visible |= address != 0;
            let Ok(offset) = u32::try_from(text.len()) else {
                break;
            };
            if address != 0 && matches!(kind, b't' | b'T' | b'w' | b'W') {
                starts.push((address, offset));
                text.push_str(&String::from_utf8_lossy(name));
                text.push('\n');
            }
        }
        if !visible {
            return Ok(None);
        }
        // The list is in order for the kernel itself, but not across modules.
        starts.sort_by_key(|(address, _)| *address);
        starts.dedup_by_key(|(address, _)| *address);
        Ok(Some(Self {
            starts: starts.iter().map(|(address, _)| *address).collect(),
            name_offsets: starts.iter().map(|(_, offset)| *offset).collect(),
            text: text.into_boxed_str(),
        }))
    }

    /// Returns the start address, the end address (exclusive) and the name of the function that contains an address.
    /// The end of the last function is unknown, so it is the byte after the address.
    pub fn find(&self, address: u64) -> Option<(u64, u64, &str)> {
        let after = self.starts.partition_point(|start| *start <= address);
        let index = after.checked_sub(1)?;
        let end = self.starts.get(after).copied().unwrap_or(address.saturating_add(1));
        let name = self.text.get(*self.name_offsets.get(index)? as usize..)?;
        Some((*self.starts.get(index)?, end, name.split('\n').next()?))
    }

    /// Adds the functions that contain `addresses` to `ranges`.
    pub fn resolve(&self, addresses: &[u64], ranges: &mut Ranges) {
        for address in addresses {
            if ranges.find(*address).is_none()
                && let Some((start, end, name)) = self.find(*address)
            {
                ranges.insert(start, end, Arc::from(name));
            }
        }
    }

    pub fn bytes(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.name_offsets) + self.text.len()
    }
}

fn parse(line: &[u8]) -> Option<(u64, u8, &[u8])> {
    let mut parts = line.split(u8::is_ascii_whitespace).filter(|part| !part.is_empty());
    let address = u64::from_str_radix(std::str::from_utf8(parts.next()?).ok()?, 16).ok()?;
    let kind = *parts.next()?.first()?;
    Some((address, kind, parts.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_the_symbol_below_them() {
        let list = "ffffffff81000000 T first\nffffffff81000100 t second\nffffffff81000200 D data\n\
                    ffffffff81000300 T third\nffffffffc0000000 t in_module\t[m]\n";
        let mut ranges = Ranges::default();
        let addresses = [
            0xffff_ffff_8100_0010,
            0xffff_ffff_8100_0110,
            0xffff_ffff_8100_0150,
            0xffff_ffff_c000_0008,
        ];
        let symbols = Symbols::read(list.as_bytes()).unwrap().unwrap();
        symbols.resolve(&addresses, &mut ranges);
        let names: Vec<_> = addresses
            .iter()
            .map(|address| ranges.find(*address).map(|name| &**name))
            .collect();
        assert_eq!(
            names,
            [Some("first"), Some("second"), Some("second"), Some("in_module")]
        );
        assert_eq!(ranges.find(0xffff_ffff_8100_00ff).map(|name| &**name), Some("first"));
        assert_eq!(ranges.find(0xffff_ffff_8100_0100).map(|name| &**name), Some("second"));
        assert_eq!(symbols.find(0xffff_ffff_80ff_ffff), None);
        assert_eq!(
            symbols.find(0xffff_ffff_8100_0208).unwrap(),
            (0xffff_ffff_8100_0100, 0xffff_ffff_8100_0300, "second")
        );
    }

    #[test]
    fn hidden_addresses_are_told() {
        assert!(
            Symbols::read("0000000000000000 T first\n".as_bytes())
                .unwrap()
                .is_none()
        );
    }
}
