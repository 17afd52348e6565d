//! Names of kernel addresses from `/proc/kallsyms` (proc(5)): one symbol a line, `address type name [module]`.

use std::io::{self, BufRead, BufReader};
use std::sync::Arc;

use crate::symbols::ranges::Ranges;

/// Looks up `addresses` (sorted) in a list of kernel symbols and adds the functions found to `ranges`. The file is read once, line by line.
///
/// Answers false when the list hides its addresses (all zero), as it does without CAP_SYSLOG.
pub fn resolve(list: impl io::Read, addresses: &[u64], ranges: &mut Ranges) -> io::Result<bool> {
    let mut symbols = Vec::new();
    let mut lines = BufReader::with_capacity(1 << 16, list);
    let mut line = Vec::new();
    let mut visible = false;
    // The list is sorted for the kernel itself but not over modules: keep the best below and the nearest above each address.
    let mut nearest: Vec<(u64, u64)> = vec![(0, u64::MAX); addresses.len()];
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let Some((address, kind, name)) = parse(&line) else {
            continue;
        };
        visible |= address != 0;
        if address == 0 || !matches!(kind, b't' | b'T' | b'w' | b'W') {
            continue;
        }
        let after = addresses.partition_point(|wanted| *wanted < address);
        // The first address at or after the symbol may belong to it; the ones before it end there.
        if let Some(slot) = after.checked_sub(1) {
            nearest[slot].1 = nearest[slot].1.min(address);
        }
        if let Some(slot) = nearest.get_mut(after)
            && address > slot.0
        {
            slot.0 = address;
            symbols.push((after, address, String::from_utf8_lossy(name).into_owned()));
        }
    }
    // Addresses between two symbols share the one below: carry it up.
    let mut current: Option<(u64, Arc<str>)> = None;
    for (slot, address) in addresses.iter().enumerate() {
        let (start, _) = nearest[slot];
        if start != 0 {
            current = symbols
                .iter()
                .rev()
                .find(|(at, found, _)| *at == slot && *found == start)
                .map(|(_, found, name)| (*found, Arc::from(name.as_str())));
        }
        if let Some((start, name)) = &current {
            let end = nearest[slot..]
                .iter()
                .map(|(_, next)| *next)
                .find(|next| *next > *address && *next != u64::MAX)
                .unwrap_or(address.saturating_add(1));
            ranges.insert(*start, end.max(address.saturating_add(1)), name.clone());
        }
    }
    Ok(visible)
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
        let wanted = [
            0xffff_ffff_8100_0010,
            0xffff_ffff_8100_0110,
            0xffff_ffff_8100_0150,
            0xffff_ffff_c000_0008,
        ];
        assert!(resolve(list.as_bytes(), &wanted, &mut ranges).unwrap());
        let names: Vec<_> = wanted
            .iter()
            .map(|address| ranges.find(*address).map(|name| &**name))
            .collect();
        assert_eq!(
            names,
            [Some("first"), Some("second"), Some("second"), Some("in_module")]
        );
        assert_eq!(ranges.find(0xffff_ffff_8100_00ff).map(|name| &**name), Some("first"));
        assert_eq!(ranges.find(0xffff_ffff_8100_0100).map(|name| &**name), Some("second"));
    }

    #[test]
    fn hidden_addresses_are_told() {
        let mut ranges = Ranges::default();
        assert!(!resolve("0000000000000000 T first\n".as_bytes(), &[1], &mut ranges).unwrap());
        assert!(ranges.is_empty());
    }
}
