//! Reads a segment of the write-ahead log record by record, and distinguishes damage from unfinished writes.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use bytes::Bytes;

use crate::store::common::error::StoreError;
use crate::store::common::error::is_full;
use crate::store::common::fault::{FaultPoint, Faults};
use crate::store::log::cut;
use alluvium_base::segment::{self, Key, Opening, SegmentContents};

/// The unreadable bytes of a segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct UnreadableBytes {
    /// Bytes of an unfinished write at the end.
    pub(crate) torn_bytes: u64,
    /// Damaged bytes, which may have held acknowledged profiles.
    pub(crate) damaged_bytes: u64,
}

impl UnreadableBytes {
    /// Counts the bytes of an unfinished write as damaged, for a segment that is not the last of the log. Such a
    /// segment was complete when the next segment began, so bytes that look like an unfinished write are the remains of
    /// a record.
    pub(crate) fn of_closed_segment(self) -> Self {
        Self {
            torn_bytes: 0,
            damaged_bytes: self.damaged_bytes + self.torn_bytes,
        }
    }
}

/// Reads a segment record by record, so that a large segment needs little memory. After the first damage, all remaining
/// bytes are read into memory and searched for further records. If the magic number of the segment is damaged, the
/// records after it are still read. If the segment has a `.cut` file, the refused records at its end are
/// not read.
pub(crate) fn read(path: &Path, mut receive: impl FnMut(Bytes)) -> Result<UnreadableBytes, StoreError> {
    let failed = |error| StoreError::io("read", path)(error);
    let file = File::open(path).map_err(failed)?;
    let length = durable_length(&file, path).map_err(failed)?;
    let mut first = Vec::new();
    let max = length.min(segment::KEYED_HEADER_BYTES as u64);
    (&file).take(max).read_to_end(&mut first).map_err(failed)?;
    let mut ending = UnreadableBytes::default();
    let Some(Opening {
        key,
        bytes,
        damaged_bytes,
    }) = Opening::of(&first)
    else {
        ending.torn_bytes = length;
        return Ok(ending);
    };
    ending.damaged_bytes = damaged_bytes;
    let mut position = bytes as u64;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    reader.seek(SeekFrom::Start(position)).map_err(failed)?;
    while position < length {
        if let Some(payload) = next_record(&mut reader, length - position, key).map_err(failed)? {
            position += (segment::RECORD_HEADER_BYTES + payload.len()) as u64;
            receive(payload);
        } else {
            let rest = search_records(reader.into_inner(), position..length, key).map_err(failed)?;
            for payload in rest.records {
                receive(payload);
            }
            ending.torn_bytes += rest.torn_bytes;
            ending.damaged_bytes += rest.damaged_bytes;
            break;
        }
    }
    Ok(ending)
}

/// Writes a segment again, in place, and syncs it. A killed process may have left bytes that exist only in the system's
/// page cache. After a failed sync, the system treats such bytes as written, so another sync alone would write nothing.
pub(crate) fn rewrite_segment(path: &Path, faults: &Faults) -> Result<(), StoreError> {
    let renewed = faults.run(FaultPoint::LogRenew, || {
        let file = File::options().read(true).write(true).open(path)?;
        match rewrite_content(&file, path) {
            // Some file systems need room even to overwrite bytes, so this error is ignored. The sync is still tried.
            Err(error) if is_full(&error) => {}
            written => written?,
        }
        file.sync_data()
    });
    renewed.map_err(StoreError::io("sync", path))
}

fn rewrite_content(file: &File, path: &Path) -> io::Result<()> {
    let length = durable_length(file, path)?;
    let mut buffer = vec![0; 1 << 20];
    let mut offset = 0;
    while offset < length {
        let part = &mut buffer[..(length - offset).min(1 << 20) as usize];
        file.read_exact_at(part, offset)?;
        file.write_all_at(part, offset)?;
        offset += part.len() as u64;
    }
    Ok(())
}

/// Cuts an unfinished write of `bytes` bytes off a segment. The cut is durable when the function returns.
pub(crate) fn cut(path: &Path, bytes: u64) -> Result<(), StoreError> {
    let truncate = || {
        let file = File::options().write(true).open(path)?;
        file.set_len(file.metadata()?.len().saturating_sub(bytes))?;
        file.sync_all()
    };
    truncate().map_err(StoreError::io("cut", path))
}

/// Returns the length of a segment. If the segment has a `.cut` file, the refused records at its end do not count.
fn durable_length(file: &File, path: &Path) -> io::Result<u64> {
    let length = file.metadata()?.len();
    Ok(cut::read(path)?.map_or(length, |durable| length.min(durable)))
}

/// Returns the record at the reader's position, or `None` if the `left` bytes do not start with a valid record.
fn next_record(reader: &mut impl Read, left: u64, key: Key) -> io::Result<Option<Bytes>> {
    let mut header = [0; segment::RECORD_HEADER_BYTES];
    if left < header.len() as u64 {
        return Ok(None);
    }
    reader.read_exact(&mut header)?;
    let [a, b, c, d, e, f, g, h] = header;
    let (length, checksum) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    if length == 0 || u64::from(length) > left - header.len() as u64 || length as usize > segment::MAX_RECORD_BYTES {
        return Ok(None);
    }
    let mut payload = vec![0; length as usize];
    reader.read_exact(&mut payload)?;
    Ok((key.checksum(&payload) == checksum).then(|| Bytes::from(payload)))
}

/// Searches the range for valid records.
fn search_records(mut file: File, range: Range<u64>, key: Key) -> io::Result<SegmentContents> {
    file.seek(SeekFrom::Start(range.start))?;
    let mut data = Vec::new();
    file.take(range.end - range.start).read_to_end(&mut data)?;
    Ok(segment::records(Bytes::from(data), 0, key))
}
