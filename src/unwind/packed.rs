//! Packed unwind tables, in the format in which this process and the kernel store and search them (`struct line` in
//! `bpf/include/records.h`): four bytes per row.
//!
//! In: sorted rows. Out: lines of 64 bytes. The first line is a header with the most frequent rules. The header is
//! followed by all rules (each once, the most frequent first), by an index with the first row of each page of the
//! file's addresses, and by the rows. The high bits of a row are the offset in the page, and the low bits are the
//! number of the rule. Pages are small enough that an average page has its rows in two lines, and large enough that the
//! index stays below a sixteenth of the rows. A file with more rules than usual has smaller pages, so that any rule
//! number fits.

use std::collections::HashMap;

use crate::row::{Row, Table};

pub(crate) const LINE_WORDS: usize = 16;

/// Bytes that are fetched together: a cache line, and an element of the kernel's array.
pub type Line = [u32; LINE_WORDS];

/// Header word with the number of rows. Without rows, the unwinder follows frame pointers.
const ROWS: u32 = 0;
/// Header word with the number of the first page.
const FIRST_PAGE: u32 = 1;
/// Header word with the number of pages. The index has one word more.
const PAGES: u32 = 2;
/// Header word with the number of bits of an offset in a page.
const SHIFT: u32 = 3;
/// Header word with the number of words before the index.
const PAGES_AT: u32 = 4;
const ROWS_AT: u32 = 5;
/// Header word with the number of words before the rules.
const RULES_AT: u32 = 6;
/// Number of words of the header before its copy of the most frequent rules.
const FIRST_RULES_AT: u32 = 8;
const FIRST_RULES: u32 = LINE_WORDS as u32 - FIRST_RULES_AT;

/// Number of bits of an offset in the largest pages, which have 64 KiB.
const MAX_SHIFT: u32 = 16;
/// Usual minimum number of bits of an offset in a page. Small pages save search steps. A table has smaller pages only
/// if its largest rule number leaves fewer bits for the offset.
const MIN_SHIFT: u32 = 8;
/// Minimum number of rows per word of the index.
const ROWS_PER_WORD: usize = 16;
/// Number of rows whose memory is freed at a time during packing.
const PIECE_ROWS: usize = 1 << 16;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packed {
    lines: Vec<Line>,
}

impl Packed {
    /// Packs the rows of a table. Frees the memory of the rows piece by piece, so that the rows and the packed table
    /// together take little more memory than the rows alone.
    pub fn new(table: Table) -> Self {
        let mut rows = table.into_rows();
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else {
            return Self::default();
        };
        let (rules, numbers) = rules_of(&rows);
        // Number of bits of a row that the largest rule number leaves for the offset, at most `MAX_SHIFT`.
        let max = MAX_SHIFT.min((rules.len().max(1) as u32 - 1).leading_zeros());
        let pages_of = |shift: u32| (last.pc >> shift) as usize - (first.pc >> shift) as usize + 1;
        let shift = (MIN_SHIFT..max)
            .find(|shift| pages_of(*shift) <= rows.len() / ROWS_PER_WORD)
            .unwrap_or(max);
        let (first_page, pages) = (first.pc >> shift, pages_of(shift));

        let rules_at = LINE_WORDS;
        let pages_at = rules_at + rules.len();
        let rows_at = (pages_at + pages + 1).next_multiple_of(LINE_WORDS);
        let mut packed = Self {
            lines: vec![[0; LINE_WORDS]; (rows_at + rows.len()).div_ceil(LINE_WORDS)],
        };
        let header = [
            (ROWS, rows.len() as u32),
            (FIRST_PAGE, first_page),
            (PAGES, pages as u32),
            (SHIFT, shift),
            (PAGES_AT, pages_at as u32),
            (ROWS_AT, rows_at as u32),
            (RULES_AT, rules_at as u32),
        ];
        for (position, value) in header {
            packed.set_word(position as usize, value);
        }
        for (number, rule) in rules.iter().enumerate() {
            packed.set_word(rules_at + number, *rule);
            if number < FIRST_RULES as usize {
                packed.set_word(FIRST_RULES_AT as usize + number, *rule);
            }
        }
        // The loop runs from the last row to the first. Pages from `indexed_page` on are already in the index.
        let mut indexed_page = pages;
        packed.set_word(pages_at + pages, rows.len() as u32);
        while let Some(row) = rows.pop() {
            let index = rows.len();
            let page = ((row.pc >> shift) - first_page) as usize;
            while indexed_page > page + 1 {
                indexed_page -= 1;
                packed.set_word(pages_at + indexed_page, index as u32 + 1);
            }
            packed.set_word(
                rows_at + index,
                row.pc << (32 - shift) | numbers.number_of(rule_of(&row)),
            );
            if index.is_multiple_of(PIECE_ROWS) {
                rows.shrink_to_fit();
            }
        }
        // The first row begins the first page, so the word of that page is 0.
        packed
    }

    fn set_word(&mut self, position: usize, value: u32) {
        let line = self.lines.get_mut(position / LINE_WORDS);
        if let Some(word) = line.and_then(|line| line.get_mut(position % LINE_WORDS)) {
            *word = value;
        }
    }

    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Returns the row that applies at `pc`.
    pub fn find(&self, pc: u32) -> Option<Row> {
        find(&self.lines, pc)
    }

    /// Returns true if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub fn bytes(&self) -> usize {
        size_of_val(self.lines.as_slice())
    }
}

/// Returns the row that applies at `pc`, with the same steps as `find_rule` of `bpf/profiler.bpf.c`. The row's
/// address is set to `pc`, wherever the row begins.
pub fn find(lines: &[Line], pc: u32) -> Option<Row> {
    let word = |position: u32| {
        let line = lines.get(position as usize / LINE_WORDS)?;
        line.get(position as usize % LINE_WORDS).copied()
    };
    let shift = word(SHIFT)?;
    let numbers = u32::MAX.checked_shr(shift)?;
    let page = (pc >> shift).checked_sub(word(FIRST_PAGE)?)?;
    let (mut low, mut high) = if page < word(PAGES)? {
        let page_position = word(PAGES_AT)?.wrapping_add(page);
        (word(page_position)?, word(page_position.wrapping_add(1))?)
    } else {
        // The address is after the last page, so the last row applies.
        (word(ROWS)?, word(ROWS)?)
    };
    // The largest value that a row with this offset can have.
    let key = pc.checked_shl(32 - shift)? | numbers;
    let rows_at = word(ROWS_AT)?;
    while low < high {
        let middle = low + (high - low) / 2;
        if word(rows_at.wrapping_add(middle))? <= key {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    // If no row of this page applies, this is the last row of an earlier page.
    let number = word(rows_at.wrapping_add(low.checked_sub(1)?))? & numbers;
    let rule = if number < FIRST_RULES {
        word(FIRST_RULES_AT + number)?
    } else {
        word(word(RULES_AT)?.wrapping_add(number))?
    };
    let [cfa_low, cfa_high, bp, rule] = rule.to_le_bytes();
    Some(Row {
        pc,
        cfa: i16::from_le_bytes([cfa_low, cfa_high]),
        bp: i8::from_le_bytes([bp]),
        rule,
    })
}

/// Returns all fields of a row except its address.
fn rule_of(row: &Row) -> u32 {
    let [cfa_low, cfa_high] = row.cfa.to_le_bytes();
    let [bp] = row.bp.to_le_bytes();
    u32::from_le_bytes([cfa_low, cfa_high, bp, row.rule])
}

/// Returns the rules of all rows, the most frequent first, and their numbers.
fn rules_of(rows: &[Row]) -> (Vec<u32>, Numbers) {
    let mut numbers = Numbers::new();
    let mut rules: Vec<(u32, u32)> = Vec::new();
    for row in rows {
        let rule = rule_of(row);
        let number = numbers.learn(rule, rules.len() as u32);
        match rules.get_mut(number as usize) {
            Some((count, _)) => *count += 1,
            None => rules.push((1, rule)),
        }
    }
    rules.sort_unstable_by_key(|(count, rule)| (std::cmp::Reverse(*count), *rule));
    let rules: Vec<u32> = rules.into_iter().map(|(_, rule)| rule).collect();
    let mut sorted = Numbers::new();
    for (number, rule) in rules.iter().enumerate() {
        sorted.learn(*rule, number as u32);
    }
    (rules, sorted)
}

/// Numbers of rules. Nearly all rows have one of a few rules. A cache finds the numbers of these rules without a
/// look-up in the full map.
struct Numbers {
    all: HashMap<u32, u32>,
    /// A direct-mapped cache of rules and their numbers. The index is a hash of the rule.
    recent: Vec<(u32, u32)>,
}

impl Numbers {
    /// Number of entries of the cache; a power of two.
    const CACHE_ENTRIES: usize = 1 << 12;

    fn new() -> Self {
        Self {
            all: HashMap::new(),
            recent: vec![(0, u32::MAX); Self::CACHE_ENTRIES],
        }
    }

    fn cache_index(rule: u32) -> usize {
        // Fibonacci hashing: the high bits of the product with 2^32 divided by the golden ratio.
        (rule.wrapping_mul(0x9e37_79b9) >> (32 - Self::CACHE_ENTRIES.trailing_zeros())) as usize
    }

    /// Returns the number of a rule. If the rule has no number yet, assigns `next` to it first.
    fn learn(&mut self, rule: u32, next: u32) -> u32 {
        let Some(entry) = self.recent.get_mut(Self::cache_index(rule)) else {
            return next;
        };
        if entry.0 != rule || entry.1 == u32::MAX {
            *entry = (rule, *self.all.entry(rule).or_insert(next));
        }
        entry.1
    }

    /// Returns the number of a learned rule, or 0 for an unknown rule.
    fn number_of(&self, rule: u32) -> u32 {
        match self.recent.get(Self::cache_index(rule)) {
            Some((known, number)) if *known == rule && *number != u32::MAX => *number,
            _ => self.all.get(&rule).copied().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::row::{self, Rule};

    fn row(pc: u32, cfa: i16) -> Row {
        Row {
            pc,
            cfa,
            bp: -2,
            rule: Rule::Sp as u8,
        }
    }

    /// Checks that the packed table and the rows agree before, at and after each row.
    fn agrees(rows: &[Row], others: &[u32]) -> Packed {
        let packed = Packed::new(Table::new(rows.to_vec()));
        let neighbors = rows
            .iter()
            .flat_map(|row| [row.pc.saturating_sub(1), row.pc, row.pc.saturating_add(1)]);
        for pc in neighbors.chain(others.iter().copied()).chain([0, u32::MAX]) {
            let expected = row::find(rows, pc).map(|row| Row { pc, ..*row });
            assert_eq!(packed.find(pc), expected, "at {pc:#x} of {} rows", rows.len());
        }
        packed
    }

    #[test]
    fn no_rows_take_nothing() {
        let packed = Packed::new(Table::default());
        assert!(packed.is_empty() && packed.bytes() == 0 && packed.find(1).is_none());
    }

    #[test]
    fn rows_of_usual_code_take_little_more_than_four_bytes() {
        let rows: Vec<Row> = (0..100_000_u32)
            .map(|index| row(0x1000 + index * 23, (index % 17 * (index % 19)) as i16))
            .collect();
        let packed = agrees(&rows, &[]);
        assert!(packed.bytes() < 430_000, "{} bytes", packed.bytes());
    }

    #[test]
    fn any_number_of_rules_has_room() {
        let rows: Vec<Row> = (0..150_000_u32)
            .map(|index| Row {
                pc: 0x40_0000 + index * 400,
                cfa: (index % 50_000) as i16,
                bp: (index / 50_000) as i8,
                rule: Rule::Bp as u8,
            })
            .collect();
        agrees(&rows, &[]);
    }

    #[test]
    fn rows_at_both_ends_of_all_addresses_take_an_index_of_large_pages() {
        let packed = agrees(
            &[row(0, 1), row(5, 2), row(u32::MAX - 3, 3), row(u32::MAX, 4)],
            &[0x8000_0000],
        );
        assert!(packed.bytes() < 300_000, "{} bytes", packed.bytes());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_row_of_any_address_is_that_of_the_sorted_rows(
            steps in proptest::collection::vec(
                (prop_oneof![9 => 1..200_u32, 1 => 1..2_000_000_u32], 0..40_i16),
                1..600,
            ),
            start in 0..0x1000_0000_u32,
            others in proptest::collection::vec(any::<u32>(), 20),
        ) {
            let mut pc = start;
            let rows: Vec<Row> = steps.into_iter().map(|(step, cfa)| { pc += step; row(pc, cfa) }).collect();
            agrees(&rows, &others);
        }

        #[test]
        fn damaged_lines_give_a_row_or_none(
            words in proptest::collection::vec(prop_oneof![0..64_u32, any::<u32>()], 16..200),
            pcs in proptest::collection::vec(any::<u32>(), 20),
        ) {
            let lines: Vec<Line> = words.chunks_exact(LINE_WORDS).map(|words| words.try_into().unwrap()).collect();
            for pc in pcs {
                find(&lines, pc);
            }
        }
    }
}
