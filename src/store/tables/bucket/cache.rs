//! A bounded disk cache for blocks of objects: blocks that queries read repeatedly, and blocks that were just written.
//!
//! Objects of the tables are never written twice under one name, so a block never becomes stale. Each block is a file
//! with a checksum after its bytes. A block that a crash left incomplete fails the checksum and is read from the bucket
//! again. The least recently used block is evicted first.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use parking_lot::Mutex;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// Size of a block in bytes. Queries read whole blocks from the bucket. A flushed file usually fits in one block.
pub(crate) const BLOCK_BYTES: u64 = 1 << 20;
/// Size of the checksum after a block in bytes.
const TRAILER_BYTES: usize = 8;

/// Identifies a block: the object and its block number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    object: u128,
    block: u32,
}

impl BlockKey {
    /// Returns the key of block `block` of the object at `path`.
    pub(super) fn new(path: &str, block: u32) -> Self {
        Self {
            object: xxh3_128(path.as_bytes()),
            block,
        }
    }

    fn file_name(self) -> String {
        format!("{:032x}-{:08x}", self.object, self.block)
    }

    fn parse(name: &str) -> Option<Self> {
        let (object, block) = name.split_once('-')?;
        Some(Self {
            object: u128::from_str_radix(object, 16).ok()?,
            block: u32::from_str_radix(block, 16).ok()?,
        })
    }
}

/// The cache. All operations block on the disk.
#[derive(Debug)]
pub(crate) struct BlockCache {
    folder: PathBuf,
    limit: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<BlockKey, Entry>,
    by_age: BTreeMap<u64, BlockKey>,
    bytes: u64,
    next_stamp: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    bytes: u64,
    stamp: u64,
    /// False while the file is being written.
    written: bool,
}

impl State {
    /// Returns true if the block can be read. The block then becomes the most recently used block.
    fn touch(&mut self, key: BlockKey) -> bool {
        let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.written) else {
            return false;
        };
        self.by_age.remove(&entry.stamp);
        entry.stamp = self.next_stamp;
        self.by_age.insert(entry.stamp, key);
        self.next_stamp += 1;
        true
    }

    /// Reserves space for a block that is about to be written.
    fn insert(&mut self, key: BlockKey, bytes: u64) {
        self.remove(key);
        let stamp = self.next_stamp;
        self.next_stamp += 1;
        let entry = Entry {
            bytes,
            stamp,
            written: false,
        };
        self.entries.insert(key, entry);
        self.by_age.insert(stamp, key);
        self.bytes += bytes;
    }

    /// Makes a written block readable. Returns false if the block was evicted during the write.
    fn set_written(&mut self, key: BlockKey) -> bool {
        let entry = self.entries.get_mut(&key);
        entry.map(|entry| entry.written = true).is_some()
    }

    fn remove(&mut self, key: BlockKey) -> bool {
        let Some(entry) = self.entries.remove(&key) else {
            return false;
        };
        self.by_age.remove(&entry.stamp);
        self.bytes -= entry.bytes;
        true
    }
}

impl BlockCache {
    /// Opens the cache in `folder` with the blocks of an earlier process, and evicts blocks down to `limit` bytes.
    pub(super) fn open(folder: &Path, limit: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut blocks = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            match entry.file_name().to_str().and_then(BlockKey::parse) {
                Some(key) => blocks.push((metadata.modified().ok(), key, metadata.len())),
                // An earlier process did not finish the write of this file.
                None if metadata.is_file() => drop(fs::remove_file(entry.path())),
                None => {}
            }
        }
        blocks.sort_by_key(|(modified, ..)| *modified);
        let mut state = State::default();
        for (_, key, bytes) in blocks {
            state.insert(key, bytes);
            state.set_written(key);
        }
        let cache = Self {
            folder: folder.to_owned(),
            limit,
            state: Mutex::new(state),
        };
        cache.make_room(0);
        Ok(cache)
    }

    /// Creates a cache that stores nothing.
    pub(super) fn disabled() -> Self {
        Self {
            folder: PathBuf::new(),
            limit: 0,
            state: Mutex::default(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    /// Returns the size of all readable blocks in bytes.
    #[cfg(test)]
    pub(crate) fn written_bytes(&self) -> u64 {
        let state = self.state.lock();
        let written = state.entries.values().filter(|entry| entry.written);
        written.map(|entry| entry.bytes).sum()
    }

    /// Returns a block, if it is cached and its checksum matches.
    pub(super) fn get(&self, key: BlockKey) -> Option<Bytes> {
        if !self.state.lock().touch(key) {
            return None;
        }
        let path = self.folder.join(key.file_name());
        let block = fs::read(&path).ok().and_then(|mut data| {
            let split = data.len().checked_sub(TRAILER_BYTES)?;
            let trailer: [u8; TRAILER_BYTES] = data.get(split..)?.try_into().ok()?;
            data.truncate(split);
            (xxh3_64(&data) == u64::from_le_bytes(trailer)).then(|| Bytes::from(data))
        });
        if block.is_none() && self.state.lock().remove(key) {
            let _ = fs::remove_file(&path);
        }
        block
    }

    /// Stores a block. Disk errors are ignored, because they only cost speed.
    pub(super) fn put(&self, key: BlockKey, data: &[u8]) {
        let bytes = (data.len() + TRAILER_BYTES) as u64;
        if bytes > self.limit {
            return;
        }
        // The size is added before the write, so that the limit also holds with several writers.
        {
            let mut state = self.state.lock();
            if state.entries.contains_key(&key) {
                return;
            }
            state.insert(key, bytes);
        }
        self.make_room(0);
        let path = self.folder.join(key.file_name());
        let temporary = self.folder.join(format!(".{}", key.file_name()));
        let mut all = Vec::with_capacity(data.len() + TRAILER_BYTES);
        all.extend_from_slice(data);
        all.extend_from_slice(&xxh3_64(data).to_le_bytes());
        if let Err(error) = fs::write(&temporary, &all).and_then(|()| fs::rename(&temporary, &path)) {
            tracing::debug!(error = %error, "cannot cache a block of an object");
            self.state.lock().remove(key);
            let _ = fs::remove_file(&temporary);
            return;
        }
        if !self.state.lock().set_written(key) {
            let _ = fs::remove_file(&path);
        }
    }

    fn make_room(&self, room: u64) {
        loop {
            let key = {
                let mut state = self.state.lock();
                if state.bytes.saturating_add(room) <= self.limit {
                    return;
                }
                let Some((_, key)) = state.by_age.pop_first() else {
                    return;
                };
                state.remove(key);
                key
            };
            let _ = fs::remove_file(self.folder.join(key.file_name()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(block: u32) -> BlockKey {
        BlockKey::new("samples/tenant=t/day=2026-11-21/x.parquet", block)
    }

    #[test]
    fn a_piece_that_is_being_written_is_not_there_yet_and_not_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let cache = BlockCache::open(dir.path(), 1000).unwrap();
        cache.state.lock().insert(key(0), 108);
        assert!(cache.get(key(0)).is_none());
        assert_eq!((cache.bytes(), cache.written_bytes()), (108, 0));
    }

    #[test]
    fn the_oldest_go_when_the_bound_is_reached() {
        let dir = tempfile::tempdir().unwrap();
        let cache = BlockCache::open(dir.path(), 3 * 108).unwrap();
        for block in 0..3 {
            cache.put(key(block), &[block as u8; 100]);
        }
        assert_eq!(cache.get(key(0)).unwrap(), vec![0u8; 100]);
        cache.put(key(3), &[3; 100]);
        assert!(cache.get(key(1)).is_none());
        for block in [0, 2, 3] {
            assert_eq!(cache.get(key(block)).unwrap(), vec![block as u8; 100]);
        }
        assert!(cache.bytes() <= 3 * 108);
        let on_disk: u64 = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .sum();
        assert_eq!(on_disk, cache.bytes());
    }

    #[test]
    fn what_is_kept_survives_a_start_and_what_is_torn_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let cache = BlockCache::open(dir.path(), 1 << 20).unwrap();
        cache.put(key(0), b"whole");
        cache.put(key(1), b"torn");
        let torn = dir.path().join(key(1).file_name());
        fs::write(&torn, b"to").unwrap();
        fs::write(dir.path().join(".unfinished"), b"x").unwrap();
        drop(cache);
        let cache = BlockCache::open(dir.path(), 1 << 20).unwrap();
        assert_eq!(cache.get(key(0)).unwrap(), &b"whole"[..]);
        assert!(cache.get(key(1)).is_none());
        assert!(!torn.exists() && !dir.path().join(".unfinished").exists());
    }

    #[test]
    fn a_smaller_bound_takes_effect_at_the_next_start() {
        let dir = tempfile::tempdir().unwrap();
        let cache = BlockCache::open(dir.path(), 1 << 20).unwrap();
        for block in 0..10 {
            cache.put(key(block), &[7; 100]);
        }
        drop(cache);
        let cache = BlockCache::open(dir.path(), 250).unwrap();
        assert_eq!(cache.bytes(), 216);
        let disabled = BlockCache::open(dir.path(), 0).unwrap();
        disabled.put(key(1), b"x");
        assert!(disabled.get(key(1)).is_none());
    }
}
