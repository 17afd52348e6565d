//! The name of each of some addresses in a list that runtimes append to: addresses are used again, so what comes later
//! counts.

/// Names that pass by in the order of time.
pub struct Latest<'a> {
    addresses: &'a [u64],
    best: Vec<Option<(u64, u64, String)>>,
}

impl<'a> Latest<'a> {
    /// A search for `addresses`, which must be sorted.
    pub fn new(addresses: &'a [u64]) -> Self {
        Self {
            addresses,
            best: vec![None; addresses.len()],
        }
    }

    /// True when a range holds none of the addresses.
    pub(crate) fn is_elsewhere(&self, start: u64, size: u64) -> bool {
        let from = self.addresses.partition_point(|address| *address < start);
        self.addresses.get(from).is_none_or(|address| *address - start >= size)
    }

    /// Offers code that was made at `start`.
    pub fn offer(&mut self, start: u64, size: u64, name: &[u8]) {
        let end = start.saturating_add(size);
        let from = self.addresses.partition_point(|address| *address < start);
        for (address, best) in self.addresses.iter().zip(&mut self.best).skip(from) {
            if *address >= end {
                break;
            }
            *best = Some((start, end, String::from_utf8_lossy(name).into_owned()));
        }
    }

    /// Hands over what was found: address, first address of the function, the address after it, and the name.
    pub fn finish(self, mut take: impl FnMut(u64, u64, u64, &str)) {
        for (address, best) in self.addresses.iter().zip(&self.best) {
            if let Some((start, end, name)) = best {
                take(*address, *start, *end, name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_code_takes_the_place_of_earlier_code() {
        let addresses = [0x1010, 0x1090, 0x3000];
        let mut latest = Latest::new(&addresses);
        latest.offer(0x1000, 0x100, b"first");
        latest.offer(0xf00, 0x120, b"second");
        assert!(latest.is_elsewhere(0x2000, 0x1000) && !latest.is_elsewhere(0x2fff, 2));
        let mut found = Vec::new();
        latest.finish(|address, _, _, name| found.push((address, name.to_owned())));
        assert_eq!(found, [(0x1010, "second".to_owned()), (0x1090, "first".to_owned())]);
    }
}
