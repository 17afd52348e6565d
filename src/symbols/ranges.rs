//! Names of address ranges that were asked for, kept so that each function is looked up once.
//!
//! A source (symbol table of a file, the kernel's list, a perf map) answers many sorted addresses in one pass over itself; what it
//! answered is kept as ranges, the source itself is not. So the memory follows the functions that run, not those that exist.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A function: where it ends and what it is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Address after its last byte.
    pub end: u64,
    /// Readable name.
    pub name: Arc<str>,
}

/// Functions by their first address; no two overlap.
#[derive(Debug, Default)]
pub struct Ranges {
    by_start: BTreeMap<u64, Symbol>,
}

impl Ranges {
    /// The name of the function around `address`.
    pub fn find(&self, address: u64) -> Option<&Arc<str>> {
        let (_, symbol) = self.by_start.range(..=address).next_back()?;
        (address < symbol.end).then_some(&symbol.name)
    }

    /// Remembers a function.
    pub fn insert(&mut self, start: u64, end: u64, name: Arc<str>) {
        self.by_start.insert(start, Symbol { end, name });
    }

    /// Number of functions.
    pub fn len(&self) -> usize {
        self.by_start.len()
    }

    /// True when it has none.
    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }
}

/// The best symbol for each of some sorted addresses, while symbols pass by in any order.
///
/// Of several symbols around an address the one that begins last wins, then the one with a size, then a global one, then the shorter name.
pub struct Search<'a> {
    addresses: &'a [u64],
    best: Vec<Option<Candidate>>,
}

#[derive(Debug, Clone)]
struct Candidate {
    start: u64,
    end: u64,
    sized: bool,
    global: bool,
    name: String,
}

impl<'a> Search<'a> {
    /// A search for `addresses`, which must be sorted.
    pub fn new(addresses: &'a [u64]) -> Self {
        Self {
            addresses,
            best: vec![None; addresses.len()],
        }
    }

    /// Offers a symbol. A size of 0 means that it reaches to the next one; `limit` is where that must end at the latest.
    pub fn offer(&mut self, start: u64, size: u64, limit: u64, global: bool, name: &[u8]) {
        let end = if size > 0 { start.saturating_add(size) } else { limit };
        let from = self.addresses.partition_point(|address| *address < start);
        let to = self.addresses.partition_point(|address| *address < end);
        for index in from..to.max(from) {
            let sized = size > 0;
            let wins = match &self.best[index] {
                None => true,
                Some(best) => {
                    (start, sized, global, usize::MAX - name.len())
                        > (best.start, best.sized, best.global, usize::MAX - best.name.len())
                }
            };
            if wins {
                self.best[index] = Some(Candidate {
                    start,
                    end,
                    sized,
                    global,
                    name: String::from_utf8_lossy(name).into_owned(),
                });
            }
        }
    }

    /// Hands over what was found: address, first address of the function, the address after it, and the name.
    pub fn finish(self, mut take: impl FnMut(u64, u64, u64, &str)) {
        for (address, best) in self.addresses.iter().zip(&self.best) {
            if let Some(found) = best {
                // A symbol without a size is only sure for the address itself: a later search may find a nearer one.
                let end = if found.sized { found.end } else { address + 1 };
                let start = if found.sized { found.start } else { *address };
                take(*address, start, end, &found.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_symbol_that_covers_the_address_wins() {
        let addresses = [5, 15, 25, 99];
        let mut search = Search::new(&addresses);
        search.offer(0, 10, 0, false, b"first");
        search.offer(10, 0, 50, false, b"unsized");
        search.offer(20, 10, 0, false, b"local_name");
        search.offer(20, 10, 0, true, b"global_name");
        let mut found = Vec::new();
        search.finish(|address, start, end, name| found.push((address, start, end, name.to_owned())));
        assert_eq!(
            found,
            [
                (5, 0, 10, "first".to_owned()),
                (15, 15, 16, "unsized".to_owned()),
                (25, 20, 30, "global_name".to_owned())
            ]
        );
    }
}
