//! Which entries of a cache nobody has asked for lately.
//!
//! A cache counts its uses and notes the count with each entry. Here the count of the last minutes is kept: what was used before the first of them has not been used since. A bound in
//! bytes alone would let memory grow to it, however little of it is still asked about.

use std::time::Duration;

/// How often a cache looks.
pub(crate) const EVERY: Duration = Duration::from_secs(60);
/// After so many looks without a use an entry goes.
const LOOKS: usize = 5;

/// The counts of uses at the last looks.
#[derive(Default)]
pub(crate) struct Looks {
    counts: [u64; LOOKS],
}

impl Looks {
    /// Notes the count of uses as it is now and gives that of five looks ago: an entry whose last use has that number or a lower one was not used since.
    pub(crate) fn look(&mut self, uses: u64) -> u64 {
        let oldest = self.counts[0];
        self.counts.rotate_left(1);
        self.counts[LOOKS - 1] = uses;
        oldest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_five_looks_ago_and_not_since_is_told() {
        let mut looks = Looks::default();
        let told: Vec<u64> = (10..18).map(|uses| looks.look(uses)).collect();
        assert_eq!(told, [0, 0, 0, 0, 0, 10, 11, 12]);
    }
}
