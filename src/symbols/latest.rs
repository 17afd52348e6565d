//! Finds the names of some addresses in a list that runtimes append to. Runtimes reuse addresses, so the last name
//! counts.

use std::sync::Arc;

/// Maximum number of steps: each address that receives a name is one step, and every 16 bytes of a name are one step.
/// The list is untrusted, and each of its lines may cover all addresses. If the steps are used up, later lines are
/// skipped.
const MAX_STEPS: usize = 16 << 20;
/// Maximum number of bytes of names that are held. A name counts once for each address that has it. A name that does
/// not fit is left out.
const MAX_NAME_BYTES: usize = 32 << 20;

/// Collects names that are offered in the order of time.
pub struct Latest<'a> {
    addresses: &'a [u64],
    best: Vec<Option<(u64, u64, Arc<str>)>>,
    steps: usize,
    held_bytes: usize,
}

impl<'a> Latest<'a> {
    /// Creates a search for `addresses`, which must be sorted.
    pub fn new(addresses: &'a [u64]) -> Self {
        Self {
            addresses,
            best: vec![None; addresses.len()],
            steps: 0,
            held_bytes: 0,
        }
    }

    /// Returns true if the search needs no name for this range.
    pub(crate) fn is_unneeded(&self, start: u64, size: u64) -> bool {
        let from = self.addresses.partition_point(|address| *address < start);
        self.steps > MAX_STEPS || self.addresses.get(from).is_none_or(|address| *address - start >= size)
    }

    /// Offers the name of code that was generated at `start`.
    pub fn offer(&mut self, start: u64, size: u64, name: &[u8]) {
        let end = start.saturating_add(size);
        let [from, to] = [start, end].map(|limit| self.addresses.partition_point(|address| *address < limit));
        let slots = self.best.get_mut(from..to).unwrap_or_default();
        if slots.is_empty() || self.steps > MAX_STEPS {
            return;
        }
        self.steps += slots.len() + name.len() / 16;
        let before: usize = slots.iter().flatten().map(|(.., name)| name.len()).sum();
        let name: Arc<str> = String::from_utf8_lossy(name).into();
        let total_bytes = self.held_bytes - before + slots.len().saturating_mul(name.len());
        let is_held = total_bytes <= MAX_NAME_BYTES;
        self.held_bytes = if is_held { total_bytes } else { self.held_bytes - before };
        slots.fill(is_held.then_some((start, end, name)));
    }

    /// Passes each result to `take`: address, first address of the function, its end address (exclusive), and the
    /// name.
    pub fn finish(self, mut take: impl FnMut(u64, u64, u64, Arc<str>)) {
        for (address, best) in self.addresses.iter().zip(self.best) {
            if let Some((start, end, name)) = best {
                take(*address, start, end, name);
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
        assert!(latest.is_unneeded(0x2000, 0x1000) && !latest.is_unneeded(0x2fff, 2));
        let mut names = Vec::new();
        latest.finish(|address, _, _, name| names.push((address, name.to_string())));
        assert_eq!(names, [(0x1010, "second".to_owned()), (0x1090, "first".to_owned())]);
    }

    #[test]
    fn a_list_of_names_for_everything_ends_and_takes_no_more_memory_than_it_may() {
        let addresses: Vec<u64> = (0..10_000).collect();
        let mut latest = Latest::new(&addresses);
        latest.offer(0, 5_000, b"short");
        // The name would take 640 MB if each address had a copy.
        latest.offer(0, u64::MAX, &[b'x'; 64 << 10]);
        assert!(latest.best.iter().all(Option::is_none) && latest.held_bytes == 0);
        while !latest.is_unneeded(0, u64::MAX) {
            latest.offer(0, u64::MAX, b"all");
        }
        assert!(latest.steps < MAX_STEPS + addresses.len() + 1);
        latest.offer(7, 1, b"later");
        let mut count = 0;
        latest.finish(|_, _, _, name| count += usize::from(&*name == "all"));
        assert_eq!(count, addresses.len());
    }
}
