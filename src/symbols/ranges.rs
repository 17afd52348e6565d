//! Names of address ranges that were looked up. They are kept so that each function is looked up once.
//!
//! A source (symbol table of a file, the kernel's list, a perf map) resolves many sorted addresses in one pass. The
//! results are kept as ranges, but the source is not. Memory thus depends on the functions that run and not on all
//! that exist.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::calls::Call;

/// End of a range, and the functions in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Symbol {
    end: u64,
    /// The function, preceded by the calls inlined into it; never empty.
    calls: Arc<[Call]>,
}

impl Symbol {
    /// Returns the size of a symbol with these calls in bytes: its tree entry and the calls. Shared texts are counted
    /// at every use.
    fn bytes(calls: &[Call]) -> usize {
        2 * size_of::<u64>() + size_of::<Self>() + calls.iter().map(Call::bytes).sum::<usize>()
    }
}

/// Functions by their first address. If the lines of an address are known, the range contains only this address. No two
/// ranges overlap.
#[derive(Debug, Default)]
pub struct Ranges {
    by_start: BTreeMap<u64, Symbol>,
    bytes: usize,
}

impl Ranges {
    /// Number of bytes of names after which no more names are looked up. An untrusted file may have a long name for
    /// each address.
    pub const MAX_LOOKUP_BYTES: usize = 128 << 20;

    /// Returns the name of the function that contains `address`.
    pub fn find(&self, address: u64) -> Option<&Arc<str>> {
        self.find_calls(address)?.last().map(|call| &call.name)
    }

    /// Returns the calls at `address`: the function last, preceded by the calls inlined into it.
    pub fn find_calls(&self, address: u64) -> Option<&Arc<[Call]>> {
        let (_, symbol) = self.by_start.range(..=address).next_back()?;
        (address < symbol.end).then_some(&symbol.calls)
    }

    /// Adds a function with only a name.
    pub fn insert(&mut self, start: u64, end: u64, name: Arc<str>) {
        self.insert_calls(start, end, Arc::new([Call::named(name)]));
    }

    /// Adds the calls of an address range.
    pub(crate) fn insert_calls(&mut self, start: u64, end: u64, calls: Arc<[Call]>) {
        self.bytes += Symbol::bytes(&calls);
        if let Some(before) = self.by_start.insert(start, Symbol { end, calls }) {
            self.bytes -= Symbol::bytes(&before.calls);
        }
    }

    /// Removes the range that begins at an address.
    pub fn remove(&mut self, start: u64) {
        if let Some(before) = self.by_start.remove(&start) {
            self.bytes -= Symbol::bytes(&before.calls);
        }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if the names take so many bytes that no more should be looked up.
    pub fn is_full(&self) -> bool {
        self.bytes >= Self::MAX_LOOKUP_BYTES
    }

    pub fn len(&self) -> usize {
        self.by_start.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_where_it_says_and_an_address_may_have_several_calls() {
        let mut ranges = Ranges::default();
        ranges.insert(0x10, 0x20, "first".into());
        let calls = [Call::named("inner".into()), Call::named("outer".into())];
        ranges.insert_calls(0x30, 0x31, Arc::from(calls.to_vec()));
        assert_eq!(ranges.find(0x1f).map(|name| &**name), Some("first"));
        assert_eq!(ranges.find(0x20), None);
        assert_eq!(ranges.find(0x30).map(|name| &**name), Some("outer"));
        assert_eq!(ranges.find_calls(0x30).map(|calls| calls.len()), Some(2));
        let bytes = ranges.bytes();
        assert!(bytes > "firstinnerouter".len());
        ranges.insert(0x10, 0x20, "other".into());
        assert_eq!(ranges.bytes(), bytes, "the replaced range is no longer counted");
    }
}
