//! Caches blocks of sample rows between queries.
//!
//! Files never change, so cached blocks are never stale. The module `query::stacks::sums` decides which rows are
//! cached.

use std::collections::HashSet;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::query::decoded::blocks::{BLOCK_BYTES, Block, Chunk};
use crate::query::resources::cache::{Bytes, Cache};
use alluvium_profile::{ProfileTypeId, SeriesId};

/// Identifies the rows of one file and profile type in one chunk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) file: Arc<str>,
    pub(crate) profile_type: ProfileTypeId,
    pub(crate) chunk: Chunk,
}

/// Cached blocks of a chunk, and the series that the cache lacks.
pub(crate) struct CachedBlocks {
    pub(crate) blocks: Vec<Arc<Block>>,
    pub(crate) missing: Missing,
}

/// The series that the cache lacks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    None,
    Some(Vec<SeriesId>),
    All,
}

/// The blocks of all tenants. A file contains the rows of one tenant only, so its path also identifies the tenant.
pub(crate) struct BlockCache(Cache<Key, Series>);

#[derive(Default)]
struct Series {
    /// True if the entry contains all series that have rows.
    complete: bool,
    /// The block of each series; `None` for a series without rows.
    blocks: HashMap<SeriesId, Option<Arc<Block>>>,
    bytes: usize,
}

impl Bytes for Series {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Series {
    /// Returns the blocks of the series `requested`, which is `None` for all series.
    #[expect(
        clippy::iter_over_hash_type,
        reason = "the rows of blocks are summed, so their order does not matter"
    )]
    fn get(&self, requested: Option<&HashSet<SeriesId>>) -> CachedBlocks {
        let (mut blocks, mut missing_series) = (Vec::new(), Vec::new());
        let Some(requested) = requested else {
            if !self.complete {
                return CachedBlocks::nothing(None);
            }
            return CachedBlocks {
                blocks: self.blocks.values().flatten().cloned().collect(),
                missing: Missing::None,
            };
        };
        for series in requested {
            match self.blocks.get(series) {
                Some(block) => blocks.extend(block.clone()),
                None if self.complete => {}
                None => missing_series.push(*series),
            }
        }
        let missing = if missing_series.is_empty() {
            Missing::None
        } else {
            Missing::Some(missing_series)
        };
        CachedBlocks { blocks, missing }
    }
}

impl CachedBlocks {
    fn nothing(requested: Option<&HashSet<SeriesId>>) -> Self {
        Self {
            blocks: Vec::new(),
            missing: requested.map_or(Missing::All, |requested| {
                Missing::Some(requested.iter().copied().collect())
            }),
        }
    }
}

impl BlockCache {
    /// Creates a cache of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self(Cache::new(limit))
    }

    /// Returns the size of the cached blocks in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    pub(crate) fn limit(&self) -> usize {
        self.0.limit()
    }

    /// Returns the cached blocks of a chunk for the series `requested`, which is `None` for all series.
    pub(crate) fn get(&self, key: &Key, requested: Option<&HashSet<SeriesId>>) -> CachedBlocks {
        let cached = self.0.with(key, |series| series.get(requested));
        cached.unwrap_or_else(|| CachedBlocks::nothing(requested))
    }

    /// Caches the blocks that were read for a chunk and the series `requested` (`None` for all series). A requested
    /// series without a block has no rows.
    pub(crate) fn insert(&self, key: &Key, blocks: Vec<(SeriesId, Arc<Block>)>, requested: Option<&[SeriesId]>) {
        self.0.change(key, |kept| {
            kept.complete |= requested.is_none();
            for series in requested.unwrap_or_default() {
                kept.blocks.entry(*series).or_insert(None);
            }
            for (series, block) in blocks {
                kept.blocks.insert(series, Some(block));
            }
            let block_bytes = |block: &Option<Arc<Block>>| block.as_ref().map_or(24, |block| block.bytes());
            kept.bytes = BLOCK_BYTES + kept.blocks.values().map(block_bytes).sum::<usize>();
        });
    }

    /// Drops the blocks of all files except `files`.
    pub(crate) fn retain(&self, files: &HashSet<&str>) {
        self.0.retain(|key| files.contains(&*key.file));
    }

    /// Drops all blocks to free memory.
    pub(crate) fn clear(&self) {
        self.0.clear();
    }

    /// Drops blocks that were not used for some minutes.
    pub(crate) fn forget_unused(&self) {
        self.0.forget_unused();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::decoded::blocks::Builder;
    use alluvium_profile::StackId;

    fn key(chunk: i64) -> Key {
        Key {
            file: "f".into(),
            profile_type: "t".into(),
            chunk: Chunk(chunk),
        }
    }

    fn single_block(value: i64) -> Arc<Block> {
        let mut builder = Builder::default();
        builder.push(5, StackId(1), value);
        Arc::new(builder.finish().remove(0).1)
    }

    #[test]
    fn the_cache_says_what_it_lacks_and_knows_what_has_no_rows() {
        let cache = BlockCache::new(1 << 20);
        let requested = HashSet::from([1, 2].map(SeriesId));
        assert_eq!(cache.get(&key(0), None).missing, Missing::All);
        cache.insert(
            &key(0),
            vec![(SeriesId(1), single_block(7))],
            Some(&[1, 2].map(SeriesId)),
        );
        let cached = cache.get(&key(0), Some(&requested));
        assert_eq!((cached.blocks.len(), cached.missing), (1, Missing::None));
        assert_eq!(
            cache.get(&key(0), Some(&HashSet::from([SeriesId(3)]))).missing,
            Missing::Some(vec![SeriesId(3)])
        );
        assert_eq!(cache.get(&key(0), None).missing, Missing::All);
        cache.insert(
            &key(0),
            vec![(SeriesId(1), single_block(7)), (SeriesId(3), single_block(8))],
            None,
        );
        let cached = cache.get(&key(0), None);
        assert_eq!((cached.blocks.len(), cached.missing), (2, Missing::None));
        assert_eq!(
            cache.get(&key(0), Some(&HashSet::from([SeriesId(9)]))).missing,
            Missing::None
        );
    }

    #[test]
    fn what_is_of_files_that_are_gone_is_forgotten() {
        let cache = BlockCache::new(1 << 20);
        let key_of = |file: &str| Key {
            file: file.into(),
            ..key(0)
        };
        cache.insert(&key_of("merged"), vec![(SeriesId(1), single_block(7))], None);
        let before = cache.0.bytes();
        cache.insert(&key_of("live"), vec![(SeriesId(1), single_block(8))], None);
        cache.retain(&HashSet::from(["live", "new"]));
        assert_eq!(cache.get(&key_of("merged"), None).missing, Missing::All);
        assert_eq!(cache.get(&key_of("live"), None).missing, Missing::None);
        assert_eq!(cache.0.bytes(), before);
    }
}
