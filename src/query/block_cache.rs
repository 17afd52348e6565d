//! Blocks of sample rows, kept between questions.
//!
//! Files never change, so what is kept is never stale. The cache is bounded by bytes; what is of files that are gone goes, what nobody has asked
//! for lately, then what was not asked for the longest time. Which rows are read into it is decided in `sums`.

use std::collections::HashSet;
use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::query::blocks::{BLOCK_BYTES, Block};
use crate::query::unused::Looks;

/// Which rows a block has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) file: Arc<str>,
    pub(crate) profile_type: Arc<str>,
    /// Number of [`CHUNK_US`] since 1970.
    pub(crate) chunk: i64,
}

/// What the cache has of a chunk, and what it lacks.
pub(crate) struct Found {
    pub(crate) blocks: Vec<Arc<Block>>,
    pub(crate) missing: Missing,
}

/// Series that the cache lacks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    None,
    Some(Vec<i64>),
    All,
}

/// The blocks of all tenants: their files have different paths.
pub(crate) struct BlockCache {
    limit: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    chunks: HashMap<Key, Chunk>,
    bytes: usize,
    clock: u64,
    looks: Looks,
}

#[derive(Default)]
struct Chunk {
    /// True when series that are not here have no rows.
    complete: bool,
    /// `None` for a series that has no rows.
    series: HashMap<i64, Option<Arc<Block>>>,
    bytes: usize,
    used: u64,
}

impl BlockCache {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            state: Mutex::default(),
        }
    }

    /// Most bytes that it keeps.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// The blocks of a chunk for the series `wanted`, all for `None`.
    pub(crate) fn look(&self, key: &Key, wanted: Option<&HashSet<i64>>) -> Found {
        let mut state = self.state.lock();
        state.clock += 1;
        let clock = state.clock;
        let Some(chunk) = state.chunks.get_mut(key) else {
            let missing = wanted.map_or(Missing::All, |wanted| Missing::Some(wanted.iter().copied().collect()));
            return Found {
                blocks: Vec::new(),
                missing,
            };
        };
        chunk.used = clock;
        let Some(wanted) = wanted else {
            return match chunk.complete {
                true => Found {
                    blocks: chunk.series.values().flatten().cloned().collect(),
                    missing: Missing::None,
                },
                false => Found {
                    blocks: Vec::new(),
                    missing: Missing::All,
                },
            };
        };
        let (mut blocks, mut lacking) = (Vec::new(), Vec::new());
        for series in wanted {
            match chunk.series.get(series) {
                Some(block) => blocks.extend(block.clone()),
                None if chunk.complete => {}
                None => lacking.push(*series),
            }
        }
        let missing = match lacking.is_empty() {
            true => Missing::None,
            false => Missing::Some(lacking),
        };
        Found { blocks, missing }
    }

    /// Keeps the blocks that were read of a chunk: those of the series `asked`, which have no rows where there is no block; all for `None`.
    pub(crate) fn keep(&self, key: Key, blocks: Vec<(i64, Arc<Block>)>, asked: Option<&[i64]>) {
        let mut state = self.state.lock();
        state.clock += 1;
        let clock = state.clock;
        let chunk = state.chunks.entry(key).or_default();
        let before = chunk.bytes;
        chunk.used = clock;
        chunk.complete |= asked.is_none();
        for series in asked.unwrap_or_default() {
            chunk.series.entry(*series).or_insert(None);
        }
        for (series, block) in blocks {
            chunk.series.insert(series, Some(block));
        }
        let held = |block: &Option<Arc<Block>>| block.as_ref().map_or(24, |block| block.bytes());
        chunk.bytes = BLOCK_BYTES + chunk.series.values().map(held).sum::<usize>();
        let now = chunk.bytes;
        state.bytes = state.bytes + now - before;
        if state.bytes > self.limit {
            state.shrink(self.limit / 4 * 3);
        }
    }

    /// Keeps only the blocks of these files.
    pub(crate) fn retain(&self, files: &HashSet<&str>) {
        let mut state = self.state.lock();
        state.chunks.retain(|key, _| files.contains(&*key.file));
        state.count();
    }

    /// Drops what was not asked for in the last [five looks](crate::query::unused).
    pub(crate) fn forget_unused(&self) {
        let mut state = self.state.lock();
        let clock = state.clock;
        let used = state.looks.look(clock);
        state.chunks.retain(|_, chunk| chunk.used > used);
        state.chunks.shrink_to_fit();
        state.count();
    }
}

impl State {
    fn count(&mut self) {
        self.bytes = self.chunks.values().map(|chunk| chunk.bytes).sum();
    }

    /// Drops chunks, those first that were not used for the longest time, until no more than `bytes` are held.
    fn shrink(&mut self, bytes: usize) {
        let mut order: Vec<(u64, Key)> = self
            .chunks
            .iter()
            .map(|(key, chunk)| (chunk.used, key.clone()))
            .collect();
        order.sort_unstable_by_key(|(used, _)| *used);
        for (_, key) in order {
            if self.bytes <= bytes {
                return;
            }
            if let Some(chunk) = self.chunks.remove(&key) {
                self.bytes -= chunk.bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::blocks::Builder;

    fn key(chunk: i64) -> Key {
        Key {
            file: "f".into(),
            profile_type: "t".into(),
            chunk,
        }
    }

    fn one(value: i64) -> Arc<Block> {
        let mut builder = Builder::default();
        builder.push(5, 1, value);
        Arc::new(builder.finish().remove(0).1)
    }

    #[test]
    fn the_cache_says_what_it_lacks_and_knows_what_has_no_rows() {
        let cache = BlockCache::new(1 << 20);
        let wanted = HashSet::from([1, 2]);
        assert_eq!(cache.look(&key(0), None).missing, Missing::All);
        cache.keep(key(0), vec![(1, one(7))], Some(&[1, 2]));
        let found = cache.look(&key(0), Some(&wanted));
        assert_eq!((found.blocks.len(), found.missing), (1, Missing::None));
        assert_eq!(
            cache.look(&key(0), Some(&HashSet::from([3]))).missing,
            Missing::Some(vec![3])
        );
        assert_eq!(cache.look(&key(0), None).missing, Missing::All);
        cache.keep(key(0), vec![(1, one(7)), (3, one(8))], None);
        let found = cache.look(&key(0), None);
        assert_eq!((found.blocks.len(), found.missing), (2, Missing::None));
        assert_eq!(cache.look(&key(0), Some(&HashSet::from([9]))).missing, Missing::None);
    }

    #[test]
    fn the_cache_forgets_what_was_not_asked_for_the_longest_time() {
        let cache = BlockCache::new(6 * 1024);
        for chunk in 0..40 {
            cache.keep(key(chunk), vec![(1, one(chunk))], None);
            cache.look(&key(0), None);
        }
        assert!(cache.state.lock().bytes <= 6 * 1024);
        assert_eq!(cache.look(&key(0), None).missing, Missing::None);
        assert_eq!(cache.look(&key(39), None).missing, Missing::None);
        assert_eq!(cache.look(&key(1), None).missing, Missing::All);
    }

    #[test]
    fn what_is_of_files_that_are_gone_is_forgotten() {
        let cache = BlockCache::new(1 << 20);
        let of = |file: &str| Key {
            file: file.into(),
            ..key(0)
        };
        cache.keep(of("merged"), vec![(1, one(7))], None);
        let before = cache.state.lock().bytes;
        cache.keep(of("live"), vec![(1, one(8))], None);
        cache.retain(&HashSet::from(["live", "new"]));
        assert_eq!(cache.look(&of("merged"), None).missing, Missing::All);
        assert_eq!(cache.look(&of("live"), None).missing, Missing::None);
        assert_eq!(cache.state.lock().bytes, before);
    }

    #[test]
    fn what_nobody_asks_for_any_more_is_forgotten() {
        let cache = BlockCache::new(1 << 20);
        cache.keep(key(0), vec![(1, one(7))], None);
        let before = cache.state.lock().bytes;
        cache.keep(key(1), vec![(1, one(8))], None);
        for _ in 0..5 {
            cache.forget_unused();
            assert_eq!(cache.look(&key(0), None).missing, Missing::None);
        }
        assert_eq!(cache.state.lock().bytes, 2 * before);
        cache.forget_unused();
        assert_eq!(cache.state.lock().bytes, before);
        assert_eq!(cache.look(&key(0), None).missing, Missing::None);
        assert_eq!(cache.look(&key(1), None).missing, Missing::All);
    }
}
