//! The index of a queue's segment files: the records that wait in them, and the segment for the next record.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::common::sending::outbox::metrics::{DropReason, EndpointMetrics};
use crate::common::sending::outbox::queue::age::{Drops, Moment, Queued};
use crate::common::sending::outbox::queue::cursor::Cursor;
use crate::common::sending::outbox::queue::files::segment_path;
use crate::common::sending::outbox::queue::record;
use alluvium_base::segment;

/// Size in bytes at which a segment is closed. Disk space is freed in steps of this size.
pub(super) const SEGMENT_BYTES: u64 = 8 << 20;
/// Minimum size in bytes at which a segment is closed after the disk was full.
const SMALL_SEGMENT_BYTES: u64 = 64 << 10;
/// Number of small segments that a full disk should have room for, so that little is dropped at a time.
const SMALL_SEGMENTS: u64 = 8;

/// Limits of a queue in bytes and age.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Limits {
    /// Maximum number of bytes of waiting records. Files may take one segment (8 MiB) more.
    pub max_bytes: u64,
    /// Maximum age of a waiting profile.
    pub max_age: Duration,
}

/// The segments of a queue and the records that wait in them.
pub(super) struct State {
    pub(super) limits: Limits,
    /// Records that wait, oldest first.
    pub(super) entries: VecDeque<Entry>,
    /// Number of entries at the front that are being sent. The limits do not drop these entries.
    pub(super) in_flight: usize,
    pub(super) bytes: u64,
    /// Segments, oldest first. If `is_writing` is true, new records are written to the last segment.
    pub(super) segments: VecDeque<Segment>,
    pub(super) is_writing: bool,
    /// Size in bytes at which a segment is closed. Less than [`SEGMENT_BYTES`] after the only segment was dropped on a
    /// full disk, until all profiles have been sent.
    segment_bytes: u64,
    pub(super) next_segment: u64,
    pub(super) next_id: u64,
    pub(super) saved: Cursor,
    pub(super) unsynced: u64,
    /// Profiles that the limits have dropped.
    pub(super) drops: Drops,
}

/// A record that waits to be sent.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) id: u64,
    pub(super) segment: u64,
    pub(super) offset: u64,
    /// Size of the record with its framing, in bytes.
    pub(super) length: u32,
    pub(super) queued: Queued,
}

/// A segment file, which is kept open.
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) file: Arc<File>,
    pub(super) bytes: u64,
    /// Number of entries that still wait in the segment.
    pub(super) waiting: usize,
}

impl State {
    /// Returns an empty state. All records before `saved` have been handled.
    pub(super) fn new(limits: Limits, saved: Cursor) -> Self {
        Self {
            limits,
            entries: VecDeque::new(),
            in_flight: 0,
            bytes: 0,
            segments: VecDeque::new(),
            is_writing: false,
            segment_bytes: SEGMENT_BYTES,
            next_segment: saved.segment + 1,
            next_id: 0,
            saved,
            unsynced: 0,
            drops: Drops::default(),
        }
    }

    /// Adds the records of a segment that a former process left. An unfinished write counts as damage, except at the
    /// end of the last segment.
    pub(super) fn restore(
        &mut self,
        (number, is_last): (u64, bool),
        path: &Path,
        metrics: &EndpointMetrics,
        now: Moment,
    ) -> io::Result<()> {
        let data = Bytes::from(fs::read(path)?);
        let start = data.as_ptr() as usize;
        let contents = match segment::parse(data.clone()) {
            Ok(contents) => contents,
            Err(reason) => {
                tracing::error!(path = %path.display(), reason = %reason, "a file in the queue is not a segment and is \
                    ignored");
                return Ok(());
            }
        };
        let torn_bytes = if is_last { contents.torn_bytes } else { 0 };
        let mut damaged_bytes = contents.damaged_bytes + contents.torn_bytes - torn_bytes;
        if number == self.saved.segment && data.len() as u64 <= self.saved.offset {
            // All records of the segment have left the queue, so damage does not matter.
            damaged_bytes = 0;
        }
        if damaged_bytes > 0 {
            let kept = path.with_extension("damaged");
            // If the copy exists, an earlier start has already counted the damage.
            if !matches!(fs::hard_link(path, &kept), Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
                metrics.dropped(DropReason::Damaged, 1, damaged_bytes);
                tracing::error!(path = %kept.display(), bytes = damaged_bytes, "queued profiles are damaged and \
                    dropped; their segment is kept");
            }
        }
        if torn_bytes > 0 {
            tracing::warn!(path = %path.display(), bytes = torn_bytes, "the last write of the queue is incomplete");
            // The incomplete write is removed, because it would count as damage once another segment follows.
            File::options().write(true).open(path)?.set_len(contents.valid_bytes)?;
        }
        let before = self.entries.len();
        for payload in &contents.records {
            let offset = (payload.as_ptr() as usize - start - segment::RECORD_HEADER_BYTES) as u64;
            if number == self.saved.segment && offset < self.saved.offset {
                continue;
            }
            let length = payload.len() + segment::RECORD_HEADER_BYTES;
            let Ok(queued_ms) = record::queued_ms(payload) else {
                metrics.dropped(DropReason::Damaged, 1, length as u64);
                continue;
            };
            self.entries.push_back(Entry {
                id: self.next_id,
                segment: number,
                offset,
                length: length as u32,
                queued: Queued::restored(queued_ms, now),
            });
            self.next_id += 1;
            self.bytes += length as u64;
        }
        let waiting = self.entries.len() - before;
        if waiting == 0 {
            return fs::remove_file(path);
        }
        let file = File::open(path)?;
        // A killed process may have left unsynced writes, and no other code syncs them.
        file.sync_data()?;
        self.segments.push_back(Segment {
            number,
            file: Arc::new(file),
            bytes: contents.valid_bytes,
            waiting,
        });
        Ok(())
    }

    /// Writes framed records to the current segment or a new one. Returns the offset at which they start.
    pub(super) fn write(&mut self, folder: &Path, bytes: &[u8]) -> io::Result<u64> {
        // Segments grow with the queue, which bounds the number of open files.
        let full_bytes = self.segment_bytes.max(self.bytes / SMALL_SEGMENTS).min(SEGMENT_BYTES);
        let is_full = self.segments.back().is_none_or(|segment| segment.bytes >= full_bytes);
        if !self.is_writing || is_full {
            if self.unsynced > 0
                && let Some(segment) = self.segments.back()
            {
                // A closed segment is always synced, so that `sync` needs to handle only the last segment.
                segment.file.sync_data()?;
                self.unsynced = 0;
            }
            let number = self.next_segment;
            let path = segment_path(folder, number);
            let created = segment::create(&path).and_then(|file| File::open(folder)?.sync_all().map(|()| file));
            // A full disk may leave a file without a header. That file would make the next attempt fail.
            let file = created.inspect_err(|_| drop(fs::remove_file(&path)))?;
            self.next_segment += 1;
            self.is_writing = true;
            self.segments.push_back(Segment {
                number,
                file: Arc::new(file),
                bytes: segment::MAGIC.len() as u64,
                waiting: 0,
            });
        }
        let Some(segment) = self.segments.back_mut() else {
            return Err(io::Error::other("the queue has no segment to write to"));
        };
        let start = segment.bytes;
        if let Err(error) = segment.file.as_ref().write_all(bytes) {
            self.cut(start);
            return Err(error);
        }
        segment.bytes += bytes.len() as u64;
        self.unsynced += bytes.len() as u64;
        Ok(start)
    }

    /// Removes everything that was written to the last segment from `start` on, even a partial write.
    pub(super) fn cut(&mut self, start: u64) {
        let Some(segment) = self.segments.back_mut() else {
            return;
        };
        self.unsynced -= segment.bytes - start;
        segment.bytes = start;
        // If truncation fails, the segment stays unchanged, and the next write starts another segment.
        if segment.file.set_len(start).is_err() {
            self.is_writing = false;
        }
    }

    /// Adds records that were written to the last segment from `offset` on.
    pub(super) fn put(&mut self, mut offset: u64, lengths: &[u32], queued: Queued) {
        let Some(segment) = self.segments.back_mut() else {
            return;
        };
        segment.waiting += lengths.len();
        for length in lengths {
            self.entries.push_back(Entry {
                id: self.next_id,
                segment: segment.number,
                offset,
                length: *length,
                queued,
            });
            self.next_id += 1;
            offset += u64::from(*length);
            self.bytes += u64::from(*length);
        }
    }

    /// Removes entries by id. They must be among the first `in_flight` entries.
    pub(super) fn remove(&mut self, ids: &[u64]) {
        let front: Vec<Entry> = self.entries.drain(..self.in_flight.min(self.entries.len())).collect();
        for entry in front.into_iter().rev() {
            if ids.contains(&entry.id) {
                self.forget(&entry);
            } else {
                self.entries.push_front(entry);
            }
        }
        if self.entries.is_empty() {
            self.segment_bytes = SEGMENT_BYTES;
        }
    }

    /// Reduces the totals by an entry that is no longer in `entries`.
    pub(super) fn forget(&mut self, entry: &Entry) {
        self.bytes -= u64::from(entry.length);
        if let Some(segment) = self.segments.iter_mut().find(|segment| segment.number == entry.segment) {
            segment.waiting -= 1;
        }
    }

    /// Returns the number of the oldest segment that is neither being sent nor written to.
    pub(super) fn oldest_at_rest(&self) -> Option<u64> {
        let (sent, written) = (self.sent_segment(), self.written_segment());
        let mut numbers = self.segments.iter().map(|segment| segment.number);
        numbers.find(|number| sent.is_none_or(|sent| *number > sent) && Some(*number) != written)
    }

    /// Closes the segment that is being written, and returns its number. The next write starts a smaller segment.
    /// Returns `None` and closes nothing if the segment contains profiles that are being sent, or less than `min_bytes`
    /// bytes.
    pub(super) fn close_written(&mut self, min_bytes: u64) -> Option<u64> {
        let number = self.written_segment()?;
        let segment = self.segments.back()?;
        if self.sent_segment() == Some(number) || segment.bytes < min_bytes {
            return None;
        }
        self.segment_bytes = (segment.bytes / SMALL_SEGMENTS).clamp(SMALL_SEGMENT_BYTES, SEGMENT_BYTES);
        self.is_writing = false;
        Some(number)
    }

    /// Returns the number of the last segment with profiles that are being sent.
    fn sent_segment(&self) -> Option<u64> {
        let last = self.entries.get(self.in_flight.checked_sub(1)?);
        last.map(|entry| entry.segment)
    }

    /// Returns the number of the segment that is being written.
    fn written_segment(&self) -> Option<u64> {
        self.is_writing.then(|| self.next_segment - 1)
    }

    /// Removes a segment from the index, and returns its waiting entries.
    pub(super) fn drop_segment(&mut self, number: u64) -> Vec<Entry> {
        let (dropped, kept): (Vec<Entry>, Vec<Entry>) =
            self.entries.drain(..).partition(|entry| entry.segment == number);
        self.entries = kept.into();
        self.bytes -= dropped.iter().map(|entry| u64::from(entry.length)).sum::<u64>();
        if self.segments.back().is_some_and(|segment| segment.number == number) {
            // Only the last segment has unsynced bytes.
            self.unsynced = 0;
        }
        self.segments.retain(|segment| segment.number != number);
        dropped
    }

    pub(super) fn file_of(&self, number: u64) -> Option<Arc<File>> {
        self.segments
            .iter()
            .find(|segment| segment.number == number)
            .map(|segment| segment.file.clone())
    }
}
