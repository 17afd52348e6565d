//! Checksums of Parquet files: one of the whole file for `store check`, and one for each block. With the checksums of
//! blocks, each reader of this program verifies exactly the bytes that it decodes.
//!
//! A file consists of data (row groups) and a tail (page indexes and footer). The footer holds a CRC-32 for each
//! [`BLOCK_BYTES`] of the data. The table's log holds the XXH3 of the tail and of the whole file. The page checksums
//! that Parquet defines are not used: the writer of the `parquet` crate does not compute them, and they cover neither
//! page headers nor the footer. Files of earlier versions have only the checksum of the whole file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::store::tables::snapshot::{Checksum, FileEntry, Tail};

/// Size of a block in bytes. A reader of a single page reads at most two blocks more than the page.
const BLOCK_BYTES: u64 = 16 << 10;
/// Key of the file metadata that holds the checksums of the blocks, 8 hexadecimal digits each.
const KEY: &str = "alluvium.sums";
/// Maximum size in bytes of a file without block checksums that readers verify in memory and then keep there. The
/// limit is small, because several dozen files may be open at once.
const MEMORY_BYTES: u64 = 1 << 20;

/// An error: some bytes differ from the written bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the bytes from position {0} on differ from the written ones")]
pub(crate) struct AlteredBytes(u64);

impl AlteredBytes {
    /// Creates the error for altered or missing bytes from a position on.
    pub(crate) fn at(position: u64) -> Self {
        Self(position)
    }
}

/// A file that computes checksums of its bytes during writing.
pub(crate) struct ChecksumWriter {
    file: File,
    size: u64,
    file_hash: Xxh3,
    block: crc32fast::Hasher,
    blocks: Vec<u32>,
    /// Start and hash of the tail, once the data has ended.
    tail: Option<(u64, Xxh3)>,
}

impl ChecksumWriter {
    /// Creates a writer to `file`, which must be empty.
    pub(crate) fn new(file: File) -> Self {
        Self {
            file,
            size: 0,
            file_hash: Xxh3::new(),
            block: crc32fast::Hasher::new(),
            blocks: Vec::new(),
            tail: None,
        }
    }

    /// Ends a Parquet file and adds the checksums of its blocks to the footer.
    pub(crate) fn finish(mut writer: ArrowWriter<Self>) -> Result<Self, ParquetError> {
        writer.flush()?;
        writer.sync()?;
        let blocks = writer.inner_mut().end_data();
        writer.append_key_value_metadata(KeyValue::new(KEY.to_owned(), blocks));
        writer.into_inner()
    }

    /// Returns the file, its size and its checksums.
    pub(crate) fn into_parts(self) -> (File, u64, Checksum) {
        let tail = self.tail.map(|(start, hash)| Tail {
            start,
            hash: hash.digest(),
        });
        let checksum = Checksum {
            file: self.file_hash.digest(),
            tail,
        };
        (self.file, self.size, checksum)
    }

    fn end_data(&mut self) -> String {
        if !self.size.is_multiple_of(BLOCK_BYTES) {
            self.end_block();
        }
        self.tail = Some((self.size, Xxh3::new()));
        self.blocks.iter().map(|sum| format!("{sum:08x}")).collect()
    }

    fn end_block(&mut self) {
        self.blocks.push(std::mem::take(&mut self.block).finalize());
    }
}

impl Write for ChecksumWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        let mut bytes = &bytes[..written];
        self.file_hash.update(bytes);
        if let Some((_, hash)) = &mut self.tail {
            hash.update(bytes);
            self.size += written as u64;
            return Ok(written);
        }
        while !bytes.is_empty() {
            let room = BLOCK_BYTES - self.size % BLOCK_BYTES;
            let (part, rest) = bytes.split_at(bytes.len().min(room as usize));
            self.block.update(part);
            self.size += part.len() as u64;
            if part.len() as u64 == room {
                self.end_block();
            }
            bytes = rest;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The checksums of one file's blocks, which verify reads of the file.
#[derive(Debug)]
pub(crate) struct BlockChecksums {
    size: u64,
    tail: Tail,
    blocks: Vec<u32>,
}

impl BlockChecksums {
    /// Reads the checksums from the footer of a file of `size` bytes. `metadata` must come from a verified tail.
    pub(crate) fn of(metadata: &ParquetMetaData, size: u64, tail: Tail) -> Result<Self, AlteredBytes> {
        let pairs = metadata.file_metadata().key_value_metadata();
        let text = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == KEY)?.value.as_deref());
        let parse = |text: &str| {
            let sum = |offset: usize| u32::from_str_radix(text.get(offset..offset + 8)?, 16).ok();
            (0..text.len()).step_by(8).map(sum).collect::<Option<Vec<u32>>>()
        };
        let blocks = text.and_then(parse).ok_or(AlteredBytes(tail.start))?;
        if blocks.len() as u64 != tail.start.div_ceil(BLOCK_BYTES) {
            return Err(AlteredBytes(tail.start));
        }
        Ok(Self { size, tail, blocks })
    }

    /// Returns the smallest range around `range` that can be verified.
    fn verified_range(&self, range: &Range<u64>) -> Range<u64> {
        let data = self.tail.start;
        let start = if range.start >= data {
            data
        } else {
            range.start - range.start % BLOCK_BYTES
        };
        let end = if range.end > data {
            self.size.max(range.end)
        } else {
            range.end.next_multiple_of(BLOCK_BYTES).min(data)
        };
        start..end
    }

    /// Returns the ranges to read so that all bytes of `ranges` can be verified. The result is ascending and disjoint.
    pub(crate) fn verified_ranges(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let non_empty = ranges.iter().filter(|range| !range.is_empty());
        let mut all: Vec<Range<u64>> = non_empty.map(|range| self.verified_range(range)).collect();
        all.sort_unstable_by_key(|range| (range.start, range.end));
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(all.len());
        for range in all {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }

    /// Verifies bytes from `start` on. The bytes must be a range from [`BlockChecksums::verified_ranges`].
    pub(crate) fn verify(&self, start: u64, bytes: &[u8]) -> Result<(), AlteredBytes> {
        let data = self.tail.start.saturating_sub(start).min(bytes.len() as u64);
        let (data, tail) = bytes.split_at(data as usize);
        let first = (start / BLOCK_BYTES) as usize;
        for (index, block) in (first..).zip(data.chunks(BLOCK_BYTES as usize)) {
            if self.blocks.get(index) != Some(&crc32fast::hash(block)) {
                return Err(AlteredBytes(index as u64 * BLOCK_BYTES));
            }
        }
        if tail.is_empty() {
            return Ok(());
        }
        verify_tail(tail, self.tail)
    }
}

/// Verifies the tail of a file.
pub(crate) fn verify_tail(bytes: &[u8], tail: Tail) -> Result<(), AlteredBytes> {
    if xxh3_64(bytes) == tail.hash {
        Ok(())
    } else {
        Err(AlteredBytes(tail.start))
    }
}

/// Returns the metadata of a file of `size` bytes that ends with `tail`.
pub(crate) fn metadata_of(tail: &Bytes, size: u64, policy: PageIndexPolicy) -> Result<ParquetMetaData, ParquetError> {
    let mut reader = ParquetMetaDataReader::new().with_page_index_policy(policy);
    reader.try_parse_sized(tail, size)?;
    reader.finish()
}

/// The reason why a file differs from the entry of the table's log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VerifyError {
    #[error(transparent)]
    File(#[from] io::Error),
    #[error("it has {actual} bytes, but the table's log says {expected}")]
    Size { actual: u64, expected: u64 },
    #[error("its tail is missing")]
    NoTail,
    /// Bytes of the tail, or of the checksums in it, were changed.
    #[error(transparent)]
    Tail(#[from] AlteredBytes),
    #[error("its bytes differ from the written ones")]
    Altered,
    /// The metadata of the file is invalid.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
}

/// A Parquet file for readers of the store. Readers receive an error instead of altered bytes.
pub(crate) struct VerifiedFile(VerifiedContent);

enum VerifiedContent {
    /// Each block is verified on each read.
    Blocks(Arc<Blocks>),
    /// The verified contents of the whole file.
    Memory(Bytes),
    /// A file that is too large for memory and was verified on opening, or a file of a foreign writer without
    /// checksums.
    File(File),
}

struct Blocks {
    file: File,
    sums: BlockChecksums,
}

impl VerifiedFile {
    /// Opens the file of `entry`, an entry of the table's log.
    pub(crate) fn open(file: File, entry: &FileEntry) -> Result<(Self, Arc<ParquetMetaData>), VerifyError> {
        let size = file.metadata()?.len();
        if size != entry.size {
            return Err(VerifyError::Size {
                actual: size,
                expected: entry.size,
            });
        }
        let load = |source: Self| {
            let metadata = ParquetMetaDataReader::new().parse_and_finish(&source)?;
            Ok((source, Arc::new(metadata)))
        };
        let Some(checksum) = entry.checksum else {
            return load(Self(VerifiedContent::File(file)));
        };
        if let Some(tail) = checksum.tail {
            let length = size.checked_sub(tail.start).ok_or(VerifyError::NoTail)?;
            let mut bytes = vec![0; length as usize];
            file.read_exact_at(&mut bytes, tail.start)?;
            verify_tail(&bytes, tail)?;
            let metadata = metadata_of(&bytes.into(), size, PageIndexPolicy::Skip)?;
            let sums = BlockChecksums::of(&metadata, size, tail)?;
            let blocks = Arc::new(Blocks { file, sums });
            return Ok((Self(VerifiedContent::Blocks(blocks)), Arc::new(metadata)));
        }
        if size <= MEMORY_BYTES {
            let mut bytes = vec![0; size as usize];
            file.read_exact_at(&mut bytes, 0)?;
            if xxh3_64(&bytes) != checksum.file {
                return Err(VerifyError::Altered);
            }
            return load(Self(VerifiedContent::Memory(bytes.into())));
        }
        if hash_of(&file)? != checksum.file {
            return Err(VerifyError::Altered);
        }
        load(Self(VerifiedContent::File(file)))
    }
}

/// Reads to the end and returns the XXH3 hash.
pub(crate) fn hash_of(mut reader: impl Read) -> io::Result<u64> {
    let mut hash = Xxh3::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hash.digest()),
            read => hash.update(&buffer[..read]),
        }
    }
}

impl Blocks {
    /// Returns the bytes of a range after verifying them. At the end of the file, they are fewer than requested.
    fn read(&self, range: &Range<u64>) -> io::Result<Bytes> {
        let range = range.start..range.end.min(self.sums.size);
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let cover = self.sums.verified_range(&range);
        let mut bytes = vec![0; (cover.end - cover.start) as usize];
        self.file.read_exact_at(&mut bytes, cover.start)?;
        let altered = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        self.sums.verify(cover.start, &bytes).map_err(altered)?;
        let index_of = |position: u64| (position - cover.start) as usize;
        Ok(Bytes::from(bytes).slice(index_of(range.start)..index_of(range.end)))
    }
}

/// Reads a file block by block from a position on.
struct BlockRead {
    blocks: Arc<Blocks>,
    position: u64,
    rest: Bytes,
}

impl Read for BlockRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            let end = (self.position + 1).next_multiple_of(BLOCK_BYTES);
            self.rest = self.blocks.read(&(self.position..end))?;
            self.position += self.rest.len() as u64;
        }
        let count = buffer.len().min(self.rest.len());
        buffer[..count].copy_from_slice(&self.rest.split_to(count));
        Ok(count)
    }
}

impl Length for VerifiedFile {
    fn len(&self) -> u64 {
        match &self.0 {
            VerifiedContent::Blocks(blocks) => blocks.sums.size,
            VerifiedContent::Memory(bytes) => bytes.len() as u64,
            VerifiedContent::File(file) => file.len(),
        }
    }
}

impl ChunkReader for VerifiedFile {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> Result<Box<dyn Read>, ParquetError> {
        Ok(match &self.0 {
            VerifiedContent::Blocks(blocks) => Box::new(BlockRead {
                blocks: blocks.clone(),
                position: start,
                rest: Bytes::new(),
            }),
            VerifiedContent::Memory(bytes) => Box::new(bytes.get_read(start)?),
            VerifiedContent::File(file) => Box::new(file.get_read(start)?),
        })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        match &self.0 {
            VerifiedContent::Blocks(blocks) => {
                let bytes = blocks.read(&(start..start.saturating_add(length as u64)))?;
                if bytes.len() == length {
                    Ok(bytes)
                } else {
                    Err(ParquetError::EOF(format!(
                        "{length} bytes at {start} were requested, but only {} exist",
                        bytes.len()
                    )))
                }
            }
            VerifiedContent::Memory(bytes) => bytes.get_bytes(start, length),
            VerifiedContent::File(file) => file.get_bytes(start, length),
        }
    }
}

#[cfg(test)]
#[path = "checksums_tests.rs"]
mod tests;
