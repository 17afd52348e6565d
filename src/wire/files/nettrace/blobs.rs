//! Events of a block. The header of an event is complete, or contains only the fields that differ from the preceding
//! event.

use crate::files::nettrace::cursor::{Cursor, Problem};

/// Flag of a block: the headers of its events are compressed.
const COMPRESSED: u16 = 1;

// Flags of an event with a compressed header.
const HAS_METADATA: u8 = 1;
const HAS_CAPTURE: u8 = 2;
const HAS_THREAD: u8 = 4;
const HAS_STACK: u8 = 8;
const HAS_ACTIVITY: u8 = 16;
const HAS_RELATED: u8 = 32;
const HAS_LENGTH: u8 = 128;

/// Length in bytes of an activity id.
const GUID_BYTES: usize = 16;

/// The parts of an event that the reader uses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Event<'a> {
    /// Number of the event's description.
    pub kind: u32,
    pub thread: u64,
    /// Number of the event's stack; 0 means none.
    pub stack: u32,
    /// Time in ticks of the trace's clock.
    pub time: u64,
    pub payload: Cursor<'a>,
}

/// Header fields that the next event may inherit.
#[derive(Debug, Clone, Copy, Default)]
struct Header {
    kind: u32,
    thread: u64,
    stack: u32,
    time: u64,
    length: u32,
}

/// The events of a block, one after the other.
pub(super) struct Blobs<'a> {
    cursor: Cursor<'a>,
    is_compressed: bool,
    header: Header,
}

impl<'a> Blobs<'a> {
    /// Reads the header of a block of events or of event descriptions.
    pub(super) fn of(mut block: Cursor<'a>) -> Result<Self, Problem> {
        let start = block.position();
        let length = usize::from(block.u16()?);
        let flags = block.u16()?;
        let consumed_bytes = block.position() - start;
        let Some(rest) = length.checked_sub(consumed_bytes) else {
            return Err(block.malformed("the header of a block is too short"));
        };
        block.bytes(rest)?;
        Ok(Self {
            cursor: block,
            is_compressed: flags & COMPRESSED != 0,
            header: Header::default(),
        })
    }

    /// Returns the next event, or `None` at the end of the block.
    pub(super) fn next(&mut self) -> Result<Option<Event<'a>>, Problem> {
        if self.cursor.is_at_end() {
            return Ok(None);
        }
        if self.is_compressed {
            self.compressed().map(Some)
        } else {
            self.plain().map(Some)
        }
    }

    fn compressed(&mut self) -> Result<Event<'a>, Problem> {
        let (cursor, header) = (&mut self.cursor, &mut self.header);
        let flags = cursor.u8()?;
        let has = |flag: u8| flags & flag != 0;
        if has(HAS_METADATA) {
            header.kind = cursor.small_number()?;
        }
        if has(HAS_CAPTURE) {
            // Sequence number, thread that captured the event, and its processor.
            cursor.small_number()?;
            cursor.number()?;
            cursor.small_number()?;
        }
        if has(HAS_THREAD) {
            header.thread = cursor.number()?;
        }
        if has(HAS_STACK) {
            header.stack = cursor.small_number()?;
        }
        header.time = header.time.wrapping_add(cursor.number()?);
        for flag in [HAS_ACTIVITY, HAS_RELATED] {
            if has(flag) {
                cursor.bytes(GUID_BYTES)?;
            }
        }
        if has(HAS_LENGTH) {
            header.length = cursor.small_number()?;
        }
        let payload = cursor.part(header.length as usize)?;
        Ok(header.event(payload))
    }

    fn plain(&mut self) -> Result<Event<'a>, Problem> {
        let size = self.cursor.u32()? as usize;
        let mut event = self.cursor.part(size)?;
        // The highest bit is a flag for the order of events by time, which the reader ignores.
        let kind = event.u32()? & 0x7fff_ffff;
        let _sequence = event.u32()?;
        let thread = event.u64()?;
        let _capture_thread = event.u64()?;
        let _processor = event.u32()?;
        let stack = event.u32()?;
        let time = event.u64()?;
        event.bytes(2 * GUID_BYTES)?;
        let length = event.u32()?;
        let payload = event.part(length as usize)?;
        if !self.cursor.is_at_end() {
            self.cursor.align()?;
        }
        let header = Header {
            kind,
            thread,
            stack,
            time,
            length,
        };
        Ok(header.event(payload))
    }
}

impl Header {
    fn event(self, payload: Cursor<'_>) -> Event<'_> {
        Event {
            kind: self.kind,
            thread: self.thread,
            stack: self.stack,
            time: self.time,
            payload,
        }
    }
}
